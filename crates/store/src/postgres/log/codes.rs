//! Codes of the records that no checkpoint covers.

use countersign_evidence::tree::Hash;

use deadpool_postgres::Transaction;

use super::sequence::leaf;
use crate::leaves::Leaves;
use crate::postgres::failure::Failure;
use crate::postgres::{PostgresStore, rows, signed, unsigned};

const ARE_COMPLETE: &str = "SELECT has_codes FROM log_head WHERE one = 1";

/// Unsigned records that an earlier version left without a code: those that wait, and those at the end of the tree.
const BARE: &str = "SELECT r.user_id, r.id, r.leaf FROM record r WHERE r.code_of_leaf IS NULL AND r.id IN ( \
       SELECT id FROM outbox UNION ALL SELECT id FROM log_leaf \
         WHERE idx >= coalesce((SELECT max(size) FROM checkpoint), 0))";

const COMPLETE: &str = "UPDATE record r SET code_of_leaf = t.code \
     FROM unnest($1::text[], $2::text[], $3::bytea[]) AS t (user_id, id, code) \
     WHERE r.user_id = t.user_id AND r.id = t.id";

const LEAVES: &str = "SELECT l.id, r.leaf, r.code_of_leaf, l.idx FROM log_leaf l \
     LEFT JOIN record r ON r.id = l.id WHERE l.idx >= $1 ORDER BY l.idx LIMIT $2";

impl PostgresStore {
    /// Gives codes to the unsigned records that an earlier version left without, once.
    pub(super) async fn complete_codes(&self) -> Result<usize, Failure> {
        let done = self.read(ARE_COMPLETE, &[]).await?;
        if done.first().is_some_and(|row| row.get(0)) {
            return Ok(0);
        }
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        let lock = "SELECT has_codes FROM log_head WHERE one = 1 FOR UPDATE";
        if transaction.query_one(lock, &[]).await?.get(0) {
            return Ok(0);
        }
        let completed = add_missing(&transaction, &self.inner.leaves).await?;
        transaction
            .execute("UPDATE log_head SET has_codes = true WHERE one = 1", &[])
            .await?;
        transaction.commit().await?;
        Ok(completed)
    }

    /// Reads the hashes of leaves whose codes are valid.
    pub(super) async fn checked_leaves(
        &self,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Hash>, Failure> {
        let found = self.read(LEAVES, &[&signed(from), &rows(limit)]).await?;
        let hashes = (from..).zip(&found).map(|(index, row)| {
            if unsigned(row.get(3)) != index {
                return Err(Failure::damaged(format!("leaf {index}")));
            }
            leaf(row, &self.inner.leaves).map(|(_, hash)| hash)
        });
        hashes.collect()
    }
}

/// Gives codes to the unsigned records that have none. An operator who begins a new log accepts them as they are.
pub(in crate::postgres) async fn add_missing(
    transaction: &Transaction<'_>,
    leaves: &Leaves,
) -> Result<usize, Failure> {
    let bare = transaction.query(BARE, &[]).await?;
    let user_ids: Vec<&str> = bare.iter().map(|row| row.get(0)).collect();
    let ids: Vec<&str> = bare.iter().map(|row| row.get(1)).collect();
    let codes = bare.iter().map(|row| {
        let code = leaves.code_of_leaf(row.get(1), row.get(2));
        code.map(Vec::from)
    });
    let codes: Vec<Option<Vec<u8>>> = codes.collect();
    transaction
        .execute(COMPLETE, &[&user_ids, &ids, &codes])
        .await?;
    Ok(bare.len())
}
