//! The store's clock, and its times: whole microseconds since 1970.

use std::sync::Arc;
use std::time::Duration;

use countersign::clock::Clock;
use jiff::Timestamp;

/// The time of day when the store was opened, moved on by the monotonic clock. Changing the machine's clock
/// while the store is open ends no lease early and prolongs none.
pub(super) struct Time {
    clock: Arc<dyn Clock>,
    opened_at: i64,
    origin: Duration,
}

impl Time {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let opened_at = micros(clock.now());
        let origin = clock.monotonic();
        Self {
            clock,
            opened_at,
            origin,
        }
    }

    /// Returns the time of day as the machine's clock tells it now; it may have been changed since.
    pub(super) fn of_day(&self) -> i64 {
        micros(self.clock.now())
    }

    pub(super) fn now(&self) -> i64 {
        let elapsed = self.clock.monotonic().saturating_sub(self.origin);
        later(self.opened_at, elapsed)
    }
}

pub(super) fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}

/// Converts microseconds to a timestamp, limited to the first and the last one.
pub(super) fn timestamp(micros: i64) -> Timestamp {
    let beyond = if micros < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Timestamp::from_microsecond(micros).unwrap_or(beyond)
}

pub(super) fn later(at: i64, by: Duration) -> i64 {
    at.saturating_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX))
}

/// Returns how much later `to` is; zero if it is not later.
pub(super) fn between(from: i64, to: i64) -> Duration {
    Duration::from_micros(u64::try_from(to.saturating_sub(from)).unwrap_or_default())
}
