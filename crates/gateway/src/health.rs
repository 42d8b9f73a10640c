//! Whether the server can take calls, for those who ask before they send some.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// What is known of the server's own state.
#[derive(Debug, Default)]
pub struct Health {
    draining: CancellationToken,
    is_log_stopped: AtomicBool,
}

impl Health {
    /// The server was told to stop: it finishes what it has and wants nothing new.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Nothing is signed any more, and only an operator can change that.
    pub fn log_stopped(&self) {
        self.is_log_stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the server was told to stop.
    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Returns when the server is told to stop: what would never end by itself ends then.
    pub async fn draining(&self) {
        self.draining.cancelled().await;
    }

    /// Whether what is committed is no longer signed.
    pub fn is_log_stopped(&self) -> bool {
        self.is_log_stopped.load(Ordering::Relaxed)
    }
}
