//! How many streams stay open, and until when.
//!
//! A stream holds its connection for as long as its client likes. Without a bound, one client could take
//! all connections, and no operator could come in to stop it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::http::HeaderMap;
use axum::body::Body;
use countersign::contract::Actor;
use futures_util::StreamExt as _;

use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::settings::Settings;

/// Poll interval for the validity of a listening client's credential.
const CREDENTIAL_LOOK: Duration = Duration::from_secs(3);

/// Maximum time for the last message of a stream after the server was told to stop.
const LAST_MESSAGE: Duration = Duration::from_secs(1);

/// The streams that are open.
pub(super) struct Streams {
    holders: Mutex<Vec<Holder>>,
    all_max: usize,
    per_caller_max: usize,
}

/// Holder of a stream.
#[derive(Clone, PartialEq)]
struct Holder {
    actor: Actor,
    user_id: String,
}

/// The room for one stream, as long as it is kept.
pub(super) struct Slot {
    streams: Arc<Streams>,
    holder: Holder,
}

impl Streams {
    /// At least three quarters of the connections are left for everything else. A caller with a session also
    /// gets ordinary answers as streams, so one caller may hold as many as there are sessions.
    pub(super) fn new(settings: &Settings, sessions_max: usize) -> Self {
        let quarter = (settings.connections_max / 4).max(1);
        Self {
            holders: Mutex::default(),
            all_max: settings.mcp_streams_max.min(quarter),
            per_caller_max: settings.mcp_streams_per_caller_max.max(sessions_max),
        }
    }

    /// Room for one more stream of this caller; `None` if there is none.
    pub(super) fn enter(self: &Arc<Self>, caller: &Caller) -> Option<Slot> {
        let holder = Holder {
            actor: caller.principal.actor.clone(),
            user_id: caller.principal.user_id.clone(),
        };
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        let of_caller = holders.iter().filter(|open| **open == holder).count();
        if of_caller >= self.per_caller_max || holders.len() >= self.all_max {
            return None;
        }
        holders.push(holder.clone());
        Some(Slot {
            streams: self.clone(),
            holder,
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let holders = self.streams.holders.lock();
        let mut holders = holders.unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = holders.iter().position(|open| *open == self.holder) {
            holders.swap_remove(at);
        }
    }
}

/// A stream that ends with its credential and with the server, and keeps its room until then.
pub(super) fn held(body: Body, slot: Slot, gateway: Gateway, headers: HeaderMap) -> Body {
    let over = Box::pin(async move { over(&gateway, &headers).await });
    let chunks = body.into_data_stream().take_until(over);
    Body::from_stream(chunks.map(move |chunk| {
        let _kept = &slot;
        chunk
    }))
}

/// Returns when the credential of this head may not listen any more.
async fn over(gateway: &Gateway, headers: &HeaderMap) {
    let revoked = async {
        loop {
            tokio::time::sleep(CREDENTIAL_LOOK).await;
            if gateway.identity().caller(headers).await.is_err() {
                return;
            }
        }
    };
    let stopped = async {
        gateway.health().draining().await;
        tokio::time::sleep(LAST_MESSAGE).await;
    };
    tokio::select! {
        () = revoked => {}
        () = stopped => {}
    }
}
