//! The users' wrapped keys.

use countersign::BoxFuture;
use countersign::ledger::{Error, Keyring, WrappedKey};
use countersign_evidence::seal::KeyId;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::SqliteStore;
use super::failure::Failure;
use super::values::bounded;
use super::writer::Done;

impl Keyring for SqliteStore {
    fn user_key<'a>(
        &'a self,
        user_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<WrappedKey>, Error>> {
        Box::pin(async move {
            Ok(self
                .readers
                .point(|connection| user_key(connection, user_id))?)
        })
    }

    fn add_user_key<'a>(
        &'a self,
        user_id: &'a str,
        key: WrappedKey,
    ) -> BoxFuture<'a, Result<WrappedKey, Error>> {
        let user_id = user_id.to_owned();
        Box::pin(async move {
            let added = self.writer.run(move |session| {
                let mut insert = session.connection.prepare_cached(
                    "INSERT INTO user_key (user_id, master, bytes, id) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (user_id) DO NOTHING",
                )?;
                insert.execute(params![user_id, key.master, key.bytes, name(&key)])?;
                let counts = user_key(session.connection, &user_id)?;
                Ok(Done::Kept(counts.unwrap_or_else(|| key.clone())))
            });
            Ok(added.await?)
        })
    }

    fn user_keys<'a>(
        &'a self,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, WrappedKey)>, Error>> {
        let after = after.to_owned();
        self.list(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT master, bytes, id, user_id FROM user_key WHERE user_id > ?1
                 ORDER BY user_id LIMIT ?2",
            )?;
            let rows = statement.query_map(params![after, bounded(limit)], named)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn user_keys_not_under<'a>(
        &'a self,
        master: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, WrappedKey)>, Error>> {
        let master = master.to_owned();
        self.list(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT master, bytes, id, user_id FROM user_key WHERE master <> ?1
                 ORDER BY user_id LIMIT ?2",
            )?;
            let rows = statement.query_map(params![master, bounded(limit)], named)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn rewrap<'a>(
        &'a self,
        user_id: &'a str,
        old: &'a WrappedKey,
        new: WrappedKey,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        let (user_id, old) = (user_id.to_owned(), old.clone());
        Box::pin(async move {
            let replaced = self.writer.run(move |session| {
                let mut update = session.connection.prepare_cached(
                    "UPDATE user_key SET master = ?4, bytes = ?5, id = ?6
                     WHERE user_id = ?1 AND master = ?2 AND bytes = ?3",
                )?;
                let replaced = update.execute(params![
                    user_id,
                    old.master,
                    old.bytes,
                    new.master,
                    new.bytes,
                    name(&new)
                ])?;
                Ok(Done::Kept(replaced > 0))
            });
            Ok(replaced.await?)
        })
    }
}

fn user_key(connection: &Connection, user_id: &str) -> Result<Option<WrappedKey>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT master, bytes, id FROM user_key WHERE user_id = ?1")?;
    Ok(statement.query_row([user_id], wrapped).optional()?)
}

/// True if `key` is no longer the user's key. A key without an id is the only one that the user ever had.
pub(super) fn is_lost(
    connection: &Connection,
    user_id: &str,
    key: Option<KeyId>,
) -> Result<bool, Failure> {
    let Some(key) = key.filter(|_| !user_id.is_empty()) else {
        return Ok(false);
    };
    let mut statement = connection
        .prepare_cached("SELECT id IS NULL OR id = ?2 FROM user_key WHERE user_id = ?1")?;
    let is_current = statement.query_row(params![user_id, key.0], |row| row.get(0));
    Ok(!is_current.optional()?.unwrap_or(false))
}

fn named(row: &rusqlite::Row<'_>) -> rusqlite::Result<(String, WrappedKey)> {
    Ok((row.get(3)?, wrapped(row)?))
}

fn wrapped(row: &rusqlite::Row<'_>) -> rusqlite::Result<WrappedKey> {
    Ok(WrappedKey {
        master: row.get(0)?,
        bytes: row.get(1)?,
        id: row.get::<_, Option<[u8; 16]>>(2)?.map(KeyId),
    })
}

fn name(key: &WrappedKey) -> Option<&[u8]> {
    key.id.as_ref().map(|id| id.0.as_slice())
}
