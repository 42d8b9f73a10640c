//! Output of a command: data goes to stdout, everything about it to stderr, in the right order even if both are the same screen.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{BufWriter, IsTerminal as _, Result, Write, stderr, stdout};
use std::sync::{Arc, Mutex, PoisonError};

use countersign::clock::Clock;
use countersign_gateway::operator::Lines;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::paint::Paint;
use crate::progress::Bar;
use crate::running::wire;
use crate::table::visible;

/// The start of a command that a text names.
const COMMAND: &str = "`countersign ";

/// The two outputs of a command.
pub(crate) struct Terminal {
    look: Look,
    out: BufWriter<Box<dyn Write + Send>>,
    err: Box<dyn Write + Send>,
    /// Connection to the command that shows the progress bar; `None` if this process shows it.
    far: Option<Lines>,
    /// Options of the command line that say where its data is, for the commands that hints name.
    given: String,
    /// Clock of the log, if lines about the data are lines of a JSON log.
    log: Option<Arc<dyn Clock>>,
}

/// Properties of the reader of the output. A command sends them to the server that writes for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Look {
    /// True if the reader is a program.
    json: bool,
    /// True if the reader of the data is a person who sees colours.
    is_coloured: bool,
    /// True if the reader of what is said about it is one.
    is_say_coloured: bool,
    /// Width of that person's terminal in columns; `None` if it is not known.
    columns: Option<usize>,
}

impl Terminal {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            look: Look::here(json),
            out: BufWriter::with_capacity(64 * 1024, Box::new(stdout())),
            err: Box::new(stderr()),
            far: None,
            given: String::new(),
            log: None,
        }
    }

    /// Repeats these options in every command that a hint names: without them it would look at another place.
    pub(crate) fn naming(mut self, given: String) -> Self {
        self.given = given;
        self
    }

    /// A text whose commands, in backquotes, have the options of this command line.
    pub(crate) fn placed<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.given.is_empty() || !text.contains(COMMAND) {
            return Cow::Borrowed(text);
        }
        Cow::Owned(text.replace(COMMAND, &format!("{COMMAND}{} ", self.given)))
    }

    /// Makes the terminal of a command that waits in another process.
    pub(crate) fn far(look: Look, lines: &Lines) -> Self {
        let out = wire::Writer::out(lines.clone());
        Self {
            look,
            out: BufWriter::with_capacity(64 * 1024, Box::new(out)),
            err: Box::new(wire::Writer::say(lines.clone())),
            far: Some(lines.clone()),
            given: String::new(),
            log: None,
        }
    }

    /// Returns a terminal of the same kind that collects its data for the caller.
    pub(crate) fn kept(&self) -> (Self, Kept) {
        let kept = Kept::default();
        let terminal = Self {
            look: self.look,
            out: BufWriter::new(Box::new(kept.clone())),
            err: Box::new(stderr()),
            far: None,
            given: self.given.clone(),
            log: self.log.clone(),
        };
        (terminal, kept)
    }

    /// Writes everything that is not data as lines of a JSON log from now on, with this clock, so that a reader of the log reads JSON only.
    pub(crate) fn say_as_log(&mut self, clock: Arc<dyn Clock>) {
        self.log = Some(clock);
    }

    /// Returns the properties of the reader.
    pub(crate) fn look(&self) -> Look {
        self.look
    }

    /// True if a program reads the output.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.look.json
    }

    /// Returns the colours of the data. They are on if stdout is a terminal, and `NO_COLOR` or `TERM=dumb` do not turn them off.
    pub(crate) fn paint(&self) -> Paint {
        Paint::new(self.look.is_coloured)
    }

    /// Returns the width of the terminal in columns; `None` if stdout is not a terminal, and then nothing is cut or wrapped.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.look.columns
    }

    /// Returns the height of the terminal in rows; `None` if stdout is not a terminal.
    pub(crate) fn rows(&self) -> Option<usize> {
        self.look.columns?;
        let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
        (size.ws_row > 0).then(|| usize::from(size.ws_row))
    }

    /// A spinner, for people only, while something of unknown length is done.
    pub(crate) fn spinner(&self, what: &str) -> Bar {
        let bar = self.bar(0, what);
        bar.set_position(0);
        bar
    }

    /// A bar up to `total`, for people only.
    pub(crate) fn bar(&self, total: u64, what: &str) -> Bar {
        match &self.far {
            None => Bar::here(total, what),
            Some(lines) => Bar::far(total, what, lines.clone()),
        }
    }

    /// Returns the output for data, which is buffered until [`flush`](Terminal::flush).
    pub(crate) fn data(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// Writes a line about the data. Data that was written before it appears before it.
    pub(crate) fn say(&mut self, line: impl Display) -> Result<()> {
        self.out.flush()?;
        let line = line.to_string();
        if let Some(clock) = &self.log {
            let line = log_line(&**clock, &self.placed(&line), None);
            return self.err.write_all(line.as_bytes());
        }
        let line = self.say_paint().labelled(&self.placed(&line));
        self.err.write_all(format!("{line}\n").as_bytes())
    }

    fn say_paint(&self) -> Paint {
        // What comes from another process is coloured there, for the reader here.
        Paint::new(self.look.is_say_coloured)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }

    /// Reports why the command could not be carried out. A reader that is gone is not a failure.
    pub(crate) fn report(&mut self, failure: &Failure) -> Exit {
        if failure.is_broken_pipe() {
            return Exit::Ok;
        }
        // That stdout cannot be written may be the failure, so stderr does not wait for it; where
        // stderr is gone as well, the exit code is all that can be said.
        let _ = self.out.flush();
        if let Some(clock) = &self.log {
            let mut error = format!("error: {:#}", failure.error);
            for line in &failure.lines {
                error = format!("{error}; {line}");
            }
            let hint = failure.hint.as_deref().map(|hint| self.placed(hint));
            let line = log_line(&**clock, &error, hint.as_deref());
            let _ = self.err.write_all(line.as_bytes());
            return failure.exit;
        }
        let paint = self.say_paint();
        let error = format!("error: {}", visible(&format!("{:#}", failure.error)));
        let _ = writeln!(self.err, "{}", paint.labelled(&error));
        for line in &failure.lines {
            let _ = writeln!(self.err, "{}", visible(line));
        }
        if let Some(hint) = &failure.hint {
            let hint = format!("hint: {}", visible(&self.placed(hint)));
            let _ = writeln!(self.err, "{}", paint.labelled(&hint));
        }
        failure.exit
    }
}

/// A line of the JSON log, as the log of the server has them. The label of a text becomes its level.
fn log_line(clock: &dyn Clock, text: &str, hint: Option<&str>) -> String {
    let labels = [
        ("error: ", "ERROR"),
        ("warning: ", "WARN"),
        ("note: ", "INFO"),
    ];
    let labelled = labels.into_iter().find_map(|(label, level)| {
        let text = text.strip_prefix(label)?;
        Some((level, text))
    });
    let (level, message) = labelled.unwrap_or(("INFO", text));
    let mut line = json!({
        "time": format!("{:.6}", clock.now()),
        "level": level,
        "target": "countersign",
        "message": message,
    });
    if let (Some(hint), Some(members)) = (hint, line.as_object_mut()) {
        members.insert("hint".to_owned(), hint.into());
    }
    format!("{line}\n")
}

impl Look {
    fn here(json: bool) -> Self {
        let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        let is_seen = !json && stdout().is_terminal();
        let is_wanted = !is_unwanted && !is_dumb;
        Self {
            json,
            is_coloured: is_seen && is_wanted,
            is_say_coloured: stderr().is_terminal() && is_wanted,
            columns: if is_seen { columns() } else { None },
        }
    }
}

fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    // Some terminals say 0 for what they do not know.
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

/// Data that was kept.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    /// All of it.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let kept = self.0.lock();
        kept.unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
