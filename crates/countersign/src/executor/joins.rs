//! Callers of one key in one process: the first goes on, the others wait for it and then see what it left
//! behind. Across processes the store decides; this saves the work that it would refuse.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::ledger::Scope;

/// The keys that calls of this process are running for.
#[derive(Debug, Default)]
pub(super) struct Joins {
    running: Arc<Mutex<Running>>,
}

type Running = HashMap<Scope, watch::Receiver<()>>;

/// A key that is ours in this process until this is dropped.
#[derive(Debug)]
pub(super) struct Joined {
    running: Arc<Mutex<Running>>,
    scope: Scope,
    /// Dropped with us, which wakes everybody who waits.
    _done: watch::Sender<()>,
}

/// How long a call may wait for another one.
#[derive(Debug)]
pub(super) struct Patience {
    until: Instant,
    pause: Duration,
}

/// What became of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// There was nobody.
    ForNobody,
    /// There was somebody, who is done.
    ForOwner,
    /// There is somebody, and patience ran out.
    TooLong,
}

impl Joins {
    /// Waits for whoever of this process is in.
    pub(super) async fn wait(&self, scope: &Scope, patience: &Patience) -> Waited {
        let other = lock(&self.running).get(scope).cloned();
        let Some(other) = other else {
            return Waited::ForNobody;
        };
        if patience.outlasts(other).await {
            Waited::ForOwner
        } else {
            Waited::TooLong
        }
    }

    /// Enters at once where nobody of this process is in; otherwise waits for the one who is. None
    /// where patience ran out. The flag tells whether there was somebody.
    pub(super) async fn enter(&self, scope: &Scope, patience: &Patience) -> Option<(Joined, bool)> {
        let mut waited = false;
        loop {
            let other = match lock(&self.running).entry(scope.clone()) {
                Entry::Occupied(running) => running.get().clone(),
                Entry::Vacant(free) => {
                    let (done, receiver) = watch::channel(());
                    free.insert(receiver);
                    let joined = Joined {
                        running: self.running.clone(),
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
        lock(&self.running).remove(&self.scope);
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

    /// Whether the other one is done before patience runs out.
    async fn outlasts(&self, mut other: watch::Receiver<()>) -> bool {
        // An error is the sender's end: that is what is waited for.
        let gone = async { while other.changed().await.is_ok() {} };
        tokio::time::timeout_at(self.until, gone).await.is_ok()
    }

    /// Waits for somebody in another process; false where patience ran out.
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

fn lock(running: &Mutex<Running>) -> MutexGuard<'_, Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}
