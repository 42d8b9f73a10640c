//! Failures of the database. They can be cloned for every caller of a failed batch, which the errors of the
//! ledger cannot.

use std::sync::Arc;

use countersign::ledger::Error;
use countersign::unavailable::Unavailable;
use rusqlite::ErrorCode;

use crate::backlog::Overdue;

#[derive(Debug, Clone)]
pub(super) enum Failure {
    DiskLow {
        free_bytes: u64,
        needed_bytes: u64,
    },
    /// SQLite found no room for a page, whatever the file system reports.
    NoRoom,
    Damaged {
        what: String,
    },
    UnderHold {
        reason: String,
    },
    Forked {
        size: u64,
    },
    /// Records wait for too long.
    Overdue(Overdue),
    /// The thread that does the work has ended.
    Stopped,
    Database(Arc<rusqlite::Error>),
}

impl Failure {
    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }

    /// True if the failure means that nothing else of the batch can be relied on.
    pub(super) fn ends_batch(&self) -> bool {
        match self {
            Self::NoRoom => true,
            Self::Database(error) => matches!(
                error.sqlite_error_code(),
                Some(
                    ErrorCode::SystemIoFailure
                        | ErrorCode::OutOfMemory
                        | ErrorCode::ReadOnly
                        | ErrorCode::CannotOpen
                        | ErrorCode::OperationInterrupted
                )
            ),
            Self::DiskLow { .. }
            | Self::Damaged { .. }
            | Self::UnderHold { .. }
            | Self::Forked { .. }
            | Self::Overdue(_)
            | Self::Stopped => false,
        }
    }
}

impl From<Overdue> for Failure {
    fn from(overdue: Overdue) -> Self {
        Self::Overdue(overdue)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as E;
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => return Self::NoRoom,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                let what = format!("the database file ({error})");
                return Self::Damaged { what };
            }
            _ => {}
        }
        match error {
            E::FromSqlConversionFailure(column, _, source) => {
                Self::damaged(format!("column {column} of a row ({source})"))
            }
            E::InvalidColumnType(_, name, found) => {
                Self::damaged(format!("column {name} of a row (it is {found})"))
            }
            E::IntegralValueOutOfRange(column, value) => {
                Self::damaged(format!("column {column} of a row (it is {value})"))
            }
            error => Self::Database(Arc::new(error)),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::DiskLow {
                free_bytes,
                needed_bytes,
            } => Self::DiskLow {
                free_bytes,
                needed_bytes,
            },
            Failure::NoRoom => Self::DiskLow {
                free_bytes: 0,
                needed_bytes: 1,
            },
            Failure::Damaged { what } => Self::Damaged { what },
            Failure::UnderHold { reason } => Self::UnderHold { reason },
            Failure::Forked { size } => Self::Forked { size },
            Failure::Overdue(overdue) => Unavailable::new("store", overdue).into(),
            Failure::Stopped => Unavailable::new("store", "the store is closed").into(),
            Failure::Database(source) => Unavailable::new("store", source).into(),
        }
    }
}
