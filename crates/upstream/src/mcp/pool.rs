//! The connections of one server: one a key, opened when it is needed, closed when it is not.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign_contract::Digest;
use tokio::sync::Mutex as Turn;
use tokio::time::{Instant, sleep};

use super::connection::Connection;
use super::trouble::Trouble;

/// Owner of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// The connection of the gateway itself, which lists tools.
    Discovery,
    /// The connection of all users.
    Shared,
    /// The connection of one user, of the token that matters for it, and of the abilities and the era of the caller's client.
    User(String, Option<Digest>, String),
}

/// The connections of one server.
pub(super) struct Pool {
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
    /// True if no further connection is opened.
    is_retired: AtomicBool,
    count_max: usize,
    idle: Duration,
}

/// A place for one connection. Only one call opens it; the others wait for that one.
#[derive(Default)]
struct Slot {
    opened: Turn<Opened>,
}

#[derive(Default)]
struct Opened {
    connection: Option<Arc<Connection>>,
    /// Failures to open it, in a row.
    failures: u32,
    not_before: Option<Instant>,
}

/// Wait after the first failure to open a connection; it doubles with each further one.
const BACKOFF: Duration = Duration::from_millis(100);

/// Longest wait.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

impl Pool {
    pub(super) fn new(count_max: u32, idle: Duration) -> Self {
        Self {
            slots: Mutex::default(),
            is_retired: AtomicBool::new(false),
            count_max: count_max as usize,
            idle,
        }
    }

    /// Returns the connection of a key, and opens it if there is none. One whose era is in doubt is replaced if the server, asked anew, speaks
    /// another one.
    pub(super) async fn get(
        &self,
        key: &Key,
        open: impl Future<Output = Result<Connection, Trouble>>,
    ) -> Result<Arc<Connection>, Trouble> {
        let slot = self.slot(key)?;
        let mut opened = slot.opened.lock().await;
        match &opened.connection {
            Some(connection) if !connection.is_closed() && connection.is_in_doubt() => {
                let connection = connection.clone();
                let asked = open.await;
                connection.end_doubt();
                return match asked {
                    Ok(new) if new.is_of_newest_era() != connection.is_of_newest_era() => {
                        let new = Arc::new(new);
                        // The calls that use the other one end with it.
                        opened.connection = Some(new.clone());
                        Ok(new)
                    }
                    Ok(_) | Err(_) => Ok(connection),
                };
            }
            Some(connection) if !connection.is_closed() => return Ok(connection.clone()),
            Some(_) => opened.connection.take().into_iter().for_each(close),
            None => {}
        }
        let left = opened
            .not_before
            .map(|at| at.saturating_duration_since(Instant::now()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            return Err(Trouble::Open(left));
        }
        match open.await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                *opened = Opened {
                    connection: Some(connection.clone()),
                    ..Opened::default()
                };
                Ok(connection)
            }
            Err(trouble) => {
                if trouble.is_transport() {
                    let wait = BACKOFF.saturating_mul(1 << opened.failures.min(16));
                    opened.failures += 1;
                    opened.not_before = Some(Instant::now() + wait.min(BACKOFF_MAX));
                }
                Err(trouble)
            }
        }
    }

    fn slot(&self, key: &Key) -> Result<Arc<Slot>, Trouble> {
        let mut slots = self.slots();
        if self.is_retired.load(Ordering::Acquire) {
            let why = "the configuration has changed".to_owned();
            return Err(Trouble::NoConnection(why));
        }
        if !slots.contains_key(key) && slots.len() >= self.count_max {
            // The one that was not used for longest makes room.
            let idle = |slot: &Arc<Slot>| match slot.opened.try_lock() {
                Ok(opened) => match &opened.connection {
                    Some(connection) => connection.idle(),
                    None => Some(Duration::MAX),
                },
                Err(_) => None,
            };
            let idle = slots
                .iter()
                .filter_map(|(key, slot)| Some((idle(slot)?, key)));
            let longest = idle
                .max_by_key(|(idle, _)| *idle)
                .map(|(_, key)| key.clone());
            let evicted = slots.remove(&longest.ok_or(Trouble::Full)?);
            evicted.iter().for_each(end);
        }
        Ok(slots.entry(key.clone()).or_default().clone())
    }

    /// Evicts connections as soon as they are idle for too long; for ever.
    pub(super) async fn keep_swept(&self) {
        loop {
            let wait = self.sweep();
            sleep(wait).await;
        }
    }

    /// Evicts idle and closed connections. Returns the time after which the next one may be idle for too long.
    fn sweep(&self) -> Duration {
        let now = Instant::now();
        let mut next = self.idle;
        let mut is_over = |slot: &Arc<Slot>| {
            let Ok(opened) = slot.opened.try_lock() else {
                return false;
            };
            let left = match &opened.connection {
                Some(connection) if connection.is_closed() => Duration::ZERO,
                Some(connection) if connection.is_needed() => self.idle,
                // One that is in use can become idle at once, and is over no sooner than this.
                Some(connection) => {
                    let idle = connection.idle().unwrap_or_default();
                    self.idle.saturating_sub(idle)
                }
                None => {
                    let until = opened.not_before;
                    until.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
                }
            };
            if !left.is_zero() {
                next = next.min(left);
            }
            left.is_zero()
        };
        let mut slots = self.slots();
        let over: Vec<Key> = slots
            .iter()
            .filter(|(_, slot)| is_over(slot))
            .map(|(key, _)| key.clone())
            .collect();
        let over = over.iter().filter_map(|key| slots.remove(key));
        over.for_each(|slot| end(&slot));
        next
    }

    /// Closes every connection, waits for that, and opens no other.
    pub(super) async fn retire(&self) {
        {
            let _slots = self.slots();
            self.is_retired.store(true, Ordering::Release);
        }
        self.close().await;
    }

    /// Closes every connection, and waits for that.
    pub(super) async fn close(&self) {
        let all: Vec<Arc<Slot>> = self.slots().drain().map(|(_, slot)| slot).collect();
        for slot in all {
            let connection = slot.opened.lock().await.connection.take();
            if let Some(connection) = connection {
                connection.close().await;
            }
        }
    }

    /// The processes of the children.
    pub(super) fn children(&self) -> Vec<u32> {
        let child = |slot: &Arc<Slot>| slot.opened.try_lock().ok()?.connection.as_ref()?.child_id();
        self.slots().values().filter_map(child).collect()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Key, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the connection of a slot that was removed from the pool.
fn end(slot: &Arc<Slot>) {
    if let Ok(mut opened) = slot.opened.try_lock() {
        opened.connection.take().into_iter().for_each(close);
    }
}

/// Closes a connection behind the caller's back.
fn close(connection: Arc<Connection>) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move { connection.close().await });
    }
}
