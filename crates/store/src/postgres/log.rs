//! The log in PostgreSQL.

pub(super) mod codes;
pub(super) mod erase;
pub(super) mod query;
pub(super) mod sequence;

use std::collections::HashMap;

use countersign::BoxFuture;
use countersign::ledger::{
    Commit, DocumentKey, Durability, Entry, Erased, Error, FoundLeaf, Head, Hold, Integration,
    Leaf, Log, LogQuery, LogRow, Sequencing, StoredRecord,
};
use countersign::scribe::Draft;
use countersign_contract::SnapshotId;
use countersign_evidence::seal::LeafKey;
use countersign_evidence::tile::TileId;
use countersign_evidence::tree::Hash;
use tokio_postgres::Row;

use super::connect::within;
use super::failure::Failure;
use super::held::digest;
use super::{PostgresStore, rows, signed, unsigned};

impl Log for PostgresStore {
    fn append(&self, draft: Draft, durability: Durability) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            match durability {
                Durability::Batched => Ok(self.inner.appender.append(draft).await?),
                Durability::Committed => {
                    let commit = Commit {
                        key: None,
                        reads: Vec::new(),
                        shapes: Vec::new(),
                        writes: Vec::new(),
                        spend: None,
                        record: draft,
                    };
                    self.inner.lanes.commit(commit).await?;
                    Ok(())
                }
            }
        })
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { Ok(self.inner.appender.flush().await?) })
    }

    fn integrate<'a>(
        &'a self,
        sequencing: &'a Sequencing,
        limit: usize,
    ) -> BoxFuture<'a, Result<Integration, Error>> {
        Box::pin(async move { Ok(self.integrate_now(sequencing, limit).await?) })
    }

    fn authenticate(&self, key: LeafKey) -> BoxFuture<'_, Result<usize, Error>> {
        self.inner.leaves.set(key);
        Box::pin(async move { Ok(within(self.patience() * 2, self.complete_codes()).await?) })
    }

    fn authenticated_leaves(
        &self,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hash>, Error>> {
        Box::pin(async move { Ok(self.checked_leaves(from, limit).await?) })
    }

    fn head(&self) -> BoxFuture<'_, Result<Head, Error>> {
        Box::pin(async move {
            let found = self.read("SELECT size, root FROM log_head", &[]).await?;
            let row = found
                .first()
                .ok_or_else(|| Failure::damaged("the head of the log"))?;
            Ok(head(row)?)
        })
    }

    fn leaves(&self, from: u64, limit: usize) -> BoxFuture<'_, Result<Vec<Leaf>, Error>> {
        Box::pin(async move {
            let found = self
                .read(
                    "SELECT l.idx, r.leaf FROM log_leaf l LEFT JOIN record r ON r.id = l.id \
                     WHERE l.idx >= $1 ORDER BY l.idx LIMIT $2",
                    &[&signed(from), &rows(limit)],
                )
                .await?;
            let leaves = (from..).zip(&found).map(|(index, row)| {
                let bytes: Option<Vec<u8>> = row.get(1);
                let is_next = unsigned(row.get(0)) == index;
                let bytes = bytes.filter(|_| is_next);
                let bytes = bytes.ok_or_else(|| Failure::damaged(format!("leaf {index}")))?;
                Ok(Leaf { index, bytes })
            });
            Ok(leaves.collect::<Result<_, Failure>>()?)
        })
    }

    fn tiles<'a>(
        &'a self,
        wanted: &'a [TileId],
    ) -> BoxFuture<'a, Result<Vec<Option<Vec<u8>>>, Error>> {
        Box::pin(async move { Ok(self.tiles_of(wanted).await?) })
    }

    fn add_checkpoint<'a>(
        &'a self,
        head: &'a Head,
        note: &'a str,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let (size, root) = (signed(head.size), head.root.as_slice());
            // The first checkpoint of a size stays, so this is idempotent.
            self.read(
                "INSERT INTO checkpoint (size, root, note) VALUES ($1, $2, $3) \
                 ON CONFLICT (size) DO NOTHING",
                &[&size, &root, &note],
            )
            .await?;
            let kept = self
                .read(
                    "SELECT size, root FROM checkpoint WHERE size = $1",
                    &[&size],
                )
                .await?;
            let kept = kept
                .first()
                .ok_or_else(|| Failure::damaged("a checkpoint"))?;
            if super::log::head(kept)? == *head {
                Ok(())
            } else {
                Err(Error::Forked { size: head.size })
            }
        })
    }

    fn checkpoint(&self) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(async move {
            let newest = "SELECT note FROM checkpoint ORDER BY size DESC LIMIT 1";
            let found = self.read(newest, &[]).await?;
            Ok(found.first().map(|row| row.get(0)))
        })
    }

    fn checkpoints(
        &self,
        below: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<String>, Error>> {
        Box::pin(async move {
            let below = below.map(signed);
            let listed = "SELECT note FROM checkpoint WHERE $1::bigint IS NULL OR size < $1 \
                          ORDER BY size DESC LIMIT $2";
            let found = self.read(listed, &[&below, &rows(limit)]).await?;
            Ok(found.iter().map(|row| row.get(0)).collect())
        })
    }

    fn record<'a>(
        &'a self,
        id: &'a SnapshotId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, Error>> {
        Box::pin(async move { Ok(self.stored_record(id).await?) })
    }

    fn leaves_of<'a>(
        &'a self,
        ids: &'a [SnapshotId],
    ) -> BoxFuture<'a, Result<Vec<FoundLeaf>, Error>> {
        Box::pin(async move { Ok(self.leaves_of_records(ids).await?) })
    }

    fn records<'a>(&'a self, query: &'a LogQuery) -> BoxFuture<'a, Result<Vec<LogRow>, Error>> {
        Box::pin(async move { Ok(self.matching(query).await?) })
    }

    fn hold(&self, hold: Hold, entry: Entry) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(
            async move { Ok(within(self.patience() * 2, self.place_hold(&hold, &entry)).await?) },
        )
    }

    fn release_hold(&self, hold: Hold, entry: Entry) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(
            async move { Ok(within(self.patience() * 2, self.lift_hold(&hold, &entry)).await?) },
        )
    }

    fn holds(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Hold>, Error>> {
        Box::pin(async move { Ok(self.placed_holds(limit).await?) })
    }

    fn erase<'a>(
        &'a self,
        user_id: &'a str,
        also: &'a [DocumentKey],
        entry: Entry,
    ) -> BoxFuture<'a, Result<Erased, Error>> {
        Box::pin(self.erase_now(user_id, also, entry))
    }
}

impl PostgresStore {
    async fn tiles_of(&self, wanted: &[TileId]) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let levels: Vec<i16> = wanted.iter().map(|tile| tile.level.into()).collect();
        let indexes: Vec<i64> = wanted.iter().map(|tile| signed(tile.index)).collect();
        let found = self
            .read(
                "SELECT k.n, t.hashes \
                 FROM unnest($1::smallint[], $2::bigint[]) WITH ORDINALITY AS k (level, idx, n) \
                 JOIN tile t ON t.level = k.level AND t.idx = k.idx",
                &[&levels, &indexes],
            )
            .await?;
        let mut tiles: HashMap<i64, Vec<u8>> =
            found.iter().map(|row| (row.get(0), row.get(1))).collect();
        Ok((1..).zip(wanted).map(|(n, _)| tiles.remove(&n)).collect())
    }
}

fn head(row: &Row) -> Result<Head, Failure> {
    Ok(Head {
        size: unsigned(row.get("size")),
        root: digest(row, "root")?,
    })
}
