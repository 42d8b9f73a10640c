//! Exit codes of a command.

use std::process::ExitCode;

use serde::{Deserialize, Serialize};

/// The exit codes, closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Exit {
    /// The command succeeded.
    Ok,
    /// The call answered an error, or the text has no safe reading.
    Refused,
    /// The command could not be carried out as it was given.
    Usage,
    /// A verification found a fault.
    NotVerified,
    /// A bundle is consistent, and no trusted key was given: any program could have made it.
    SignerNotChecked,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Ok => Self::SUCCESS,
            Exit::Refused => Self::from(1),
            Exit::Usage => Self::from(2),
            Exit::NotVerified => Self::from(3),
            Exit::SignerNotChecked => Self::from(4),
        }
    }
}
