//! A rate, by the generic cell rate algorithm: one number for each counted key, no timer.

use std::time::Duration;

use crate::ledger::PaceRule;

/// A rate: a number of calls in a period, spread evenly with a burst at the start.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use countersign::limit::Rate;
///
/// let sixty_a_minute = Rate::new(60, Duration::from_mins(1));
/// let of_all_replicas = sixty_a_minute.shared();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    calls: u32,
    /// Time that one call uses up.
    cost: Duration,
    /// Time by which a caller may run ahead of an even rate.
    burst: Duration,
    is_shared: bool,
}

impl Rate {
    /// `calls` a `period`, all of which may come at once; at least one.
    pub fn new(calls: u32, period: Duration) -> Self {
        Self {
            calls: calls.max(1),
            cost: period / calls.max(1),
            burst: period,
            is_shared: false,
        }
    }

    /// The same rate, counted in the store for all processes that share it.
    pub fn shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// The rule for the store; `None` if this process counts.
    pub(super) fn shared_rule(self) -> Option<PaceRule> {
        self.is_shared.then_some(PaceRule::Even {
            cost: self.cost,
            burst: self.burst,
        })
    }

    /// Counts one call, or answers the time to wait. `whole_at` is the time at which the allowance is full again, which
    /// means the same under another rate: a rate can be changed while it counts.
    pub(super) fn take(self, whole_at: &mut Duration, now: Duration) -> Result<(), Duration> {
        let next = (*whole_at).max(now) + self.cost;
        let ahead = next.saturating_sub(now);
        let wait = ahead.saturating_sub(self.burst);
        if !wait.is_zero() {
            return Err(wait);
        }
        *whole_at = next;
        Ok(())
    }

    /// Number of calls that may come at once, and the time in which as many are allowed again.
    pub(super) fn allowance(self) -> (u32, Duration) {
        (self.calls, self.burst)
    }

    pub(super) fn is_shared(self) -> bool {
        self.is_shared
    }

    /// Number of calls that may come now, if the allowance is full again after this time.
    pub(super) fn left(self, until_whole: Duration) -> u32 {
        let ahead = self.burst.saturating_sub(until_whole).as_nanos();
        let left = ahead / self.cost.as_nanos().max(1);
        u32::try_from(left).unwrap_or(u32::MAX).min(self.calls)
    }

    /// Gives one call back.
    pub(super) fn put_back(self, whole_at: &mut Duration) {
        *whole_at = whole_at.saturating_sub(self.cost);
    }
}

/// A wait in milliseconds, rounded up: a caller that waits exactly this long is admitted.
pub(super) fn whole_ms(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_burst_is_used_up_and_comes_back_evenly() {
        let rate = Rate::new(2, Duration::from_secs(10));
        let mut whole_at = Duration::ZERO;
        let mut at = |seconds| rate.take(&mut whole_at, Duration::from_secs(seconds));
        assert_eq!(at(0), Ok(()));
        assert_eq!(at(0), Ok(()));
        assert_eq!(at(0), Err(Duration::from_secs(5)));
        assert_eq!(at(5), Ok(()));
        assert_eq!(at(5), Err(Duration::from_secs(5)));
        rate.put_back(&mut whole_at);
        assert_eq!(rate.take(&mut whole_at, Duration::from_secs(5)), Ok(()));
    }

    #[test]
    fn what_is_left_is_what_may_come() {
        let rate = Rate::new(3, Duration::from_secs(10));
        let mut whole_at = Duration::ZERO;
        let now = Duration::from_secs(1);
        for left in [3, 2, 1, 0] {
            assert_eq!(rate.left(whole_at.saturating_sub(now)), left);
            assert_eq!(rate.take(&mut whole_at, now).is_ok(), left > 0);
        }
        assert_eq!(rate.left(Duration::MAX), 0);
    }

    #[test]
    fn a_wait_is_rounded_up() {
        assert_eq!(whole_ms(Duration::from_micros(1)), 1);
        assert_eq!(whole_ms(Duration::from_millis(3)), 3);
        assert_eq!(whole_ms(Duration::MAX), u64::MAX);
    }
}
