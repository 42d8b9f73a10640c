//! Opening the file: the lock, the checks, and the claims that the previous run left behind.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use countersign::ledger::NotOurs;
use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};

use super::SqliteOptions;
use super::migrate::{MIGRATIONS, migrate};
use super::time::timestamp;
use super::tip::Tip;
use super::{connection, failure::Failure, installation};
use crate::migrate::MigrationError;

/// The store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the file open; a store in a file has one owner.
    /// Usually a server runs on the same data folder.
    #[error(
        "{} is in use by another process; stop that one, use another file, or use PostgreSQL for more \
         than one process",
        path.display()
    )]
    InUse {
        /// The database file.
        path: PathBuf,
    },
    /// The file system refused, usually because the folder is missing or a permission is.
    #[error("cannot open {}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The file system does not support the write-ahead log, usually because it is a network drive.
    #[error(
        "{} cannot use a write-ahead log (it says {mode:?}); put it on a local disk",
        path.display()
    )]
    NoWriteAheadLog {
        /// The database file.
        path: PathBuf,
        /// Journal mode that SQLite uses instead.
        mode: String,
    },
    /// The schema is not one that this program may work on, usually because a newer program has used the file.
    #[error(transparent)]
    Schema(#[from] MigrationError),
    /// The file belongs to other keys, usually because it is another installation's.
    #[error(transparent)]
    Installation(#[from] NotOurs),
    /// The file is not a database, or is damaged, usually after a disk fault or an incomplete copy.
    #[error(
        "the database is damaged: {what}; keep the file and its -wal as they are, and restore a backup"
    )]
    Damaged {
        /// First fault that was found.
        what: String,
    },
    /// SQLite failed in another way. Usually the disk is full or fails, or the file is not accessible.
    #[error("the database failed")]
    Database(#[source] rusqlite::Error),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged {
                what: error.to_string(),
            },
            _ => Self::Database(error),
        }
    }
}

/// End of the previous run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviousRun {
    /// The store is new.
    None,
    /// The store was closed.
    Closed,
    /// The store was not closed, usually because the process was killed: records that were only queued, the
    /// last batch of plain reads, are lost.
    Lost {
        /// Start of that run.
        started_at: Timestamp,
    },
}

/// Result of opening the file.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) tip: Tip,
    pub(super) run: i64,
    pub(super) previous: PreviousRun,
}

/// Locks the file for this process. The lock lasts as long as the value lives, and is released when the process
/// ends in any way.
pub(super) fn lock(path: &Path) -> Result<File, OpenError> {
    let lock_path = with_suffix(path, ".lock");
    let io = |source| OpenError::Io {
        path: lock_path.clone(),
        source,
    };
    let file = create(&lock_path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
            path: path.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(io(source)),
    }
}

/// Opens the database in a file that is locked.
pub(super) fn open(path: &Path, options: &SqliteOptions, now: i64) -> Result<Opened, OpenError> {
    make_file(path).map_err(|source| OpenError::Io {
        path: path.to_owned(),
        source,
    })?;
    if let Some(binding) = &options.binding {
        installation::check_unopened(path, binding)?;
    }
    let mut connection = connection::writer(path, options)?;
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        return Err(OpenError::NoWriteAheadLog {
            path: path.to_owned(),
            mode,
        });
    }
    migrate(&mut connection, MIGRATIONS, options.binding.as_ref())?;
    let tip = Tip::load(&connection).map_err(|failure| match failure {
        Failure::Damaged { what } => OpenError::Damaged { what },
        Failure::Database(error) => OpenError::Damaged {
            what: error.to_string(),
        },
        Failure::NoRoom
        | Failure::DiskLow { .. }
        | Failure::UnderHold { .. }
        | Failure::Forked { .. }
        | Failure::Overdue(_)
        | Failure::Stopped => OpenError::Damaged {
            what: format!("{failure:?}"),
        },
    })?;
    let previous = previous_run(&connection)?;
    let run = begin_run(&mut connection, now)?;
    Ok(Opened {
        connection,
        tip,
        run,
        previous,
    })
}

/// Creates the file with restricted permissions: SQLite itself would create one that everyone may read.
fn make_file(path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    create(path)?.sync_all()?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).open(path)
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn previous_run(connection: &Connection) -> rusqlite::Result<PreviousRun> {
    // A lost run stays one until the log has its record, however many commands open the store before that.
    let newest = connection
        .query_row(
            "SELECT started_at, closed_at IS NULL FROM run ORDER BY closed_at IS NULL DESC, number DESC LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    Ok(match newest {
        None => PreviousRun::None,
        Some((_, false)) => PreviousRun::Closed,
        Some((started_at, true)) => PreviousRun::Lost {
            started_at: timestamp(started_at),
        },
    })
}

/// Marks the start of a run, and ends every lease of an earlier run: its process is gone, because this one has
/// the lock. Claims that may not be taken over become in doubt.
fn begin_run(connection: &mut Connection, now: i64) -> rusqlite::Result<i64> {
    let transaction = connection.transaction()?;
    transaction.execute("INSERT INTO run (started_at) VALUES (?1)", [now])?;
    let run = transaction.last_insert_rowid();
    // The numbers are written out, so that the index over open claims is used.
    transaction.execute(
        "UPDATE claim SET state = 4, lease_until = NULL WHERE state = 1 AND recovery IN (0, 3)",
        [],
    )?;
    transaction.execute(
        "UPDATE claim SET lease_until = min(lease_until, ?1) WHERE state = 1",
        [now],
    )?;
    transaction.execute(
        "UPDATE reservation SET lease_until = ?1 WHERE lease_until > ?1",
        [now],
    )?;
    transaction.commit()?;
    Ok(run)
}

/// Closes the lost runs before this one: the log has the record of them.
pub(super) fn close_lost_runs(connection: &Connection, now: i64) -> rusqlite::Result<()> {
    connection.execute(
        "UPDATE run SET closed_at = ?1 WHERE closed_at IS NULL AND number < (SELECT max(number) FROM run)",
        [now],
    )?;
    Ok(())
}

pub(super) fn end_run(connection: &Connection, run: i64, now: i64) -> rusqlite::Result<()> {
    connection.execute(
        "UPDATE run SET closed_at = ?1 WHERE number = ?2",
        params![now, run],
    )?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}
