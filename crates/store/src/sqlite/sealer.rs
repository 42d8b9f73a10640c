//! The sealer: seals records without a waiting caller and passes them to the writer in order, so that the
//! caller of a plain read pays neither for the sealing nor for the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use countersign::scribe::Draft;
use tokio::sync::{mpsc, oneshot};

use super::failure::Failure;
use super::log::entry::{Sealed, keep_all};
use super::writer::{Done, Writer};
use crate::backlog::{Backlog, Place};

/// Maximum records passed on at once.
const CHUNK_MAX: usize = 256;

/// Retry interval of a record that could not be written.
const RETRIED_AFTER: Duration = Duration::from_millis(50);

/// Handle that takes records without a waiting caller.
pub(super) struct Sealer {
    messages: mpsc::Sender<Message>,
    waits: Backlog,
}

enum Message {
    Draft(Box<Draft>, Place),
    /// Answered when every record before it is durable, or could not be written.
    Flush(oneshot::Sender<Result<(), Failure>>),
}

impl Sealer {
    /// Starts the thread. At its end it sets `is_complete` to true if everything was written.
    pub(super) fn start(
        writer: Writer,
        waiting_max: usize,
        is_complete: Arc<AtomicBool>,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (sender, messages) = mpsc::channel(waiting_max.max(1));
        let waits = Backlog::new();
        let mut thread = Thread {
            messages,
            writer,
            backlog: Arc::default(),
            places: Vec::new(),
            waits: waits.clone(),
        };
        let handle = std::thread::Builder::new()
            .name("store sealer".to_owned())
            // Set before the writer is dropped, which uses it to close the run.
            .spawn(move || is_complete.store(thread.run(), Ordering::Release))?;
        let sealer = Self {
            messages: sender,
            waits,
        };
        Ok((sealer, handle))
    }

    /// Number of times that records could not be written since the store was opened.
    pub(super) fn errors(&self) -> u64 {
        self.waits.errors()
    }

    /// Fails if records could not be written for too long.
    pub(super) fn check(&self) -> Result<(), Failure> {
        Ok(self.waits.check()?)
    }

    /// Takes a record. Fails if earlier ones could not be written for too long: no evidence, no answer.
    pub(super) async fn send(&self, draft: Draft) -> Result<(), Failure> {
        let place = self.waits.enter(draft.bytes()).await?;
        let message = Message::Draft(Box::new(draft), place);
        self.messages
            .send(message)
            .await
            .map_err(|_| Failure::Stopped)
    }

    pub(super) async fn flush(&self) -> Result<(), Failure> {
        let (sender, answer) = oneshot::channel();
        let message = Message::Flush(sender);
        self.messages
            .send(message)
            .await
            .map_err(|_| Failure::Stopped)?;
        answer.await.map_err(|_| Failure::Stopped)?
    }
}

struct Thread {
    messages: mpsc::Receiver<Message>,
    writer: Writer,
    /// Records that are sealed and not yet written.
    backlog: Arc<Vec<Sealed>>,
    /// The room that they take.
    places: Vec<Place>,
    waits: Backlog,
}

impl Thread {
    /// Runs the thread. True if everything was written.
    fn run(&mut self) -> bool {
        let mut messages = Vec::with_capacity(CHUNK_MAX);
        loop {
            if self.backlog.is_empty() {
                if self.messages.blocking_recv_many(&mut messages, CHUNK_MAX) == 0 {
                    return true;
                }
            } else if self.messages.is_closed() && self.messages.is_empty() {
                tracing::error!(
                    records = self.backlog.len(),
                    "the store closed before these records could be written"
                );
                return false;
            } else {
                std::thread::sleep(RETRIED_AFTER);
                self.take_waiting(&mut messages);
            }
            let flushes = self.seal(&mut messages);
            let written = self.write();
            for flush in flushes {
                flush.send(written.clone()).ok();
            }
        }
    }

    /// Takes further messages while writes fail: a flush behind the backlog must still be answered.
    fn take_waiting(&mut self, messages: &mut Vec<Message>) {
        while messages.len() < CHUNK_MAX
            && let Ok(message) = self.messages.try_recv()
        {
            messages.push(message);
        }
    }

    fn seal(&mut self, messages: &mut Vec<Message>) -> Vec<oneshot::Sender<Result<(), Failure>>> {
        let mut flushes = Vec::new();
        let mut sealed = Vec::with_capacity(messages.len());
        for message in messages.drain(..) {
            match message {
                Message::Draft(draft, place) => {
                    sealed.push(Sealed::from(draft.seal()));
                    self.places.push(place);
                }
                Message::Flush(answer) => flushes.push(answer),
            }
        }
        if self.backlog.is_empty() {
            self.backlog = Arc::new(sealed);
        } else {
            Arc::make_mut(&mut self.backlog).append(&mut sealed);
        }
        flushes
    }

    fn write(&mut self) -> Result<(), Failure> {
        if self.backlog.is_empty() {
            return Ok(());
        }
        let records = self.backlog.clone();
        // A record that is already there is not kept twice, so a retry is safe.
        let written = self
            .writer
            .run_blocking(move |session| keep_all(session, &records).map(Done::Kept));
        if let Err(failure) = written {
            self.waits.failed();
            return Err(failure);
        }
        self.backlog = Arc::default();
        self.places.clear();
        if let Some((tries, waited)) = self.waits.works() {
            tracing::info!(tries, ?waited, "the records that waited are written");
        }
        Ok(())
    }
}
