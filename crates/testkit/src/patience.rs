//! Deadlines for tests: a test whose event never comes fails, and does not hang.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Longer than anything takes that works, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Waits for a future, but no longer than [`PATIENCE`].
///
/// # Panics
///
/// If the deadline passes first; the message names the place of the call.
#[cfg(feature = "ledger")]
#[track_caller]
pub fn within<F: Future>(awaited: F) -> impl Future<Output = F::Output> {
    let place = std::panic::Location::caller();
    async move {
        let done = tokio::time::timeout(PATIENCE, awaited).await.ok();
        done.unwrap_or_else(|| unreachable!("nothing happened within {PATIENCE:?} at {place}"))
    }
}

/// Asks again and again until the answer is yes, but no longer than [`PATIENCE`] by the machine's own clock, so
/// that it also ends in a test whose time is paused.
///
/// # Panics
///
/// If the deadline passes first; the message names the place of the call.
#[cfg(feature = "ledger")]
#[track_caller]
pub fn until(mut is_so: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let started = std::time::Instant::now();
        while !is_so().await {
            let waited = started.elapsed();
            assert!(waited < PATIENCE, "it was never so at {place}");
            tokio::task::yield_now().await;
        }
    }
}

/// Interval between two questions of [`comes_true`].
const ASKED_EVERY: Duration = Duration::from_millis(5);

/// Asks again and again until the answer is yes; false if it is not within this time. For threads that may block.
pub fn comes_true(at_most: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let started = std::time::Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if started.elapsed() > at_most {
            return false;
        }
        std::thread::sleep(ASKED_EVERY);
    }
}

/// Ends the test's process unless it is dropped in time. For tests that wait for other processes: a blocking wait has
/// no deadline of its own.
#[derive(Debug)]
pub struct Watchdog {
    /// Dropped at the end, for which the watching thread waits.
    _alive: mpsc::Sender<()>,
}

impl Watchdog {
    /// Lets a test have five minutes.
    pub fn start() -> Self {
        Self::after(Duration::from_mins(5))
    }

    /// Lets a test have so long.
    pub fn after(patience: Duration) -> Self {
        let (alive, watched) = mpsc::channel();
        let test = std::thread::current().name().map(str::to_owned);
        let test = test.unwrap_or_else(|| "a test".to_owned());
        std::thread::spawn(move || {
            if watched.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{test} did not end within {patience:?}");
                std::process::abort();
            }
        });
        Self { _alive: alive }
    }
}
