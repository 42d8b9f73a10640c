//! The log in memory.

use crate::ledger::DocumentKey;
use std::future::ready;

use countersign_contract::SnapshotId;
use countersign_evidence::seal::KeyId;
use countersign_evidence::tile::{TileId, TileMap, TileWriter};
use countersign_evidence::tree::leaf_hash;
use jiff::Timestamp;

use super::{Inner, MemoryStore, after};
use crate::BoxFuture;
use crate::ledger::{
    CommitAnswer, Durability, Entry, Erased, Error, Head, Hold, Integration, Leaf, Log, LogQuery,
    LogRow, Names, Sequencing, StoredRecord,
};
use crate::scribe::Draft;

/// A record; the first `tree.size` of them are in the tree, in their order.
pub(super) struct Record {
    pub(super) row: LogRow,
    leaf: Vec<u8>,
    payload: Option<Vec<u8>>,
    payload_until: Option<Timestamp>,
    /// True if the record is all that was stored of its commit, because the owner was overtaken.
    is_fenced: bool,
}

/// The tree over the records.
#[derive(Default)]
pub(super) struct Tree {
    writer: TileWriter,
    tiles: TileMap,
}

impl Tree {
    pub(super) fn head(&self) -> Head {
        let frontier = self.writer.frontier();
        Head {
            size: frontier.size(),
            root: frontier.root(),
        }
    }
}

impl Log for MemoryStore {
    fn append(&self, draft: Draft, _: Durability) -> BoxFuture<'_, Result<(), Error>> {
        // Memory has no batch to wait for.
        self.keep_draft(&mut self.lock(), draft, false);
        Box::pin(ready(Ok(())))
    }

    fn keeps_log(&self) -> bool {
        self.keeps_log
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(ready(Ok(())))
    }

    fn integrate<'a>(
        &'a self,
        _: &'a Sequencing,
        limit: usize,
    ) -> BoxFuture<'a, Result<Integration, Error>> {
        // Nobody else can see this memory, so the lease is always ours.
        let mut inner = self.lock();
        let from = usize::try_from(inner.tree.head().size).unwrap_or(usize::MAX);
        let hashes: Vec<_> = inner
            .records
            .iter()
            .skip(from)
            .take(limit)
            .map(|record| leaf_hash(&record.leaf))
            .collect();
        let tree = &mut inner.tree;
        for (id, bytes) in tree.writer.append(&hashes) {
            tree.tiles.insert(id, bytes);
        }
        let done = Integration::Done {
            head: tree.head(),
            added: hashes.len(),
        };
        Box::pin(ready(Ok(done)))
    }

    fn head(&self) -> BoxFuture<'_, Result<Head, Error>> {
        Box::pin(ready(Ok(self.lock().tree.head())))
    }

    fn leaves(&self, from: u64, limit: usize) -> BoxFuture<'_, Result<Vec<Leaf>, Error>> {
        let inner = self.lock();
        let size = usize::try_from(inner.tree.head().size).unwrap_or(usize::MAX);
        let leaves = (from..)
            .zip(
                inner
                    .records
                    .iter()
                    .take(size)
                    .skip(usize::try_from(from).unwrap_or(usize::MAX)),
            )
            .take(limit)
            .map(|(index, record)| Leaf {
                index,
                bytes: record.leaf.clone(),
            })
            .collect();
        Box::pin(ready(Ok(leaves)))
    }

    fn tiles<'a>(
        &'a self,
        wanted: &'a [TileId],
    ) -> BoxFuture<'a, Result<Vec<Option<Vec<u8>>>, Error>> {
        let inner = self.lock();
        let tiles = wanted
            .iter()
            .map(|id| inner.tree.tiles.get(id).cloned())
            .collect();
        Box::pin(ready(Ok(tiles)))
    }

    fn add_checkpoint<'a>(
        &'a self,
        head: &'a Head,
        note: &'a str,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let mut inner = self.lock();
        let kept = inner
            .checkpoints
            .entry(head.size)
            .or_insert_with(|| (head.root, note.to_owned()));
        let added = if kept.0 == head.root {
            Ok(())
        } else {
            Err(Error::Forked { size: head.size })
        };
        Box::pin(ready(added))
    }

    fn checkpoint(&self) -> BoxFuture<'_, Result<Option<String>, Error>> {
        let inner = self.lock();
        let newest = inner.checkpoints.last_key_value();
        let note = newest.map(|(_, (_, note))| note.clone());
        Box::pin(ready(Ok(note)))
    }

    fn checkpoints(
        &self,
        below: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<String>, Error>> {
        let inner = self.lock();
        let known = inner.checkpoints.range(..below.unwrap_or(u64::MAX));
        let notes = known.rev().take(limit).map(|(_, (_, note))| note.clone());
        Box::pin(ready(Ok(notes.collect())))
    }

    fn record<'a>(
        &'a self,
        id: &'a SnapshotId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, Error>> {
        let inner = self.lock();
        let place = inner.by_id.get(id).copied();
        let record = place.and_then(|place| Some((place, inner.records.get(place)?)));
        let stored = record.map(|(place, record)| StoredRecord {
            row: record.row.clone(),
            index: Some(place as u64).filter(|index| *index < inner.tree.head().size),
            leaf: record.leaf.clone(),
            payload: record.payload.clone(),
        });
        Box::pin(ready(Ok(stored)))
    }

    fn records<'a>(&'a self, query: &'a LogQuery) -> BoxFuture<'a, Result<Vec<LogRow>, Error>> {
        let inner = self.lock();
        let mut rows: Vec<_> = inner
            .records
            .iter()
            .map(|record| &record.row)
            .filter(|row| matches(query, row))
            .cloned()
            .collect();
        rows.sort_by(|a, b| (b.at, b.id.as_str()).cmp(&(a.at, a.id.as_str())));
        rows.truncate(query.limit);
        Box::pin(ready(Ok(rows)))
    }

    fn hold(&self, hold: Hold, entry: Entry) -> BoxFuture<'_, Result<(), Error>> {
        let mut inner = self.lock();
        inner.holds.retain(|other| !is_same(other, &hold));
        inner.holds.push(hold);
        inner.keep(entry, false);
        Box::pin(ready(Ok(())))
    }

    fn release_hold(&self, hold: Hold, entry: Entry) -> BoxFuture<'_, Result<bool, Error>> {
        let mut inner = self.lock();
        let before = inner.holds.len();
        inner.holds.retain(|other| !is_same(other, &hold));
        let was_there = inner.holds.len() < before;
        if was_there {
            inner.keep(entry, false);
        }
        Box::pin(ready(Ok(was_there)))
    }

    fn holds(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Hold>, Error>> {
        let holds = self.lock().holds.iter().take(limit).cloned().collect();
        Box::pin(ready(Ok(holds)))
    }

    fn erase<'a>(
        &'a self,
        user_id: &'a str,
        also: &'a [DocumentKey],
        entry: Entry,
    ) -> BoxFuture<'a, Result<Erased, Error>> {
        Box::pin(ready(self.lock().erase(user_id, also, entry)))
    }
}

impl MemoryStore {
    pub(super) fn keep_draft(&self, inner: &mut Inner, draft: Draft, is_fenced: bool) {
        let is_lost = inner.has_lost_key(draft.user_id(), draft.sealed_under());
        let call = if self.keeps_log {
            let call = draft.call_record().cloned();
            let (mut entry, fenced) = draft.seal_for_commit(is_fenced);
            if let Some(fenced) = fenced {
                entry.leaf = fenced.leaf();
            }
            inner.keep(entry, is_fenced);
            call
        } else {
            draft.into_call_record()
        };
        let Some(call) = call.filter(|_| !is_lost) else {
            return;
        };
        if inner.calls.len() >= self.records_max {
            inner.calls.pop_front();
        }
        inner.calls.push_back(call);
    }
}

impl Inner {
    /// The answer that the commit of a record got; `None` if the record is not stored.
    pub(super) fn answered(&self, id: &SnapshotId) -> Option<CommitAnswer> {
        let record = self.records.get(*self.by_id.get(id)?)?;
        Some(if record.is_fenced {
            CommitAnswer::Fenced
        } else {
            CommitAnswer::Committed
        })
    }

    /// Stores a record; one that is stored already is not stored twice.
    pub(super) fn keep(&mut self, mut entry: Entry, is_fenced: bool) {
        if self.has_lost_key(&entry.user_id, entry.sealed_under) {
            entry.user_id.clear();
            entry.payload = None;
        }
        let place = self.records.len();
        if self.by_id.contains_key(&entry.id) {
            return;
        }
        self.by_id.insert(entry.id.clone(), place);
        // A clock that is behind the time that was believed shortens no retention.
        let from = self.time.believed(entry.at);
        self.records.push(Record {
            row: LogRow {
                id: entry.id,
                user_id: entry.user_id,
                kind: entry.kind,
                at: entry.at,
                request_id: entry.request_id,
                tool: entry.tool,
                code: entry.code,
            },
            leaf: entry.leaf,
            payload: entry.payload,
            payload_until: entry.keep_payload.map(|keep| after(from, keep)),
            is_fenced,
        });
    }

    /// Drops payloads past their retention that are not under a hold; the tree is not touched.
    pub(super) fn prune(&mut self, now: Timestamp, limit: usize) -> Names {
        let Inner { records, holds, .. } = self;
        let over = records
            .iter_mut()
            .filter(|record| record.payload.is_some())
            .filter(|record| record.payload_until.is_some_and(|until| now >= until))
            .filter(|record| !holds.iter().any(|hold| covers(hold, &record.row)));
        let mut pruned = Names::default();
        for record in over.take(limit) {
            record.payload = None;
            pruned.add_record(record.row.id.as_str());
        }
        pruned
    }

    /// True if this is no longer the user's key.
    pub(super) fn has_lost_key(&self, user_id: &str, key: Option<KeyId>) -> bool {
        let Some(key) = key.filter(|_| !user_id.is_empty()) else {
            return false;
        };
        let current = self.user_keys.get(user_id);
        current.is_none_or(|current| current.id.is_some_and(|current| current != key))
    }

    fn erase(
        &mut self,
        user_id: &str,
        also: &[DocumentKey],
        entry: Entry,
    ) -> Result<Erased, Error> {
        if let Some(hold) = self.holds.iter().find(|hold| hold.user_id == user_id) {
            return Err(Error::UnderHold {
                reason: hold.reason.clone(),
            });
        }
        let keys = usize::from(self.user_keys.remove(user_id).is_some());
        let mut payloads = 0;
        let of_user = self
            .records
            .iter_mut()
            .filter(|record| record.row.user_id == user_id);
        for record in of_user {
            record.row.user_id.clear();
            payloads += usize::from(record.payload.take().is_some());
        }
        let (documents, claims) = (self.documents.len(), self.claims.len());
        self.documents.retain(|key, _| key.user_id != user_id);
        let of_user = documents - self.documents.len();
        for key in also {
            self.documents.remove(key);
        }
        self.shapes.retain(|(owner, _), _| owner != user_id);
        self.claims.retain(|scope, _| scope.user_id != user_id);
        self.calls.retain(|call| call.user_id != user_id);
        self.till.erase(user_id);
        self.keep(entry, false);
        Ok(Erased {
            keys,
            payloads,
            documents: of_user,
            claims: claims - self.claims.len(),
        })
    }
}

fn is_same(a: &Hold, b: &Hold) -> bool {
    a.user_id == b.user_id && a.record == b.record
}

fn covers(hold: &Hold, row: &LogRow) -> bool {
    hold.user_id == row.user_id && hold.record.as_ref().is_none_or(|id| *id == row.id)
}

fn matches(query: &LogQuery, row: &LogRow) -> bool {
    let is_older =
        |(at, id): &(Timestamp, SnapshotId)| (row.at, row.id.as_str()) < (*at, id.as_str());
    query.user_id.as_ref().is_none_or(|of| row.user_id == *of)
        && query
            .tool
            .as_ref()
            .is_none_or(|of| row.tool.as_ref() == Some(of))
        && query.code.is_none_or(|code| row.code == Some(code))
        && !(query.ok_only && row.code.is_some())
        && query.kind.is_none_or(|kind| row.kind == kind)
        && query
            .request_id
            .as_ref()
            .is_none_or(|of| row.request_id.as_ref() == Some(of))
        && (query.request_ids.is_empty()
            || row
                .request_id
                .as_ref()
                .is_some_and(|id| query.request_ids.contains(id)))
        && query.since.is_none_or(|since| row.at >= since)
        && query.until.is_none_or(|until| row.at < until)
        && query.before.as_ref().is_none_or(is_older)
}
