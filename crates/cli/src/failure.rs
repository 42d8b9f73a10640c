//! Why a command could not be carried out, and what to do about it.

use std::fmt::Display;
use std::io::{Error, ErrorKind};

use countersign_store::sqlite::OpenError;

use crate::exit::Exit;

/// A command that could not be carried out.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: anyhow::Error,
    pub(crate) hint: Option<String>,
    pub(crate) exit: Exit,
}

impl Failure {
    /// One sentence: lower case, no full stop, names the thing.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            error: anyhow::Error::msg(message.into()),
            hint: None,
            exit: Exit::Usage,
        }
    }

    /// A file, or stdin, that cannot be read. The system's words for text that is none help nobody.
    pub(crate) fn unreadable(what: impl Display, error: Error) -> Self {
        if error.kind() == ErrorKind::InvalidData {
            return Self::new(format!("cannot read {what}: it is not UTF-8"))
                .hint("save it as UTF-8 and try again");
        }
        let context = format!("cannot read {what}");
        anyhow::Error::new(error).context(context).into()
    }

    /// Says what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What was to be relied on does not hold.
    pub(crate) fn not_verified(mut self) -> Self {
        self.exit = Exit::NotVerified;
        self
    }

    /// The same where it is the store that is damaged.
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

    /// Whether another process has the file of the store.
    pub(crate) fn is_in_use(&self) -> bool {
        let open = self.error.downcast_ref::<OpenError>();
        matches!(open, Some(OpenError::InUse { .. }))
    }

    /// Everything was in order, and the answer is no.
    pub(crate) fn refused(mut self) -> Self {
        self.exit = Exit::Refused;
        self
    }

    /// Whether the reader of our output has gone: nothing is left to be said, and nobody to say it to.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let io = self.error.downcast_ref::<Error>();
        io.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            hint: None,
            exit: Exit::Usage,
        }
    }
}
