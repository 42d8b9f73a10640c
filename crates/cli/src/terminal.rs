//! Where a command writes: data to stdout, everything about it to stderr, in an order that holds
//! also where both are the same screen.

use std::fmt::Display;
use std::io::{BufWriter, IsTerminal as _, Result, Write, stderr, stdout};
use std::sync::{Arc, Mutex, PoisonError};

use countersign_gateway::operator::Lines;
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::running::wire;
use crate::table::visible;

/// The two outputs of a command.
pub(crate) struct Terminal {
    look: Look,
    out: BufWriter<Box<dyn Write + Send>>,
    err: Box<dyn Write + Send>,
    /// Where a bar is shown; none where that is this process.
    far: Option<Lines>,
}

/// What is known of whoever reads the output. A server that writes for a command is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Look {
    /// Whether it is a program.
    json: bool,
    /// Whether it is a person who sees colours.
    is_coloured: bool,
    /// How many columns that person sees.
    columns: Option<usize>,
}

impl Terminal {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            look: Look::here(json),
            out: BufWriter::with_capacity(64 * 1024, Box::new(stdout())),
            err: Box::new(stderr()),
            far: None,
        }
    }

    /// That of a command that waits for us elsewhere.
    pub(crate) fn far(look: Look, lines: &Lines) -> Self {
        let out = wire::Writer::out(lines.clone());
        Self {
            look,
            out: BufWriter::with_capacity(64 * 1024, Box::new(out)),
            err: Box::new(wire::Writer::say(lines.clone())),
            far: Some(lines.clone()),
        }
    }

    /// The same terminal, whose data is kept until somebody asks for it.
    pub(crate) fn kept(&self) -> (Self, Kept) {
        let kept = Kept::default();
        let terminal = Self {
            look: self.look,
            out: BufWriter::new(Box::new(kept.clone())),
            err: Box::new(stderr()),
            far: None,
        };
        (terminal, kept)
    }

    /// What is known of whoever reads.
    pub(crate) fn look(&self) -> Look {
        self.look
    }

    /// Whether a program reads what we write.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.look.json
    }

    /// Whether a person sees colours: at a terminal, and where nobody has said that there are to be none.
    pub(crate) fn is_coloured(&self) -> bool {
        self.look.is_coloured
    }

    /// How many columns a person sees; nothing where stdout is no terminal, and nothing is cut or wrapped for it.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.look.columns
    }

    /// A bar up to `total`, for people only.
    pub(crate) fn bar(&self, total: u64, what: &str) -> Bar {
        match &self.far {
            None => Bar::here(total, what),
            Some(lines) => Bar::far(total, what, lines.clone()),
        }
    }

    /// Where data goes; buffered until [`flush`](Terminal::flush).
    pub(crate) fn data(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// A line about the data. What was written before it is on the screen before it.
    pub(crate) fn say(&mut self, line: impl Display) -> Result<()> {
        self.out.flush()?;
        self.err.write_all(format!("{line}\n").as_bytes())
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

impl Look {
    fn here(json: bool) -> Self {
        let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        let is_seen = !json && stdout().is_terminal();
        Self {
            json,
            is_coloured: is_seen && !is_unwanted && !is_dumb,
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
