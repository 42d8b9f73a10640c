//! The checkpointer: copies the write-ahead log into the file on a thread of its own, so that commits do not
//! wait for it.
//!
//! The log restarts from its beginning only when all of it was copied, and while the writer goes on there is
//! always something left. So from time to time the writer copies the rest itself; by then there is little left.

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::open::OpenError;
use super::{SqliteOptions, connection};

/// Jobs between two checks of the log's length.
pub(super) const JOBS_BETWEEN_LOOKS: usize = if cfg!(test) { 4 } else { 128 };

/// Pages that start a copy: a page that was written many times until then is copied once.
const PAGES_TO_COPY: i64 = if cfg!(test) { 32 } else { 1_024 };

/// Length in pages after which the log should restart.
const PAGES_IN_LOG: i64 = PAGES_TO_COPY * 4;

/// Length in pages at which the writer waits for the copy, so that recovery after a crash takes about a second.
pub(super) const PAGES_IN_LOG_MAX: i64 = PAGES_TO_COPY * 16;

const ASKS_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// Handle of the writer.
pub(super) struct Checkpointer {
    copies: SyncSender<()>,
    jobs: usize,
}

impl Checkpointer {
    /// Starts the thread; it ends when the `Checkpointer` is dropped.
    pub(super) fn start(
        path: &Path,
        options: &SqliteOptions,
    ) -> Result<(Self, JoinHandle<()>), OpenError> {
        let connection = connection::writer(path, options)?;
        let (copies, asked) = sync_channel(1);
        let run = move || {
            while asked.recv().is_ok() {
                if let Err(error) = checkpoint(&connection, "PASSIVE") {
                    tracing::warn!(%error, "the SQLite write-ahead log could not be checkpointed; this is retried");
                }
            }
        };
        let thread = std::thread::Builder::new().name("store checkpoint".to_owned());
        let thread = thread.spawn(run).map_err(|source| OpenError::Io {
            path: path.to_owned(),
            source,
        })?;
        Ok((Self { copies, jobs: 0 }, thread))
    }

    /// Called by the writer between two batches. Asks for a copy, or makes it itself, if the log is long enough.
    pub(super) fn after_batch(
        &mut self,
        connection: &Connection,
        jobs: usize,
    ) -> rusqlite::Result<()> {
        self.jobs += jobs;
        if self.jobs < JOBS_BETWEEN_LOOKS {
            return Ok(());
        }
        self.jobs = 0;
        let log = checkpoint(connection, "NOOP")?;
        let left = log.pages - log.copied;
        if log.pages >= PAGES_IN_LOG_MAX {
            while checkpoint(connection, "PASSIVE")?.is_busy {
                std::thread::sleep(ASKS_AGAIN_AFTER);
            }
        } else if log.pages >= PAGES_IN_LOG && left < PAGES_TO_COPY {
            checkpoint(connection, "PASSIVE")?;
        } else if left >= PAGES_TO_COPY {
            // If the queue is full, the thread was already asked.
            self.copies.try_send(()).ok();
        }
        Ok(())
    }
}

struct Progress {
    /// True if another connection was copying.
    is_busy: bool,
    /// Pages in the log.
    pages: i64,
    /// Pages of it that were copied.
    copied: i64,
}

fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<Progress> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    connection.query_row(&sql, [], |row| {
        Ok(Progress {
            is_busy: row.get(0)?,
            pages: row.get(1)?,
            copied: row.get(2)?,
        })
    })
}
