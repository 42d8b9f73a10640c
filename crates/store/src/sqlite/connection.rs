//! Connections: one that writes, and some that only read.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::SqliteOptions;

/// Size of a connection's cache of prepared statements; there are fewer statements.
const STATEMENTS: usize = 128;

/// Time to wait while another program holds the file.
pub(super) const BUSY_FOR: Duration = Duration::from_secs(5);

/// Opens the connection that writes. A commit is durable when it returns (`synchronous`), and deleted data is
/// overwritten (`secure_delete`), because a destroyed key must not be found in a free page.
pub(super) fn writer(path: &Path, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_FOR)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -cache_kib(options))?;
    // The checkpointer's thread does this, not an arbitrary commit.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

/// Opens a connection that only reads: it sees committed data, waits for no lock and syncs nothing.
pub(super) fn reader(path: &Path, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_FOR)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -cache_kib(options) / 4)?;
    Ok(connection)
}

fn cache_kib(options: &SqliteOptions) -> i64 {
    i64::try_from(options.cache_bytes / 1024).unwrap_or(i64::MAX)
}
