//! Paces: how often something was done lately, counted for all processes that share a store.
//!
//! A count need not survive a crash: whoever is forgotten has a whole allowance again, which is where
//! everybody starts. So a store keeps counts where that is cheap, and waits for no disk.

use std::fmt;
use std::time::Duration;

use countersign_contract::Digest;

use super::{Error, Hex};
use crate::BoxFuture;

/// Counts calls against paces.
///
/// Rules that every implementation keeps:
///
/// - a call is counted against all of its paces or against none, whatever races with it;
/// - only the store's clock decides what time it is;
/// - a call is never let in without being counted: where the answer is lost it may be counted twice.
pub trait Paces: Send + Sync + 'static {
    /// Counts one call, or says when it would be let in.
    fn keep_pace<'a>(&'a self, paces: &'a [Pace]) -> BoxFuture<'a, Result<PaceAnswer, Error>>;

    /// The time until a count is as if nothing had been; zero where nothing is counted. Counts nothing.
    fn until_whole<'a>(&'a self, key: &'a PaceKey) -> BoxFuture<'a, Result<Duration, Error>>;
}

/// What a call is counted against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Whose count it is; no key twice in one call.
    pub key: PaceKey,
    /// How often.
    pub rule: PaceRule,
}

/// The name of a count: a digest, because what it is made of is personal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PaceKey(pub [u8; 32]);

impl PaceKey {
    /// Of these parts in this order. No other parts have the same key.
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

/// How often something may be done. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaceRule {
    /// Evenly, after a burst (the generic cell rate algorithm).
    Even {
        /// Time that one call uses up.
        cost: Duration,
        /// How far ahead of an even pace one may run.
        burst: Duration,
    },
    /// So often, counted anew from the first call after the time is over.
    Window {
        /// How often, at least once.
        calls_max: u32,
        /// In what time.
        within: Duration,
    },
}

/// What was counted under a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PaceCount {
    /// When the allowance is whole again, or the window is over: from then on it is as if nothing had been.
    pub until: Duration,
    /// How many calls are in the window.
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

/// What became of counting a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaceAnswer {
    /// It is counted.
    Admitted,
    /// A pace is used up; nothing was counted.
    Limited {
        /// Which of the paces; the one that takes longest where there are several.
        which: usize,
        /// When the same call would be let in.
        retry_after: Duration,
    },
}
