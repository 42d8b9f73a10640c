//! Connections that only read, separate from the writer: none of them waits for a sync.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::failure::Failure;
use super::{SqliteOptions, connection};

/// Read-only connections. A look-up by key takes some microseconds, so it runs in the caller's task. A read of
/// many rows has connections of its own and runs on a thread that may block.
pub(super) struct Readers {
    points: Vec<Mutex<Connection>>,
    lists: Vec<Mutex<Connection>>,
    next: AtomicUsize,
}

impl Readers {
    pub(super) fn open(path: &Path, options: &SqliteOptions) -> rusqlite::Result<Self> {
        let open = |_| connection::reader(path, options).map(Mutex::new);
        let count = options.readers.max(1);
        Ok(Self {
            points: (0..count).map(open).collect::<Result<_, _>>()?,
            lists: (0..count).map(open).collect::<Result<_, _>>()?,
            next: AtomicUsize::new(0),
        })
    }

    pub(super) fn point<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let connection = self.free(&self.points).ok_or(Failure::Stopped)?;
        read(&connection)
    }

    /// Runs a longer read. Everything that it reads is as of one moment.
    pub(super) fn list<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let connection = self.free(&self.lists).ok_or(Failure::Stopped)?;
        at_one_moment(&connection, read)
    }

    fn free<'p>(&self, pool: &'p [Mutex<Connection>]) -> Option<MutexGuard<'p, Connection>> {
        let first = self.next.fetch_add(1, Ordering::Relaxed) % pool.len().max(1);
        let (before, from) = pool.split_at_checked(first)?;
        let idle = from
            .iter()
            .chain(before)
            .find_map(|one| one.try_lock().ok());
        idle.or_else(|| {
            let busy = from.first()?;
            Some(busy.lock().unwrap_or_else(PoisonError::into_inner))
        })
    }
}

/// Runs several statements in one read transaction.
pub(super) fn at_one_moment<T>(
    connection: &Connection,
    read: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let transaction = connection.unchecked_transaction()?;
    let answer = read(&transaction)?;
    transaction.finish()?;
    Ok(answer)
}
