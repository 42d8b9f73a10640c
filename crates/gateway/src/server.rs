//! The socket: how many may be connected, how long they may take, and how it ends.
//!
//! A connection beyond the bound waits in the system's queue, so memory stays as it is, until another ends
//! or has waited long enough without a request. A client that sends its head slowly is cut off, and so is one
//! that does not take its answer.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::gateway::Gateway;
use crate::metrics::Metrics;
use crate::routes;

mod roster;
mod stall;

use roster::{Answering, Roster};
use stall::Stall;

/// A socket that listens, and what answers on it.
pub struct Server {
    listener: TcpListener,
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

/// How often it is looked for a connection that can make room.
const ROOM_LOOK: Duration = Duration::from_millis(20);

/// The least that a connection needs to read a head.
const HEAD_BYTES_MIN: usize = 8192;

impl Server {
    /// Listens.
    pub async fn bind(gateway: Gateway, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { listener, gateway })
    }

    /// Where it listens; the port is known also where the system has chosen it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop` is done, then finishes what has begun, as long as the settings allow.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Stopped {
        let Self { listener, gateway } = self;
        let settings = gateway.settings();
        let connections = Connections {
            router: routes::router(&gateway),
            builder: builder(settings.head_bytes_max, settings.read_timeout),
            metrics: gateway.metrics().clone(),
            graceful: GracefulShutdown::new(),
            roster: Arc::new(Roster::new()),
            patience: settings.read_timeout,
        };
        let slots = Arc::new(Semaphore::new(settings.connections_max));
        let approvals = gateway.executor().approvals().clone();
        let tidying = tokio::spawn(async move { approvals.keep_tidy().await });
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = stop.as_mut() => break,
                accepted = accept(&listener, &slots, &connections.roster) => accepted,
            };
            match accepted {
                Ok((stream, slot)) => connections.serve(stream, slot),
                Err(error) => {
                    // The other connections need the time more than the next one.
                    tracing::warn!(kind = ?error.kind(), "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        tidying.abort();
        gateway.health().drain();
        let finished = async {
            connections.graceful.shutdown().await;
            // Whoever hung up has left a call behind that still runs.
            gateway.drained().await
        };
        match tokio::time::timeout(settings.drain, finished).await {
            Ok(true) => Stopped::Drained,
            Ok(false) | Err(_) => Stopped::CutOff,
        }
    }
}

/// One connection and its room; while there is none, nothing more is accepted.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
    roster: &Roster,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let (stream, _) = listener.accept().await?;
    // Answers are small and whole: waiting for more to send only delays them.
    stream.set_nodelay(true)?;
    let slot = loop {
        if let Ok(slot) = slots.clone().try_acquire_owned() {
            break slot;
        }
        roster.make_room();
        if let Ok(slot) = tokio::time::timeout(ROOM_LOOK, slots.clone().acquire_owned()).await {
            break slot.map_err(|_| io::Error::other("the server has stopped"))?;
        }
    };
    Ok((stream, slot))
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
    fn serve(&self, stream: TcpStream, slot: OwnedSemaphorePermit) {
        let entry = self.roster.enter();
        let presence = entry.presence.clone();
        let routes = TowerToHyperService::new(self.router.clone());
        let service = service_fn(move |request| {
            let busy = presence.begin();
            let routes = routes.clone();
            async move {
                let Some(busy) = busy else {
                    // The connection is dropped, and with it this request, which nobody has looked at.
                    return std::future::pending().await;
                };
                let response = routes.call(request).await?;
                Ok::<_, Infallible>(response.map(|body| Answering { body, _busy: busy }))
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
            drop((counted, slot, entry));
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
