//! Where a command writes: data to stdout, everything about it to stderr, in an order that holds
//! also where both are the same screen.

use std::fmt::Display;
use std::io::{BufWriter, IsTerminal as _, Result, Stderr, Stdout, Write, stderr, stdout};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::table::visible;

/// The two outputs of a command.
pub(crate) struct Terminal {
    json: bool,
    out: BufWriter<Stdout>,
    err: Stderr,
}

impl Terminal {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            out: BufWriter::with_capacity(64 * 1024, stdout()),
            err: stderr(),
        }
    }

    /// Whether a program reads what we write.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.json
    }

    /// Whether a person sees colours: at a terminal, and where nobody has said that there are to be none.
    pub(crate) fn is_coloured(&self) -> bool {
        let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        !self.json && !is_unwanted && !is_dumb && stdout().is_terminal()
    }

    /// How many columns a person sees; nothing where stdout is no terminal, and nothing is cut or wrapped for it.
    pub(crate) fn columns(&self) -> Option<usize> {
        let out = stdout();
        if self.json || !out.is_terminal() {
            return None;
        }
        let size = rustix::termios::tcgetwinsize(&out).ok()?;
        // Some terminals say 0 for what they do not know.
        (size.ws_col > 0).then(|| usize::from(size.ws_col))
    }

    /// Where data goes; buffered until [`flush`](Terminal::flush).
    pub(crate) fn data(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// A line about the data. What was written before it is on the screen before it.
    pub(crate) fn say(&mut self, line: impl Display) -> Result<()> {
        self.out.flush()?;
        writeln!(self.err, "{line}")
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }

    /// Says why the command could not be carried out. A reader that has gone is no failure.
    pub(crate) fn report(&mut self, failure: &Failure) -> Exit {
        if failure.is_broken_pipe() {
            return Exit::Ok;
        }
        // That stdout cannot be written may be the failure, so stderr does not wait for it; where
        // stderr is gone as well, the exit code is all that can be said.
        let _ = self.out.flush();
        let _ = writeln!(
            self.err,
            "error: {}",
            visible(&format!("{:#}", failure.error))
        );
        if let Some(hint) = &failure.hint {
            let _ = writeln!(self.err, "hint: {}", visible(hint));
        }
        failure.exit
    }
}
