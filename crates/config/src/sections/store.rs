//! `[store]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Period, StoreAddress};

/// The data folder and the store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    /// Folder of the keys, the newest checkpoint and, with SQLite, the data. The default is the data folder of the
    /// platform.
    #[schemars(extend("x-env" = "COUNTERSIGN_DATA", "x-flag" = "--data", "x-path" = true))]
    pub data: Option<PathBuf>,
    /// Address of the store: `sqlite:PATH`, `postgres://USER@HOST/DATABASE` without a password, or `memory`. If the
    /// address is a secret, write `env:NAME` or `file:PATH`. The default is `countersign.db` in the data folder.
    #[schemars(extend("x-env" = "COUNTERSIGN_STORE", "x-flag" = "--store", "x-path" = "scheme"))]
    pub url: Option<StoreAddress>,
    /// A store in a SQLite file: one machine, one process.
    pub sqlite: Sqlite,
    /// A store in PostgreSQL: any number of processes.
    pub postgres: Postgres,
}

/// A store in a SQLite file: one machine, one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sqlite {
    /// Free disk space that must remain, in bytes. With less, writes are refused.
    pub disk_free_bytes_min: u64,
    /// Maximum number of writes that wait for the writer. Further ones wait before they enter the queue.
    #[schemars(range(min = 1))]
    pub jobs_waiting_max: usize,
    /// Maximum number of records of reads that wait to be sealed. When it is reached, callers wait.
    #[schemars(range(min = 1))]
    pub drafts_waiting_max: usize,
    /// Number of look-ups, and of longer reads, at the same time.
    #[schemars(range(min = 1, max = 256))]
    pub readers: usize,
    /// Page cache of the writer, in bytes. Each reader has a quarter of it.
    #[schemars(range(min = 65536))]
    pub cache_bytes: usize,
}

impl Default for Sqlite {
    fn default() -> Self {
        Self {
            disk_free_bytes_min: 256 << 20,
            jobs_waiting_max: 1_024,
            drafts_waiting_max: 1_024,
            readers: 4,
            cache_bytes: 8 << 20,
        }
    }
}

/// A store in PostgreSQL: any number of processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Postgres {
    /// File with certificates (PEM) that verify the certificate of the server. The default is the public roots.
    #[schemars(extend("x-path" = true))]
    pub ca_file: Option<PathBuf>,
    /// Maximum number of connections of this process; at least two more than `lanes`.
    #[schemars(range(min = 3, max = 10_000))]
    pub connections_max: usize,
    /// Number of transactions that commit calls at the same time. Each takes all the calls that wait.
    #[schemars(range(min = 1, max = 64))]
    pub lanes: usize,
    /// Maximum number of calls in one transaction.
    #[schemars(range(min = 1, max = 10_000))]
    pub batch_max: usize,
    /// Maximum number of queued calls and records. When it is reached, callers wait.
    #[schemars(range(min = 1))]
    pub queue_max: usize,
    /// Timeout for connecting.
    pub connect_timeout: Period,
    /// Timeout for getting a free connection.
    pub acquire_timeout: Period,
    /// Timeout of a statement.
    pub statement_timeout: Period,
    /// Timeout of a statement that waits for a locked row.
    pub lock_timeout: Period,
    /// Time to find out the result of a commit whose answer was lost. After it, the reply says that the result is
    /// unknown.
    pub doubt_limit: Period,
    /// Accepts a PostgreSQL server that loses commits when it crashes (`fsync` or `synchronous_commit` is off). For
    /// tests only: calls that were answered may be lost.
    pub accept_lossy_server: bool,
}

impl Default for Postgres {
    fn default() -> Self {
        Self {
            ca_file: None,
            connections_max: 16,
            lanes: 2,
            batch_max: 128,
            queue_max: 4_096,
            connect_timeout: Period::from_secs(5),
            acquire_timeout: Period::from_secs(5),
            statement_timeout: Period::from_secs(10),
            lock_timeout: Period::from_secs(2),
            doubt_limit: Period::from_secs(20),
            accept_lossy_server: false,
        }
    }
}
