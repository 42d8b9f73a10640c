//! The newest checkpoint of the log, and the state of signing. Every reply with evidence carries the checkpoint, so
//! that every caller holds one: an operator who cuts the log's tail, or shows two histories, is then detected by any
//! caller who kept one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use countersign_contract::envelope::CheckpointRef;

/// Time for which calls are answered while nothing can be signed.
pub const SIGNING_GRACE: Duration = Duration::from_mins(1);

/// A shared cell: set by the process that signs checkpoints, read by every call. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct NewestCheckpoint(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    newest: ArcSwapOption<CheckpointRef>,
    /// Time of the last successful signing, in milliseconds of the monotonic clock plus one; 0 if this process does not
    /// sign.
    worked_at: AtomicU64,
    is_stopped: AtomicBool,
    is_failing: AtomicBool,
}

impl NewestCheckpoint {
    /// A cell without a checkpoint.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the newest checkpoint.
    pub fn set(&self, checkpoint: CheckpointRef) {
        self.0.newest.store(Some(Arc::new(checkpoint)));
    }

    /// The newest checkpoint; `None` if there is none yet.
    pub fn get(&self) -> Option<CheckpointRef> {
        self.0.newest.load().as_deref().cloned()
    }

    /// Notes that everything committed is signed at this moment of the monotonic clock, by us or by another process.
    pub fn works(&self, now: Duration) {
        let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX - 1);
        self.0.worked_at.store(millis + 1, Ordering::Relaxed);
        self.0.is_stopped.store(false, Ordering::Relaxed);
        self.0.is_failing.store(false, Ordering::Relaxed);
    }

    /// Notes that the last round could not sign what was committed.
    pub fn fails(&self) {
        self.0.is_failing.store(true, Ordering::Relaxed);
    }

    /// True if the last round could not sign what was committed.
    pub fn is_failing(&self) -> bool {
        self.0.is_failing.load(Ordering::Relaxed)
    }

    /// Notes that nothing can be signed before an operator has looked at the store.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }

    /// True if nothing can be signed before an operator has looked at the store.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    /// Time for which nothing could be signed; `None` if this process does not sign.
    pub fn unsigned_for(&self, now: Duration) -> Option<Duration> {
        let worked_at = self.0.worked_at.load(Ordering::Relaxed).checked_sub(1)?;
        Some(now.saturating_sub(Duration::from_millis(worked_at)))
    }
}
