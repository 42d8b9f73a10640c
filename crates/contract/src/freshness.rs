//! Validity of a result over time (A8).

use jiff::{SignedDuration, Timestamp};

/// A result's window of validity, from the moment it was made.
///
/// # Example
///
/// ```
/// use countersign_contract::freshness::Freshness;
///
/// let made: jiff::Timestamp = "2026-11-15T12:00:00Z".parse()?;
/// let quote = Freshness { made, ttl_seconds: 300 };
/// assert_eq!(quote.remaining_seconds("2026-11-15T12:04:00Z".parse()?), 60);
/// assert!(quote.is_stale("2026-11-15T12:05:00Z".parse()?));
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// Time at which the result was made.
    pub made: Timestamp,
    /// Time to live (TTL), in seconds.
    pub ttl_seconds: u32,
}

impl Freshness {
    /// Returns the time at which the result expires.
    pub fn expires(self) -> Timestamp {
        let ttl = SignedDuration::from_secs(i64::from(self.ttl_seconds));
        self.made.checked_add(ttl).unwrap_or(Timestamp::MAX)
    }

    /// True if the result has expired. The last instant of the window does not belong to it.
    pub fn is_stale(self, now: Timestamp) -> bool {
        now >= self.expires()
    }

    /// Whole seconds that are left, rounded down: never promise more than there is.
    pub fn remaining_seconds(self, now: Timestamp) -> u32 {
        let left = self.expires().duration_since(now).as_secs();
        u32::try_from(left.max(0))
            .unwrap_or(u32::MAX)
            .min(self.ttl_seconds)
    }
}
