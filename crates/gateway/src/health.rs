//! Readiness of the server, for load balancers and orchestrators that ask before they send calls.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// The server's own state.
#[derive(Debug, Default)]
pub struct Health {
    is_leaving: AtomicBool,
    draining: CancellationToken,
    is_log_stopped: AtomicBool,
}

impl Health {
    /// Announces the end: calls are still accepted, but `/readyz` sends the next ones elsewhere.
    pub fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    /// True if the end was announced.
    pub fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    /// Starts draining: the server finishes its calls and accepts no new ones.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Records that signing of the log has stopped, which only an operator can fix.
    pub fn log_stopped(&self) {
        self.is_log_stopped.store(true, Ordering::Relaxed);
    }

    /// True if the server was told to stop.
    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Waits until the server begins to stop, so that endless responses can end.
    pub async fn draining(&self) {
        self.draining.cancelled().await;
    }

    /// True if committed records are no longer signed.
    pub fn is_log_stopped(&self) -> bool {
        self.is_log_stopped.load(Ordering::Relaxed)
    }
}
