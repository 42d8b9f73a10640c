//! Log lines on their way to stderr. A stopped terminal, or a log collector that does not read, must not block
//! calls: lines that find no room are dropped and counted.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::LogFormat;
use super::repeats::{Kind, Repeats};

/// Maximum number of queued lines.
const LINES_MAX: usize = 8_192;

/// Number of bytes that are written at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Takes lines and never blocks. Clones share the writer.
#[derive(Debug, Clone)]
pub struct Lines {
    sender: SyncSender<Job>,
    dropped: Arc<AtomicU64>,
}

enum Job {
    Line(String),
    /// A line that may be one of many.
    Repeatable(Kind, String),
    Flush(oneshot::Sender<()>),
}

impl Lines {
    /// Starts a thread that writes to the sink; the format is for lines of its own.
    pub fn to(sink: Box<dyn Write + Send>, format: LogFormat) -> Self {
        let (sender, receiver) = sync_channel(LINES_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = Writer {
            sink,
            format,
            receiver,
            dropped: dropped.clone(),
        };
        let started = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(|| writer.run());
        if started.is_err() {
            // The thread could not be started: nothing receives, and every line counts as dropped.
            dropped.fetch_add(1, Ordering::Relaxed);
        }
        Self { sender, dropped }
    }

    /// Queues a line with its line break.
    pub(super) fn write(&self, line: String) {
        if self.sender.try_send(Job::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Queues a line of which many may come; those of one kind are counted together.
    pub(super) fn write_once(&self, kind: Kind, line: String) {
        if self.sender.try_send(Job::Repeatable(kind, line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until the queued lines are written, for no longer than this. True if they were.
    pub async fn flush(&self, wait: Duration) -> bool {
        let (done, is_done) = oneshot::channel();
        // A full queue is waited for on another thread: this one may be the only one of the runtime.
        let sender = self.sender.clone();
        let ask = tokio::task::spawn_blocking(move || sender.send(Job::Flush(done)));
        let all = async { ask.await.is_ok_and(|sent| sent.is_ok()) && is_done.await.is_ok() };
        tokio::time::timeout(wait, all).await.unwrap_or(false)
    }
}

struct Writer {
    sink: Box<dyn Write + Send>,
    format: LogFormat,
    receiver: Receiver<Job>,
    dropped: Arc<AtomicU64>,
}

/// All senders of lines are gone.
struct Gone;

impl Writer {
    /// Returns the next job; `None` if it is time to report omitted lines.
    fn next(&self, repeats: &Repeats) -> Result<Option<Job>, Gone> {
        match repeats.next() {
            None => self.receiver.recv().map(Some).map_err(|_| Gone),
            Some(wait) => match self.receiver.recv_timeout(wait) {
                Ok(job) => Ok(Some(job)),
                Err(RecvTimeoutError::Timeout) => Ok(None),
                Err(RecvTimeoutError::Disconnected) => Err(Gone),
            },
        }
    }

    fn run(mut self) {
        let mut chunk = String::new();
        let mut flushed = Vec::new();
        let mut repeats = Repeats::default();
        loop {
            let mut next = match self.next(&repeats) {
                Ok(job) => job,
                Err(Gone) => break,
            };
            repeats.end(Instant::now(), self.format, &mut chunk);
            while let Some(job) = next {
                match job {
                    Job::Line(line) => chunk.push_str(&line),
                    Job::Repeatable(kind, line) => {
                        repeats.add(kind, line, Instant::now(), self.format, &mut chunk);
                    }
                    Job::Flush(done) => {
                        repeats.end_all(self.format, &mut chunk);
                        flushed.push(done);
                    }
                }
                next = (chunk.len() < CHUNK_BYTES)
                    .then(|| self.receiver.try_recv().ok())
                    .flatten();
            }
            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                let _fits = match self.format {
                    LogFormat::Text => writeln!(chunk, "{dropped} log lines were dropped"),
                    LogFormat::Json => writeln!(
                        chunk,
                        r#"{{"level":"WARN","message":"log lines were dropped","count":{dropped}}}"#
                    ),
                };
            }
            // There is no way to report that stderr is gone.
            let _gone = self.sink.write_all(chunk.as_bytes());
            let _gone = self.sink.flush();
            chunk.clear();
            for done in flushed.drain(..) {
                let _left = done.send(());
            }
        }
    }
}
