//! Time as an argument: nothing below the executor reads the machine's clock by itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// The executor's source of time.
pub trait Clock: Send + Sync + 'static {
    /// The time of day, for records and windows of validity.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment; it never goes back, so durations are taken from it.
    fn monotonic(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the machine's clock"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// A clock that moves only when a test moves it.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use countersign::clock::{Clock, ManualClock};
///
/// let clock = ManualClock::starting_at("2026-11-15T12:00:00Z".parse()?);
/// clock.advance(Duration::from_secs(90));
/// assert_eq!(clock.now().to_string(), "2026-11-15T12:01:30Z");
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Debug)]
pub struct ManualClock {
    start: Timestamp,
    elapsed_ns: AtomicU64,
}

impl ManualClock {
    /// A clock that stands at `start`.
    pub const fn starting_at(start: Timestamp) -> Self {
        Self {
            start,
            elapsed_ns: AtomicU64::new(0),
        }
    }

    /// Moves both kinds of time forward.
    pub fn advance(&self, by: Duration) {
        let ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.elapsed_ns.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.monotonic()).unwrap_or(SignedDuration::MAX);
        self.start.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.elapsed_ns.load(Ordering::Relaxed))
    }
}
