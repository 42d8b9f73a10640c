//! The socket: how many may be connected, how long they may take, and how it ends.
//!
//! A connection beyond the bound waits in the system's queue, so memory stays as it is, until another ends
//! or has waited long enough without a request. One address has a share of them; what is beyond waits for its own. A client that sends its head slowly is cut off, and so is one
//! that does not take its answer.

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
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::gateway::Gateway;
use crate::kept::Kept;
use crate::metrics::Metrics;
use crate::operator::{AtSocket, OperatorSocket};
use crate::routes;
use crate::settings::Settings;

mod peers;
mod roster;
mod stall;

use peers::{PeerSlot, Peers};
use roster::{Entry, Roster};
use stall::Stall;

/// Sockets that listen, and what answers on them.
pub struct Server {
    listener: Option<TcpListener>,
    operators: Option<OperatorSocket>,
    gateway: Gateway,
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Every request that had begun was answered.
    Drained,
    /// The time for that was over first.
    CutOff,
}

/// How long nothing is accepted after the system had no room for one more connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long the counts of refused calls may take to be written when the server stops.
const LAST_RECORDS: Duration = Duration::from_secs(5);

/// How often it is looked for a connection that can make room.
const ROOM_LOOK: Duration = Duration::from_millis(20);

/// How many connections of the operator there may be.
const OPERATORS_MAX: usize = 32;

/// The least that a connection needs to read a head.
const HEAD_BYTES_MIN: usize = 8192;

impl Server {
    /// Listens.
    pub async fn bind(gateway: Gateway, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self {
            listener: Some(listener),
            operators: None,
            gateway,
        })
    }

    /// Listens for nobody but, where it is given their socket, the operator.
    pub fn without_callers(gateway: Gateway) -> Self {
        Self {
            listener: None,
            operators: None,
            gateway,
        }
    }

    /// Listens at the operator's socket as well.
    pub fn with_operators(mut self, socket: Option<OperatorSocket>) -> Self {
        self.operators = socket;
        self
    }

    /// Where it listens; the port is known also where the system has chosen it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        match &self.listener {
            Some(listener) => listener.local_addr(),
            None => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// Answers until `stop` is done, then finishes what has begun, as long as the settings allow.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Stopped {
        let Self {
            listener,
            operators,
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
        // Each closes what it listens on when it ends.
        tokio::select! {
            () = stop => {}
            () = connections.take_callers(door) => {}
            () = connections.take_operators(operators) => {}
        }
        tidying.abort();
        counting.abort();
        denying.abort();
        gateway.health().drain();
        let finished = async {
            connections.graceful.shutdown().await;
            // Whoever hung up has left a call behind that still runs.
            gateway.drained().await
        };
        let finished = tokio::time::timeout(settings.drain, finished).await;
        // A store that does not answer must not keep the process from its end.
        let written = async {
            gateway.executor().write_counted_refusals().await;
            gateway.settle_denials().await;
        };
        let _ = tokio::time::timeout(LAST_RECORDS, written).await;
        match finished {
            Ok(true) => Stopped::Drained,
            Ok(false) | Err(_) => Stopped::CutOff,
        }
    }
}

/// A connection that was accepted, with its room among all and among those of its address.
struct Accepted {
    stream: TcpStream,
    slot: OwnedSemaphorePermit,
    peer: PeerSlot,
}

/// What accepts: one connection after the other, as long as there is room.
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
        // No more are in it than may wait.
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

    /// One connection and its room; while there is none at all, nothing more is accepted.
    async fn accept(&mut self) -> io::Result<Accepted> {
        let (stream, peer) = loop {
            let (stream, from) = tokio::select! {
                Some(waited) = self.waited.recv() => break waited,
                accepted = self.listener.accept() => accepted?,
            };
            // Answers are small and whole: waiting for more to send only delays them.
            stream.set_nodelay(true)?;
            if let Some(peer) = self.peers.enter(from.ip()) {
                break (stream, peer);
            }
            self.park(stream, from.ip());
        };
        let slot = room(&self.slots, &self.roster).await?;
        Ok(Accepted { stream, slot, peer })
    }

    /// Lets a connection wait for others of its address, without keeping those of other addresses waiting.
    fn park(&self, stream: TcpStream, from: IpAddr) {
        let Some(parked) = self.peers.park(from) else {
            return self.peers.refuse(stream);
        };
        let (roster, admitted) = (self.roster.clone(), self.admitted.clone());
        tokio::spawn(async move {
            let make_room = |peer| roster.make_room(Some(peer));
            if let Ok(peer) = parked.wait(ROOM_LOOK, make_room).await {
                // Where nobody accepts any more, the connection ends here.
                let _ = admitted.send((stream, peer));
            }
        });
    }
}

/// Room for one more; whoever waits longest without a request makes it.
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

/// The other connections need the time more than the next one.
async fn pause(error: &io::Error) {
    tracing::warn!(kind = ?error.kind(), "a connection could not be accepted");
    tokio::time::sleep(ACCEPT_PAUSE).await;
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
    /// Takes connections, as many as there is room for; never ends.
    async fn take_callers(&self, door: Option<Door>) {
        let Some(mut door) = door else {
            return std::future::pending().await;
        };
        loop {
            match door.accept().await {
                Ok(Accepted { stream, slot, peer }) => {
                    let entry = self.roster.enter(peer.peer);
                    self.serve(stream, (slot, peer), entry, None);
                }
                Err(error) => pause(&error).await,
            }
        }
    }

    /// The same at the operator's socket, with room of its own: whoever takes all of the other does not keep the
    /// operator out.
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
                    self.serve(stream, slot, entry, Some(AtSocket));
                }
                Err(error) => pause(&error).await,
            }
        }
    }

    /// Answers on a connection; its room is given back when it ends.
    fn serve<S>(
        &self,
        stream: S,
        room: impl Send + 'static,
        entry: Entry,
        by_socket: Option<AtSocket>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let presence = entry.presence.clone();
        let routes = TowerToHyperService::new(self.router.clone());
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            if let Some(at_socket) = by_socket {
                request.extensions_mut().insert(at_socket);
            }
            let busy = presence.begin();
            let routes = routes.clone();
            async move {
                let Some(busy) = busy else {
                    // The connection is dropped, and with it this request, which nobody has looked at.
                    return std::future::pending().await;
                };
                let response = routes.call(request).await?;
                Ok::<_, Infallible>(response.map(|body| Kept::new(body, busy)))
            }
        });
        let io = TokioIo::new(Stall::new(stream, self.patience).told_to(entry.presence.clone()));
        let connection = self.builder.serve_connection(io, service);
        let watched = self.graceful.watch(connection);
        let counted = self.metrics.connection();
        tokio::spawn(async move {
            let ended = tokio::select! {
                ended = watched => ended,
                () = entry.presence.closed() => Ok(()),
            };
            // A client that sends no HTTP, hangs up or is too slow is no event of ours.
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
            drop((counted, room, entry));
        });
    }
}

fn builder(head_bytes_max: usize, read_timeout: Duration) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // Also for how long a connection may wait between two requests.
        .header_read_timeout(read_timeout)
        // A head that is too long gets an answer of ours up to here, and hyper's own beyond.
        .max_buf_size(head_bytes_max.saturating_mul(2).max(HEAD_BYTES_MIN))
        // Whoever closes the connection has gone: MCP wants the call to be cancelled then.
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
