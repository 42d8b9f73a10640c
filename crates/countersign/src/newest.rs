//! The newest checkpoint of the log, and whether signing goes on. Every reply that names evidence carries the checkpoint, so
//! that every caller holds one: cutting the log's tail, or telling two stories, then needs all of them to forget.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use countersign_contract::envelope::CheckpointRef;

/// For how long calls are answered while nothing can be signed.
pub const SIGNING_GRACE: Duration = Duration::from_mins(1);

/// Set by whoever signs checkpoints, read by every call. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct NewestCheckpoint(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    newest: ArcSwapOption<CheckpointRef>,
    /// When signing last worked, in milliseconds of the monotonic clock and one more; 0 where nobody signs.
    worked_at: AtomicU64,
    is_stopped: AtomicBool,
}

impl NewestCheckpoint {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on this one.
    pub fn set(&self, checkpoint: CheckpointRef) {
        self.0.newest.store(Some(Arc::new(checkpoint)));
    }

    /// The newest one.
    pub fn get(&self) -> Option<CheckpointRef> {
        self.0.newest.load().as_deref().cloned()
    }

    /// Everything that was committed is signed at this moment of the monotonic clock, by us or by another process.
    pub fn works(&self, now: Duration) {
        let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX - 1);
        self.0.worked_at.store(millis + 1, Ordering::Relaxed);
        self.0.is_stopped.store(false, Ordering::Relaxed);
    }

    /// Nothing can be signed before somebody has looked at the store.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }

    /// True if nothing can be signed before somebody has looked at the store.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    /// For how long nothing could be signed; none where nobody signs in this process.
    pub fn unsigned_for(&self, now: Duration) -> Option<Duration> {
        let worked_at = self.0.worked_at.load(Ordering::Relaxed).checked_sub(1)?;
        Some(now.saturating_sub(Duration::from_millis(worked_at)))
    }
}
