//! The log: records, their sealed payloads, the tree over them, checkpoints, holds and erasure.
//!
//! A record is committed with its call and goes into the tree afterwards, in batches, by whoever holds
//! the sequencing lease. One that is committed but not in the tree after a crash goes in later; none is
//! lost, none is doubled.

use std::time::Duration;

use countersign_contract::{ErrorCode, RecordKind, RequestId, SnapshotId};
use countersign_evidence::tile::TileId;
use jiff::Timestamp;

use super::{DocumentKey, Error};
use crate::BoxFuture;
use crate::scribe::Draft;

/// Keeps the log.
pub trait Log: Send + Sync + 'static {
    /// Keeps the record of a call that committed nothing else.
    ///
    /// [`Durability::Batched`] answers as soon as there is room in a bounded queue; a full queue makes
    /// the caller wait, it never loses a record. Sealing a draft is left to the store, so that a batched
    /// one is sealed off the caller's path.
    fn append(&self, draft: Draft, durability: Durability) -> BoxFuture<'_, Result<(), Error>>;

    /// Whether there is a log at all. A store that outlives nothing may do without.
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

    /// One record by its name.
    fn record<'a>(
        &'a self,
        id: &'a SnapshotId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, Error>>;

    /// Records by what they can be found by, newest first.
    fn records<'a>(&'a self, query: &'a LogQuery) -> BoxFuture<'a, Result<Vec<LogRow>, Error>>;

    /// Drops up to `limit` payloads whose time is over and that no hold keeps; the tree is not touched.
    fn prune(&self, limit: usize) -> BoxFuture<'_, Result<usize, Error>>;

    /// Keeps the payloads of a user, or of one record, until the hold is lifted; with its record.
    fn hold(&self, hold: Hold, entry: Entry) -> BoxFuture<'_, Result<(), Error>>;

    /// Lifts a hold, with its record; false where there was none.
    fn release_hold(&self, hold: Hold, entry: Entry) -> BoxFuture<'_, Result<bool, Error>>;

    /// The holds there are, at most `limit`.
    fn holds(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Hold>, Error>>;

    /// Forgets a user in one transaction: key, payloads, documents and claims go, the rows of the user's
    /// records lose their name, and the record of the erasure is kept. The shared documents `also` name the user and go with it. Refused while a hold covers the
    /// user or one of the user's records.
    fn erase<'a>(
        &'a self,
        user_id: &'a str,
        also: &'a [DocumentKey],
        entry: Entry,
    ) -> BoxFuture<'a, Result<Erased, Error>>;
}

/// Whether a record has to be durable before the reply leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// With the next batch.
    Batched,
    /// Before the answer.
    Committed,
}

/// A record that is ready to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub id: SnapshotId,
    /// Whose it is; empty where it is about no user.
    pub user_id: String,
    /// What it is a record of.
    pub kind: RecordKind,
    /// When it happened.
    pub at: Timestamp,
    /// The call.
    pub request_id: Option<RequestId>,
    /// The tool, where there is such a one.
    pub tool: Option<String>,
    /// None when it worked.
    pub code: Option<ErrorCode>,
    /// The canonical JSON of the record.
    pub leaf: Vec<u8>,
    /// Sealed.
    pub payload: Option<Vec<u8>>,
    /// For how long the payload is kept; for ever where there is none.
    pub keep_payload: Option<Duration>,
}

/// Who integrates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequencing {
    /// A name that no other process has.
    pub holder: String,
    /// For how long the others leave it to us, counted from each integration.
    pub lease: Duration,
}

/// What became of an integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integration {
    /// The tree as it is now, and how many leaves are new in it.
    Done {
        /// The tree.
        head: Head,
        /// How many were taken in.
        added: usize,
    },
    /// Somebody else holds the lease.
    NotOurs,
}

/// The tree: how many leaves, and their root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// How many leaves.
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

/// A record with what is kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its row.
    pub row: LogRow,
    /// Its place in the tree; none while it waits for it.
    pub index: Option<u64>,
    /// The canonical JSON of the record.
    pub leaf: Vec<u8>,
    /// Sealed; none where there was none, or where it is gone.
    pub payload: Option<Vec<u8>>,
}

/// What records can be found by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Of this user.
    pub user_id: Option<String>,
    /// Of this tool.
    pub tool: Option<String>,
    /// With this code.
    pub code: Option<ErrorCode>,
    /// Only those that worked.
    pub ok_only: bool,
    /// Of this kind.
    pub kind: Option<RecordKind>,
    /// Of this call.
    pub request_id: Option<RequestId>,
    /// From then on.
    pub since: Option<Timestamp>,
    /// Before then.
    pub until: Option<Timestamp>,
    /// Only older than this row, by time and name: the next page.
    pub before: Option<(Timestamp, SnapshotId)>,
    /// At most so many.
    pub limit: usize,
}

/// A record as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// Its name.
    pub id: SnapshotId,
    /// Whose it is; empty where it is about no user, or where the user was erased.
    pub user_id: String,
    /// What it is a record of.
    pub kind: RecordKind,
    /// When it happened.
    pub at: Timestamp,
    /// The call.
    pub request_id: Option<RequestId>,
    /// The tool.
    pub tool: Option<String>,
    /// None when it worked.
    pub code: Option<ErrorCode>,
}

/// What must not be pruned or erased.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hold {
    /// Of this user.
    pub user_id: String,
    /// Only this record; everything of the user where there is none.
    pub record: Option<SnapshotId>,
    /// Why; for people.
    pub reason: String,
}

/// What an erasure has removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Erased {
    /// Whether there was a key.
    pub keys: usize,
    /// Sealed payloads.
    pub payloads: usize,
    /// Documents.
    pub documents: usize,
    /// Claims.
    pub claims: usize,
}
