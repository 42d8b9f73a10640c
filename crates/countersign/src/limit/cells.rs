//! The state of the rate limits in memory: a small value for each counted key, bounded in number.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, PoisonError};

/// Values by the hash of their key. The keys themselves are not stored: two hashes with random keys make collisions
/// negligible.
///
/// Each lock has two generations. A used entry moves to the younger one; when that is full it becomes the older one,
/// and the entries that were not used since the last time are evicted. Nothing is ever searched.
#[derive(Debug)]
pub(super) struct Cells<V> {
    hashers: [RandomState; 2],
    /// Maximum number of cells of one generation of one lock.
    room: usize,
    shards: Vec<Mutex<Shard<V>>>,
}

/// Key of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CellKey(u64, u64);

#[derive(Debug)]
struct Shard<V> {
    young: HashMap<CellKey, V>,
    old: HashMap<CellKey, V>,
}

/// Number of locks over which cells are spread, so that callers do not wait for each other.
const SHARDS: usize = 16;

impl<V: Copy + Default> Cells<V> {
    /// Room for at most `cells_max` cells, but at least two for each lock.
    pub(super) fn new(cells_max: usize) -> Self {
        let shard = || {
            Mutex::new(Shard {
                young: HashMap::new(),
                old: HashMap::new(),
            })
        };
        Self {
            hashers: [RandomState::new(), RandomState::new()],
            room: (cells_max / SHARDS / 2).max(1),
            shards: (0..SHARDS).map(|_| shard()).collect(),
        }
    }

    /// The key of a value.
    pub(super) fn key(&self, of: impl Hash) -> CellKey {
        let [first, second] = &self.hashers;
        CellKey(first.hash_one(&of), second.hash_one(&of))
    }

    /// Changes the value of a cell, which starts with the default.
    pub(super) fn change<R>(&self, key: CellKey, change: impl FnOnce(&mut V) -> R) -> R {
        let index = usize::try_from(key.0 % SHARDS as u64).unwrap_or_default();
        let Some(shard) = self.shards.get(index) else {
            return change(&mut V::default());
        };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = shard.young.get_mut(&key) {
            return change(value);
        }
        let mut value = shard.old.remove(&key).unwrap_or_default();
        let changed = change(&mut value);
        if shard.young.len() >= self.room {
            shard.old = std::mem::take(&mut shard.young);
        }
        shard.young.insert(key, value);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_never_more_than_allowed_and_the_busy_ones_stay() {
        let cells: Cells<u32> = Cells::new(SHARDS * 2 * 4);
        let busy = cells.key("busy");
        for other in 0..10_000 {
            cells.change(cells.key(other), |count| *count += 1);
            cells.change(busy, |count| *count += 1);
        }
        assert_eq!(cells.change(busy, |count| *count), 10_000);
        let kept = cells.shards.iter().map(|shard| {
            let shard = shard.lock().unwrap();
            shard.young.len() + shard.old.len()
        });
        let kept: usize = kept.sum();
        assert!(kept <= SHARDS * 2 * 4, "{kept}");
    }
}
