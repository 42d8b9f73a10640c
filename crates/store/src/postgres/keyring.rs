//! Wrapped keys in PostgreSQL.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign::BoxFuture;
use countersign::ledger::{Error, Keyring, LostKeyFn, WrappedKey};
use countersign_evidence::seal::KeyId;
use tokio_postgres::Row;

use super::failure::Failure;
use super::{PostgresStore, rows};

/// Maximum rounds of reading a key while others add and remove it.
const ROUNDS_MAX: u32 = 8;

impl Keyring for PostgresStore {
    fn user_key<'a>(
        &'a self,
        user_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<WrappedKey>, Error>> {
        Box::pin(async move { Ok(self.key_of(user_id).await?) })
    }

    fn add_user_key<'a>(
        &'a self,
        user_id: &'a str,
        key: WrappedKey,
    ) -> BoxFuture<'a, Result<WrappedKey, Error>> {
        Box::pin(async move {
            for _ in 0..ROUNDS_MAX {
                // Adding a key is idempotent, so it is retried after a broken connection.
                self.read(
                    "INSERT INTO user_key (user_id, master, bytes, id) VALUES ($1, $2, $3, $4) \
                     ON CONFLICT (user_id) DO NOTHING",
                    &[
                        &user_id,
                        &key.master,
                        &key.bytes,
                        &key_name(key.id.as_ref()),
                    ],
                )
                .await?;
                if let Some(counts) = self.key_of(user_id).await? {
                    return Ok(counts);
                }
            }
            Err(Failure::Contended {
                what: "the key of a user",
                tries: ROUNDS_MAX,
            }
            .into())
        })
    }

    fn user_keys<'a>(
        &'a self,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, WrappedKey)>, Error>> {
        Box::pin(async move {
            let found = self
                .read(
                    "SELECT master, bytes, id, user_id FROM user_key \
                     WHERE user_id COLLATE \"C\" > $1 \
                     ORDER BY user_id COLLATE \"C\" LIMIT $2",
                    &[&after, &rows(limit)],
                )
                .await?;
            named(&found)
        })
    }

    fn user_keys_not_under<'a>(
        &'a self,
        master: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, WrappedKey)>, Error>> {
        Box::pin(async move {
            let found = self
                .read(
                    "SELECT master, bytes, id, user_id FROM user_key WHERE master <> $1 \
                     ORDER BY user_id LIMIT $2",
                    &[&master, &rows(limit)],
                )
                .await?;
            named(&found)
        })
    }

    fn rewrap<'a>(
        &'a self,
        user_id: &'a str,
        old: &'a WrappedKey,
        new: WrappedKey,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let replaced = self
                .run(
                    "UPDATE user_key SET master = $4, bytes = $5, id = $6 \
                     WHERE user_id = $1 AND master = $2 AND bytes = $3 RETURNING 1",
                    &[
                        &user_id,
                        &old.master,
                        &old.bytes,
                        &new.master,
                        &new.bytes,
                        &key_name(new.id.as_ref()),
                    ],
                )
                .await?;
            Ok(!replaced.is_empty())
        })
    }

    fn on_lost_key(&self, told: LostKeyFn) {
        self.inner.lost_keys.add(told);
    }
}

impl PostgresStore {
    async fn key_of(&self, user_id: &str) -> Result<Option<WrappedKey>, Failure> {
        let query = "SELECT master, bytes, id FROM user_key WHERE user_id = $1";
        self.read(query, &[&user_id])
            .await?
            .first()
            .map(key)
            .transpose()
    }

    /// True if `key` is no longer the user's key.
    pub(super) async fn has_lost_key(
        &self,
        user_id: &str,
        key: Option<KeyId>,
    ) -> Result<bool, Failure> {
        let Some(key) = key.filter(|_| !user_id.is_empty()) else {
            return Ok(false);
        };
        let query = "SELECT 1 FROM user_key WHERE user_id = $1 AND (id IS NULL OR id = $2)";
        let current = self.run(query, &[&user_id, &key.0.as_slice()]).await?;
        if current.is_empty() {
            self.inner.lost_keys.tell(user_id);
        }
        Ok(current.is_empty())
    }
}

/// Callbacks of the key caches, called when a cached key is out of date.
#[derive(Clone, Default)]
pub(super) struct LostKeys(Arc<Mutex<Vec<LostKeyFn>>>);

impl LostKeys {
    fn add(&self, told: LostKeyFn) {
        self.lock().push(told);
    }

    pub(super) fn tell(&self, user_id: &str) {
        for told in self.lock().iter() {
            told(user_id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LostKeyFn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn named(rows: &[Row]) -> Result<Vec<(String, WrappedKey)>, Error> {
    let keys = rows.iter().map(|row| Ok((row.get(3), key(row)?)));
    Ok(keys.collect::<Result<_, Failure>>()?)
}

fn key(row: &Row) -> Result<WrappedKey, Failure> {
    Ok(WrappedKey {
        master: row.get(0),
        bytes: row.get(1),
        id: key_id(row.get(2))?,
    })
}

/// Converts a key's id for its column.
pub(super) fn key_name(id: Option<&KeyId>) -> Option<&[u8]> {
    id.map(|id| id.0.as_slice())
}

/// Reads a key's id from its column.
pub(super) fn key_id(column: Option<&[u8]>) -> Result<Option<KeyId>, Failure> {
    let id = column.map(|bytes| bytes.try_into().map(KeyId));
    id.transpose()
        .map_err(|_| Failure::damaged("the name of a user's key"))
}
