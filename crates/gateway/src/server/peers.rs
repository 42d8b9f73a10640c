//! The share of one address in the connections. Further connections of the address wait separately, so that
//! they do not delay other addresses.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of connections that wait for others of their address.
const PARKED_MAX: usize = 1_024;

/// Maximum number of refused connections that are read for a moment longer, and the time for it: a client that
/// is cut off while it sends does not see the reason.
const LINGERING_MAX: usize = 64;
const LINGER: Duration = Duration::from_secs(1);

/// Response to a connection for which there is no room: no request of it was read.
const REFUSAL: &str = concat!(
    "HTTP/1.1 429 Too Many Requests\r\n",
    "content-type: application/json\r\n",
    "retry-after: 1\r\n",
    "connection: close\r\n",
    "content-length: 248\r\n\r\n",
    r#"{"request_id":"req_none","ok":false,"data":null,"warnings":[],"error":{"code":"RATE_LIMITED","#,
    r#""message":"this address has too many connections","details":{"retryable":true,"#,
    r#""retry_after_ms":1000,"hint":"wait for retry_after_ms, then connect again"}}}"#,
);

/// Connections by address.
pub(super) struct Peers {
    each_max: usize,
    shares: Mutex<HashMap<IpAddr, Arc<Semaphore>>>,
    parked: Arc<Semaphore>,
    lingering: Arc<Semaphore>,
}

/// Slot of one connection in the share of its address.
pub(super) struct PeerSlot {
    peers: Arc<Peers>,
    pub(super) peer: IpAddr,
    permit: Option<OwnedSemaphorePermit>,
}

/// A connection that may wait for its share.
pub(super) struct Parked {
    share: Arc<Semaphore>,
    peer: IpAddr,
    peers: Arc<Peers>,
    _place: OwnedSemaphorePermit,
}

impl Peers {
    pub(super) fn new(each_max: usize) -> Self {
        Self {
            each_max,
            shares: Mutex::default(),
            parked: Arc::new(Semaphore::new(PARKED_MAX)),
            lingering: Arc::new(Semaphore::new(LINGERING_MAX)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Arc<Semaphore>>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot for one more connection from this address.
    pub(super) fn enter(self: &Arc<Self>, from: IpAddr) -> Option<PeerSlot> {
        let peer = network_of(from);
        let mut shares = self.lock();
        let share = shares.entry(peer);
        let share = share.or_insert_with(|| Arc::new(Semaphore::new(self.each_max)));
        let permit = share.clone().try_acquire_owned().ok()?;
        Some(self.slot(peer, permit))
    }

    /// Takes a place to wait for a slot; `None` if too many connections wait.
    pub(super) fn park(self: &Arc<Self>, from: IpAddr) -> Option<Parked> {
        let place = self.parked.clone().try_acquire_owned().ok()?;
        let peer = network_of(from);
        let mut shares = self.lock();
        let share = shares.entry(peer);
        let share = share.or_insert_with(|| Arc::new(Semaphore::new(self.each_max)));
        Some(Parked {
            share: share.clone(),
            peer,
            peers: self.clone(),
            _place: place,
        })
    }

    /// Sends a connection the refusal.
    pub(super) fn refuse(&self, mut stream: TcpStream) {
        // It fits into the system's buffer of a new connection; if not, it is not worth waiting for.
        let _ = stream.try_write(REFUSAL.as_bytes());
        let Ok(place) = self.lingering.clone().try_acquire_owned() else {
            return;
        };
        tokio::spawn(async move {
            let to_the_end = async {
                let mut unread = [0; 4096];
                while stream.read(&mut unread).await.is_ok_and(|bytes| bytes > 0) {}
            };
            let _ = tokio::time::timeout(LINGER, to_the_end).await;
            drop(place);
        });
    }

    fn slot(self: &Arc<Self>, peer: IpAddr, permit: OwnedSemaphorePermit) -> PeerSlot {
        PeerSlot {
            peers: self.clone(),
            peer,
            permit: Some(permit),
        }
    }

    /// Removes an address without connections.
    fn tidy(&self, peer: IpAddr) {
        let mut shares = self.lock();
        let is_unused = |share: &Arc<Semaphore>| {
            Arc::strong_count(share) == 1 && share.available_permits() == self.each_max
        };
        if shares.get(&peer).is_some_and(is_unused) {
            shares.remove(&peer);
        }
    }
}

impl Parked {
    /// Waits for a slot; calls `look` now and then, which may close an idle connection.
    pub(super) async fn wait(self, every: Duration, look: impl Fn(IpAddr)) -> io::Result<PeerSlot> {
        loop {
            look(self.peer);
            let room = self.share.clone().acquire_owned();
            if let Ok(permit) = tokio::time::timeout(every, room).await {
                let permit = permit.map_err(|_| io::Error::other("the server has stopped"))?;
                return Ok(self.peers.slot(self.peer, permit));
            }
        }
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        // Replaced, so that this value no longer counts as a holder of the share.
        self.share = Arc::new(Semaphore::new(0));
        self.peers.tidy(self.peer);
    }
}

impl Drop for PeerSlot {
    fn drop(&mut self) {
        drop(self.permit.take());
        self.peers.tidy(self.peer);
    }
}

/// Maps an address to its network: an IPv6 network has 2^64 addresses.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let first = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(first))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// U15: an address has its share, an IPv6 network as well, and unused ones are removed.
    #[test]
    fn an_address_has_its_share() {
        let peers = Arc::new(Peers::new(2));
        let first = peers.enter(at("10.0.0.1")).unwrap();
        let _second = peers.enter(at("::ffff:10.0.0.1")).unwrap();
        assert!(peers.enter(at("10.0.0.1")).is_none());
        let others = [peers.enter(at("10.0.0.2")), peers.enter(at("2001:db8::1"))];
        assert!(others.iter().all(Option::is_some));
        let _same = peers.enter(at("2001:db8::2")).unwrap();
        assert!(peers.enter(at("2001:db8:0:0:ffff::")).is_none());
        assert!(peers.enter(at("2001:db8:0:1::")).is_some());
        drop(first);
        assert!(peers.enter(at("10.0.0.1")).is_some());
        drop(others);
        assert_eq!(peers.lock().len(), 2);
    }

    /// U15: a waiting connection gets the next slot of its address.
    #[tokio::test]
    async fn a_parked_connection_gets_the_next_room() {
        let peers = Arc::new(Peers::new(1));
        let first = peers.enter(at("10.0.0.1")).unwrap();
        let parked = peers.park(at("10.0.0.1")).unwrap();
        let mut waiting = Box::pin(parked.wait(Duration::from_hours(1), |_| {}));
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        drop(first);
        let second = countersign_testkit::patience::within(waiting).await;
        drop(second.unwrap());
        assert!(peers.lock().is_empty());
    }

    /// The refusal is a complete response.
    #[test]
    fn the_refusal_is_as_long_as_it_says() {
        let (head, body) = REFUSAL.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())));
        serde_json::from_str::<countersign::contract::ReplyEnvelope>(body).unwrap();
    }
}
