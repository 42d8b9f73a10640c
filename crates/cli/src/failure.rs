//! Failure of a command, with a hint.

use std::fmt::Display;
use std::io::{Error, ErrorKind};

use countersign_store::sqlite::OpenError;

use crate::exit::Exit;

/// A command that could not be carried out.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: anyhow::Error,
    /// Further lines of the message.
    pub(crate) lines: Vec<String>,
    pub(crate) hint: Option<String>,
    pub(crate) exit: Exit,
}

impl Failure {
    /// Builds a failure from one sentence: lower case, no full stop, names the thing.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            error: anyhow::Error::msg(message.into()),
            lines: Vec::new(),
            hint: None,
            exit: Exit::Usage,
        }
    }

    /// Builds the failure for a file, or stdin, that cannot be read. Text that is not UTF-8 gets a message of its own, because the system's
    /// is unclear.
    pub(crate) fn unreadable(what: impl Display, error: Error) -> Self {
        if error.kind() == ErrorKind::InvalidData {
            return Self::new(format!("cannot read {what}: it is not UTF-8"))
                .hint("save it as UTF-8 and try again");
        }
        let context = format!("cannot read {what}");
        anyhow::Error::new(error).context(context).into()
    }

    /// Adds further lines to the message.
    pub(crate) fn lines(mut self, lines: Vec<String>) -> Self {
        self.lines = lines;
        self
    }

    /// Adds a hint: what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the exit code of a failed verification.
    pub(crate) fn not_verified(mut self) -> Self {
        self.exit = Exit::NotVerified;
        self
    }

    /// Sets that exit code if the store is damaged.
    pub(crate) fn not_verified_if_damaged(self) -> Self {
        match self.error.downcast_ref::<OpenError>() {
            Some(OpenError::Damaged { .. }) => self.not_verified(),
            Some(
                OpenError::InUse { .. }
                | OpenError::Io { .. }
                | OpenError::NoWriteAheadLog { .. }
                | OpenError::Schema(_)
                | OpenError::Installation(_)
                | OpenError::Database(_),
            )
            | None => self,
        }
    }

    /// True if another process has the file of the store.
    pub(crate) fn is_in_use(&self) -> bool {
        let open = self.error.downcast_ref::<OpenError>();
        matches!(open, Some(OpenError::InUse { .. }))
    }

    /// Sets the exit code of a refusal: the command worked, and the answer is no.
    pub(crate) fn refused(mut self) -> Self {
        self.exit = Exit::Refused;
        self
    }

    /// True if the reader of our output is gone, so that there is nothing left to report.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let io = self.error.downcast_ref::<Error>();
        io.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            lines: Vec::new(),
            hint: None,
            exit: Exit::Usage,
        }
    }
}
