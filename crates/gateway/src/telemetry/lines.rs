//! Lines on their way to stderr. A terminal that is stopped, or a collector that does not read, must not stop
//! calls: what finds no room is dropped and counted.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tokio::sync::oneshot;

use super::LogFormat;

/// How many lines may wait.
const LINES_MAX: usize = 8_192;

/// How many bytes are written at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Takes lines and never waits. Clones share the writer.
#[derive(Debug, Clone)]
pub struct Lines {
    sender: SyncSender<Job>,
    dropped: Arc<AtomicU64>,
}

enum Job {
    Line(String),
    Flush(oneshot::Sender<()>),
}

impl Lines {
    /// Starts a thread that writes there, in this form where it has something to say itself.
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
            // Then nobody receives, and every line counts as dropped.
            dropped.fetch_add(1, Ordering::Relaxed);
        }
        Self { sender, dropped }
    }

    /// Hands on a line with its end.
    pub(super) fn write(&self, line: String) {
        if self.sender.try_send(Job::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until what was handed on is written, for no longer than this; whether it was.
    pub async fn flush(&self, wait: Duration) -> bool {
        let (done, is_done) = oneshot::channel();
        // A full queue is waited for in another thread: this one may be the only one of the runtime.
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

impl Writer {
    fn run(mut self) {
        let mut chunk = String::new();
        let mut flushed = Vec::new();
        while let Ok(job) = self.receiver.recv() {
            let mut next = Some(job);
            while let Some(job) = next {
                match job {
                    Job::Line(line) => chunk.push_str(&line),
                    Job::Flush(done) => flushed.push(done),
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
            // Nobody could be told that stderr is gone.
            let _gone = self.sink.write_all(chunk.as_bytes());
            let _gone = self.sink.flush();
            chunk.clear();
            for done in flushed.drain(..) {
                let _left = done.send(());
            }
        }
    }
}
