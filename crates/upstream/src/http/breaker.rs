//! The circuit breaker and the retry budget of one upstream.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::manifest;

/// Circuit breaker for an upstream that cannot be reached. It counts transport failures only: any answer closes it.
#[derive(Debug)]
pub(crate) struct Breaker {
    settings: manifest::Breaker,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Failures in a row.
    failures: u32,
    /// In the clock's monotonic time; calls are refused until then.
    open_until: Option<Duration>,
    /// True if one call is trying the upstream.
    is_trying: bool,
}

/// Permission for one request, whose outcome has to be reported to the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// A usual request.
    Usual,
    /// The one that tries an upstream that could not be reached.
    Trial,
}

impl Breaker {
    pub(crate) fn new(settings: manifest::Breaker) -> Self {
        Self {
            settings,
            state: Mutex::default(),
        }
    }

    /// Lets a request pass, or says for how long none does.
    pub(crate) fn pass(&self, now: Duration) -> Result<Pass, Duration> {
        let mut state = self.state();
        match state.open_until {
            None => Ok(Pass::Usual),
            Some(until) if now < until => Err(until.saturating_sub(now)),
            Some(_) if state.is_trying => {
                Err(Duration::from_millis(self.settings.open_ms.min(1_000)))
            }
            Some(_) => {
                state.is_trying = true;
                Ok(Pass::Trial)
            }
        }
    }

    /// True if no request passes now.
    pub(crate) fn is_open(&self, now: Duration) -> bool {
        self.state().open_until.is_some_and(|until| now < until)
    }

    /// The upstream has answered.
    pub(crate) fn answered(&self) {
        *self.state() = State::default();
    }

    /// The upstream could not be reached, or the connection was lost.
    pub(crate) fn failed(&self, now: Duration) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        let is_over = self.settings.failures > 0 && state.failures >= self.settings.failures;
        if is_over {
            let open = Duration::from_millis(self.settings.open_ms);
            state.open_until = Some(now.saturating_add(open));
        }
        state.is_trying = false;
    }

    /// The request was given up without an outcome: its time was over before the upstream could be blamed.
    pub(crate) fn given_up(&self, pass: Pass) {
        match pass {
            Pass::Usual => {}
            Pass::Trial => self.state().is_trying = false,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The retries that an upstream may still cost: each call adds a part of one, each retry takes one.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    percent: u32,
    /// In hundredths of a retry.
    left: Mutex<u64>,
}

/// Retries that a quiet upstream may have at once.
const BURST: u64 = 10;

impl RetryBudget {
    pub(crate) fn new(percent: u32) -> Self {
        let left = if percent == 0 { 0 } else { BURST * 100 };
        Self {
            percent,
            left: Mutex::new(left),
        }
    }

    /// Counts a call.
    pub(crate) fn earn(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = (*left + u64::from(self.percent)).min(BURST * 100);
    }

    /// Takes a retry, if there is one.
    pub(crate) fn take(&self) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        match left.checked_sub(100) {
            Some(rest) if self.percent > 0 => {
                *left = rest;
                true
            }
            Some(_) | None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn an_upstream_that_cannot_be_reached_is_left_alone_and_tried_once() {
        let settings = manifest::Breaker {
            failures: 2,
            open_ms: 100,
        };
        let breaker = Breaker::new(settings);
        assert_eq!(breaker.pass(at(0)), Ok(Pass::Usual));
        breaker.failed(at(0));
        breaker.answered();
        breaker.failed(at(1));
        assert_eq!(
            breaker.pass(at(1)),
            Ok(Pass::Usual),
            "an answer between them"
        );
        breaker.failed(at(1));
        assert_eq!(breaker.pass(at(1)), Err(at(100)));
        assert_eq!(breaker.pass(at(101)), Ok(Pass::Trial));
        assert!(breaker.pass(at(101)).is_err(), "one tries");
        breaker.given_up(Pass::Trial);
        assert_eq!(breaker.pass(at(102)), Ok(Pass::Trial));
        breaker.failed(at(110));
        assert_eq!(breaker.pass(at(111)), Err(at(99)));
        assert_eq!(breaker.pass(at(210)), Ok(Pass::Trial));
        breaker.answered();
        assert_eq!(breaker.pass(at(210)), Ok(Pass::Usual));
    }

    #[test]
    fn retries_have_a_budget() {
        let budget = RetryBudget::new(50);
        let taken = (0..20).filter(|_| budget.take()).count();
        assert_eq!(taken, 10, "those of a quiet upstream");
        budget.earn();
        assert!(!budget.take());
        budget.earn();
        assert!(budget.take() && !budget.take());
        assert!(!RetryBudget::new(0).take());
    }
}
