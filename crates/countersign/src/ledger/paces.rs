//! Paces: rate limits, counted for all processes that share a store.
//!
//! A count need not survive a crash: an entry that is lost starts with a full allowance, as every new entry does. So a
//! store keeps counts where that is cheap, and waits for no disk.

use std::fmt;
use std::time::Duration;

use countersign_contract::Digest;

use super::{Error, Hex};
use crate::BoxFuture;

/// Counts calls against rate limits.
///
/// Rules that every implementation keeps:
///
/// - a call is counted against all of its limits or against none, under any race;
/// - only the store's clock is used;
/// - a call is never admitted without being counted: if the answer is lost, it may be counted twice.
pub trait Paces: Send + Sync + 'static {
    /// Counts one call, or says when it would be admitted.
    fn keep_pace<'a>(&'a self, paces: &'a [Pace]) -> BoxFuture<'a, Result<PaceAnswer, Error>>;

    /// The time until an allowance is full again; zero if nothing is counted. Counts nothing.
    fn until_whole<'a>(&'a self, key: &'a PaceKey) -> BoxFuture<'a, Result<Duration, Error>>;
}

/// A rate limit that a call is counted against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Key of the count; no key twice in one call.
    pub key: PaceKey,
    /// The rate that is allowed.
    pub rule: PaceRule,
}

/// The key of a count: a digest, because its parts are personal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PaceKey(pub [u8; 32]);

impl PaceKey {
    /// The key of these parts in this order. No other parts have the same key.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut bytes = b"countersign pace v1".to_vec();
        for part in parts {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(*part);
        }
        Self(*Digest::of_bytes(&bytes).as_bytes())
    }
}

impl fmt::Debug for PaceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PaceKey({})", Hex(&self.0))
    }
}

/// A rate that is allowed. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaceRule {
    /// An even rate, after a burst (the generic cell rate algorithm).
    Even {
        /// Time that one call uses up.
        cost: Duration,
        /// Time by which a caller may run ahead of an even rate.
        burst: Duration,
    },
    /// A fixed window, which begins anew with the first call after it is over.
    Window {
        /// Maximum number of calls, at least one.
        calls_max: u32,
        /// Length of the window.
        within: Duration,
    },
}

/// The count that is stored under a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PaceCount {
    /// Time at which the allowance is full again, or the window is over: from then on it is as if nothing had been
    /// counted.
    pub until: Duration,
    /// Number of calls in the window.
    pub calls: u32,
}

impl PaceRule {
    /// The count with one call more, or how long that call has to wait.
    ///
    /// Every store decides by this one rule.
    pub fn take(self, count: PaceCount, now: Duration) -> Result<PaceCount, Duration> {
        match self {
            Self::Even { cost, burst } => {
                let until = count.until.max(now).saturating_add(cost);
                let wait = until.saturating_sub(now).saturating_sub(burst);
                if wait.is_zero() {
                    Ok(PaceCount { until, calls: 0 })
                } else {
                    Err(wait)
                }
            }
            Self::Window { calls_max, within } => {
                if count.calls == 0 || count.until <= now {
                    let until = now.saturating_add(within);
                    return Ok(PaceCount { until, calls: 1 });
                }
                if count.calls < calls_max {
                    let calls = count.calls + 1;
                    return Ok(PaceCount { calls, ..count });
                }
                Err(count.until.saturating_sub(now))
            }
        }
    }
}

/// Answer to counting a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaceAnswer {
    /// It is counted.
    Admitted,
    /// A rate limit is reached; nothing was counted.
    Limited {
        /// Index of the limit that was reached; the one with the longest wait if there are several.
        which: usize,
        /// Time until the same call would be admitted.
        retry_after: Duration,
    },
}
