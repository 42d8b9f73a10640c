//! Restore: puts documents of a backup back into the store, which has gone on since.
//!
//! Only documents of tools are restored. The log, keys, claims, holds, budgets and every other record of what
//! happened stay as they are now, so that nothing is erased, revoked or done twice, or forgotten.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use countersign::ledger::{DocumentKey, DocumentWrite, Entry, Error};
use countersign::state::document::Stamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row};

use super::backup::{BackupError, BackupProgress, Mark, check_content, copy_told};
use super::documents::{self, decoded};
use super::failure::Failure;
use super::log::entry::{Sealed, keep};
use super::open::{self, OpenError, with_suffix};
use super::values::unsigned;
use super::writer::{Done, Session};
use super::{SqliteStore, connection};

/// Selection of the documents that are restored.
#[derive(Clone)]
pub struct PutBack {
    /// Users whose documents stay as they are, because they were erased since the backup.
    pub without_users: HashSet<String>,
    /// True for collections that stay as they are.
    pub stays: fn(&str) -> bool,
    /// The keys of the documents, and the records of what becomes of them.
    pub seals: Arc<dyn Reseal>,
}

/// Seals documents of a backup for the versions that they get in the store. A store has no keys itself.
pub trait Reseal: Send + Sync {
    /// The write that puts a body, which the backup has in this version, in the place of a newer version; `None` if it
    /// cannot be opened.
    fn put_back(
        &self,
        key: &DocumentKey,
        was: u64,
        body: &[u8],
        replaced: u64,
    ) -> Option<DocumentWrite>;

    /// The write that deletes a document of this version.
    fn delete(&self, key: &DocumentKey, version: u64) -> DocumentWrite;

    /// The record of these writes.
    fn entry(&self, stamps: &[Stamp]) -> Entry;
}

/// Number of writes that one record names.
const STAMPS_MAX: usize = 256;

/// Counts of a restore.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restored {
    /// Documents that are now as in the backup.
    pub put_back: u64,
    /// Documents that were created after the backup and are now deleted.
    pub removed: u64,
    /// Documents of the backup whose users were erased since, or that cannot be opened.
    pub left_out: u64,
}

/// Exclusive lock of a file, the same that an open store has.
#[derive(Debug)]
pub struct FileLock {
    _file: std::fs::File,
}

impl SqliteStore {
    /// Restores every document to its state in the backup, together with a record of it, in one commit.
    pub async fn put_back(
        &self,
        backup: &Path,
        plan: PutBack,
        entry: Entry,
    ) -> Result<Restored, Error> {
        let (backup, options, sealed) =
            (backup.to_owned(), self.options.clone(), Sealed::from(entry));
        let put_back = self.writer.run(move |session| {
            let from = connection::reader(&backup, &options)?;
            let (restored, stamps) = put_back(session, &from, &plan)?;
            keep(session, &sealed)?;
            for stamps in stamps.chunks(STAMPS_MAX) {
                keep(session, &Sealed::from(plan.seals.entry(stamps)))?;
            }
            Ok(Done::Kept(restored))
        });
        Ok(put_back.await?)
    }

    /// Locks a file so that no process opens it while it is replaced.
    pub fn lock(path: &Path) -> Result<FileLock, OpenError> {
        Ok(FileLock {
            _file: open::lock(path)?,
        })
    }

    /// Copies a backup, or any other copy of a store, to a new file; the original is not touched.
    pub async fn copy_file(
        from: &Path,
        to: &Path,
        progress: &mut (dyn FnMut(BackupProgress) + Send),
    ) -> Result<(), BackupError> {
        let opened = open_copy(from).map_err(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
                BackupError::Damaged {
                    what: error.to_string(),
                }
            }
            _ => BackupError::Store(Failure::from(error).into()),
        })?;
        let tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ('migration', 'record')";
        let found = opened.query_row(tables, [], |row| row.get::<_, i64>(0));
        if !found.is_ok_and(|found| found == 2) {
            let what = "it holds no store".to_owned();
            return Err(BackupError::Damaged { what });
        }
        check_content(&opened)?;
        copy_told(opened, to, Mark::AsItWas, progress).await
    }
}

/// Opens a file that is not being written. If it has no write-ahead log, none is created beside it.
fn open_copy(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if with_suffix(path, "-wal").exists() {
        return Connection::open_with_flags(path, flags);
    }
    let uri = uri(path);
    Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
}

fn uri(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    let escaped = text
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    format!("file:{escaped}?immutable=1").into()
}

fn put_back(
    session: &mut Session<'_>,
    from: &Connection,
    plan: &PutBack,
) -> Result<(Restored, Vec<Stamp>), Failure> {
    let connection = session.connection;
    let (mut restored, mut stamps) = (Restored::default(), Vec::new());
    let mut rows = from.prepare(
        "SELECT user_id, collection, id, body, entries, version FROM document WHERE body IS NOT NULL",
    )?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let key = key(row)?;
        if (plan.stays)(&key.collection) {
            continue;
        }
        if plan.without_users.contains(&key.user_id) {
            restored.left_out += 1;
            continue;
        }
        let (body, entries): (Vec<u8>, Vec<u8>) = (row.get(3)?, row.get(4)?);
        let now = present(connection, &key)?;
        if now.body.as_ref() == Some(&body) && now.entries == entries {
            continue;
        }
        let was = unsigned(row.get(5)?);
        let Some(write) = plan.seals.put_back(&key, was, &body, now.version) else {
            restored.left_out += 1;
            continue;
        };
        let write = DocumentWrite {
            entries: decoded(&entries)?,
            ..write
        };
        documents::write(connection, &write)?;
        stamps.push(Stamp::of(&write));
        restored.put_back += 1;
    }
    remove_newer(connection, from, plan, &mut restored, &mut stamps)?;
    Ok((restored, stamps))
}

/// Deletes the documents that the backup does not have. Their versions stay, and rise.
fn remove_newer(
    connection: &Connection,
    from: &Connection,
    plan: &PutBack,
    restored: &mut Restored,
    stamps: &mut Vec<Stamp>,
) -> Result<(), Failure> {
    let mut rows = connection
        .prepare("SELECT user_id, collection, id, version FROM document WHERE body IS NOT NULL")?;
    let mut rows = rows.query([])?;
    let mut newer = Vec::new();
    while let Some(row) = rows.next()? {
        let key = key(row)?;
        // A user who was erased and came back is another user, unknown to the backup.
        let is_another = plan.without_users.contains(&key.user_id);
        if (plan.stays)(&key.collection) || is_another || present(from, &key)?.body.is_some() {
            continue;
        }
        newer.push((key, unsigned(row.get(3)?)));
    }
    for (key, version) in newer {
        let write = plan.seals.delete(&key, version);
        documents::write(connection, &write)?;
        stamps.push(Stamp::of(&write));
        restored.removed += 1;
    }
    Ok(())
}

/// A document in the file.
#[derive(Default)]
struct Present {
    version: u64,
    body: Option<Vec<u8>>,
    entries: Vec<u8>,
}

fn present(connection: &Connection, key: &DocumentKey) -> Result<Present, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT version, body, entries FROM document
         WHERE user_id = ?1 AND collection = ?2 AND id = ?3",
    )?;
    let found = statement.query_row([&key.user_id, &key.collection, &key.id], |row| {
        Ok(Present {
            version: unsigned(row.get(0)?),
            body: row.get(1)?,
            entries: row.get(2)?,
        })
    });
    Ok(found.optional()?.unwrap_or_default())
}

fn key(row: &Row<'_>) -> rusqlite::Result<DocumentKey> {
    Ok(DocumentKey {
        user_id: row.get(0)?,
        collection: row.get(1)?,
        id: row.get(2)?,
    })
}
