//! How a store is: what an operator looks at, and what alarms go by.

use jiff::Timestamp;

use super::Error;
use crate::BoxFuture;

/// Tells how it is.
pub trait Vitals: Send + Sync + 'static {
    /// How it is now. The cost does not grow with what is stored: what is counted is counted up to
    /// [`COUNTED_MAX`].
    fn vitals(&self) -> BoxFuture<'_, Result<StoreVitals, Error>>;

    /// The bytes that it takes on its disk; none where it has none, or cannot say.
    fn stored_bytes(&self) -> BoxFuture<'_, Result<Option<u64>, Error>>;
}

/// How far calls in doubt and waiting records are counted.
pub const COUNTED_MAX: u64 = 10_000;

/// How a store is at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreVitals {
    /// What it is.
    pub kind: StoreKind,
    /// Whether it takes writes.
    pub is_writable: bool,
    /// What its disk has left; none where nobody can say.
    pub free_bytes: Option<u64>,
    /// What has to stay free: below that nothing is written.
    pub needed_bytes: Option<u64>,
    /// Records that are committed and not in the tree yet.
    pub records_waiting: u64,
    /// When the newest record says that it happened.
    pub newest_record: Option<Timestamp>,
    /// Claims in doubt: calls of which nobody knows whether their effect happened.
    pub in_doubt: u64,
}

/// The kinds of store. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// It ends with the process.
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
