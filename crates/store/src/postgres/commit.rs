//! Commits of calls: key, documents and record atomically, many calls in one transaction.
//!
//! A transaction goes to the database in two flights of statements, each sent without waiting for the
//! answers of the statements before:
//!
//! 1. `guard`: shares the keys that the calls were sealed under, so that an erasure waits; then inserts the
//!    records and everything that must not exist yet, and locks everything that must still be as it was read,
//!    always in the order of the keys;
//! 2. `apply`: writes the changes of the calls that may go on, removes the rows that the others inserted,
//!    `COMMIT`.
//!
//! Between the two, `decide` looks at the rows and decides the verdict of each call. It is the only place that
//! knows the rules of a commit, and it does no I/O.
//!
//! Calls that touch the same thing are never in one transaction (`batch`), so that the answer of each depends
//! on the database alone. `lane` runs the transactions and handles their failures.

mod apply;
mod batch;
mod decide;
mod flight;
mod guard;
mod lane;
mod statements;

use std::sync::Arc;

use countersign::ledger::{
    Commit, CommitAnswer, DocumentRead, DocumentWrite, Entry, KeyChange, ShapeRead, SpendChange,
};
use countersign::scribe::FencedRecord;
use deadpool_postgres::Pool;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::failure::Failure;
use super::guard::Guard;
use super::health::Health;
use super::keyring::LostKeys;
use super::options::PostgresOptions;
use crate::leaves::{Code, Leaves};
use lane::Lane;

/// Handle to the lanes, for parts of the store that commit.
#[derive(Clone)]
pub(super) struct Lanes {
    queue: mpsc::Sender<Job>,
    leaves: Leaves,
}

/// Parts that the lanes share with the rest of the store.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) guard: Guard,
    pub(super) leaves: Leaves,
    pub(super) health: Health,
}

/// One call's commit, queued or running.
struct Job {
    key: Option<KeyChange>,
    reads: Vec<DocumentRead>,
    shapes: Vec<ShapeRead>,
    writes: Vec<DocumentWrite>,
    spend: Option<SpendChange>,
    entry: Entry,
    /// True if a key or a document of the record's user is written.
    is_of_user: bool,
    /// The record in the place of the entry's if the commit is fenced.
    if_fenced: Option<FencedRecord>,
    /// Key of the records' codes.
    leaves: Leaves,
    /// Number of retries because a row vanished between two statements.
    tries: u32,
    answer: oneshot::Sender<Result<CommitAnswer, Failure>>,
}

impl Job {
    /// Returns the code of its record.
    fn code(&self) -> Code {
        let entry = &self.entry;
        self.leaves.code_of_leaf(entry.id.as_str(), &entry.leaf)
    }
}

impl Lanes {
    pub(super) fn start(
        pool: &Pool,
        options: &PostgresOptions,
        lost_keys: &LostKeys,
        shared: Shared,
    ) -> Self {
        let (queue, jobs) = mpsc::channel(options.queue_max);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..options.lanes {
            let jobs = Arc::clone(&jobs);
            let shared = (pool.clone(), shared.clone());
            let lane = Lane::new(shared, jobs, options.clone(), lost_keys.clone());
            tokio::spawn(lane.run());
        }
        let leaves = shared.leaves;
        Self { queue, leaves }
    }

    pub(super) async fn commit(&self, commit: Commit) -> Result<CommitAnswer, Failure> {
        let (answer, answered) = oneshot::channel();
        let may_be_fenced = matches!(commit.key, Some(KeyChange::Settle { .. }));
        let is_of_user = commit.writes_of(commit.record.user_id());
        let (entry, if_fenced) = commit.record.seal_for_commit(may_be_fenced);
        let job = Job {
            is_of_user,
            key: commit.key,
            reads: commit.reads,
            shapes: commit.shapes,
            writes: commit.writes,
            spend: commit.spend,
            entry,
            if_fenced,
            leaves: self.leaves.clone(),
            tries: 0,
            answer,
        };
        self.queue.send(job).await.map_err(|_| Failure::Closed)?;
        answered.await.map_err(|_| Failure::Closed)?
    }

    /// Keeps a record alone. The answer comes later, so that many can be on their way.
    pub(super) async fn keep(
        &self,
        entry: Entry,
    ) -> Result<oneshot::Receiver<Result<CommitAnswer, Failure>>, Failure> {
        let (answer, answered) = oneshot::channel();
        let job = Job {
            key: None,
            reads: Vec::new(),
            shapes: Vec::new(),
            writes: Vec::new(),
            spend: None,
            entry,
            if_fenced: None,
            leaves: self.leaves.clone(),
            is_of_user: false,
            tries: 0,
            answer,
        };
        self.queue.send(job).await.map_err(|_| Failure::Closed)?;
        Ok(answered)
    }
}
