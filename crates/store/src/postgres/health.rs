//! Health of the commits: a database that answers reads may still refuse every write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Result of the last commits. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Health(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    is_failing: AtomicBool,
    errors: AtomicU64,
}

impl Health {
    /// Notes that a commit worked.
    pub(super) fn works(&self) {
        self.0.is_failing.store(false, Ordering::Relaxed);
    }

    /// Notes that the database could not commit, for a reason that lies with no single call.
    pub(super) fn fails(&self) {
        self.0.is_failing.store(true, Ordering::Relaxed);
        self.0.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// True if the last commit failed.
    pub(super) fn is_failing(&self) -> bool {
        self.0.is_failing.load(Ordering::Relaxed)
    }

    /// Number of failed commits since the store was opened.
    pub(super) fn errors(&self) -> u64 {
        self.0.errors.load(Ordering::Relaxed)
    }
}
