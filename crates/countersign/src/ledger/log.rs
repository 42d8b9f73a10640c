//! The log: records, their sealed payloads, the tree over them, checkpoints, holds and erasure.
//!
//! A record is committed with its call and is integrated into the tree afterwards, in batches, by the process that
//! holds the sequencing lease. A record that was committed before a crash is integrated later; none is lost, none is
//! doubled.

use std::time::Duration;

use countersign_contract::{ErrorCode, RecordKind, RequestId, SnapshotId};
use countersign_evidence::seal::{KeyId, LeafKey};
use countersign_evidence::tile::TileId;
use countersign_evidence::tree::{Hash, leaf_hash};
use jiff::Timestamp;

use super::{DocumentKey, Error};
use crate::BoxFuture;
use crate::scribe::Draft;

/// Stores the log.
pub trait Log: Send + Sync + 'static {
    /// Stores the record of a call that committed nothing else. If its [key](Entry::sealed_under) is no longer the
    /// user's, it is stored as an erasure leaves records: without the user's name, and without its payload.
    ///
    /// [`Durability::Batched`] answers as soon as there is room in a bounded queue; a full queue makes
    /// the caller wait, it never loses a record. Sealing a draft is left to the store, so that a batched
    /// one is sealed off the caller's path.
    fn append(&self, draft: Draft, durability: Durability) -> BoxFuture<'_, Result<(), Error>>;

    /// True if the store keeps a log at all. A store whose data ends with the process may do without.
    fn keeps_log(&self) -> bool {
        true
    }

    /// Returns when everything that was appended before is durable.
    fn flush(&self) -> BoxFuture<'_, Result<(), Error>>;

    /// Takes up to `limit` committed records into the tree, in one transaction, if the sequencing lease is
    /// ours or free. Never skips a record that commits late, never takes one twice.
    fn integrate<'a>(
        &'a self,
        sequencing: &'a Sequencing,
        limit: usize,
    ) -> BoxFuture<'a, Result<Integration, Error>>;

    /// Authenticates the records that are not signed yet with this key: from now on each record is stored with a code, and
    /// [`integrate`](Self::integrate) fails with [`Error::Damaged`] at a record without a valid one. Records that an
    /// earlier version left without codes get theirs once; answers their number. A store that no other program can write
    /// to needs no codes.
    fn authenticate(&self, key: LeafKey) -> BoxFuture<'_, Result<usize, Error>> {
        Box::pin(async move {
            drop(key);
            Ok(0)
        })
    }

    /// The hashes of leaves in the order of the tree, from an index on, at most `limit`. Fails with [`Error::Damaged`] if a
    /// record has no valid code.
    fn authenticated_leaves(
        &self,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hash>, Error>> {
        Box::pin(async move {
            let leaves = self.leaves(from, limit).await?;
            Ok(leaves.iter().map(|leaf| leaf_hash(&leaf.bytes)).collect())
        })
    }

    /// The tree as it is.
    fn head(&self) -> BoxFuture<'_, Result<Head, Error>>;

    /// Leaves in the order of the tree, from an index on, at most `limit`.
    fn leaves(&self, from: u64, limit: usize) -> BoxFuture<'_, Result<Vec<Leaf>, Error>>;

    /// Tiles of the tree, as far as they are filled, in the order in which they are asked for.
    fn tiles<'a>(
        &'a self,
        wanted: &'a [TileId],
    ) -> BoxFuture<'a, Result<Vec<Option<Vec<u8>>>, Error>>;

    /// Keeps a signed checkpoint. A second one of the same size must have the same root.
    fn add_checkpoint<'a>(
        &'a self,
        head: &'a Head,
        note: &'a str,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// The newest signed checkpoint.
    fn checkpoint(&self) -> BoxFuture<'_, Result<Option<String>, Error>>;

    /// Signed checkpoints, the largest tree first; only those of trees smaller than `below`, if it is given.
    fn checkpoints(
        &self,
        below: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<String>, Error>>;

    /// One record by its id.
    fn record<'a>(
        &'a self,
        id: &'a SnapshotId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, Error>>;

    /// The rows and leaves of these records, in the order in which they are asked for; `None` for a record that is not
    /// stored. Payloads are not read.
    fn leaves_of<'a>(
        &'a self,
        ids: &'a [SnapshotId],
    ) -> BoxFuture<'a, Result<Vec<FoundLeaf>, Error>> {
        Box::pin(async move {
            let mut leaves = Vec::with_capacity(ids.len());
            for id in ids {
                let stored = self.record(id).await?;
                leaves.push(stored.map(|stored| (stored.row, stored.leaf)));
            }
            Ok(leaves)
        })
    }

    /// Lists records that match a filter, newest first.
    fn records<'a>(&'a self, query: &'a LogQuery) -> BoxFuture<'a, Result<Vec<LogRow>, Error>>;

    /// Places a hold, with its record: the payloads of a user, or of one record, are kept until it is lifted.
    fn hold(&self, hold: Hold, entry: Entry) -> BoxFuture<'_, Result<(), Error>>;

    /// Lifts a hold, with its record; false if there was none.
    fn release_hold(&self, hold: Hold, entry: Entry) -> BoxFuture<'_, Result<bool, Error>>;

    /// Lists the holds, at most `limit`.
    fn holds(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Hold>, Error>>;

    /// Erases a user in one transaction: key, payloads, documents and claims are deleted, the rows of the user's
    /// records lose their name, and the record of the erasure is stored. The shared documents `also` name the user and
    /// are deleted with it. Refused while a hold covers the user or one of the user's records.
    fn erase<'a>(
        &'a self,
        user_id: &'a str,
        also: &'a [DocumentKey],
        entry: Entry,
    ) -> BoxFuture<'a, Result<Erased, Error>>;
}

/// The moment by which a record has to be durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The record is durable with the next batch.
    Batched,
    /// The record is durable before the reply leaves.
    Committed,
}

/// A record that is ready to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub id: SnapshotId,
    /// The user that the record is about; empty if it is about no user.
    pub user_id: String,
    /// The user's key that names and seals what is in it; `None` if no such key did.
    pub sealed_under: Option<KeyId>,
    /// Kind of the record.
    pub kind: RecordKind,
    /// Time of the event.
    pub at: Timestamp,
    /// Request id of the call, if there is one.
    pub request_id: Option<RequestId>,
    /// The tool, if there is one.
    pub tool: Option<String>,
    /// Error code; `None` if the call succeeded.
    pub code: Option<ErrorCode>,
    /// The canonical JSON of the record.
    pub leaf: Vec<u8>,
    /// The sealed payload, if there is one.
    pub payload: Option<Vec<u8>>,
    /// Retention of the payload; `None` if it is kept for ever.
    pub keep_payload: Option<Duration>,
}

/// The process that integrates records into the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequencing {
    /// A name that no other process has.
    pub holder: String,
    /// Lease: the time for which other processes leave the integration to this one, counted from each integration.
    pub lease: Duration,
}

/// Answer to an integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integration {
    /// The tree as it is now, and how many leaves are new in it.
    Done {
        /// The tree.
        head: Head,
        /// Number of leaves that were added.
        added: usize,
    },
    /// Another process holds the sequencing lease.
    NotOurs,
}

/// The head of the tree: its size and its root hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Number of leaves.
    pub size: u64,
    /// The root over them.
    pub root: [u8; 32],
}

/// A leaf of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Its place.
    pub index: u64,
    /// The canonical JSON of the record.
    pub bytes: Vec<u8>,
}

/// The row and the leaf of a record; `None` if it is not stored.
pub type FoundLeaf = Option<(LogRow, Vec<u8>)>;

/// A record with what is kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its row.
    pub row: LogRow,
    /// Its place in the tree; `None` while it waits for integration.
    pub index: Option<u64>,
    /// The canonical JSON of the record.
    pub leaf: Vec<u8>,
    /// The sealed payload; `None` if there never was one, or if it was deleted.
    pub payload: Option<Vec<u8>>,
}

/// Filter for records. All conditions must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Only records of this user.
    pub user_id: Option<String>,
    /// Only records of this tool.
    pub tool: Option<String>,
    /// Only records with this error code.
    pub code: Option<ErrorCode>,
    /// True if only calls that succeeded are listed.
    pub ok_only: bool,
    /// Only records of this kind.
    pub kind: Option<RecordKind>,
    /// Only records of this call.
    pub request_id: Option<RequestId>,
    /// Only records of one of these calls; empty if the call does not matter.
    pub request_ids: Vec<RequestId>,
    /// Only records from this time on.
    pub since: Option<Timestamp>,
    /// Only records before this time.
    pub until: Option<Timestamp>,
    /// Only records older than this row, by time and name: the next page.
    pub before: Option<(Timestamp, SnapshotId)>,
    /// Maximum number of rows.
    pub limit: usize,
}

/// A record as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// Its name.
    pub id: SnapshotId,
    /// The user that the record is about; empty if it is about no user, or if the user was erased.
    pub user_id: String,
    /// Kind of the record.
    pub kind: RecordKind,
    /// Time of the event.
    pub at: Timestamp,
    /// Request id of the call, if there is one.
    pub request_id: Option<RequestId>,
    /// The tool, if there is one.
    pub tool: Option<String>,
    /// Error code; `None` if the call succeeded.
    pub code: Option<ErrorCode>,
}

/// A legal hold: records that must not be pruned or erased.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hold {
    /// The user whose records are held.
    pub user_id: String,
    /// Only this record; `None` if everything of the user is held.
    pub record: Option<SnapshotId>,
    /// The reason, for people.
    pub reason: String,
}

/// Counts of what an erasure has removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Erased {
    /// Keys of the user: 1, or 0 if there was none.
    pub keys: usize,
    /// Sealed payloads.
    pub payloads: usize,
    /// Documents.
    pub documents: usize,
    /// Claims.
    pub claims: usize,
}

impl Erased {
    /// Adds the counts of another round for the same user.
    pub(crate) fn add(&mut self, more: Self) {
        self.keys += more.keys;
        self.payloads += more.payloads;
        self.documents += more.documents;
        self.claims += more.claims;
    }
}
