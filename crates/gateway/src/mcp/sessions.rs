//! What clients of the older eras have asked for with a session: messages of a level, and news of resources.

#![expect(
    deprecated,
    reason = "servers of the older eras send messages, and clients want them"
)]

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{LoggingLevel, ResourceUpdatedNotificationParam};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::AbortHandle;

use super::context::Context;
use super::handler;

/// Most sessions, and most resources, of which something is kept.
const KEPT_MAX: usize = 4_096;

/// Poll interval for a closed connection.
const CLOSED_LOOK: Duration = Duration::from_secs(30);

/// Subscriptions by session.
#[derive(Default)]
pub(super) struct Sessions {
    levels: Mutex<HashMap<String, LoggingLevel>>,
    /// By session and address.
    updates: Mutex<HashMap<(String, String), AbortHandle>>,
}

impl Sessions {
    /// The lowest level of messages that a client wants.
    pub(super) fn level(&self, context: &Context) -> Option<LoggingLevel> {
        locked(&self.levels).get(&session(context)).copied()
    }

    pub(super) fn set_level(&self, context: &Context, level: LoggingLevel) {
        let mut levels = locked(&self.levels);
        if levels.len() >= KEPT_MAX {
            levels.clear();
        }
        levels.insert(session(context), level);
    }

    /// Tells a client whenever a resource changes, as long as its connection is there.
    pub(super) fn tell_updates(
        &self,
        context: &Context,
        uri: String,
        mut updates: broadcast::Receiver<String>,
    ) {
        let Some(peer) = context.peer().cloned() else {
            return;
        };
        let own = uri.clone();
        let mut look = tokio::time::interval(CLOSED_LOOK);
        let task = tokio::spawn(async move {
            loop {
                let changed = tokio::select! {
                    _ = look.tick() => {
                        if peer.is_transport_closed() {
                            return;
                        }
                        continue;
                    }
                    changed = updates.recv() => changed,
                };
                match changed {
                    Ok(changed) if changed == own => {
                        let param = ResourceUpdatedNotificationParam::new(changed);
                        if peer.notify_resource_updated(param).await.is_err() {
                            return;
                        }
                    }
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                }
            }
        });
        let mut kept = locked(&self.updates);
        kept.retain(|_, task| !task.is_finished());
        if kept.len() >= KEPT_MAX {
            task.abort();
            return;
        }
        let before = kept.insert((session(context), uri), task.abort_handle());
        if let Some(before) = before {
            before.abort();
        }
    }

    /// Tells a client no more.
    pub(super) fn end_updates(&self, context: &Context, uri: &str) {
        let key = (session(context), uri.to_owned());
        if let Some(task) = locked(&self.updates).remove(&key) {
            task.abort();
        }
    }
}

/// The session of a request; over standard input and output there is one.
fn session(context: &Context) -> String {
    let head = handler::head(&context.extensions);
    let session = head.and_then(|head| head.headers.get("mcp-session-id")?.to_str().ok());
    session.unwrap_or_default().to_owned()
}

fn locked<T>(own: &Mutex<T>) -> MutexGuard<'_, T> {
    own.lock().unwrap_or_else(PoisonError::into_inner)
}
