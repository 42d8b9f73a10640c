//! Wrapped keys in PostgreSQL.

use countersign::BoxFuture;
use countersign::ledger::{Error, Keyring, WrappedKey};
use tokio_postgres::Row;

use super::failure::Failure;
use super::{PostgresStore, rows};

/// How often a key is looked for that others add and remove.
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
                // Adding a key twice is adding it once, so a broken connection is no reason to give up.
                self.read(
                    "INSERT INTO user_key (user_id, master, bytes) VALUES ($1, $2, $3) \
                     ON CONFLICT (user_id) DO NOTHING",
                    &[&user_id, &key.master, &key.bytes],
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

    fn users<'a>(
        &'a self,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        Box::pin(async move {
            let found = self
                .read(
                    "SELECT user_id FROM user_key WHERE user_id COLLATE \"C\" > $1 \
                     ORDER BY user_id COLLATE \"C\" LIMIT $2",
                    &[&after, &rows(limit)],
                )
                .await?;
            Ok(found.iter().map(|row| row.get(0)).collect())
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
                    "SELECT master, bytes, user_id FROM user_key WHERE master <> $1 \
                     ORDER BY user_id LIMIT $2",
                    &[&master, &rows(limit)],
                )
                .await?;
            Ok(found.iter().map(|row| (row.get(2), key(row))).collect())
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
                    "UPDATE user_key SET master = $4, bytes = $5 \
                     WHERE user_id = $1 AND master = $2 AND bytes = $3 RETURNING 1",
                    &[&user_id, &old.master, &old.bytes, &new.master, &new.bytes],
                )
                .await?;
            Ok(!replaced.is_empty())
        })
    }
}

impl PostgresStore {
    async fn key_of(&self, user_id: &str) -> Result<Option<WrappedKey>, Failure> {
        let query = "SELECT master, bytes FROM user_key WHERE user_id = $1";
        Ok(self.read(query, &[&user_id]).await?.first().map(key))
    }
}

fn key(row: &Row) -> WrappedKey {
    WrappedKey {
        master: row.get(0),
        bytes: row.get(1),
    }
}
