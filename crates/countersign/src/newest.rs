//! The newest checkpoint of the log. Every reply that names evidence carries it, so that every caller
//! holds one: cutting the log's tail, or telling two stories, then needs all of them to forget.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use countersign_contract::envelope::CheckpointRef;

/// Set by whoever signs checkpoints, read by every call. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct NewestCheckpoint(Arc<ArcSwapOption<CheckpointRef>>);

impl NewestCheckpoint {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on this one.
    pub fn set(&self, checkpoint: CheckpointRef) {
        self.0.store(Some(Arc::new(checkpoint)));
    }

    /// The newest one.
    pub fn get(&self) -> Option<CheckpointRef> {
        self.0.load().as_deref().cloned()
    }
}
