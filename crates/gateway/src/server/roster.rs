//! The roster of connections: busy and idle ones.
//!
//! When all connections are taken, the one that has been idle for longest is closed to make room. Otherwise a
//! client that opens enough of them and sends nothing would lock everyone out, even the operator.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Minimum idle time before a connection may be closed: a request may be on its way.
const IDLE_MIN: Duration = Duration::from_secs(1);

/// Marker in place of the idle time: the connection has a request.
const BUSY: u64 = u64::MAX;

/// Marker in place of the idle time: the connection is being closed, and takes no more requests.
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
    /// Time since when it is idle, in milliseconds from the start; or [`BUSY`] or [`CLOSED`].
    idle_since: AtomicU64,
    /// True if the client has not yet read all of its answer.
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

    /// Closes the connection that has been idle for longest, if it has been for long enough; if a peer is
    /// given, only one of that peer.
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
    /// Marks a request as begun until the returned value is dropped; `None` if the connection is being closed.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Busy> {
        let taken = self
            .idle_since
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |since| {
                (since != CLOSED).then_some(BUSY)
            });
        taken.is_ok().then(|| Busy(self.clone()))
    }

    /// Waits until the connection has to make room.
    pub(super) async fn closed(&self) {
        self.close.cancelled().await;
    }

    /// Closes the connection, unless a request has come meanwhile: a request that has begun is finished.
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
    // Enough for hundreds of millions of years.
    u64::try_from(start.elapsed().as_millis()).unwrap_or(CLOSED - 1)
}
