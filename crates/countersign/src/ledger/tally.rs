//! Counts in memory, for stores that only one process has.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Pace, PaceAnswer, PaceCount, PaceKey};

/// Counts in memory, at most 200,000; the least recently used ones are evicted and start full.
///
/// There are two generations. A used entry moves to the younger one; when that is full it becomes the older one, and
/// the entries that were not used since the last time are evicted. Nothing is ever searched.
pub struct Tally {
    /// Maximum number of counts of one generation.
    room: usize,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    young: HashMap<PaceKey, PaceCount>,
    old: HashMap<PaceKey, PaceCount>,
}

impl Tally {
    /// Counts one call against every limit, or against none.
    pub fn count(&self, paces: &[Pace], now: Duration) -> PaceAnswer {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = Vec::with_capacity(paces.len());
        let mut longest: Option<(usize, Duration)> = None;
        for (which, pace) in paces.iter().enumerate() {
            match pace.rule.take(counts.of(&pace.key), now) {
                Ok(count) => taken.push((pace.key, count)),
                Err(wait) if longest.is_none_or(|(_, other)| wait > other) => {
                    longest = Some((which, wait));
                }
                Err(_) => {}
            }
        }
        if let Some((which, retry_after)) = longest {
            return PaceAnswer::Limited { which, retry_after };
        }
        for (key, count) in taken {
            counts.set(key, count, self.room);
        }
        PaceAnswer::Admitted
    }

    /// The time until an allowance is full again.
    pub fn until_whole(&self, key: &PaceKey, now: Duration) -> Duration {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.of(key).until.saturating_sub(now)
    }

    fn with_room(room: usize) -> Self {
        Self {
            room,
            counts: Mutex::default(),
        }
    }
}

impl Counts {
    fn of(&self, key: &PaceKey) -> PaceCount {
        let count = self.young.get(key).or_else(|| self.old.get(key));
        count.copied().unwrap_or_default()
    }

    fn set(&mut self, key: PaceKey, count: PaceCount, room: usize) {
        self.old.remove(&key);
        if self.young.len() >= room && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, count);
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::with_room(100_000)
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tally").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::PaceRule;

    #[test]
    fn there_are_never_more_than_allowed_and_the_busy_ones_stay() {
        let tally = Tally::with_room(4);
        let pace = |name: &str| Pace {
            key: PaceKey::of(&[name.as_bytes()]),
            rule: PaceRule::Window {
                calls_max: 2_000,
                within: Duration::from_mins(1),
            },
        };
        for other in 0..1_000 {
            let both = [pace("busy"), pace(&other.to_string())];
            let answer = tally.count(&both, Duration::ZERO);
            assert_eq!(answer, PaceAnswer::Admitted);
        }
        let counts = tally.counts.lock().unwrap();
        assert_eq!(counts.of(&pace("busy").key).calls, 1_000);
        let kept = counts.young.len() + counts.old.len();
        assert!(kept <= 8, "{kept}");
    }
}
