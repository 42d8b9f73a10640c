//! How a command ends, for the shell. 3 is kept for a verification that failed.

use std::process::ExitCode;

/// The exit codes, closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked.
    Ok,
    /// The call answered an error, or the text has no safe reading.
    Refused,
    /// The command could not be carried out as it was given.
    Usage,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Ok => Self::SUCCESS,
            Exit::Refused => Self::from(1),
            Exit::Usage => Self::from(2),
        }
    }
}
