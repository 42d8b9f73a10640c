//! The backlog: records that were taken from callers and are not durable yet. It is bounded in bytes and in age, because
//! callers who are answered meanwhile get the name of a record that may never be kept.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum bytes of all records that wait.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Maximum age of the oldest record that could not be written. Beyond it no further record is taken.
const AGE_MAX: Duration = Duration::from_secs(2);

/// Bytes of one permit.
const UNIT: u64 = 1_024;

/// Bounds of what waits. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Backlog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    room: Arc<Semaphore>,
    /// Time since which writes fail; `None` while they work.
    stuck_since: Mutex<Option<Stuck>>,
    errors: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct Stuck {
    since: Instant,
    tries: u64,
}

/// Room that one record takes. Dropped when the record is durable.
#[derive(Debug)]
pub(crate) struct Place {
    _room: OwnedSemaphorePermit,
}

/// Records wait for too long, or are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("records could not be written for {seconds} s; no more are taken until they are")]
pub(crate) struct Overdue {
    pub(crate) seconds: u64,
}

impl Backlog {
    pub(crate) fn new() -> Self {
        let units = usize::try_from(BYTES_MAX / UNIT).unwrap_or(usize::MAX);
        Self(Arc::new(Inner {
            room: Arc::new(Semaphore::new(units)),
            stuck_since: Mutex::default(),
            errors: AtomicU64::new(0),
        }))
    }

    /// Takes room for a record of so many bytes. Waits while there is none and writes work; fails if records have waited
    /// for too long.
    pub(crate) async fn enter(&self, bytes: usize) -> Result<Place, Overdue> {
        self.check()?;
        let units = (bytes as u64).div_ceil(UNIT).clamp(1, BYTES_MAX / UNIT / 4);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        loop {
            let waiting = self.0.room.clone().acquire_many_owned(units);
            match tokio::time::timeout(AGE_MAX, waiting).await {
                Ok(Ok(room)) => return Ok(Place { _room: room }),
                // Never closed.
                Ok(Err(_)) => return Err(Overdue { seconds: 0 }),
                Err(_) => self.check()?,
            }
        }
    }

    /// Fails if records have waited for too long.
    pub(crate) fn check(&self) -> Result<(), Overdue> {
        let stuck = *self.stuck();
        match stuck.map(|stuck| stuck.since.elapsed()) {
            Some(waited) if waited > AGE_MAX => Err(Overdue {
                seconds: waited.as_secs(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Notes that a write of waiting records has failed. True if it is the first failure in a row.
    pub(crate) fn failed(&self) -> bool {
        self.0.errors.fetch_add(1, Ordering::Relaxed);
        let mut stuck = self.stuck();
        let before = *stuck;
        let now = before.unwrap_or(Stuck {
            since: Instant::now(),
            tries: 0,
        });
        *stuck = Some(Stuck {
            tries: now.tries.saturating_add(1),
            ..now
        });
        before.is_none()
    }

    /// Number of failed writes so far.
    pub(crate) fn errors(&self) -> u64 {
        self.0.errors.load(Ordering::Relaxed)
    }

    /// Notes that everything that waited is durable. Returns how often it had been tried in vain, and for how long.
    pub(crate) fn works(&self) -> Option<(u64, Duration)> {
        let stuck = self.stuck().take()?;
        Some((stuck.tries, stuck.since.elapsed()))
    }

    fn stuck(&self) -> std::sync::MutexGuard<'_, Option<Stuck>> {
        self.0
            .stuck_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A22: a caller waits for room while records are written, and is refused when they are not.
    #[tokio::test(start_paused = true)]
    async fn room_is_bounded_and_waited_for() {
        let backlog = Backlog::new();
        let mut places = Vec::new();
        for _ in 0..4 {
            places.push(backlog.enter(usize::MAX).await.unwrap());
        }
        let waiting = backlog.clone();
        let waiting = tokio::spawn(async move { waiting.enter(1).await.is_ok() });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        places.pop();
        assert!(waiting.await.unwrap());
        assert!(backlog.failed());
        assert!(!backlog.failed());
        // Not for too long yet.
        backlog.check().unwrap();
        backlog.stuck().as_mut().unwrap().since -= AGE_MAX + Duration::from_millis(1);
        backlog.check().unwrap_err();
        backlog.enter(1).await.unwrap_err();
        assert_eq!(backlog.works().unwrap().0, 2);
        backlog.enter(1).await.unwrap();
    }
}
