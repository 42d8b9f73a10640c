//! Failures of the database, and what they mean for the work that failed.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use countersign::ledger::{Error, NotOurs};
use countersign::unavailable::Unavailable;
use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use super::guard::Unfit;
use crate::backlog::Overdue;
use crate::migrate::MigrationError;

/// A store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is not valid, usually because a character of the password is not percent-encoded.
    #[error("the URL of the database is not valid")]
    Url(#[source] tokio_postgres::Error),
    /// The file with the certificates is missing or has no certificate, usually because the path is wrong or
    /// the file is not PEM.
    #[error("{path} has no readable certificates")]
    Certificates {
        /// Path of the file.
        path: String,
        /// Cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// TLS cannot be set up, usually because no cryptography provider supports the required versions.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The options allow too few connections for the number of lanes.
    /// Usually the pool was made smaller than the number of lanes.
    #[error("{found} connections are too few, {needed} are needed")]
    Connections {
        /// Number of connections that the options allow.
        found: usize,
        /// Number that the lanes and the other statements need.
        needed: usize,
    },
    /// The server is too old.
    /// Usually the address leads to another server than intended, or the server was not upgraded.
    #[error("the server is PostgreSQL {found}, {needed} or newer is needed")]
    TooOld {
        /// Its major version.
        found: i32,
        /// Oldest supported major version.
        needed: i32,
    },
    /// The server may lose commits in a crash, usually because it was tuned for tests.
    #[error("the server runs with {setting} = off and forgets commits when it crashes; turn it on")]
    Lossy {
        /// Name of the setting that is off.
        setting: &'static str,
    },
    /// The database's encoding cannot hold every string, usually because it was created with another `ENCODING`
    /// than UTF8.
    #[error("the database is encoded as {found}, UTF8 is needed")]
    Encoding {
        /// Its encoding.
        found: String,
    },
    /// Connections share sessions of the server, usually because the URL leads to a pooler such as `PgBouncer` in
    /// transaction mode.
    #[error(
        "the address leads to a pooler that lends one session to many connections (transaction pooling): settings that keep commits durable would not stay; use its session mode, or the server's own address"
    )]
    Pooled,
    /// The file with the server's identity cannot be read, usually because a permission is missing.
    #[error("{} cannot be read", path.display())]
    Identity {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The schema is not one that this program may work on, usually because a newer program has used the
    /// database.
    #[error(transparent)]
    Migration(#[from] MigrationError),
    /// The data belongs to other keys, usually because the URL names another installation's database.
    #[error(transparent)]
    Installation(#[from] NotOurs),
    /// The database did not answer, usually because it is down or unreachable.
    #[error("the database cannot be used")]
    Database(#[from] Failure),
}

/// A statement or a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No connection is available, usually because the server is down or all connections are in use.
    #[error("there is no connection to the database")]
    Pool(#[from] PoolError),
    /// The database refused a statement, or the connection broke.
    /// Usually the server was restarted, or the network failed.
    #[error("the database failed")]
    Database(#[from] tokio_postgres::Error),
    /// The database did not answer in time, usually because it is overloaded or the network dropped the
    /// connection.
    #[error("the database was silent for {limit_ms} ms")]
    Silent {
        /// Timeout in milliseconds.
        limit_ms: u128,
    },
    /// Other transactions changed the same row on every retry. Usually many callers write the same document at once.
    #[error("{what} was changed by others {tries} times in a row")]
    Contended {
        /// Name of what was changed.
        what: &'static str,
        /// Number of attempts.
        tries: u32,
    },
    /// The store is being closed. Usually the server is shutting down.
    #[error("the store is closed")]
    Closed,
    /// A row cannot be decoded, usually because something else than this program wrote it.
    #[error("{what} in the store is damaged")]
    Damaged {
        /// Name of what is damaged.
        what: String,
    },
    /// The server may lose what is committed, or is another one than before.
    /// Usually a setting was changed, or a fail-over led to another server.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// Records could not be kept for too long, so no more are taken.
    /// Usually the database cannot be reached, or its disk is full.
    #[error("records could not be kept for {seconds} s; no more are taken until they are")]
    Overdue {
        /// Time since the first one could not be kept, in seconds.
        seconds: u64,
    },
    /// The failure of a transaction, shared by all the calls in it.
    /// Its cause is that of the transaction, usually a lost connection.
    #[error(transparent)]
    Shared(Arc<Failure>),
}

/// Consequence of a failure for the work that was being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The connection is lost; whether the last statement was done is not known.
    Lost,
    /// Nothing was done, and the whole transaction may be retried.
    Again,
    /// Nothing was done, because another transaction held a row for too long.
    Locked,
    /// Nothing was done, and a retry would fail in the same way.
    Refused,
}

impl Failure {
    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }

    pub(super) fn meaning(&self) -> Meaning {
        match self {
            Self::Database(error) => meaning(error),
            Self::Silent { .. } => Meaning::Lost,
            Self::Pool(_)
            | Self::Contended { .. }
            | Self::Closed
            | Self::Damaged { .. }
            | Self::Unfit(_)
            | Self::Overdue { .. } => Meaning::Refused,
            Self::Shared(failure) => failure.meaning(),
        }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.meaning() == Meaning::Lost
    }

    /// True if a single call of the batch may be the cause: then the others need not share its failure.
    pub(super) fn may_be_of_one(&self) -> bool {
        match self {
            Self::Database(_) | Self::Damaged { .. } => !self.is_lost(),
            Self::Pool(_)
            | Self::Silent { .. }
            | Self::Contended { .. }
            | Self::Closed
            | Self::Unfit(_)
            | Self::Overdue { .. } => false,
            Self::Shared(failure) => failure.may_be_of_one(),
        }
    }

    /// True if the server or the way to it is the cause, not what a call wrote or whom it met.
    pub(super) fn is_of_server(&self) -> bool {
        match self {
            Self::Database(_) => match self.meaning() {
                Meaning::Lost => true,
                Meaning::Again | Meaning::Locked => false,
                Meaning::Refused => !self.is_final(),
            },
            Self::Pool(_) | Self::Silent { .. } | Self::Unfit(_) | Self::Overdue { .. } => true,
            Self::Contended { .. } | Self::Closed | Self::Damaged { .. } => false,
            Self::Shared(failure) => failure.is_of_server(),
        }
    }

    /// True if a retry of the same record is always refused again.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Database(error) => {
                // Data that no column accepts: class 22. Everything else may be temporary.
                let state = error.code().map(SqlState::code);
                state.is_some_and(|state| state.starts_with("22"))
            }
            Self::Closed => true,
            Self::Pool(_)
            | Self::Silent { .. }
            | Self::Contended { .. }
            | Self::Damaged { .. }
            | Self::Unfit(_)
            | Self::Overdue { .. } => false,
            Self::Shared(failure) => failure.is_final(),
        }
    }

    /// True if the statement only failed because an earlier one of the transaction had failed.
    pub(super) fn is_consequence(&self) -> bool {
        match self {
            Self::Database(error) => error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION),
            Self::Pool(_)
            | Self::Silent { .. }
            | Self::Contended { .. }
            | Self::Closed
            | Self::Damaged { .. }
            | Self::Unfit(_)
            | Self::Overdue { .. }
            | Self::Shared(_) => false,
        }
    }
}

impl From<Overdue> for Failure {
    fn from(overdue: Overdue) -> Self {
        let seconds = overdue.seconds;
        Self::Overdue { seconds }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Damaged { what } => Self::Damaged { what },
            failure @ (Failure::Pool(_)
            | Failure::Database(_)
            | Failure::Silent { .. }
            | Failure::Contended { .. }
            | Failure::Closed
            | Failure::Unfit(_)
            | Failure::Overdue { .. }
            | Failure::Shared(_)) => Self::Unavailable(Unavailable::new("store", failure)),
        }
    }
}

fn meaning(error: &tokio_postgres::Error) -> Meaning {
    if error.is_closed() {
        return Meaning::Lost;
    }
    let Some(state) = error.code() else {
        let cause = error.source();
        let is_io = cause.is_some_and(<dyn std::error::Error>::is::<io::Error>);
        return if is_io {
            Meaning::Lost
        } else {
            Meaning::Refused
        };
    };
    match state.code() {
        // The server is shutting down, or reports that the outcome is unknown.
        "57P01" | "57P02" | "57P03" | "57P05" | "40003" | "25P03" => Meaning::Lost,
        code if code.starts_with("08") => Meaning::Lost,
        "40001" | "40P01" => Meaning::Again,
        "55P03" => Meaning::Locked,
        _ => Meaning::Refused,
    }
}
