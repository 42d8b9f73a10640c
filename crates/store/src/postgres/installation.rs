//! The installation that a database belongs to.

use countersign::BoxFuture;
use countersign::ledger::{Binding, Entry, Error, Installation, Installations, Traces};
use deadpool_postgres::Transaction;

use super::PostgresStore;
use super::connect::within;
use super::failure::{Failure, OpenError};
use super::log::codes::add_missing;
use super::log::erase::keep;

/// Object id of the table with the row. A table that was restored from a dump has another one.
const PLACE: &str = "CAST(to_regclass('installation') AS oid)::bigint";

/// Maximum master keys that are read; there are never more than two, the previous and the current one.
const MASTERS_MAX: i64 = 16;

impl Installations for PostgresStore {
    fn installation(&self) -> BoxFuture<'_, Result<Option<Installation>, Error>> {
        Box::pin(async move {
            let found = self.read(&select(), &[]).await?;
            Ok(found.first().map(installation))
        })
    }

    fn rebind<'a>(
        &'a self,
        from: &'a Installation,
        to: Installation,
        entry: Entry,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let bound = self.bind_again(from, &to, None, &entry);
            Ok(within(self.patience() * 2, bound).await?)
        })
    }

    fn begin_log<'a>(
        &'a self,
        from: &'a Installation,
        to: Installation,
        forgotten: &'a [&'a str],
        entry: Entry,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let begun = self.bind_again(from, &to, Some(forgotten), &entry);
            Ok(within(self.patience() * 2, begun).await?)
        })
    }
}

impl PostgresStore {
    /// Binds the store to other keys; if `forgotten` is given, to another log.
    async fn bind_again(
        &self,
        from: &Installation,
        to: &Installation,
        forgotten: Option<&[&str]>,
        entry: &Entry,
    ) -> Result<bool, Failure> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        let update = format!(
            "UPDATE installation SET id = $4, master = $5, log_key = $6, place = {PLACE} \
             WHERE id = $1 AND master = $2 AND log_key = $3"
        );
        let is_bound = transaction
            .execute(
                &update,
                &[
                    &from.id,
                    &from.master,
                    &from.log_key,
                    &to.id,
                    &to.master,
                    &to.log_key,
                ],
            )
            .await?;
        if is_bound == 0 {
            return Ok(false);
        }
        if let Some(forgotten) = forgotten {
            transaction.execute("DELETE FROM checkpoint", &[]).await?;
            add_missing(&transaction, &self.inner.leaves).await?;
            // The process that signed before has no part in the new log, and in a copy it does not even run.
            let free = "UPDATE log_head SET lease_until = now() - interval '1 second'";
            transaction.execute(free, &[]).await?;
            for table in ["document", "document_entry"] {
                let delete = format!("DELETE FROM {table} WHERE collection = ANY($1)");
                transaction.execute(&delete, &[&forgotten]).await?;
            }
        }
        keep(&transaction, entry, &self.inner.leaves).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

/// Refuses keys that the data does not belong to; binds a database that is not bound yet.
pub(super) async fn bind(
    transaction: &Transaction<'_>,
    binding: &Binding,
) -> Result<(), OpenError> {
    let found = transaction.query_opt(&select(), &[]).await;
    let Some(row) = found.map_err(Failure::from)? else {
        let first = binding.first(&traces(transaction).await?)?;
        let insert = format!(
            "INSERT INTO installation (one, id, master, log_key, place) \
             VALUES (1, $1, $2, $3, {PLACE})"
        );
        let written = transaction
            .execute(&insert, &[&first.id, &first.master, &first.log_key])
            .await;
        written.map_err(Failure::from)?;
        return Ok(());
    };
    Ok(binding.check(&installation(&row))?)
}

fn select() -> String {
    format!("SELECT id, master, log_key, place <> {PLACE} FROM installation")
}

async fn traces(transaction: &Transaction<'_>) -> Result<Traces, Failure> {
    let newest = "SELECT note FROM checkpoint ORDER BY size DESC LIMIT 1";
    let checkpoint = transaction.query_opt(newest, &[]).await?;
    let masters = "SELECT DISTINCT master FROM user_key LIMIT $1";
    let masters = transaction.query(masters, &[&MASTERS_MAX]).await?;
    Ok(Traces {
        checkpoint: checkpoint.map(|row| row.get(0)),
        masters: masters.iter().map(|row| row.get(0)).collect(),
    })
}

fn installation(row: &tokio_postgres::Row) -> Installation {
    Installation {
        id: row.get(0),
        master: row.get(1),
        log_key: row.get(2),
        is_copy: row.get(3),
    }
}
