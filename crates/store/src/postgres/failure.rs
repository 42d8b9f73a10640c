//! What went wrong with the database, and what that means for what was being done.

use std::error::Error as _;
use std::io;
use std::sync::Arc;

use countersign::ledger::{Error, NotOurs};
use countersign::unavailable::Unavailable;
use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::migrate::MigrationError;

/// A store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL cannot be read.
    #[error("the URL of the database is not valid")]
    Url(#[source] tokio_postgres::Error),
    /// The file with the certificates cannot be read.
    #[error("{path} holds no certificates that can be read")]
    Certificates {
        /// Which file.
        path: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The number of connections is too small.
    #[error("{found} connections are too few, {needed} are needed")]
    Connections {
        /// What the options say.
        found: usize,
        /// What the lanes and everybody else need.
        needed: usize,
    },
    /// The server is too old.
    #[error("the server is PostgreSQL {found}, {needed} or newer is needed")]
    TooOld {
        /// Its major version.
        found: i32,
        /// The oldest that will do.
        needed: i32,
    },
    /// The server forgets commits.
    #[error("the server runs with {setting} = off and forgets commits when it crashes; turn it on")]
    Lossy {
        /// Which setting.
        setting: &'static str,
    },
    /// The database cannot hold every text.
    #[error("the database is encoded as {found}, UTF8 is needed")]
    Encoding {
        /// Its encoding.
        found: String,
    },
    /// The schema is not one that this program may work on.
    #[error(transparent)]
    Migration(#[from] MigrationError),
    /// The data belongs to other keys.
    #[error(transparent)]
    Installation(#[from] NotOurs),
    /// The database did not answer.
    #[error("the database cannot be used")]
    Database(#[from] Failure),
}

/// A statement or a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no connection to be had.
    #[error("there is no connection to the database")]
    Pool(#[from] PoolError),
    /// The database said no, or the connection broke.
    #[error("the database failed")]
    Database(#[from] tokio_postgres::Error),
    /// It said nothing.
    #[error("the database was silent for {limit_ms} ms")]
    Silent {
        /// For how long it was waited.
        limit_ms: u128,
    },
    /// Others were always quicker.
    #[error("{what} was changed by others {tries} times in a row")]
    Contended {
        /// What was wanted.
        what: &'static str,
        /// How often.
        tries: u32,
    },
    /// The store is being closed.
    #[error("the store is closed")]
    Closed,
    /// What was read makes no sense.
    #[error("{what} in the store is damaged")]
    Damaged {
        /// What it is.
        what: String,
    },
    /// The same failure, told to everybody who shared a transaction.
    #[error(transparent)]
    Shared(Arc<Failure>),
}

/// What a failure says about the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The connection is gone, and with it the knowledge whether the last statement was done.
    Lost,
    /// Nothing was done, and the whole transaction may be done again.
    Again,
    /// Nothing was done, because a row was held for too long.
    Locked,
    /// Nothing was done, and doing it again would end alike.
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
            Self::Pool(_) | Self::Contended { .. } | Self::Closed | Self::Damaged { .. } => {
                Meaning::Refused
            }
            Self::Shared(failure) => failure.meaning(),
        }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.meaning() == Meaning::Lost
    }

    /// Whether one call of many may be the cause: then the others need not share its failure.
    pub(super) fn may_be_of_one(&self) -> bool {
        match self {
            Self::Database(_) | Self::Damaged { .. } => !self.is_lost(),
            Self::Pool(_) | Self::Silent { .. } | Self::Contended { .. } | Self::Closed => false,
            Self::Shared(failure) => failure.may_be_of_one(),
        }
    }

    /// Whether the same record will be refused again, however often it is tried.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Database(error) => {
                // Data that no column takes: class 22. Everything else may pass.
                let state = error.code().map(SqlState::code);
                state.is_some_and(|state| state.starts_with("22"))
            }
            Self::Closed => true,
            Self::Pool(_) | Self::Silent { .. } | Self::Contended { .. } | Self::Damaged { .. } => {
                false
            }
            Self::Shared(failure) => failure.is_final(),
        }
    }

    /// Whether it only happened because an earlier statement of the transaction had failed.
    pub(super) fn is_consequence(&self) -> bool {
        match self {
            Self::Database(error) => error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION),
            Self::Pool(_)
            | Self::Silent { .. }
            | Self::Contended { .. }
            | Self::Closed
            | Self::Damaged { .. }
            | Self::Shared(_) => false,
        }
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
        // The server is going down, or says itself that it does not know.
        "57P01" | "57P02" | "57P03" | "57P05" | "40003" | "25P03" => Meaning::Lost,
        code if code.starts_with("08") => Meaning::Lost,
        "40001" | "40P01" => Meaning::Again,
        "55P03" => Meaning::Locked,
        _ => Meaning::Refused,
    }
}
