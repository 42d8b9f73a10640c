//! `countersign drill`: the guarantees, tried on the operator's own configuration and policy in a scratch store.
//!
//! No upstream is called: each tool is replaced by a [double](double::Double) with the same declaration, whose only effect is that it is
//! counted. The scratch store has a log key of its own and is deleted afterwards; the real store is not opened.

mod backups;
mod checks;
mod double;
mod example;
mod scratch;
pub(crate) mod worker;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::place::PlaceOptions;

pub(crate) use scratch::Scratch;

/// Result of one check. Closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The guarantee held in every case that was tried; the text says which.
    Held(String),
    /// The guarantee was broken.
    Broken(String),
    /// The guarantee could not be tried here.
    NotChecked(String),
}

impl Outcome {
    /// Its name in tables and JSON.
    pub(crate) const fn as_str(&self) -> &'static str {
        match self {
            Self::Held(_) => "held",
            Self::Broken(_) => "broken",
            Self::NotChecked(_) => "not checked",
        }
    }

    /// The reason, or the number of cases.
    pub(crate) fn because(&self) -> &str {
        match self {
            Self::Held(text) | Self::Broken(text) | Self::NotChecked(text) => text,
        }
    }
}

/// A guarantee that was tried.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) guarantee: &'static str,
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
}

/// A check: it gets a scratch installation that is open, and says what it saw.
type Check = fn(&mut Scratch) -> Result<Outcome, Failure>;

/// The guarantees, in the order in which they are tried. Those that close, change or copy the store come last.
const CHECKS: [(&str, Check); 15] = [
    (
        "the list of tools is what may be called",
        checks::list_is_honest,
    ),
    ("an unknown argument is refused", checks::unknown_argument),
    ("a dry run changes nothing", checks::dry_run),
    ("a repeated key runs once", checks::repeat),
    (
        "a key with other arguments is refused",
        checks::other_arguments,
    ),
    ("twenty calls at once with one key run once", checks::race),
    (
        "a key of one user is not a key of another",
        checks::other_user,
    ),
    ("a call that needs a person waits for one", checks::asks),
    ("an approval is a person's, and used once", checks::approval),
    ("an expired approval is not used", checks::expired_approval),
    ("kill -9 loses and doubles nothing", checks::killed),
    ("every call is in a log that verifies", checks::log_verifies),
    ("an erased user is gone, the log verifies", checks::erasure),
    (
        "a backup can be restored, and verifies",
        backups::of_scratch,
    ),
    ("a changed byte of the log is found", checks::tampering),
];

/// The check of a backup of the real store.
const NEWEST_BACKUP: &str = "the newest backup can be restored, and verifies";

/// Tries every guarantee, with tools whose effect happens `times` times a call, and the newest of these backups, if some are named.
/// `on_check` is called before each check.
pub(crate) fn run(
    options: &PlaceOptions,
    times: usize,
    backup: Option<&Path>,
    mut on_check: impl FnMut(usize, usize),
) -> Result<Vec<Tried>, Failure> {
    let mut scratch = Scratch::make(options, times)?;
    let mut tried = Vec::new();
    let all = CHECKS.len() + usize::from(backup.is_some());
    for (place, (guarantee, check)) in CHECKS.into_iter().enumerate() {
        on_check(place, all);
        let start = Instant::now();
        let outcome = check(&mut scratch)?;
        tried.push(Tried {
            guarantee,
            outcome,
            took: start.elapsed(),
        });
    }
    if let Some(backup) = backup {
        on_check(CHECKS.len(), all);
        let start = Instant::now();
        let outcome = backups::newest(&scratch, options, backup)?;
        tried.push(Tried {
            guarantee: NEWEST_BACKUP,
            outcome,
            took: start.elapsed(),
        });
    }
    Ok(tried)
}
