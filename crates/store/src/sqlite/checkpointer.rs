//! Copies the write-ahead log into the file, beside the writer: nobody who waits for a commit waits for
//! this too.
//!
//! The log starts again from its beginning only when all of it was copied, and while the writer goes on
//! there is always something that was not. So from time to time the writer is asked to copy the rest
//! itself; little is left of it by then.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::open::OpenError;
use super::{SqliteOptions, connection};

/// After so many jobs it is looked whether there is enough to copy.
const JOBS_BETWEEN_LOOKS: usize = 128;

/// A page that was written many times until then is copied once.
const PAGES_TO_COPY: i64 = 2_048;

/// The log is wanted to start again after so many pages: reading it back after a crash stays a matter of
/// a fraction of a second.
const PAGES_IN_LOG: i64 = 8_192;

/// The writer's end.
pub(super) struct Checkpointer {
    looks: SyncSender<()>,
    wants_rest: Arc<AtomicBool>,
    jobs: usize,
}

impl Checkpointer {
    /// Starts the thread; it ends when the `Checkpointer` is gone.
    pub(super) fn start(
        path: &Path,
        options: &SqliteOptions,
    ) -> Result<(Self, JoinHandle<()>), OpenError> {
        let connection = connection::writer(path, options)?;
        let wants_rest = Arc::new(AtomicBool::new(false));
        let (looks, asked) = sync_channel(1);
        let ours = Self {
            looks,
            wants_rest: wants_rest.clone(),
            jobs: 0,
        };
        let run = move || {
            while asked.recv().is_ok() {
                if let Err(error) = look(&connection, &wants_rest) {
                    tracing::warn!(%error, "the write-ahead log was not copied; it is tried again");
                }
            }
        };
        let thread = std::thread::Builder::new().name("store checkpoint".to_owned());
        let thread = thread.spawn(run).map_err(|source| OpenError::Io {
            path: path.to_owned(),
            source,
        })?;
        Ok((ours, thread))
    }

    /// Called between two batches.
    pub(super) fn after_batch(
        &mut self,
        connection: &Connection,
        jobs: usize,
    ) -> rusqlite::Result<()> {
        self.jobs += jobs;
        if self.jobs >= JOBS_BETWEEN_LOOKS {
            self.jobs = 0;
            // One that is full is as good as asked.
            self.looks.try_send(()).ok();
        }
        if self.wants_rest.load(Ordering::Acquire) {
            // While the thread is still at it, it is not our turn; then it is after the next batch.
            let copied = checkpoint(connection, "PASSIVE")?;
            self.wants_rest.store(copied.is_busy, Ordering::Release);
        }
        Ok(())
    }
}

fn look(connection: &Connection, wants_rest: &AtomicBool) -> rusqlite::Result<()> {
    let log = checkpoint(connection, "NOOP")?;
    if log.pages - log.copied >= PAGES_TO_COPY {
        checkpoint(connection, "PASSIVE")?;
    }
    if log.pages >= PAGES_IN_LOG {
        wants_rest.store(true, Ordering::Release);
    }
    Ok(())
}

struct Copied {
    /// Somebody else was copying.
    is_busy: bool,
    /// How many pages the log has.
    pages: i64,
    /// How many of them were copied.
    copied: i64,
}

fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<Copied> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    connection.query_row(&sql, [], |row| {
        Ok(Copied {
            is_busy: row.get(0)?,
            pages: row.get(1)?,
            copied: row.get(2)?,
        })
    })
}
