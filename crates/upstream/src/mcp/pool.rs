//! The connections of one server: one a key, opened when it is needed, closed when it is not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign_contract::Digest;
use tokio::sync::Mutex as Turn;
use tokio::time::Instant;

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
            count_max: count_max as usize,
            idle,
        }
    }

    /// Returns the connection of a key, and opens it if there is none.
    pub(super) async fn get(
        &self,
        key: &Key,
        open: impl Future<Output = Result<Connection, Trouble>>,
    ) -> Result<Arc<Connection>, Trouble> {
        let slot = self.slot(key)?;
        let mut opened = slot.opened.lock().await;
        match &opened.connection {
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

    /// Evicts idle and closed connections.
    pub(super) fn sweep(&self) {
        let is_over = |slot: &Arc<Slot>| match slot.opened.try_lock() {
            Ok(opened) => match &opened.connection {
                Some(connection) => {
                    connection.is_closed() || connection.idle().is_some_and(|it| it > self.idle)
                }
                None => opened.not_before.is_none_or(|at| at < Instant::now()),
            },
            Err(_) => false,
        };
        let mut slots = self.slots();
        let over: Vec<Key> = slots
            .iter()
            .filter(|(_, slot)| is_over(slot))
            .map(|(key, _)| key.clone())
            .collect();
        let over = over.iter().filter_map(|key| slots.remove(key));
        over.for_each(|slot| end(&slot));
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
