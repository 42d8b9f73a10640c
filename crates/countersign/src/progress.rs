//! Progress reports of a running call, for callers who asked for them.

use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc;

/// Maximum number of reports that wait for a slow reader; further ones are dropped.
const WAITING_MAX: usize = 64;

/// One report of a running call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The amount that is done; more than in the report before.
    pub done: f64,
    /// The total amount, if it is known.
    pub total: Option<f64>,
    /// The current step, for people.
    pub message: Option<String>,
}

/// Sink for a call's reports. A caller who wants them adds it with [`ToolCall::extension`](crate::ToolCall::extension);
/// a tool reports through [`CallContext::progress`](crate::CallContext::progress), whether or not a sink is there.
///
/// # Example
///
/// ```
/// use countersign::progress;
///
/// let (sink, mut reports) = progress::channel();
/// sink.report(1.0, Some(2.0), Some("half of it".to_owned()));
/// sink.report(0.5, Some(2.0), None); // does not rise, so it is left out
/// assert_eq!(reports.try_recv().map(|report| report.done), Ok(1.0));
/// assert!(reports.try_recv().is_err());
/// ```
#[derive(Debug)]
pub struct ProgressSink {
    sender: mpsc::Sender<Progress>,
    /// The last `done` that was sent; below every number at first.
    last: Mutex<f64>,
}

/// A sink, and the receiver of its reports.
pub fn channel() -> (ProgressSink, mpsc::Receiver<Progress>) {
    let (sender, reports) = mpsc::channel(WAITING_MAX);
    let last = Mutex::new(f64::NEG_INFINITY);
    (ProgressSink { sender, last }, reports)
}

impl ProgressSink {
    /// Sends a report. It is dropped if it does not rise or if the reader is far behind: a report is a hint, and no
    /// call waits for it.
    pub fn report(&self, done: f64, total: Option<f64>, message: Option<String>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !done.is_finite() || done <= *last {
            return;
        }
        let total = total.filter(|total| total.is_finite());
        let report = Progress {
            done,
            total,
            message,
        };
        if self.sender.try_send(report).is_ok() {
            *last = done;
        }
    }
}
