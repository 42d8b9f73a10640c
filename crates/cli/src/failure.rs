//! Why a command could not be carried out, and what to do about it.

use std::io::{Error, ErrorKind};
use std::path::Path;

/// A command that could not be carried out.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: anyhow::Error,
    pub(crate) hint: Option<String>,
}

impl Failure {
    /// One sentence: lower case, no full stop, names the thing.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            error: anyhow::Error::msg(message.into()),
            hint: None,
        }
    }

    /// A file that cannot be read.
    pub(crate) fn unreadable(path: &Path, error: Error) -> Self {
        let context = format!("cannot read {}", path.display());
        anyhow::Error::new(error).context(context).into()
    }

    /// Says what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
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
        }
    }
}
