//! The request that a message came with, as far as a call has to know it.

use std::sync::{Mutex, PoisonError};

use ::http::request::Parts;
use countersign::cancel::Cancellation;
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, Extensions, Implementation, ProtocolVersion, RequestMetaObject,
};
use rmcp::service::{Peer, RequestContext};
use tokio_util::sync::CancellationToken;

/// A request, its client, and the way to the client while the request is answered.
pub(super) struct Context {
    pub(super) meta: RequestMetaObject,
    pub(super) extensions: Extensions,
    pub(super) client: Option<Implementation>,
    pub(super) capabilities: Option<ClientCapabilities>,
    version: Option<ProtocolVersion>,
    line: Option<Line>,
    /// The call to stop when the client of a request that stands alone goes away.
    running: Mutex<Option<Cancellation>>,
}

/// The line to a client that hears more than its answer.
struct Line {
    peer: Peer<RoleServer>,
    gone: CancellationToken,
}

impl From<RequestContext<RoleServer>> for Context {
    fn from(context: RequestContext<RoleServer>) -> Self {
        Self {
            client: context.client_info(),
            capabilities: context.client_capabilities(),
            version: context.protocol_version(),
            line: Some(Line {
                peer: context.peer,
                gone: context.ct,
            }),
            meta: context.meta,
            extensions: context.extensions,
            running: Mutex::default(),
        }
    }
}

impl Context {
    /// A request of the newest era that stands alone: its client hears nothing but the answer.
    pub(super) fn alone(parts: Parts, meta: RequestMetaObject) -> Self {
        let mut extensions = Extensions::new();
        extensions.insert(parts);
        Self {
            client: meta.client_info(),
            capabilities: meta.client_capabilities(),
            version: meta.protocol_version(),
            line: None,
            meta,
            extensions,
            running: Mutex::default(),
        }
    }

    /// True if the request is one of the newest era.
    pub(super) fn is_newer(&self) -> bool {
        let newest = ProtocolVersion::V_2026_07_28;
        let version = self.version.as_ref();
        version.is_some_and(|version| version.as_str() >= newest.as_str())
    }

    /// The other end of the line, if there is one.
    pub(super) fn peer(&self) -> Option<&Peer<RoleServer>> {
        self.line.as_ref().map(|line| &line.peer)
    }

    /// The abilities that a client has told when it connected, in the older eras.
    pub(super) fn of_connection(&self) -> Option<ClientCapabilities> {
        Some(self.peer()?.peer_info()?.capabilities.clone())
    }

    /// True if the client has connected, as in the older eras.
    pub(super) fn is_connected(&self) -> bool {
        self.peer().is_some_and(|peer| peer.peer_info().is_some())
    }

    /// Returns when the client has gone away or has cancelled the request.
    pub(super) async fn gone(&self) {
        match &self.line {
            Some(line) => line.gone.cancelled().await,
            // The answer is dropped then; see `OnGone`.
            None => std::future::pending().await,
        }
    }

    /// Names the call that runs for this request.
    pub(super) fn runs(&self, cancellation: &Cancellation) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running = Some(cancellation.clone());
    }
}

/// Stops the call of a request that stands alone, unless it was answered.
pub(super) struct OnGone<'c> {
    pub(super) context: &'c Context,
    pub(super) is_answered: bool,
}

impl Drop for OnGone<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let running = &self.context.running;
        let running = running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = &*running {
            running.cancel();
        }
    }
}
