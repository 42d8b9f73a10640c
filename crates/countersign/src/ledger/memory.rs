//! A store in memory: for tests, samples and programs whose data may end with the process. It is also the model that
//! the durable stores are compared with: everything is done under one lock.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign_contract::{CallRecord, RequestId, SnapshotId};
use jiff::{SignedDuration, Timestamp};

use super::{Corpus, DocumentKey, Hold, IndexEntry, Installation, Scope, Tally, WrappedKey};
use crate::clock::{Clock, SystemClock};

mod claims;
mod documents;
mod installation;
mod keyring;
mod log;
mod outbox;
mod paces;
mod pots;
mod texts;
mod timekeeping;
mod vitals;

use claims::Row;
use log::Tree;
use pots::Till;

/// A store in memory. Bounded: it keeps the newest plain records of calls, and refuses a key beyond its maximum. The
/// log is kept only on request, because it grows without bound.
pub struct MemoryStore {
    keeps_log: bool,
    keys_max: usize,
    records_max: usize,
    clock: Arc<dyn Clock>,
    inner: Mutex<Inner>,
    tally: Tally,
}

#[derive(Default)]
struct Inner {
    claims: HashMap<Scope, Row>,
    documents: BTreeMap<DocumentKey, Document>,
    /// Shapes by user and collection.
    shapes: HashMap<(String, String), u64>,
    user_keys: BTreeMap<String, WrappedKey>,
    installation: Option<Installation>,
    /// The plain records of the newest calls.
    calls: VecDeque<CallRecord>,
    /// Every record that is kept, in the order of its commit.
    records: Vec<log::Record>,
    by_id: HashMap<SnapshotId, usize>,
    tree: Tree,
    checkpoints: BTreeMap<u64, ([u8; 32], String)>,
    holds: Vec<Hold>,
    till: Till,
    /// Corpora in the order in which they were stored.
    corpora: Vec<Arc<Corpus>>,
    time: timekeeping::Kept,
    /// Notices, oldest first.
    outbox: Vec<outbox::Kept>,
}

struct Document {
    version: u64,
    body: Option<Arc<[u8]>>,
    entries: Vec<IndexEntry>,
}

impl MemoryStore {
    /// A store with room for 100,000 keys and 1,000 records.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// The same, with this clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self {
            keeps_log: false,
            keys_max: 100_000,
            records_max: 1_000,
            clock,
            inner: Mutex::default(),
            tally: Tally::default(),
        }
    }

    /// Sets the maximum number of keys.
    pub fn keys_max(mut self, keys: usize) -> Self {
        self.keys_max = keys;
        self
    }

    /// Keeps the log too, without a bound.
    pub fn keeping_log(mut self) -> Self {
        self.keeps_log = true;
        self
    }

    /// Sets the maximum number of plain records of calls.
    pub fn records_max(mut self, records: usize) -> Self {
        self.records_max = records;
        self
    }

    /// The plain records of the newest calls, oldest first.
    pub fn records(&self) -> Vec<CallRecord> {
        self.lock().calls.iter().cloned().collect()
    }

    /// The plain records of one call: a repeat with the same request id has one of its own.
    pub fn records_of(&self, request_id: &RequestId) -> Vec<CallRecord> {
        let inner = self.lock();
        let of_call = inner
            .calls
            .iter()
            .filter(|record| record.request_id == *request_id);
        of_call.cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        let (keys, records) = (inner.claims.len(), inner.records.len());
        write!(f, "MemoryStore({keys} keys, {records} records)")
    }
}

fn after(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by)
        .ok()
        .and_then(|by| at.checked_add(by).ok())
        .unwrap_or(Timestamp::MAX)
}
