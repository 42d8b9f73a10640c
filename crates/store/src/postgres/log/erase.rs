//! Deletion: payloads past their retention, all data of an erased user, and the holds that prevent both.

use countersign::ledger::{DocumentKey, Entry, Erased, Error, Hold, Names};
use countersign_contract::SnapshotId;
use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;

use crate::leaves::Leaves;
use crate::postgres::connect::within;
use crate::postgres::dump::placed;
use crate::postgres::failure::{Failure, Meaning};
use crate::postgres::records::{INSERT_OUTBOX, INSERT_PAYLOADS, INSERT_RECORDS, Payloads, Records};
use crate::postgres::{PostgresStore, pots, rows};

/// Maximum retries of an erasure that conflicted with calls of the user.
const CONFLICTS_MAX: u32 = 10;

/// Taken by every deletion, so that the holds do not change until it is done.
const SHARE_HOLDS: &str = "SELECT one FROM hold_guard WHERE one = 1 FOR SHARE";

/// Taken by every change of the holds, which thus waits for running deletions.
const LOCK_HOLDS: &str = "SELECT one FROM hold_guard WHERE one = 1 FOR UPDATE";

const PRUNE: &str = "WITH over AS MATERIALIZED (SELECT p.user_id, p.id FROM payload p \
        WHERE p.until <= now() \
          AND NOT EXISTS (SELECT 1 FROM hold h WHERE h.user_id = p.user_id \
                            AND (h.record = '' OR h.record = p.id)) \
        ORDER BY p.until LIMIT $1 FOR UPDATE SKIP LOCKED) \
     DELETE FROM payload p USING over WHERE p.user_id = over.user_id AND p.id = over.id \
     RETURNING p.id";

/// Drops payloads past their retention that are not under a hold; the tree is not touched.
pub(in crate::postgres) async fn prune(
    transaction: &Transaction<'_>,
    limit: i64,
) -> Result<Names, Failure> {
    transaction.query(SHARE_HOLDS, &[]).await?;
    let mut pruned = Names::default();
    for row in transaction.query(PRUNE, &[&limit]).await? {
        pruned.add_record(row.get(0));
    }
    Ok(pruned)
}

impl PostgresStore {
    pub(super) async fn place_hold(&self, hold: &Hold, entry: &Entry) -> Result<(), Failure> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        transaction.query(LOCK_HOLDS, &[]).await?;
        transaction
            .execute(
                "INSERT INTO hold (user_id, record, reason, placed_at) VALUES ($1, $2, $3, now()) \
                 ON CONFLICT (user_id, record) \
                 DO UPDATE SET reason = EXCLUDED.reason, placed_at = EXCLUDED.placed_at",
                &[&hold.user_id, &record(hold), &hold.reason],
            )
            .await?;
        keep(&transaction, entry, &self.inner.leaves).await?;
        transaction.commit().await?;
        Ok(())
    }

    pub(super) async fn lift_hold(&self, hold: &Hold, entry: &Entry) -> Result<bool, Failure> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        transaction.query(LOCK_HOLDS, &[]).await?;
        let lifted = transaction
            .execute(
                "DELETE FROM hold WHERE user_id = $1 AND record = $2",
                &[&hold.user_id, &record(hold)],
            )
            .await?;
        if lifted > 0 {
            keep(&transaction, entry, &self.inner.leaves).await?;
        }
        transaction.commit().await?;
        Ok(lifted > 0)
    }

    pub(super) async fn placed_holds(&self, limit: usize) -> Result<Vec<Hold>, Failure> {
        let query = "SELECT user_id, record, reason FROM hold \
             ORDER BY placed_at, user_id, record LIMIT $1";
        let found = self.read(query, &[&rows(limit)]).await?;
        found.iter().map(placed).collect()
    }

    /// Erases a user. Calls of the same user may lock rows in another order: then one of the two is retried.
    pub(super) async fn erase_now(
        &self,
        user_id: &str,
        also: &[DocumentKey],
        entry: Entry,
    ) -> Result<Erased, Error> {
        let mut conflicts = 0;
        loop {
            match within(self.patience() * 4, self.erase_once(user_id, also, &entry)).await {
                Ok(erased) => return erased,
                Err(failure)
                    if failure.meaning() == Meaning::Again && conflicts < CONFLICTS_MAX =>
                {
                    conflicts += 1;
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    async fn erase_once(
        &self,
        user_id: &str,
        also: &[DocumentKey],
        entry: &Entry,
    ) -> Result<Result<Erased, Error>, Failure> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        transaction.query(SHARE_HOLDS, &[]).await?;
        let under = "SELECT reason FROM hold WHERE user_id = $1 ORDER BY placed_at LIMIT 1";
        if let Some(row) = transaction.query_opt(under, &[&user_id]).await? {
            return Ok(Err(Error::UnderHold { reason: row.get(0) }));
        }
        let delete = async |statement: &str| {
            let gone = transaction.execute(statement, &[&user_id]).await?;
            Ok::<_, Failure>(usize::try_from(gone).unwrap_or_default())
        };
        let keys = delete("DELETE FROM user_key WHERE user_id = $1").await?;
        let claims = delete("DELETE FROM claim WHERE user_id = $1").await?;
        let documents = delete("DELETE FROM document WHERE user_id = $1").await?;
        delete("DELETE FROM document_entry WHERE user_id = $1").await?;
        delete("DELETE FROM shape WHERE user_id = $1").await?;
        for key in also {
            let one = "DELETE FROM document WHERE user_id = $1 AND collection = $2 AND id = $3";
            let place: [&(dyn ToSql + Sync); 3] = [&key.user_id, &key.collection, &key.id];
            transaction.execute(one, &place).await?;
        }
        pots::erase(&transaction, user_id).await?;
        let payloads = delete("DELETE FROM payload WHERE user_id = $1").await?;
        // The records stay, because the tree covers them, but no longer name the user.
        delete("UPDATE record SET user_id = '' WHERE user_id = $1").await?;
        delete("UPDATE outbox SET user_id = '' WHERE user_id = $1").await?;
        keep(&transaction, entry, &self.inner.leaves).await?;
        transaction.commit().await?;
        Ok(Ok(Erased {
            keys,
            payloads,
            documents,
            claims,
        }))
    }
}

fn record(hold: &Hold) -> &str {
    hold.record.as_ref().map_or("", SnapshotId::as_str)
}

/// Keeps a record; one that is already kept is not kept twice. A record whose key is no longer the user's is
/// kept in the form that an erasure leaves.
pub(in crate::postgres) async fn keep(
    transaction: &Transaction<'_>,
    entry: &Entry,
    leaves: &Leaves,
) -> Result<(), Failure> {
    if let Some(key) = entry.sealed_under.filter(|_| !entry.user_id.is_empty()) {
        let share = "SELECT 1 FROM user_key WHERE user_id = $1 AND (id IS NULL OR id = $2) \
             FOR KEY SHARE";
        let of: [&(dyn ToSql + Sync); 2] = [&entry.user_id, &key.0.as_slice()];
        if transaction.query_opt(share, &of).await?.is_none() {
            let unnamed = Entry {
                user_id: String::new(),
                payload: None,
                ..entry.clone()
            };
            return keep_as_it_is(transaction, &unnamed, leaves).await;
        }
    }
    keep_as_it_is(transaction, entry, leaves).await
}

async fn keep_as_it_is(
    transaction: &Transaction<'_>,
    entry: &Entry,
    leaves: &Leaves,
) -> Result<(), Failure> {
    let known = "SELECT 1 FROM record WHERE id = $1";
    if transaction
        .query_opt(known, &[&entry.id.as_str()])
        .await?
        .is_some()
    {
        return Ok(());
    }
    let code = leaves.code_of_leaf(entry.id.as_str(), &entry.leaf);
    let records: Records<'_> = std::iter::once((entry, code)).collect();
    let new = transaction
        .query(
            INSERT_RECORDS,
            &[
                &records.user_ids,
                &records.ids,
                &records.kinds,
                &records.ats,
                &records.request_ids,
                &records.tools,
                &records.codes,
                &records.leaves,
                &records.codes_of_leaves,
            ],
        )
        .await?;
    if new.is_empty() {
        return Ok(());
    }
    let payloads: Payloads<'_> = std::iter::once(entry).collect();
    transaction
        .execute(
            INSERT_PAYLOADS,
            &[
                &payloads.user_ids,
                &payloads.ids,
                &payloads.untils,
                &payloads.keeps,
                &payloads.bodies,
            ],
        )
        .await?;
    transaction
        .execute(INSERT_OUTBOX, &[&records.user_ids, &records.ids])
        .await?;
    Ok(())
}
