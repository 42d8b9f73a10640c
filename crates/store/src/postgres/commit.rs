//! Committing calls: key, documents and record in one piece, many calls in one transaction.
//!
//! A transaction goes to the database in two flights of statements, each sent without waiting for the
//! answers of the statements before:
//!
//! 1. `guard`: the records, then everything that must not be there yet is inserted, and everything that
//!    must still be as it was read is locked, always in the order of the keys;
//! 2. `apply`: what the calls that may go on change, what the others inserted is removed, `COMMIT`.
//!
//! Between the two, `decide` looks at the rows and says what becomes of each call. It is the only place
//! that knows the rules of a commit, and it does no I/O.
//!
//! Calls that touch the same thing are never in one transaction (`batch`), so that the answer of each depends
//! on the database alone. `lane` runs the transactions and knows what to do when one fails.

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
use deadpool_postgres::Pool;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::failure::Failure;
use super::options::PostgresOptions;
use lane::Lane;

/// The lanes, seen by whoever has something to commit.
#[derive(Clone)]
pub(super) struct Lanes {
    queue: mpsc::Sender<Job>,
}

/// One call's commit, on its way.
struct Job {
    key: Option<KeyChange>,
    reads: Vec<DocumentRead>,
    shapes: Vec<ShapeRead>,
    writes: Vec<DocumentWrite>,
    spend: Option<SpendChange>,
    entry: Entry,
    /// How often it was put off because a row vanished under it.
    tries: u32,
    answer: oneshot::Sender<Result<CommitAnswer, Failure>>,
}

impl Lanes {
    pub(super) fn start(pool: &Pool, options: &PostgresOptions) -> Self {
        let (queue, jobs) = mpsc::channel(options.queue_max);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..options.lanes {
            let lane = Lane::new(pool.clone(), Arc::clone(&jobs), options.clone());
            tokio::spawn(lane.run());
        }
        Self { queue }
    }

    pub(super) async fn commit(&self, commit: Commit) -> Result<CommitAnswer, Failure> {
        let (answer, answered) = oneshot::channel();
        let job = Job {
            key: commit.key,
            reads: commit.reads,
            shapes: commit.shapes,
            writes: commit.writes,
            spend: commit.spend,
            entry: commit.record.seal(),
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
            tries: 0,
            answer,
        };
        self.queue.send(job).await.map_err(|_| Failure::Closed)?;
        Ok(answered)
    }
}
