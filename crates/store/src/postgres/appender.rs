//! Records of calls that committed nothing else: taken from the caller at once, sealed and kept in batches.

use std::time::Duration;

use countersign::ledger::Entry;
use countersign::scribe::Draft;
use tokio::sync::{mpsc, oneshot};

use super::commit::Lanes;
use super::failure::Failure;
use super::options::PostgresOptions;
use crate::backlog::{Backlog, Place};

/// Maximum records sealed before the task yields its thread.
const SEALED_AT_ONCE: usize = 32;

/// First and longest pause between retries while the database is unreachable.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Handle to the queue of records.
pub(super) struct Appender {
    queue: mpsc::Sender<Item>,
    waits: Backlog,
}

enum Item {
    Record(Draft, Place),
    /// Answered when every record before it is durable.
    Flush(oneshot::Sender<Result<(), Failure>>),
}

impl Appender {
    pub(super) fn start(lanes: Lanes, options: &PostgresOptions) -> Self {
        let (queue, items) = mpsc::channel(options.queue_max);
        let waits = Backlog::new();
        let task = Task {
            waits: waits.clone(),
            items,
            lanes,
            batch_max: options.batch_max,
            refused: None,
        };
        tokio::spawn(task.run());
        Self { queue, waits }
    }

    /// Queues a record. Returns as soon as the queue has room. Fails if earlier ones could not be kept for too long: no
    /// evidence, no answer.
    pub(super) async fn append(&self, draft: Draft) -> Result<(), Failure> {
        let place = self.waits.enter(draft.bytes()).await?;
        let queued = self.queue.send(Item::Record(draft, place)).await;
        queued.map_err(|_| Failure::Closed)
    }

    /// Number of times that records could not be kept since the store was opened.
    pub(super) fn errors(&self) -> u64 {
        self.waits.errors()
    }

    /// Fails if records could not be kept for too long.
    pub(super) fn check(&self) -> Result<(), Failure> {
        Ok(self.waits.check()?)
    }

    pub(super) async fn flush(&self) -> Result<(), Failure> {
        let (done, is_done) = oneshot::channel();
        let queued = self.queue.send(Item::Flush(done)).await;
        queued.map_err(|_| Failure::Closed)?;
        is_done.await.map_err(|_| Failure::Closed)?
    }
}

struct Task {
    waits: Backlog,
    items: mpsc::Receiver<Item>,
    lanes: Lanes,
    batch_max: usize,
    /// Failure of a record that the database refuses in every form. The next flush reports it.
    refused: Option<Failure>,
}

impl Task {
    /// Runs until the store is dropped and every record is kept.
    async fn run(mut self) {
        let mut items = Vec::new();
        while self.items.recv_many(&mut items, self.batch_max).await > 0 {
            let mut entries = Vec::new();
            let mut flushes = Vec::new();
            let mut places = Vec::new();
            for item in items.drain(..) {
                match item {
                    Item::Record(draft, place) => {
                        places.push(place);
                        entries.push(draft.seal());
                        if entries.len() % SEALED_AT_ONCE == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                    // Records that came later in this batch are kept before the flush is answered too; that
                    // does no harm.
                    Item::Flush(done) => flushes.push(done),
                }
            }
            self.keep(entries).await;
            drop(places);
            for done in flushes {
                let _ = done.send(self.refused.take().map_or(Ok(()), Err));
            }
        }
    }

    /// Retries for as long as it takes: nothing else holds these records.
    async fn keep(&mut self, mut entries: Vec<Entry>) {
        let mut pause = PAUSE.0;
        while !entries.is_empty() {
            let mut answers = Vec::with_capacity(entries.len());
            for entry in &entries {
                // The entry stays here until it is known to be durable.
                answers.push(self.lanes.keep(entry.clone()).await);
            }
            let mut left = Vec::new();
            for (entry, answer) in entries.into_iter().zip(answers) {
                let kept = match answer {
                    Ok(answered) => answered.await.unwrap_or(Err(Failure::Closed)),
                    Err(failure) => Err(failure),
                };
                match kept {
                    Ok(_) => {}
                    Err(failure) if failure.is_final() => {
                        tracing::error!(record = %entry.id, %failure, "PostgreSQL refused a record; it is not stored");
                        self.refused = Some(failure);
                    }
                    Err(failure) => {
                        if self.waits.failed() {
                            tracing::warn!(record = %entry.id, %failure, "a record could not be written to PostgreSQL; it is retried, and further failures are counted");
                        }
                        left.push(entry);
                    }
                }
            }
            entries = left;
            if entries.is_empty() {
                if let Some((tries, waited)) = self.waits.works() {
                    tracing::info!(tries, ?waited, "the records that waited are kept");
                }
            } else {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }
}
