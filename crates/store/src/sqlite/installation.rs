//! The installation that a file belongs to.

use std::path::Path;

use countersign::BoxFuture;
use countersign::ledger::{Binding, Entry, Error, Installation, Installations, Traces};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use super::SqliteStore;
use super::log::codes::add_missing;
use super::log::entry::{Sealed, keep};
use super::open::OpenError;
use super::writer::Done;

/// Maximum master keys that are read; there are never more than two, the previous and the current one.
const MASTERS_MAX: i64 = 16;

impl Installations for SqliteStore {
    fn installation(&self) -> BoxFuture<'_, Result<Option<Installation>, Error>> {
        Box::pin(async move {
            Ok(self
                .readers
                .point(|connection| Ok(installation(connection)?))?)
        })
    }

    fn rebind<'a>(
        &'a self,
        from: &'a Installation,
        to: Installation,
        entry: Entry,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        let (from, sealed) = (from.clone(), Sealed::from(entry));
        Box::pin(async move {
            let bound = self.writer.run(move |session| {
                if installation(session.connection)?.as_ref() != Some(&from) {
                    return Ok(Done::Undone(false));
                }
                write(session.connection, &to)?;
                keep(session, &sealed)?;
                Ok(Done::Kept(true))
            });
            Ok(bound.await?)
        })
    }

    fn begin_log<'a>(
        &'a self,
        from: &'a Installation,
        to: Installation,
        forgotten: &'a [&'a str],
        entry: Entry,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        let (from, sealed) = (from.clone(), Sealed::from(entry));
        let forgotten: Vec<String> = forgotten.iter().map(|&name| name.to_owned()).collect();
        Box::pin(async move {
            let begun = self.writer.run(move |session| {
                let connection = session.connection;
                if installation(connection)?.as_ref() != Some(&from) {
                    return Ok(Done::Undone(false));
                }
                write(connection, &to)?;
                connection.execute("DELETE FROM checkpoint", [])?;
                add_missing(connection, session.leaves)?;
                for table in ["document", "document_entry"] {
                    for name in &forgotten {
                        let delete = format!("DELETE FROM {table} WHERE collection = ?1");
                        connection.execute(&delete, [name])?;
                    }
                }
                keep(session, &sealed)?;
                Ok(Done::Kept(true))
            });
            Ok(begun.await?)
        })
    }
}

/// Refuses keys that the file does not belong to before it is opened for writing, because opening alone would
/// change a backup. A file that cannot be read here is judged when it is opened.
pub(super) fn check_unopened(path: &Path, binding: &Binding) -> Result<(), OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let found =
        Connection::open_with_flags(path, flags).and_then(|connection| installation(&connection));
    match found {
        Ok(Some(found)) => Ok(binding.check(&found)?),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Refuses keys that the file does not belong to; binds a file that is not bound yet.
pub(super) fn bind(connection: &Connection, binding: &Binding) -> Result<(), OpenError> {
    let Some(found) = installation(connection)? else {
        let first = binding.first(&traces(connection)?)?;
        return Ok(write(connection, &first)?);
    };
    Ok(binding.check(&found)?)
}

pub(super) fn installation(connection: &Connection) -> rusqlite::Result<Option<Installation>> {
    let mut statement =
        connection.prepare_cached("SELECT id, master, log_key, is_copy FROM installation")?;
    let found = statement.query_row([], |row| {
        Ok(Installation {
            id: row.get(0)?,
            master: row.get(1)?,
            log_key: row.get(2)?,
            is_copy: row.get(3)?,
        })
    });
    found.optional()
}

fn write(connection: &Connection, installation: &Installation) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO installation (one, id, master, log_key, is_copy) VALUES (1, ?1, ?2, ?3, ?4)
         ON CONFLICT (one) DO UPDATE
         SET id = excluded.id, master = excluded.master, log_key = excluded.log_key,
             is_copy = excluded.is_copy",
        params![
            installation.id,
            installation.master,
            installation.log_key,
            installation.is_copy,
        ],
    )?;
    Ok(())
}

fn traces(connection: &Connection) -> rusqlite::Result<Traces> {
    let newest = "SELECT note FROM checkpoint ORDER BY size DESC LIMIT 1";
    let checkpoint = connection
        .query_row(newest, [], |row| row.get(0))
        .optional()?;
    let mut masters = connection.prepare("SELECT DISTINCT master FROM user_key LIMIT ?1")?;
    let masters = masters.query_map([MASTERS_MAX], |row| row.get(0))?;
    Ok(Traces {
        checkpoint,
        masters: masters.collect::<Result<_, _>>()?,
    })
}
