//! Calls with the same key in one process: the first runs, the others wait for it and then read its result. Across
//! processes the store decides; this saves work that the store would refuse.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::ledger::Scope;

/// The keys that calls of this process are running for.
#[derive(Debug)]
pub(super) struct Joins {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    running: Mutex<Running>,
    hasher: RandomState,
    /// Release counters, by the hash of the key: an unchanged counter means that an earlier look-up is still valid in
    /// this process.
    left: Vec<AtomicU64>,
}

type Running = HashMap<Scope, watch::Receiver<()>>;

const STRIPES: usize = 256;

/// A key that one call of this process holds until this is dropped.
#[derive(Debug)]
pub(super) struct Joined {
    shared: Arc<Shared>,
    scope: Scope,
    /// Dropped together with this value, which wakes all waiting calls.
    _done: watch::Sender<()>,
}

/// Time limit for waiting for another call.
#[derive(Debug)]
pub(super) struct Patience {
    until: Instant,
    pause: Duration,
}

/// Result of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// No other call held the key.
    ForNobody,
    /// Another call held the key and is done.
    ForOwner,
    /// Another call holds the key, and the time limit is over.
    TooLong,
}

impl Default for Joins {
    fn default() -> Self {
        Self {
            shared: Arc::new(Shared {
                running: Mutex::default(),
                hasher: RandomState::new(),
                left: (0..STRIPES).map(|_| AtomicU64::new(0)).collect(),
            }),
        }
    }
}

impl Joins {
    /// Release counter of this key: it changes when a call releases the key. Read before the key is looked up.
    pub(super) fn left(&self, scope: &Scope) -> u64 {
        let left = self.shared.left_of(scope);
        left.map_or(0, |left| left.load(Ordering::SeqCst))
    }

    /// True if a call of this process holds the key.
    pub(super) fn is_running(&self, scope: &Scope) -> bool {
        self.shared.lock().contains_key(scope)
    }

    /// Waits until no call of this process holds the key.
    pub(super) async fn wait(&self, scope: &Scope, patience: &Patience) -> Waited {
        let other = self.shared.lock().get(scope).cloned();
        let Some(other) = other else {
            return Waited::ForNobody;
        };
        if patience.outlasts(other).await {
            Waited::ForOwner
        } else {
            Waited::TooLong
        }
    }

    /// Takes the key at once if no call of this process holds it; otherwise waits for that call. `None` if the time
    /// limit is over. The flag is true if another call held the key.
    pub(super) async fn enter(&self, scope: &Scope, patience: &Patience) -> Option<(Joined, bool)> {
        let mut waited = false;
        loop {
            let other = match self.shared.lock().entry(scope.clone()) {
                Entry::Occupied(running) => running.get().clone(),
                Entry::Vacant(free) => {
                    let (done, receiver) = watch::channel(());
                    free.insert(receiver);
                    let joined = Joined {
                        shared: self.shared.clone(),
                        scope: scope.clone(),
                        _done: done,
                    };
                    return Some((joined, waited));
                }
            };
            waited = true;
            if !patience.outlasts(other).await {
                return None;
            }
        }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        // Counted first: whoever enters after us sees it.
        if let Some(left) = self.shared.left_of(&self.scope) {
            left.fetch_add(1, Ordering::SeqCst);
        }
        self.shared.lock().remove(&self.scope);
    }
}

impl Shared {
    fn left_of(&self, scope: &Scope) -> Option<&AtomicU64> {
        let hash = self.hasher.hash_one(scope);
        self.left
            .get(usize::try_from(hash % STRIPES as u64).unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Patience {
    pub(super) fn new(limit: Duration) -> Self {
        let now = Instant::now();
        Self {
            // A limit beyond what the timer can count is as good as a day.
            until: now
                .checked_add(limit.min(Duration::from_hours(24)))
                .unwrap_or(now),
            pause: PAUSE_MIN,
        }
    }

    /// True if the other call ends before the time limit.
    async fn outlasts(&self, mut other: watch::Receiver<()>) -> bool {
        // An error is the sender's end: that is what is waited for.
        let gone = async { while other.changed().await.is_ok() {} };
        tokio::time::timeout_at(self.until, gone).await.is_ok()
    }

    /// Waits for a call in another process; false if the time limit is over.
    pub(super) async fn pause(&mut self) -> bool {
        if Instant::now() >= self.until {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}

const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(200);
