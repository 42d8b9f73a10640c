//! Who is connected, and who only waits.
//!
//! When all connections are taken, the one that has waited longest without a request makes room. Otherwise
//! whoever opens enough of them and says nothing would keep everybody out, the operator too.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// For how long a connection may wait whatever happens: a request may be on its way.
const IDLE_MIN: Duration = Duration::from_secs(1);

/// In the place of the time since when a connection waits: it has a request.
const BUSY: u64 = u64::MAX;

/// It is being closed, and takes no request any more.
const CLOSED: u64 = u64::MAX - 1;

/// All connections.
pub(super) struct Roster {
    start: Instant,
    next: AtomicU64,
    present: Mutex<HashMap<u64, Arc<Presence>>>,
}

/// One connection.
pub(super) struct Presence {
    start: Instant,
    peer: IpAddr,
    /// Since when it waits, in milliseconds from the start; or [`BUSY`] or [`CLOSED`].
    idle_since: AtomicU64,
    /// Whether the other side has not taken all of its answer.
    pub(super) is_sending: AtomicBool,
    close: CancellationToken,
}

/// Keeps a connection on the roster.
pub(super) struct Entry {
    id: u64,
    roster: Arc<Roster>,
    pub(super) presence: Arc<Presence>,
}

impl Roster {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            next: AtomicU64::default(),
            present: Mutex::default(),
        }
    }

    pub(super) fn enter(self: &Arc<Self>, peer: IpAddr) -> Entry {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let presence = Arc::new(Presence {
            start: self.start,
            peer,
            idle_since: AtomicU64::new(millis(self.start)),
            is_sending: AtomicBool::default(),
            close: CancellationToken::new(),
        });
        let present = self.present.lock();
        let mut present = present.unwrap_or_else(PoisonError::into_inner);
        present.insert(id, presence.clone());
        Entry {
            id,
            roster: self.clone(),
            presence,
        }
    }

    /// Closes the connection that has waited longest, where one has waited long enough: of this peer, where there is
    /// one.
    pub(super) fn make_room(&self, of: Option<IpAddr>) {
        let idle_min = u64::try_from(IDLE_MIN.as_millis()).unwrap_or(BUSY);
        let Some(latest) = millis(self.start).checked_sub(idle_min) else {
            return;
        };
        let present = self.present.lock();
        let present = present.unwrap_or_else(PoisonError::into_inner);
        let is_meant = |presence: &&Arc<Presence>| of.is_none_or(|peer| presence.peer == peer);
        let idle = present.values().filter(is_meant).filter_map(|presence| {
            let since = presence.idle_since.load(Ordering::Acquire);
            let is_sending = presence.is_sending.load(Ordering::Relaxed);
            (since <= latest && !is_sending).then_some((since, presence))
        });
        if let Some((since, presence)) = idle.min_by_key(|(since, _)| *since) {
            presence.close_if_idle_since(since);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let present = self.roster.present.lock();
        let mut present = present.unwrap_or_else(PoisonError::into_inner);
        present.remove(&self.id);
    }
}

impl Presence {
    /// A request has begun, until what is returned is dropped; none where the connection is being closed.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Busy> {
        let taken = self
            .idle_since
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |since| {
                (since != CLOSED).then_some(BUSY)
            });
        taken.is_ok().then(|| Busy(self.clone()))
    }

    /// Returns when the connection has to make room.
    pub(super) async fn closed(&self) {
        self.close.cancelled().await;
    }

    /// Not where a request has come in between: what has begun is finished.
    fn close_if_idle_since(&self, since: u64) {
        let closed =
            self.idle_since
                .compare_exchange(since, CLOSED, Ordering::AcqRel, Ordering::Acquire);
        if closed.is_ok() {
            self.close.cancel();
        }
    }
}

/// A request that has begun and is not answered yet.
pub(super) struct Busy(Arc<Presence>);

impl Drop for Busy {
    fn drop(&mut self) {
        let now = millis(self.0.start);
        self.0.idle_since.store(now, Ordering::Release);
    }
}

fn millis(start: Instant) -> u64 {
    // Hundreds of millions of years fit.
    u64::try_from(start.elapsed().as_millis()).unwrap_or(CLOSED - 1)
}
