//! `[store]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Period, StoreAddress};

/// The data folder and the store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    /// The folder of the keys, the newest checkpoint and, with SQLite, the data. Left out, it is the platform's data
    /// folder.
    #[schemars(extend("x-env" = "COUNTERSIGN_DATA", "x-flag" = "--data", "x-path" = true))]
    pub data: Option<PathBuf>,
    /// The store: `sqlite:PATH`, `postgres://USER@HOST/DATABASE` without a password, `memory`, or `env:NAME` or
    /// `file:PATH` where the whole address is a secret. Left out, it is `countersign.db` in the data folder.
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
    /// The room, in bytes, that the file system has to have. Below it nothing is written, and writes are refused.
    pub disk_free_bytes_min: u64,
    /// The most writes that wait for the writer. More wait for room.
    #[schemars(range(min = 1))]
    pub jobs_waiting_max: usize,
    /// The most records of plain reads that wait to be sealed. More make their callers wait.
    #[schemars(range(min = 1))]
    pub drafts_waiting_max: usize,
    /// The look-ups, and the longer reads, that are done at once.
    #[schemars(range(min = 1, max = 256))]
    pub readers: usize,
    /// The part of the file, in bytes, that the writer may hold in memory. Each reader holds a quarter of it.
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
    /// A file of certificates, as PEM, that the certificate of the server is verified with. Left out, the public roots
    /// count.
    #[schemars(extend("x-path" = true))]
    pub ca_file: Option<PathBuf>,
    /// The most connections of this process; at least two more than `lanes`.
    #[schemars(range(min = 3, max = 10_000))]
    pub connections_max: usize,
    /// The transactions that commit calls at the same time. Each takes all the calls that wait.
    #[schemars(range(min = 1, max = 64))]
    pub lanes: usize,
    /// The most calls that one transaction commits.
    #[schemars(range(min = 1, max = 10_000))]
    pub batch_max: usize,
    /// The most calls and records that wait before their callers do.
    #[schemars(range(min = 1))]
    pub queue_max: usize,
    /// The time that connecting may take.
    pub connect_timeout: Period,
    /// The time that a free connection is waited for.
    pub acquire_timeout: Period,
    /// The time that a statement may run.
    pub statement_timeout: Period,
    /// The time that a statement may wait for a row that somebody else holds.
    pub lock_timeout: Period,
    /// The time that the answer of a commit that was lost is looked for, before the caller is told that it is not
    /// known.
    pub doubt_limit: Period,
    /// Takes a server that forgets commits when it crashes (`fsync` or `synchronous_commit` is off). For tests
    /// and trials only: what was answered may be gone.
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
