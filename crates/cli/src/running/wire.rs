//! Messages at the operator's socket: an operation one way, lines of an answer the other.

use std::io::{self, ErrorKind, Write};

use countersign_gateway::operator::Lines;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Look;

/// An operation as a command asks for it.
#[derive(Serialize)]
pub(crate) struct Request<'a, O> {
    /// Name of the operator at the command.
    pub(crate) operator: &'a str,
    /// Properties of the reader that the answer is written for.
    pub(crate) look: Look,
    /// The operation with its arguments.
    pub(crate) operation: &'a O,
}

/// The request as it arrives. The operation itself reads its arguments.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Received<'a> {
    pub(crate) operator: String,
    pub(crate) look: Look,
    #[serde(borrow)]
    pub(crate) operation: &'a RawValue,
}

/// A line of an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// Data.
    Out(String),
    /// A line for stderr.
    Say(String),
    /// Progress of the operation.
    Progress(Far),
    /// The end: it was carried out.
    Done(Exit),
    /// The end: it could not be carried out.
    Failed(Told),
}

/// Progress of an operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Far {
    pub(crate) what: String,
    pub(crate) done: u64,
    pub(crate) total: u64,
}

/// A failure in words.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Told {
    message: String,
    #[serde(default)]
    lines: Vec<String>,
    hint: Option<String>,
    exit: Exit,
}

impl From<Failure> for Told {
    fn from(failure: Failure) -> Self {
        Self {
            message: format!("{:#}", failure.error),
            lines: failure.lines,
            hint: failure.hint,
            exit: failure.exit,
        }
    }
}

impl From<Told> for Failure {
    fn from(told: Told) -> Self {
        Self {
            error: anyhow::Error::msg(told.message),
            lines: told.lines,
            hint: told.hint,
            exit: told.exit,
        }
    }
}

/// Writes into an answer.
pub(crate) struct Writer {
    lines: Lines,
    line: fn(String) -> Line,
}

impl Writer {
    /// Data.
    pub(crate) fn out(lines: Lines) -> Self {
        Self {
            lines,
            line: Line::Out,
        }
    }

    /// Lines about it.
    pub(crate) fn say(lines: Lines) -> Self {
        Self {
            lines,
            line: Line::Say,
        }
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What commands write is text, in pieces that end where a character ends.
        let text = String::from_utf8_lossy(bytes).into_owned();
        let sent = self.lines.send(&(self.line)(text));
        sent.map_err(|gone| io::Error::new(ErrorKind::BrokenPipe, gone))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
