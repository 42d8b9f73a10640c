//! Sequencing: adds committed records to the tree, one process at a time.
//!
//! A process that integrates locks the head's row until it commits. The lease decides which process may try;
//! the lock and the epoch decide which one succeeds: a process that was overtaken commits nothing, however late
//! it wakes up.

use countersign::ledger::{Head, Integration, Sequencing};
use countersign_evidence::tile::{TileId, TileMap, TileWriter};
use countersign_evidence::tree::{Hash, leaf_hash};
use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::head;
use crate::leaves::Leaves;
use crate::postgres::connect::within;
use crate::postgres::failure::Failure;
use crate::postgres::{PostgresStore, micros, patience, rows, signed, unsigned};

/// The right edge of the tree, as this process last wrote it.
pub(in crate::postgres) struct Edge {
    epoch: i64,
    head: Head,
    writer: TileWriter,
}

/// Locks the head. If another process is integrating, the statement does not wait: that process has the head.
const LOCK_HEAD: &str = "SELECT epoch, size, root, holder = $1 AS is_ours, \
        lease_until <= now() AS is_free, \
        lease_until > now() + $2::bigint * interval '1 microsecond' AS is_fresh \
     FROM log_head WHERE one = 1 FOR UPDATE SKIP LOCKED";

/// Takes the next records in the order of the queue. A record that commits late is not skipped: the next run
/// takes it. Nothing behind a record that is just being erased is taken, because it might link to that one.
const DRAIN: &str = "WITH first AS MATERIALIZED (SELECT seq FROM outbox ORDER BY seq LIMIT $1), \
     free AS MATERIALIZED (SELECT seq FROM outbox WHERE seq IN (SELECT seq FROM first) \
        FOR UPDATE SKIP LOCKED), \
     held AS (SELECT min(seq) AS seq FROM first WHERE seq NOT IN (SELECT seq FROM free)), \
     gone AS (DELETE FROM outbox o USING free, held \
        WHERE o.seq = free.seq AND (held.seq IS NULL OR o.seq < held.seq) \
        RETURNING o.seq, o.id) \
     SELECT gone.id, r.leaf, r.code_of_leaf FROM gone \
     LEFT JOIN record r ON r.id = gone.id ORDER BY gone.seq";

const INSERT_LEAVES: &str = "INSERT INTO log_leaf (idx, id) \
     SELECT idx, id FROM unnest($1::bigint[], $2::text[]) AS t (idx, id)";

const UPSERT_TILES: &str = "INSERT INTO tile (level, idx, hashes) \
     SELECT level, idx, hashes FROM unnest($1::smallint[], $2::bigint[], $3::bytea[]) \
       AS t (level, idx, hashes) \
     ON CONFLICT (level, idx) DO UPDATE SET hashes = EXCLUDED.hashes";

const UPDATE_HEAD: &str = "UPDATE log_head SET holder = $1, epoch = $2, size = $3, root = $4, \
        lease_until = now() + $5::bigint * interval '1 microsecond' \
     WHERE one = 1 AND epoch = $6 AND size = $7";

impl PostgresStore {
    pub(super) async fn integrate_now(
        &self,
        sequencing: &Sequencing,
        limit: usize,
    ) -> Result<Integration, Failure> {
        let mut kept = self.inner.edge.lock().await;
        let edge = kept.take();
        let mut client = self.client().await?;
        let patience = patience(&self.inner.options) * 2;
        let done = within(patience, async {
            let transaction = client.transaction().await?;
            integrate(transaction, sequencing, limit, edge, &self.inner.leaves).await
        });
        let done = done.await;
        if matches!(done, Err(Failure::Silent { .. })) {
            drop(deadpool_postgres::Object::take(client));
        }
        let Some((edge, added)) = done? else {
            return Ok(Integration::NotOurs);
        };
        let head = edge.head;
        *kept = Some(edge);
        Ok(Integration::Done { head, added })
    }
}

async fn integrate(
    transaction: Transaction<'_>,
    sequencing: &Sequencing,
    limit: usize,
    edge: Option<Edge>,
    codes: &Leaves,
) -> Result<Option<(Edge, usize)>, Failure> {
    let lease_us = micros(sequencing.lease);
    let lock = transaction.prepare_cached(LOCK_HEAD).await?;
    let holder = &sequencing.holder;
    let locked = transaction.query(&lock, &[holder, &(lease_us / 2)]).await?;
    let Some(row) = locked.first() else {
        return Ok(None);
    };
    let is_ours: bool = row.get("is_ours");
    if !is_ours && !row.get::<_, bool>("is_free") {
        // The row lock is released before the answer: the holder, asked next, must not find it locked.
        transaction.rollback().await?;
        return Ok(None);
    }
    let (epoch, at): (i64, Head) = (row.get("epoch"), head(row)?);
    let edge = edge.filter(|edge| edge.epoch == epoch && edge.head == at);
    let mut writer = match edge {
        Some(edge) => edge.writer,
        None => resume(&transaction, at).await?,
    };
    let leaves = drain(&transaction, limit, codes).await?;
    let next_epoch = if is_ours { epoch } else { epoch + 1 };
    if leaves.is_empty() && is_ours && row.get("is_fresh") {
        // Nothing has changed and the lease is still long enough: an idle log costs no commit.
        let edge = Edge {
            epoch,
            head: at,
            writer,
        };
        transaction.rollback().await?;
        return Ok(Some((edge, 0)));
    }
    let hashes: Vec<_> = leaves.iter().map(|(_, hash)| *hash).collect();
    let tiles = writer.append(&hashes);
    let frontier = writer.frontier();
    let new = Head {
        size: frontier.size(),
        root: frontier.root(),
    };
    write(&transaction, at.size, &leaves, &tiles).await?;
    let update = transaction.prepare_cached(UPDATE_HEAD).await?;
    let (size, root) = (signed(new.size), new.root.as_slice());
    let updated = transaction
        .execute(
            &update,
            &[
                holder,
                &next_epoch,
                &size,
                &root,
                &lease_us,
                &epoch,
                &signed(at.size),
            ],
        )
        .await?;
    if updated != 1 {
        return Ok(None);
    }
    transaction.commit().await?;
    let edge = Edge {
        epoch: next_epoch,
        head: new,
        writer,
    };
    Ok(Some((edge, leaves.len())))
}

/// Reads the next leaves, in their order.
async fn drain(
    transaction: &Transaction<'_>,
    limit: usize,
    codes: &Leaves,
) -> Result<Vec<(String, Hash)>, Failure> {
    let drain = transaction.prepare_cached(DRAIN).await?;
    let gone = transaction.query(&drain, &[&rows(limit)]).await?;
    gone.iter().map(|row| leaf(row, codes)).collect()
}

/// Reads a record's id and the hash of its leaf. Another program may have written the row, so its code is checked.
pub(super) fn leaf(row: &Row, codes: &Leaves) -> Result<(String, Hash), Failure> {
    let id: String = row.get(0);
    let leaf: Option<&[u8]> = row.get(1);
    let leaf = leaf.ok_or_else(|| Failure::damaged(format!("the record {id}")))?;
    let hash = leaf_hash(leaf);
    let checked = codes.check(&id, &hash, row.get(2));
    checked.map_err(Failure::damaged)?;
    Ok((id, hash))
}

async fn write(
    transaction: &Transaction<'_>,
    from: u64,
    leaves: &[(String, Hash)],
    tiles: &[(TileId, Vec<u8>)],
) -> Result<(), Failure> {
    if leaves.is_empty() {
        return Ok(());
    }
    let indexes: Vec<i64> = (from..)
        .zip(leaves)
        .map(|(index, _)| signed(index))
        .collect();
    let ids: Vec<&str> = leaves.iter().map(|(id, _)| id.as_str()).collect();
    let insert = transaction.prepare_cached(INSERT_LEAVES).await?;
    transaction.execute(&insert, &[&indexes, &ids]).await?;
    let levels: Vec<i16> = tiles.iter().map(|(tile, _)| tile.level.into()).collect();
    let indexes: Vec<i64> = tiles.iter().map(|(tile, _)| signed(tile.index)).collect();
    let hashes: Vec<&[u8]> = tiles.iter().map(|(_, hashes)| hashes.as_slice()).collect();
    let upsert = transaction.prepare_cached(UPSERT_TILES).await?;
    transaction
        .execute(&upsert, &[&levels, &indexes, &hashes])
        .await?;
    Ok(())
}

/// Resumes the tree where another process, or an earlier run of this one, stopped. Fails if the tiles do not
/// give the head's root.
async fn resume(transaction: &Transaction<'_>, at: Head) -> Result<TileWriter, Failure> {
    let mut wanted: Vec<TileId> = TileWriter::tiles_to_resume(at.size)
        .into_iter()
        .chain(countersign_evidence::tree::tiles_for_frontier(at.size))
        .map(|(tile, _)| tile)
        .collect();
    wanted.sort_unstable();
    wanted.dedup();
    let levels: Vec<i16> = wanted.iter().map(|tile| tile.level.into()).collect();
    let indexes: Vec<i64> = wanted.iter().map(|tile| signed(tile.index)).collect();
    let query = "SELECT t.level, t.idx, t.hashes \
         FROM unnest($1::smallint[], $2::bigint[]) AS k (level, idx) \
         JOIN tile t ON t.level = k.level AND t.idx = k.idx";
    let found = transaction.query(query, &[&levels, &indexes]).await?;
    let tiles: TileMap = found
        .iter()
        .map(|row| {
            let level = u8::try_from(row.get::<_, i16>(0)).unwrap_or(u8::MAX);
            let index = unsigned(row.get(1));
            (TileId { level, index }, row.get(2))
        })
        .collect();
    let writer = TileWriter::resume(at.size, &tiles);
    let writer = writer.map_err(|error| Failure::damaged(format!("the tree ({error})")))?;
    if writer.frontier().root() != at.root {
        return Err(Failure::damaged("the tree (its tiles have another root)"));
    }
    Ok(writer)
}
