//! The checkpointer: copies the write-ahead log into the file on a thread of its own, so that commits do not
//! wait for it.
//!
//! The log restarts from its beginning only when all of it was copied, and while the writer goes on there is
//! always something left. So from time to time the writer copies the rest itself, where that is little.
//!
//! A long read, such as a backup, keeps everything that is written meanwhile from being copied. When it ends, there
//! is much to copy at once: that is the thread's work too, because a writer that did it would answer no caller for a
//! second or more.

use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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

/// Pages left to copy at which the writer makes room for the thread, so that recovery after a crash takes about a
/// second.
pub(super) const PAGES_IN_LOG_MAX: i64 = PAGES_TO_COPY * 16;

/// Longest wait of the writer for the thread at one look.
const WAITS: Duration = Duration::from_millis(20);

/// Pages left to copy at which the writer waits for longer: it is faster than the thread.
const PAGES_LEFT_MAX: i64 = PAGES_IN_LOG_MAX * 8;

/// Longest wait then.
const WAITS_LONGEST: Duration = Duration::from_secs(1);

/// Handle of the writer.
pub(super) struct Checkpointer {
    copies: SyncSender<()>,
    copying: Arc<Copying>,
    jobs: usize,
}

/// The thread's work, as the writer sees it.
#[derive(Default)]
struct Copying {
    now: Mutex<Now>,
    is_done: Condvar,
}

#[derive(Clone, Copy, Default)]
struct Now {
    /// True if a copy is made or was asked for.
    is_copying: bool,
    /// True if a reader kept the last copy from reaching the end of the log: waiting for the thread would not help.
    is_held: bool,
}

impl Copying {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self, is_held: bool) {
        *self.now() = Now {
            is_copying: false,
            is_held,
        };
        self.is_done.notify_all();
    }

    /// Waits until nothing is copied any more, at most for this time.
    fn wait(&self, at_most: Duration) {
        let is_busy = |now: &mut Now| now.is_copying && !now.is_held;
        let waited = self
            .is_done
            .wait_timeout_while(self.now(), at_most, is_busy);
        drop(waited);
    }
}

impl Checkpointer {
    /// Starts the thread; it ends when the `Checkpointer` is dropped.
    pub(super) fn start(
        path: &Path,
        options: &SqliteOptions,
    ) -> Result<(Self, JoinHandle<()>), OpenError> {
        let connection = connection::writer(path, options)?;
        let (copies, asked) = sync_channel(1);
        let copying = Arc::new(Copying::default());
        let told = copying.clone();
        let run = move || {
            while asked.recv().is_ok() {
                let outcome = checkpoint(&connection, "PASSIVE");
                if let Err(error) = &outcome {
                    tracing::warn!(%error, "the SQLite write-ahead log could not be checkpointed; this is retried");
                }
                told.done(outcome.map_or(true, |log| log.copied < log.pages));
            }
        };
        let thread = std::thread::Builder::new().name("store checkpoint".to_owned());
        let thread = thread.spawn(run).map_err(|source| OpenError::Io {
            path: path.to_owned(),
            source,
        })?;
        let own = Self {
            copies,
            copying,
            jobs: 0,
        };
        Ok((own, thread))
    }

    /// Called by the writer between two batches. Asks for a copy if the log is long enough, and makes it itself if
    /// there is little left.
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
        if left < PAGES_TO_COPY {
            if log.pages >= PAGES_IN_LOG {
                checkpoint(connection, "PASSIVE")?;
            }
            return Ok(());
        }
        self.ask();
        if left >= PAGES_LEFT_MAX {
            self.copying.wait(WAITS_LONGEST);
        } else if left >= PAGES_IN_LOG_MAX {
            self.copying.wait(WAITS);
        }
        Ok(())
    }

    fn ask(&self) {
        // The thread tells that it is done after this is set.
        let mut now = self.copying.now();
        now.is_copying = match self.copies.try_send(()) {
            // If the queue is full, the thread was already asked.
            Ok(()) | Err(TrySendError::Full(())) => true,
            Err(TrySendError::Disconnected(())) => false,
        };
    }
}

struct Progress {
    /// Pages in the log.
    pages: i64,
    /// Pages of it that were copied.
    copied: i64,
}

fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<Progress> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    connection.query_row(&sql, [], |row| {
        Ok(Progress {
            pages: row.get(1)?,
            copied: row.get(2)?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a long read, the pages that it held back are copied by the thread: the writer, for whom every caller waits, copies none of
    /// them, and does not wait for a thread that has nothing to do.
    #[test]
    fn the_writer_leaves_a_long_log_to_the_thread() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let options = SqliteOptions::default();
        std::fs::File::create(&path).expect("a file");
        let writer = connection::writer(&path, &options).expect("a connection");
        writer
            .execute_batch("CREATE TABLE page (n INTEGER PRIMARY KEY, bytes BLOB)")
            .expect("a table");
        // Nobody listens, so what is copied is copied by the writer.
        let (copies, asked) = sync_channel(1);
        let mut checkpointer = Checkpointer {
            copies,
            copying: Arc::default(),
            jobs: 0,
        };
        let reader = connection::reader(&path, &options).expect("a connection");
        reader.execute_batch("BEGIN").expect("a transaction");
        let count = "SELECT count(*) FROM page";
        let seen: i64 = reader
            .query_row(count, [], |row| row.get(0))
            .expect("a row");
        assert_eq!(seen, 0);
        for _ in 0..PAGES_IN_LOG_MAX + 10 {
            let page = "INSERT INTO page (bytes) VALUES (zeroblob(4096))";
            writer.execute(page, []).expect("a row");
        }
        reader.execute_batch("COMMIT").expect("it ends");
        let before = checkpoint(&writer, "NOOP").expect("a look");
        assert!(before.pages >= PAGES_IN_LOG_MAX, "{} pages", before.pages);
        let looked = checkpointer.after_batch(&writer, JOBS_BETWEEN_LOOKS);
        looked.expect("a look");
        let after = checkpoint(&writer, "NOOP").expect("a look");
        assert_eq!(after.copied, before.copied, "the writer has copied");
        assert!(asked.try_recv().is_ok(), "the thread was asked");
    }
}
