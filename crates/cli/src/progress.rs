//! Progress of an operation that takes time: a bar on stderr, for people only.

use std::fmt::Write;
use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use countersign_gateway::operator::Lines;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::running::wire::{self, Far};

/// Minimum interval between two reports to a bar in another process.
const TOLD_EVERY: Duration = Duration::from_millis(100);

/// Interval at which a spinner turns.
const TURNED_EVERY: Duration = Duration::from_millis(120);

/// A bar in this process, or at the command that waits for us.
pub(crate) enum Bar {
    Here(ProgressBar),
    Far(Mutex<Telling>),
}

/// Progress for a bar in another process, with the time of the last report.
pub(crate) struct Telling {
    lines: Lines,
    far: Far,
    at: Option<Instant>,
}

impl Bar {
    /// Makes a bar up to `total`, which is hidden if stderr is not a terminal.
    pub(crate) fn here(total: u64, what: &str) -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        // Its look comes first: a message would draw it at once.
        let bar = ProgressBar::with_draw_target(Some(total), target).with_message(what.to_owned());
        style(&bar, total);
        Self::Here(bar)
    }

    /// Makes a bar that the command at the other end of a connection shows.
    pub(crate) fn far(total: u64, what: &str, lines: Lines) -> Self {
        let far = Far {
            what: what.to_owned(),
            done: 0,
            total,
        };
        Self::Far(Mutex::new(Telling {
            lines,
            far,
            at: None,
        }))
    }

    pub(crate) fn set_message(&self, what: &str) {
        match self {
            Self::Here(bar) => bar.set_message(what.to_owned()),
            Self::Far(telling) => tell(telling, |far| what.clone_into(&mut far.what)),
        }
    }

    pub(crate) fn set_length(&self, total: u64) {
        match self {
            Self::Here(bar) => {
                let is_first = bar.length().unwrap_or_default() == 0;
                bar.set_length(total);
                if is_first && total > 0 {
                    style(bar, total);
                }
            }
            Self::Far(telling) => tell(telling, |far| far.total = total),
        }
    }

    pub(crate) fn set_position(&self, done: u64) {
        match self {
            Self::Here(bar) => bar.set_position(done),
            Self::Far(telling) => tell(telling, |far| far.done = done),
        }
    }

    pub(crate) fn inc(&self, more: u64) {
        match self {
            Self::Here(bar) => bar.inc(more),
            Self::Far(telling) => tell(telling, |far| far.done = far.done.saturating_add(more)),
        }
    }

    pub(crate) fn finish_and_clear(&self) {
        match self {
            Self::Here(bar) => bar.finish_and_clear(),
            // The end of the answer is its end, too.
            Self::Far(_) => {}
        }
    }
}

/// Sets the look of a bar: a spinner while the amount of work is unknown.
fn style(bar: &ProgressBar, total: u64) {
    let template = if total == 0 {
        bar.enable_steady_tick(TURNED_EVERY);
        "{spinner} {msg} {elapsed}"
    } else {
        bar.disable_steady_tick();
        "{msg} {bar:32} {human_pos}/{human_len} {rate} {eta}"
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.with_key("rate", rate));
    }
}

/// Writes how much is done in a second, as a whole number.
fn rate(state: &ProgressState, text: &mut dyn Write) {
    // A line that cannot be written is not shown.
    let _ = write!(text, "{:.0}/s", state.per_sec());
}

/// Sends the progress to the other end, but not too often: a skipped report is not missed.
fn tell(telling: &Mutex<Telling>, change: impl FnOnce(&mut Far)) {
    let mut telling = telling.lock().unwrap_or_else(PoisonError::into_inner);
    change(&mut telling.far);
    let is_due = telling.at.is_none_or(|at| at.elapsed() >= TOLD_EVERY);
    if is_due {
        telling.at = Some(Instant::now());
        telling
            .lines
            .try_send(&wire::Line::Progress(telling.far.clone()));
    }
}
