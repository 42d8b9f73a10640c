//! Health of a store: the numbers that operators look at and that alarms are based on.

use jiff::Timestamp;

use super::{Error, Passage};
use crate::BoxFuture;

/// Reports the health of a store.
pub trait Vitals: Send + Sync + 'static {
    /// Reads the health of the store now. The cost does not grow with what is stored: counts stop at
    /// [`COUNTED_MAX`].
    fn vitals(&self) -> BoxFuture<'_, Result<StoreVitals, Error>>;

    /// The bytes that the store takes on its disk; `None` if it has no disk, or cannot say.
    fn stored_bytes(&self) -> BoxFuture<'_, Result<Option<u64>, Error>>;
}

/// Upper bound up to which calls in doubt and waiting records are counted.
pub const COUNTED_MAX: u64 = 10_000;

/// Health of a store at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreVitals {
    /// Kind of the store.
    pub kind: StoreKind,
    /// True if the store accepts writes, and those of the last moments worked.
    pub is_writable: bool,
    /// Number of failed writes since the store was opened.
    pub write_errors: u64,
    /// Free bytes on its disk; `None` if that is not known.
    pub free_bytes: Option<u64>,
    /// Bytes that must stay free: below that, nothing is written.
    pub needed_bytes: Option<u64>,
    /// Records that are committed and not in the tree yet.
    pub records_waiting: u64,
    /// Time of the newest record: the last successful commit.
    pub newest_record: Option<Timestamp>,
    /// Claims in doubt: calls whose effect may or may not have happened.
    pub in_doubt: u64,
    /// The clock beside the latest time that was believed; `None` before the first look.
    pub passage: Option<Passage>,
}

/// The kinds of store. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// A store in memory, which ends with the process.
    Memory,
    /// A file.
    Sqlite,
    /// A database that many processes share.
    Postgres,
}

impl StoreKind {
    /// Its name in answers and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}
