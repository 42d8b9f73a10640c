//! Records of calls that committed nothing else: taken from the caller at once, sealed and kept in batches.

use std::time::Duration;

use countersign::ledger::Entry;
use countersign::scribe::Draft;
use tokio::sync::{mpsc, oneshot};

use super::commit::Lanes;
use super::failure::Failure;
use super::options::PostgresOptions;

/// How many records are sealed before somebody else may have the thread.
const SEALED_AT_ONCE: usize = 32;

/// How long the first pause is while the database is away, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The queue of records, seen by whoever has one.
pub(super) struct Appender {
    queue: mpsc::Sender<Item>,
}

enum Item {
    Record(Draft),
    /// Answered when everything before it is durable.
    Flush(oneshot::Sender<Result<(), Failure>>),
}

impl Appender {
    pub(super) fn start(lanes: Lanes, options: &PostgresOptions) -> Self {
        let (queue, items) = mpsc::channel(options.queue_max);
        let task = Task {
            items,
            lanes,
            batch_max: options.batch_max,
            refused: None,
        };
        tokio::spawn(task.run());
        Self { queue }
    }

    /// Returns as soon as there is room.
    pub(super) async fn append(&self, draft: Draft) -> Result<(), Failure> {
        let queued = self.queue.send(Item::Record(draft)).await;
        queued.map_err(|_| Failure::Closed)
    }

    pub(super) async fn flush(&self) -> Result<(), Failure> {
        let (done, is_done) = oneshot::channel();
        let queued = self.queue.send(Item::Flush(done)).await;
        queued.map_err(|_| Failure::Closed)?;
        is_done.await.map_err(|_| Failure::Closed)?
    }
}

struct Task {
    items: mpsc::Receiver<Item>,
    lanes: Lanes,
    batch_max: usize,
    /// A record that the database takes in no form; the next flush tells.
    refused: Option<Failure>,
}

impl Task {
    /// Until the store is gone and everything is kept.
    async fn run(mut self) {
        let mut items = Vec::new();
        while self.items.recv_many(&mut items, self.batch_max).await > 0 {
            let mut entries = Vec::new();
            let mut flushes = Vec::new();
            for item in items.drain(..) {
                match item {
                    Item::Record(draft) => {
                        entries.push(draft.seal());
                        if entries.len() % SEALED_AT_ONCE == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                    // What came later in this batch is kept with it; that does no harm.
                    Item::Flush(done) => flushes.push(done),
                }
            }
            self.keep(entries).await;
            for done in flushes {
                let _ = done.send(self.refused.take().map_or(Ok(()), Err));
            }
        }
    }

    /// Tries for as long as it takes: nobody else has these records.
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
                        tracing::error!(record = %entry.id, %failure, "a record cannot be kept");
                        self.refused = Some(failure);
                    }
                    Err(failure) => {
                        tracing::warn!(record = %entry.id, %failure, "a record waits for the database");
                        left.push(entry);
                    }
                }
            }
            entries = left;
            if !entries.is_empty() {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }
}
