//! The log. A record gets its place in the tree with its commit, because there is one writer; the tree
//! itself grows later, in batches.

pub(super) mod codes;
pub(super) mod entry;
mod erase;
mod integrate;
pub(super) mod records;

use countersign::BoxFuture;
use countersign::ledger::{
    DocumentKey, Durability, Entry, Erased, Error, FoundLeaf, Head, Hold, Integration, Leaf, Log,
    LogQuery, LogRow, Names, Sequencing, StoredRecord,
};
use countersign::scribe::Draft;
use countersign_contract::SnapshotId;
use countersign_evidence::seal::LeafKey;
use countersign_evidence::tile::TileId;
use countersign_evidence::tree::Hash;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::SqliteStore;
use super::failure::Failure;
use super::readers::at_one_moment;
use super::tip::{head, tile};
use super::values::{bounded, bytes32, parsed_option, signed, unsigned};
use super::writer::Done;
use entry::{Sealed, keep};

/// Condition that no hold keeps a record.
macro_rules! not_held {
    () => {
        "NOT EXISTS (SELECT 1 FROM hold
             WHERE hold.user_id = record.user_id AND hold.record IN ('', record.id))"
    };
}

impl Log for SqliteStore {
    fn append(&self, draft: Draft, durability: Durability) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            match durability {
                Durability::Batched => {
                    // No caller waits to be told that a record could not be written, so the disk is checked
                    // before.
                    self.disk.check()?;
                    self.sealer.send(draft).await?;
                }
                Durability::Committed => {
                    let sealed = Sealed::from(draft.seal());
                    self.writer
                        .run(move |session| Ok(Done::Kept(keep(session, &sealed)?)))
                        .await?;
                }
            }
            Ok(())
        })
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { Ok(self.sealer.flush().await?) })
    }

    fn integrate<'a>(
        &'a self,
        _: &'a Sequencing,
        limit: usize,
    ) -> BoxFuture<'a, Result<Integration, Error>> {
        // Only this process has the file open, so it always has the lease.
        Box::pin(async move {
            let integrated = self
                .writer
                .run(move |session| integrate::integrate(session, limit).map(Done::Kept));
            Ok(integrated.await?)
        })
    }

    fn authenticate(&self, key: LeafKey) -> BoxFuture<'_, Result<usize, Error>> {
        self.leaves.set(key);
        Box::pin(async move {
            let read = self.readers.point(codes::are_complete)?;
            if read {
                return Ok(0);
            }
            let completed = self.writer.run(move |session| {
                codes::complete(session.connection, session.leaves).map(Done::Kept)
            });
            Ok(completed.await?)
        })
    }

    fn authenticated_leaves(
        &self,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hash>, Error>> {
        let leaves = self.leaves.clone();
        self.list(move |connection| codes::checked(connection, &leaves, from, limit))
    }

    fn head(&self) -> BoxFuture<'_, Result<Head, Error>> {
        Box::pin(async move {
            let (size, root) = self.readers.point(head)?;
            Ok(Head { size, root })
        })
    }

    fn leaves(&self, from: u64, limit: usize) -> BoxFuture<'_, Result<Vec<Leaf>, Error>> {
        self.list(move |connection| leaves(connection, from, limit))
    }

    fn tiles<'a>(
        &'a self,
        wanted: &'a [TileId],
    ) -> BoxFuture<'a, Result<Vec<Option<Vec<u8>>>, Error>> {
        Box::pin(async move {
            Ok(self.readers.point(|connection| {
                at_one_moment(connection, |connection| {
                    wanted.iter().map(|id| tile(connection, *id)).collect()
                })
            })?)
        })
    }

    fn add_checkpoint<'a>(
        &'a self,
        head: &'a Head,
        note: &'a str,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let (head, note) = (*head, note.to_owned());
        Box::pin(async move {
            let added = self.writer.run(move |session| {
                add_checkpoint(session.connection, head, &note).map(Done::Kept)
            });
            Ok(added.await?)
        })
    }

    fn checkpoint(&self) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(async move { Ok(self.readers.point(checkpoint)?) })
    }

    fn checkpoints(
        &self,
        below: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<String>, Error>> {
        Box::pin(async move {
            let listed = |connection: &Connection| checkpoints(connection, below, limit);
            Ok(self.readers.point(listed)?)
        })
    }

    fn record<'a>(
        &'a self,
        id: &'a SnapshotId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, Error>> {
        Box::pin(async move {
            Ok(self.readers.point(|connection| {
                at_one_moment(connection, |connection| records::one(connection, id))
            })?)
        })
    }

    fn leaves_of<'a>(
        &'a self,
        ids: &'a [SnapshotId],
    ) -> BoxFuture<'a, Result<Vec<FoundLeaf>, Error>> {
        let ids = ids.to_vec();
        self.list(move |connection| records::leaves_of(connection, &ids))
    }

    fn records<'a>(&'a self, query: &'a LogQuery) -> BoxFuture<'a, Result<Vec<LogRow>, Error>> {
        let query = query.clone();
        self.list(move |connection| records::matching(connection, &query))
    }

    fn hold(&self, hold: Hold, entry: Entry) -> BoxFuture<'_, Result<(), Error>> {
        let sealed = Sealed::from(entry);
        Box::pin(async move {
            let placed = self.writer.run(move |session| {
                lift(session.connection, &hold)?;
                place(session.connection, &hold)?;
                keep(session, &sealed)?;
                Ok(Done::Kept(()))
            });
            Ok(placed.await?)
        })
    }

    fn release_hold(&self, hold: Hold, entry: Entry) -> BoxFuture<'_, Result<bool, Error>> {
        let sealed = Sealed::from(entry);
        Box::pin(async move {
            let released = self.writer.run(move |session| {
                let was_there = lift(session.connection, &hold)?;
                if was_there {
                    keep(session, &sealed)?;
                }
                Ok(Done::Kept(was_there))
            });
            Ok(released.await?)
        })
    }

    fn holds(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Hold>, Error>> {
        self.list(move |connection| holds(connection, "number", bounded(limit)))
    }

    fn erase<'a>(
        &'a self,
        user_id: &'a str,
        also: &'a [DocumentKey],
        entry: Entry,
    ) -> BoxFuture<'a, Result<Erased, Error>> {
        let (user_id, sealed) = (user_id.to_owned(), Sealed::from(entry));
        let also = also.to_vec();
        Box::pin(async move {
            // Records that were appended before are part of the erasure.
            self.sealer.flush().await?;
            let erased = self.writer.run(move |session| {
                erase::erase(session, &user_id, &also, &sealed).map(Done::Kept)
            });
            Ok(erased.await?)
        })
    }
}

fn leaves(connection: &Connection, from: u64, limit: usize) -> Result<Vec<Leaf>, Failure> {
    let (size, _) = head(connection)?;
    let mut statement = connection.prepare_cached(
        "SELECT idx, leaf FROM record WHERE idx >= ?1 AND idx < ?2 ORDER BY idx LIMIT ?3",
    )?;
    let rows = statement.query_map([signed(from), signed(size), bounded(limit)], |row| {
        Ok(Leaf {
            index: unsigned(row.get(0)?),
            bytes: row.get(1)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn add_checkpoint(connection: &Connection, head: Head, note: &str) -> Result<(), Failure> {
    let size = signed(head.size);
    let mut insert = connection.prepare_cached(
        "INSERT INTO checkpoint (size, root, note) VALUES (?1, ?2, ?3) ON CONFLICT (size) DO NOTHING",
    )?;
    if insert.execute(params![size, head.root, note])? > 0 {
        return Ok(());
    }
    let mut signed = connection.prepare_cached("SELECT root FROM checkpoint WHERE size = ?1")?;
    let mut rows = signed.query([size])?;
    match rows.next()? {
        Some(row) if bytes32(row, 0)? == head.root => Ok(()),
        Some(_) | None => Err(Failure::Forked { size: head.size }),
    }
}

fn checkpoint(connection: &Connection) -> Result<Option<String>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT note FROM checkpoint ORDER BY size DESC LIMIT 1")?;
    Ok(statement.query_row([], |row| row.get(0)).optional()?)
}

fn checkpoints(
    connection: &Connection,
    below: Option<u64>,
    limit: usize,
) -> Result<Vec<String>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT note FROM checkpoint WHERE size < ?1 ORDER BY size DESC LIMIT ?2",
    )?;
    let below = below.map_or(i64::MAX, signed);
    let mut rows = statement.query([below, bounded(limit)])?;
    let mut notes = Vec::new();
    while let Some(row) = rows.next()? {
        notes.push(row.get(0)?);
    }
    Ok(notes)
}

/// Drops payloads past their retention that are not under a hold; the tree is not touched.
pub(super) fn prune(connection: &Connection, now: i64, limit: usize) -> Result<Names, Failure> {
    let mut due = Vec::new();
    for sql in [
        concat!(
            "SELECT due.until, record.idx, record.id FROM payload_due AS due CROSS JOIN record USING (idx)
             WHERE due.until <= ?1 AND ",
            not_held!(),
            " ORDER BY due.until LIMIT ?2"
        ),
        // Records that are not in the tree yet are not in that table either.
        concat!(
            "SELECT payload.until, record.idx, record.id FROM payload CROSS JOIN record USING (idx)
             WHERE payload.idx >= (SELECT size FROM head) AND payload.until <= ?1 AND ",
            not_held!(),
            " ORDER BY record.idx LIMIT ?2"
        ),
    ] {
        let left = bounded(limit.saturating_sub(due.len()));
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([now, left], |row| {
            let place: [i64; 2] = [row.get(0)?, row.get(1)?];
            Ok((place, row.get::<_, String>(2)?))
        })?;
        for row in rows {
            due.push(row?);
        }
    }
    let mut payload = connection.prepare_cached("DELETE FROM payload WHERE idx = ?1")?;
    let mut entry =
        connection.prepare_cached("DELETE FROM payload_due WHERE until = ?1 AND idx = ?2")?;
    let mut pruned = Names::default();
    for ([until, place], id) in due {
        if payload.execute([place])? > 0 {
            pruned.add_record(&id);
        }
        entry.execute([until, place])?;
    }
    Ok(pruned)
}

fn place(connection: &Connection, hold: &Hold) -> Result<(), Failure> {
    let mut statement = connection
        .prepare_cached("INSERT INTO hold (user_id, record, reason) VALUES (?1, ?2, ?3)")?;
    statement.execute([&hold.user_id, record_of(hold), &hold.reason])?;
    Ok(())
}

fn lift(connection: &Connection, hold: &Hold) -> Result<bool, Failure> {
    let mut statement =
        connection.prepare_cached("DELETE FROM hold WHERE user_id = ?1 AND record = ?2")?;
    Ok(statement.execute([&hold.user_id, record_of(hold)])? > 0)
}

fn record_of(hold: &Hold) -> &str {
    hold.record.as_ref().map_or("", SnapshotId::as_str)
}

pub(super) fn holds(
    connection: &Connection,
    order: &str,
    limit: i64,
) -> Result<Vec<Hold>, Failure> {
    let mut statement = connection.prepare(&format!(
        "SELECT user_id, nullif(record, ''), reason FROM hold ORDER BY {order} LIMIT ?1"
    ))?;
    let mut rows = statement.query([limit])?;
    let mut holds = Vec::new();
    while let Some(row) = rows.next()? {
        holds.push(Hold {
            user_id: row.get(0)?,
            record: parsed_option(row, 1)?,
            reason: row.get(2)?,
        });
    }
    Ok(holds)
}
