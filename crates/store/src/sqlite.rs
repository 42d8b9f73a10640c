//! The SQLite store: one file, one process, nothing to install.
//!
//! ```text
//!   callers ──── look-ups ────► readers ───────────────────────────┐
//!      │                                                           ▼
//!      ├──── claim, commit ──────────────────► writer ──────► database file
//!      └──── records without a wait   ─► sealer ─┘  one transaction for all that waits
//! ```
//!
//! - `writer`: one thread, group commit; `sealer`: records off the callers' path; `checkpointer`:
//!   the write-ahead log off the writer's.
//! - `claims`, `documents`, `log`, `keyring`, `installation`, `pots`, `paces`, `texts`, `outbox`: the traits of the ledger, statement by
//!   statement.
//! - `timekeeping`: the latest time that was believed, and the removal of what is past its time.
//! - `open`: the lock of the file, the schema, and the state that the previous run left behind.
//! - `tip`: the end of the log in memory.
//! - `backup`: the file as of one moment, copied and verified while others write; `restore`: puts its documents back.

mod backup;
mod checkpointer;
mod claims;
mod connection;
mod content;
mod disk;
mod documents;
mod dump;
mod failure;
mod installation;
mod keyring;
mod log;
mod migrate;
mod open;
mod outbox;
mod paces;
mod pots;
mod readers;
mod restore;
mod sealer;
mod texts;
mod time;
mod timekeeping;
mod tip;
mod values;
mod vitals;
mod writer;

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use countersign::BoxFuture;
use countersign::clock::{Clock, SystemClock};
use countersign::ledger::{Binding, Error, Tally};
use countersign::unavailable::Unavailable;
use rusqlite::Connection;

pub use backup::{BackupError, BackupPhase, BackupProgress, BackupReport};
pub use dump::Dump;
pub use open::{OpenError, PreviousRun};
pub use restore::{FileLock, PutBack, Reseal, Restored};

use checkpointer::Checkpointer;
use disk::{Disk, Probe};
use failure::Failure;
use readers::Readers;
use sealer::Sealer;
use time::Time;
use writer::{Health, Writer, WriterParts};

use crate::leaves::Leaves;

/// A store in a SQLite file. It is closed when it is dropped: everything that was queued is written, and the
/// file is marked as closed.
///
/// # Example
///
/// ```
/// use countersign::ledger::Log as _;
/// use countersign_store::sqlite::{SqliteOptions, SqliteStore};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("countersign.db");
/// let store = SqliteStore::open(&path, SqliteOptions::default())?;
/// assert_eq!(store.head().await?.size, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SqliteStore {
    writer: Writer,
    sealer: Sealer,
    readers: Arc<Readers>,
    time: Arc<Time>,
    tally: Tally,
    disk: Arc<Disk>,
    health: Arc<Health>,
    leaves: Leaves,
    /// Allows only one corpus to be written at a time.
    keeping: tokio::sync::Mutex<()>,
    path: PathBuf,
    options: SqliteOptions,
    previous: PreviousRun,
    /// The last fields, because they are dropped last.
    _threads: Threads,
    _lock: File,
}

/// Options of a store in a file.
#[derive(Clone)]
pub struct SqliteOptions {
    /// Clock for leases and retention.
    pub clock: Arc<dyn Clock>,
    /// Minimum free space of the file system, in bytes. Below it nothing is written.
    pub disk_free_bytes_min: u64,
    /// Maximum writes that wait for the writer. Further ones wait for room.
    pub jobs_waiting_max: usize,
    /// Maximum records that are queued for sealing without a waiting caller. While it is reached, further
    /// callers wait.
    pub drafts_waiting_max: usize,
    /// Number of connections for look-ups, and as many for longer reads.
    pub readers: usize,
    /// Size of the writer's page cache in bytes; each reader has a quarter of it.
    pub cache_bytes: usize,
    /// Keys that the file has to belong to. `None` opens any file.
    pub binding: Option<Binding>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock::new()),
            disk_free_bytes_min: 256 * 1024 * 1024,
            jobs_waiting_max: 1_024,
            drafts_waiting_max: 1_024,
            readers: 4,
            cache_bytes: 8 * 1024 * 1024,
            binding: None,
        }
    }
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions")
            .field("disk_free_bytes_min", &self.disk_free_bytes_min)
            .field("jobs_waiting_max", &self.jobs_waiting_max)
            .field("drafts_waiting_max", &self.drafts_waiting_max)
            .field("readers", &self.readers)
            .field("cache_bytes", &self.cache_bytes)
            .field("binding", &self.binding)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens or creates the file and migrates its schema. Claims whose owners were lost with an earlier run are
    /// given up: their effects become in doubt, or may be retried, as their tools have declared.
    ///
    /// This blocks for as long as the disk takes.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let probe = Disk::probe_of(folder.unwrap_or(Path::new(".")).to_owned());
        Self::open_with(path, options, probe)
    }

    fn open_with(path: &Path, options: SqliteOptions, probe: Probe) -> Result<Self, OpenError> {
        let lock = open::lock(path)?;
        let time = Arc::new(Time::new(options.clock.clone()));
        let disk = Arc::new(Disk::new(options.disk_free_bytes_min, probe));
        let opened = open::open(path, &options, time.now())?;
        let readers = Arc::new(Readers::open(path, &options)?);
        let previous = opened.previous;
        let is_complete = Arc::new(AtomicBool::new(false));
        let io = |source| OpenError::Io {
            path: path.to_owned(),
            source,
        };
        let health = Arc::new(Health::default());
        let leaves = Leaves::default();
        let (checkpointer, checkpointer_thread) = Checkpointer::start(path, &options)?;
        let parts = WriterParts {
            opened,
            path: path.to_owned(),
            options: options.clone(),
            time: time.clone(),
            disk: disk.clone(),
            checkpointer,
            is_complete: is_complete.clone(),
            health: health.clone(),
            leaves: leaves.clone(),
        };
        let (writer, writer_thread) = Writer::start(parts).map_err(io)?;
        let (sealer, sealer_thread) =
            Sealer::start(writer.clone(), options.drafts_waiting_max, is_complete).map_err(io)?;
        Ok(Self {
            writer,
            sealer,
            readers,
            time,
            tally: Tally::default(),
            disk,
            health,
            leaves,
            keeping: tokio::sync::Mutex::default(),
            path: path.to_owned(),
            options,
            previous,
            _threads: Threads(vec![sealer_thread, writer_thread, checkpointer_thread]),
            _lock: lock,
        })
    }

    /// Returns how the previous run ended. If it was lost, so may be the records of plain reads that were
    /// queued for writing, and the log should say so.
    pub fn previous_run(&self) -> PreviousRun {
        self.previous
    }

    /// Notes that the log has the record of the lost run. Until then every start reports it, so that a command that
    /// only looks does not hide a crash.
    pub async fn lost_run_recorded(&self) -> Result<(), Error> {
        let closed = self.writer.run(move |session| {
            open::close_lost_runs(session.connection, session.now)?;
            Ok(writer::Done::Kept(()))
        });
        Ok(closed.await?)
    }

    /// Starts a dump of everything that the file holds at this moment.
    pub fn dump(&self) -> Result<Dump, Error> {
        let connection = connection::reader(&self.path, &self.options).map_err(Failure::from)?;
        Ok(Dump::start(connection)?)
    }

    /// Checks every page of the file; the error names the first damaged one. It takes as long as reading the
    /// file.
    pub async fn check(&self) -> Result<(), Error> {
        let found: String = self
            .list(|connection| {
                Ok(connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?)
            })
            .await?;
        match found.as_str() {
            "ok" => Ok(()),
            what => Err(Error::Damaged {
                what: format!("the database file ({what})"),
            }),
        }
    }

    /// Runs a read of many rows on a thread that may block.
    fn list<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, Error>> {
        let readers = self.readers.clone();
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || readers.list(read)).await;
            Ok(read.map_err(|error| Unavailable::new("store", error))??)
        })
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteStore({})", self.path.display())
    }
}

/// Joins the threads when it is dropped, so that everything queued is written before the store is gone.
struct Threads(Vec<JoinHandle<()>>);

impl Drop for Threads {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            // A thread that has panicked has already logged it.
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests;
