//! The listening sockets: connection limits, timeouts, and shutdown.
//!
//! A connection beyond the limit waits in the system's queue, so that memory does not grow, until another one
//! ends or has been idle for long enough. One address has a share of the connections; further ones wait for
//! others of the same address. A client that sends its head slowly is cut off, and so is one that does not read
//! its answer.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::gateway::Gateway;
use crate::kept::Kept;
use crate::metrics::{self, Metrics};
use crate::operator::{AtSocket, OperatorSocket};
use crate::routes;
use crate::settings::Settings;

mod lanes;
mod peers;
mod roster;
mod stall;

use lanes::Lanes;
use peers::{PeerSlot, Peers};
use roster::{Entry, Roster};
use stall::Stall;

/// Listening sockets, with the gateway that answers on them.
pub struct Server {
    listener: Option<TcpListener>,
    operators: Option<OperatorSocket>,
    lanes: Option<Lanes>,
    gateway: Gateway,
}

/// End of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Every request that had begun was answered.
    Drained,
    /// The drain timeout was over first.
    CutOff,
}

/// Pause of accepting after the system had no room for one more connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Time limit for writing the counts of refused calls when the server stops.
const LAST_RECORDS: Duration = Duration::from_secs(5);

/// Poll interval while waiting for a connection slot.
const ROOM_LOOK: Duration = Duration::from_millis(20);

/// Maximum number of the operator's connections.
const OPERATORS_MAX: usize = 32;

/// Minimum buffer size of a connection for reading a head.
const HEAD_BYTES_MIN: usize = 8192;

impl Server {
    /// Binds the socket.
    pub async fn bind(gateway: Gateway, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let lanes = Lanes::start(gateway.settings().threads)?;
        Ok(Self {
            listener: Some(listener),
            operators: None,
            lanes: Some(lanes),
            gateway,
        })
    }

    /// Creates a server without a socket for callers; only the operator's socket can be added.
    pub fn without_callers(gateway: Gateway) -> Self {
        Self {
            listener: None,
            operators: None,
            lanes: None,
            gateway,
        }
    }

    /// Listens on the operator's socket as well.
    pub fn with_operators(mut self, socket: Option<OperatorSocket>) -> Self {
        self.operators = socket;
        self
    }

    /// Returns the bound address, with the port even if the system has chosen it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        match &self.listener {
            Some(listener) => listener.local_addr(),
            None => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// Serves until `stop` is ready and the notice for load balancers is over. Then finishes the requests that have begun, as long as
    /// the settings allow.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Stopped {
        let Self {
            listener,
            operators,
            lanes,
            gateway,
        } = self;
        let settings = gateway.settings();
        let connections = Connections {
            router: routes::router(&gateway),
            builder: builder(settings.head_bytes_max, settings.read_timeout),
            metrics: gateway.metrics().clone(),
            graceful: GracefulShutdown::new(),
            roster: Arc::new(Roster::new()),
            patience: settings.read_timeout,
        };
        let door =
            listener.map(|listener| Door::new(listener, settings, connections.roster.clone()));
        let approvals = gateway.executor().approvals().clone();
        let tidying = tokio::spawn(async move { approvals.keep_tidy().await });
        let executor = gateway.executor().clone();
        let counting = tokio::spawn(async move { executor.keep_counting_refusals().await });
        let denying = tokio::spawn(gateway.clone().count_denials());
        let executor = gateway.executor().clone();
        let asking = tokio::spawn(async move { executor.keep_asking_about_doubts().await });
        let told = async {
            stop.await;
            gateway.health().leave();
            tokio::time::sleep(settings.drain_notice).await;
        };
        // Each closes its socket when it ends.
        tokio::select! {
            () = told => {}
            () = connections.take_callers(door, lanes.as_ref()) => {}
            () = connections.take_operators(operators) => {}
        }
        tidying.abort();
        counting.abort();
        denying.abort();
        asking.abort();
        gateway.health().drain();
        let finished = async {
            connections.graceful.shutdown().await;
            // A client that hung up may have left a running call.
            gateway.drained().await
        };
        let finished = tokio::time::timeout(settings.drain, finished).await;
        // A store that does not answer must not keep the process from ending.
        let written = async {
            gateway.executor().write_counted_refusals().await;
            gateway.settle_denials().await;
        };
        let _ = tokio::time::timeout(LAST_RECORDS, written).await;
        if let Some(lanes) = lanes {
            lanes.end().await;
        }
        match finished {
            Ok(true) => Stopped::Drained,
            Ok(false) | Err(_) => Stopped::CutOff,
        }
    }
}

/// An accepted connection, with its slots in the total and in the share of its address.
struct Accepted {
    /// Bound to no runtime, because the thread that serves it has its own.
    stream: std::net::TcpStream,
    slot: OwnedSemaphorePermit,
    peer: PeerSlot,
}

/// Accepts one connection after the other, as long as there is room.
struct Door {
    listener: TcpListener,
    slots: Arc<Semaphore>,
    roster: Arc<Roster>,
    peers: Arc<Peers>,
    /// Connections that have waited for others of their address.
    admitted: mpsc::UnboundedSender<(TcpStream, PeerSlot)>,
    waited: mpsc::UnboundedReceiver<(TcpStream, PeerSlot)>,
}

impl Door {
    fn new(listener: TcpListener, settings: &Settings, roster: Arc<Roster>) -> Self {
        // The queue never has more entries than connections may wait.
        let (admitted, waited) = mpsc::unbounded_channel();
        Self {
            listener,
            slots: Arc::new(Semaphore::new(settings.connections_max)),
            roster,
            peers: Arc::new(Peers::new(settings.connections_of_peer())),
            admitted,
            waited,
        }
    }

    /// Accepts one connection with its slots. While there is no slot at all, nothing is accepted.
    async fn accept(&mut self) -> io::Result<Accepted> {
        let (stream, peer) = loop {
            let (stream, from) = tokio::select! {
                Some(waited) = self.waited.recv() => break waited,
                accepted = self.listener.accept() => accepted?,
            };
            // Answers are small and complete: waiting for more to send only delays them.
            stream.set_nodelay(true)?;
            if let Some(peer) = self.peers.enter(from.ip()) {
                break (stream, peer);
            }
            self.park(stream, from.ip());
        };
        let slot = room(&self.slots, &self.roster).await?;
        let stream = stream.into_std()?;
        Ok(Accepted { stream, slot, peer })
    }

    /// Lets a connection wait for others of its address, without delaying those of other addresses.
    fn park(&self, stream: TcpStream, from: IpAddr) {
        let Some(parked) = self.peers.park(from) else {
            return self.peers.refuse(stream);
        };
        let (roster, admitted) = (self.roster.clone(), self.admitted.clone());
        tokio::spawn(async move {
            let make_room = |peer| roster.make_room(Some(peer));
            if let Ok(peer) = parked.wait(ROOM_LOOK, make_room).await {
                // If the server no longer accepts, the connection ends here.
                let _ = admitted.send((stream, peer));
            }
        });
    }
}

/// Waits for a slot; the connection that has been idle for longest is closed to make room.
async fn room(slots: &Arc<Semaphore>, roster: &Roster) -> io::Result<OwnedSemaphorePermit> {
    loop {
        if let Ok(slot) = slots.clone().try_acquire_owned() {
            return Ok(slot);
        }
        roster.make_room(None);
        let slot = slots.clone().acquire_owned();
        if let Ok(slot) = tokio::time::timeout(ROOM_LOOK, slot).await {
            return slot.map_err(|_| io::Error::other("the server has stopped"));
        }
    }
}

/// Counts and logs a connection that was lost before its first byte.
fn lost(error: &io::Error, metrics: &Metrics) {
    metrics.connection_failed();
    tracing::warn!(kind = ?error.kind(), "a connection could not be accepted");
}

struct Connections {
    router: Router,
    builder: http1::Builder,
    metrics: Arc<Metrics>,
    graceful: GracefulShutdown,
    roster: Arc<Roster>,
    patience: Duration,
}

impl Connections {
    /// Accepts connections, as many as there are slots for; never returns.
    async fn take_callers(&self, door: Option<Door>, lanes: Option<&Lanes>) {
        let (Some(mut door), Some(lanes)) = (door, lanes) else {
            return std::future::pending().await;
        };
        loop {
            match door.accept().await {
                Ok(Accepted { stream, slot, peer }) => {
                    let connection = self.prepared(self.roster.enter(peer.peer), None);
                    lanes.spawn(async move {
                        connection.take(stream).await;
                        drop((slot, peer));
                    });
                }
                Err(error) => self.pause(&error).await,
            }
        }
    }

    /// Same as `take_callers` for the operator's socket, with slots of its own: a client that takes all the
    /// others does not lock the operator out.
    async fn take_operators(&self, socket: Option<OperatorSocket>) {
        let Some(socket) = socket else {
            return std::future::pending().await;
        };
        let slots = Arc::new(Semaphore::new(OPERATORS_MAX));
        let roster = Arc::new(Roster::new());
        loop {
            let accepted = async { Ok((socket.accept().await?, room(&slots, &roster).await?)) };
            match accepted.await {
                Ok((stream, slot)) => {
                    let entry = roster.enter(Ipv4Addr::LOCALHOST.into());
                    let connection = self.prepared(entry, Some(AtSocket));
                    tokio::spawn(async move {
                        connection.serve(stream).await;
                        drop(slot);
                    });
                }
                Err(error) => self.pause(&error).await,
            }
        }
    }

    /// Pauses accepting: the open connections need the time more than the next one.
    async fn pause(&self, error: &io::Error) {
        lost(error, &self.metrics);
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }

    /// A connection that can be served by any thread.
    fn prepared(&self, entry: Entry, by_socket: Option<AtSocket>) -> Connection {
        Connection {
            router: self.router.clone(),
            builder: self.builder.clone(),
            watcher: self.graceful.watcher(),
            counted: self.metrics.connection(),
            patience: self.patience,
            entry,
            by_socket,
        }
    }
}

/// A connection that was accepted.
struct Connection {
    router: Router,
    builder: http1::Builder,
    watcher: Watcher,
    counted: metrics::Connection,
    patience: Duration,
    entry: Entry,
    by_socket: Option<AtSocket>,
}

impl Connection {
    /// Serves a socket on the runtime of this thread.
    async fn take(self, stream: std::net::TcpStream) {
        match TcpStream::from_std(stream) {
            Ok(stream) => self.serve(stream).await,
            Err(error) => lost(&error, self.counted.metrics()),
        }
    }

    /// Serves the connection to its end.
    async fn serve<S>(self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self {
            router,
            builder,
            watcher,
            counted,
            patience,
            entry,
            by_socket,
        } = self;
        let presence = entry.presence.clone();
        let routes = TowerToHyperService::new(router);
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            if let Some(at_socket) = by_socket {
                request.extensions_mut().insert(at_socket);
            }
            let busy = presence.begin();
            let routes = routes.clone();
            async move {
                let Some(busy) = busy else {
                    // The connection is dropped, and with it this request, which was not processed.
                    return std::future::pending().await;
                };
                let response = routes.call(request).await?;
                Ok::<_, Infallible>(response.map(|body| Kept::new(body, busy)))
            }
        });
        let io = TokioIo::new(Stall::new(stream, patience).told_to(entry.presence.clone()));
        let connection = builder.serve_connection(io, service);
        let ended = tokio::select! {
            ended = watcher.watch(connection) => ended,
            () = entry.presence.closed() => Ok(()),
        };
        // A client that sends no HTTP, hangs up or is too slow is not worth a log line.
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        }
        drop((counted, entry));
    }
}

pub(crate) fn builder(head_bytes_max: usize, read_timeout: Duration) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // Also limits the idle time between two requests.
        .header_read_timeout(read_timeout)
        // A head that is too long gets an answer of the gateway up to this size, and hyper's own beyond it.
        .max_buf_size(head_bytes_max.saturating_mul(2).max(HEAD_BYTES_MIN))
        // A client that closes the connection has gone: MCP requires the call to be cancelled then.
        .half_close(false);
    builder
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    /// A socket that no thread can take is counted, like one that could not be accepted. A file stands for it: no runtime can wait for
    /// one.
    #[tokio::test(start_paused = true)]
    async fn a_connection_that_cannot_be_served_is_counted() {
        let metrics = Arc::new(Metrics::new());
        let connections = Connections {
            router: Router::new(),
            builder: builder(HEAD_BYTES_MIN, ACCEPT_PAUSE),
            metrics: metrics.clone(),
            graceful: GracefulShutdown::new(),
            roster: Arc::new(Roster::new()),
            patience: ACCEPT_PAUSE,
        };
        let file = tempfile::tempfile().unwrap();
        let stream = std::net::TcpStream::from(OwnedFd::from(file));
        stream.set_nonblocking(true).unwrap();
        let entry = connections.roster.enter(Ipv4Addr::LOCALHOST.into());
        connections.prepared(entry, None).take(stream).await;
        assert_eq!(metrics.connections_failed(), 1);
        connections.pause(&io::ErrorKind::Other.into()).await;
        assert_eq!(metrics.connections_failed(), 2);
    }
}
