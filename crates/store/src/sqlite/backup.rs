//! Backups: a copy of the file as of one moment, made while others write, and verified before it gets its name.
//!
//! The copy is made within one read transaction, so that no write makes it start again. It is synced in
//! portions, so that a commit never waits for all of it, and marked as a copy: only a restore opens it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use countersign::ledger::{Error, Head, Installation};
use countersign_evidence::checkpoint::{Checkpoint, CheckpointError};
use countersign_evidence::note::{NoteError, VerifyingKey};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use tokio::sync::mpsc;

use super::failure::Failure;
use super::installation::installation;
use super::tip::head;
use super::values::unsigned;
use super::{Dump, SqliteOptions, SqliteStore, connection, content};
use crate::transfer::{CopyError, Source as _, Verified};

/// Pages that one step copies.
const PAGES: i32 = 256;

/// Maximum unsynced bytes: a commit that comes meanwhile waits for no more than these.
const UNSYNCED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Pause after each synced part, in units of the time that the part took: commits have the disk to themselves meanwhile.
const PAUSE: u32 = 2;

/// Retry interval while another program holds the file.
const BUSY: Duration = Duration::from_millis(10);

/// Rows that are verified at once.
const ROWS: usize = 500;

/// A backup that was made and verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupReport {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Installation that the backup belongs to.
    pub installation: Installation,
    /// Number of records in it.
    pub records: u64,
    /// Merkle tree over the records; a record that is not in it yet is added after a restore.
    pub tree: Head,
    /// Newest signed checkpoint in it; `None` if nothing was signed yet.
    pub checkpoint: Option<String>,
    /// Number of records that the checkpoint covers.
    pub signed: u64,
}

/// Progress of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupProgress {
    /// Current phase.
    pub phase: BackupPhase,
    /// Units of the phase that are done.
    pub done: u64,
    /// Total units of the phase.
    pub total: u64,
}

/// Phases of a backup, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupPhase {
    /// Pages are copied.
    Copy,
    /// Rows are read back; their number is not known before.
    Verify,
}

/// A backup was not made, or is not valid.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The target file exists already. Usually it is the backup of an earlier run.
    #[error("{} is there already", path.display())]
    Exists {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file system refused, usually because the disk is full or a permission is missing.
    #[error("cannot write {}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The store was opened without keys, so the copy could not be assigned to an installation.
    /// Usually a program that embeds the store has left them out.
    #[error("the store names no keys")]
    NoInstallation,
    /// The public key of the log is malformed, usually because the file was edited.
    #[error("the log key in the store cannot be read")]
    LogKey(#[source] NoteError),
    /// The newest checkpoint is not a valid one of this log, usually because it was signed with another key.
    #[error("the newest checkpoint in the copy is not valid")]
    Checkpoint(#[source] CheckpointError),
    /// The copy is damaged or incomplete, usually because of a disk fault.
    #[error("the copy is damaged: {what}")]
    Damaged {
        /// First fault that was found.
        what: String,
    },
    /// The rows contradict each other, usually because the file was edited or a write was lost.
    #[error(transparent)]
    Rows(#[from] CopyError),
    /// The store did not answer. Usually its disk is full or fails.
    #[error(transparent)]
    Store(#[from] Error),
}

impl SqliteStore {
    /// Writes the store as of one moment to a new file, while calls go on. The file gets its name only after it
    /// was verified.
    pub async fn backup(
        &self,
        to: &Path,
        progress: &mut (dyn FnMut(BackupProgress) + Send),
    ) -> Result<BackupReport, BackupError> {
        if to.exists() {
            let path = to.to_owned();
            return Err(BackupError::Exists { path });
        }
        let from = connection::reader(&self.path, &self.options).map_err(Failure::from);
        let from = from.map_err(Error::from)?;
        let temporary = Temporary::beside(to);
        copy_told(from, &temporary.0, Mark::Copy, progress).await?;
        let report = verify(&temporary.0, &self.options, progress).await?;
        temporary.name(to)?;
        Ok(report)
    }
}

/// Copies any database into a new file, as of one moment.
pub(super) async fn copy_told(
    from: Connection,
    to: &Path,
    mark: Mark,
    progress: &mut (dyn FnMut(BackupProgress) + Send),
) -> Result<(), BackupError> {
    let (tell, mut told) = mpsc::unbounded_channel();
    let path = to.to_owned();
    let copying = tokio::task::spawn_blocking(move || {
        copy(&from, &path, mark, &mut |done, total| {
            tell.send((done, total)).ok();
        })
    });
    while let Some((done, total)) = told.recv().await {
        let phase = BackupPhase::Copy;
        progress(BackupProgress { phase, done, total });
    }
    copying.await.unwrap_or_else(|error| {
        let what = error.to_string();
        Err(BackupError::Damaged { what })
    })
}

/// Mark of a copied file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Marks it as a copy until it is restored.
    Copy,
    /// Keeps the mark of the original.
    AsItWas,
}

fn copy(
    from: &Connection,
    to: &Path,
    mark: Mark,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<(), BackupError> {
    let about = |source| BackupError::Io {
        path: to.to_owned(),
        source,
    };
    let file = create(to).map_err(about)?;
    // From here on this connection sees the current commits, and none later.
    from.execute_batch("BEGIN").map_err(not_copied)?;
    let page_bytes: u32 = from
        .pragma_query_value(None, "page_size", |row| row.get(0))
        .map_err(not_copied)?;
    let page_bytes = u64::from(page_bytes);
    from.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
        .map_err(not_copied)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags(to, flags).map_err(not_copied)?;
    // An unfinished copy is never used, so it needs no journal, and it is synced here.
    copy.pragma_update(None, "journal_mode", "OFF")
        .and_then(|()| copy.pragma_update(None, "synchronous", "OFF"))
        .map_err(not_copied)?;
    let backup = Backup::new(from, &mut copy).map_err(not_copied)?;
    let mut synced = 0;
    let mut began = Instant::now();
    loop {
        let step = backup.step(PAGES).map_err(not_copied)?;
        let progress = backup.progress();
        let total = u64::try_from(progress.pagecount).unwrap_or_default() * page_bytes;
        let left = u64::try_from(progress.remaining).unwrap_or_default() * page_bytes;
        let done = total.saturating_sub(left);
        if done - synced >= UNSYNCED_BYTES_MAX {
            file.sync_data().map_err(about)?;
            synced = done;
            std::thread::sleep(began.elapsed() * PAUSE);
            began = Instant::now();
        }
        tell(done, total);
        if step == StepResult::Done {
            break;
        }
        if step != StepResult::More {
            // Another program is reading the file, which never takes long.
            std::thread::sleep(BUSY);
        }
    }
    drop(backup);
    drop(copy);
    finish(to, mark)?;
    file.sync_all().map_err(about)
}

/// Completes the copy: one file without a write-ahead log beside it, and marked, with a digest of its content.
fn finish(path: &Path, mark: Mark) -> Result<(), BackupError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(not_copied)?;
    connection
        .pragma_update(None, "journal_mode", "DELETE")
        .map_err(not_copied)?;
    if mark == Mark::AsItWas {
        return content::remove(&connection).map_err(not_copied);
    }
    let marked = connection.execute("UPDATE installation SET is_copy = 1", []);
    if marked.map_err(not_copied)? == 0 {
        return Err(BackupError::NoInstallation);
    }
    content::write(&connection).map_err(not_copied)
}

/// Refuses a file that is not as it was when its digest was written.
pub(super) fn check_content(connection: &Connection) -> Result<(), BackupError> {
    if content::fits(connection).map_err(not_copied)? {
        return Ok(());
    }
    let what = "its content does not fit the digest that it carries".to_owned();
    Err(BackupError::Damaged { what })
}

/// Reads everything back: the pages, the rows, the tree over the records, and the signature under it.
pub(super) async fn verify(
    path: &Path,
    options: &SqliteOptions,
    progress: &mut (dyn FnMut(BackupProgress) + Send),
) -> Result<BackupReport, BackupError> {
    let (path, options) = (path.to_owned(), options.clone());
    let opening = tokio::task::spawn_blocking(move || opened(&path, &options)).await;
    let (mut report, dump) = opening.map_err(|error| BackupError::Damaged {
        what: error.to_string(),
    })??;
    let signed = match &report.checkpoint {
        Some(note) => Some(signed_by(note, &report.installation)?),
        None => None,
    };
    let mut dump = dump;
    let mut verified = Verified::expecting(signed);
    loop {
        let rows = dump.next_batch(ROWS).await?;
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            verified.add(row)?;
        }
        let (phase, done) = (BackupPhase::Verify, verified.rows());
        progress(BackupProgress {
            phase,
            done,
            total: done,
        });
    }
    report.records = verified.finish()?.records;
    report.signed = signed.map_or(0, |signed| signed.size);
    Ok(report)
}

fn opened(path: &Path, options: &SqliteOptions) -> Result<(BackupReport, Dump), BackupError> {
    let connection = connection::reader(path, options).map_err(not_copied)?;
    let check = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0));
    let found: String = check.map_err(not_copied)?;
    if found != "ok" {
        return Err(BackupError::Damaged { what: found });
    }
    check_content(&connection)?;
    let installed = installation(&connection).map_err(not_copied)?;
    let installed = installed.ok_or(BackupError::NoInstallation)?;
    let (size, root) = head(&connection).map_err(Error::from)?;
    let newest = "SELECT note FROM checkpoint ORDER BY size DESC LIMIT 1";
    let checkpoint = connection.query_row(newest, [], |row| row.get(0));
    let pages: i64 = connection
        .query_row(
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
            [],
            |row| row.get(0),
        )
        .map_err(not_copied)?;
    let report = BackupReport {
        bytes: unsigned(pages),
        installation: installed,
        records: 0,
        tree: Head { size, root },
        checkpoint: checkpoint.optional().map_err(not_copied)?,
        signed: 0,
    };
    let dump = Dump::start(connection).map_err(Error::from)?;
    Ok((report, dump))
}

fn signed_by(note: &str, installation: &Installation) -> Result<Head, BackupError> {
    let key: VerifyingKey = installation.log_key.parse().map_err(BackupError::LogKey)?;
    let signed = Checkpoint::open(note, &key).map_err(BackupError::Checkpoint)?;
    Ok(Head {
        size: signed.size,
        root: signed.root,
    })
}

/// A file that is deleted when this value is dropped, unless it was renamed.
pub(super) struct Temporary(pub(super) PathBuf);

impl Temporary {
    pub(super) fn beside(to: &Path) -> Self {
        let mut name = std::ffi::OsString::from(".");
        name.push(to.file_name().unwrap_or_default());
        name.push(format!(".{}.part", std::process::id()));
        let temporary = to.with_file_name(name);
        remove(&temporary);
        Self(temporary)
    }

    /// Renames the file durably.
    pub(super) fn name(self, to: &Path) -> Result<(), BackupError> {
        let folder = to.parent().filter(|path| !path.as_os_str().is_empty());
        let named = fs::rename(&self.0, to)
            .and_then(|()| File::open(folder.unwrap_or(Path::new(".")))?.sync_all());
        named.map_err(|source| BackupError::Io {
            path: to.to_owned(),
            source,
        })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes a partial copy. A failure is ignored: it does not change the result.
fn remove(path: &Path) {
    for suffix in ["", "-journal", "-wal", "-shm", ".lock"] {
        fs::remove_file(super::open::with_suffix(path, suffix)).ok();
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path)
}

fn not_copied(error: rusqlite::Error) -> BackupError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
            BackupError::Damaged {
                what: error.to_string(),
            }
        }
        _ => BackupError::Store(Failure::from(error).into()),
    }
}
