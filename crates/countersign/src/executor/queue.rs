//! Calls of one process that keep writing the same document: after a first collision they take turns,
//! instead of running against each other again and again.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// Locks by stripe: two documents may share one, which only costs time.
#[derive(Debug)]
pub(crate) struct Queue {
    hasher: RandomState,
    stripes: Vec<Arc<Mutex<()>>>,
}

/// A turn; ends when it is dropped.
pub(crate) type Turn = OwnedMutexGuard<()>;

const STRIPES: usize = 256;

impl Default for Queue {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            stripes: (0..STRIPES).map(|_| Arc::default()).collect(),
        }
    }
}

impl Queue {
    /// Waits for a turn at a document. A call holds one turn at most, so turns never wait for each
    /// other in a circle.
    pub(crate) async fn turn(&self, collection: &str, id: &str) -> Option<Turn> {
        let hash = self.hasher.hash_one((collection, id));
        let stripe = usize::try_from(hash % STRIPES as u64).unwrap_or_default();
        let lock = self.stripes.get(stripe)?.clone();
        Some(lock.lock_owned().await)
    }
}
