//! The dialogue of a running call with its client: what an MCP server behind the gateway asks or tells is passed on.

#![expect(
    deprecated,
    reason = "servers of the older eras send messages, and clients want them"
)]

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use countersign::dialogue::{Answers, Asks, Dialogue, Said};
use rmcp::model::{LoggingLevel, ServerNotification, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::context::Context;
use super::handler::Handler;
use super::parked::Question;

/// Longest wait for an answer of a client; the deadline of the call may come sooner.
const ANSWER_WAIT: Duration = Duration::from_mins(15);

/// A dialogue, and what is said in it.
pub(super) type Talk = (Arc<Dialogue>, mpsc::Receiver<Said>);

impl Handler {
    /// The dialogue with the client of a request, where there can be one: over a connection of the older eras at once, in the newest era with
    /// the next request.
    pub(super) fn begin_talk(&self, context: &Context, answers: Option<Answers>) -> Option<Talk> {
        let is_newer = context.is_newer();
        let is_live = !is_newer && context.is_connected();
        if !is_newer && !is_live {
            return None;
        }
        let level = context.meta.log_level();
        let level = level.or_else(|| self.shared.sessions.level(context));
        let level = level.and_then(|level| json!(level).as_str().map(str::to_owned));
        let dialogue = Dialogue::new(json!(context.capabilities));
        let dialogue = dialogue.answered(answers).logging(level);
        let asks = if is_live { Asks::Now } else { Asks::Later };
        let (dialogue, said) = dialogue.line(asks);
        Some((Arc::new(dialogue), said))
    }

    /// Waits for something while everything that is said on the way is passed on. It has to be awaited in the task of the request, by which
    /// the protocol knows what a question belongs to. Ends early with a question that the client can only answer with its next request.
    pub(super) async fn while_talking<T>(
        &self,
        mut running: Pin<&mut impl Future<Output = T>>,
        said: &mut Option<mpsc::Receiver<Said>>,
        context: &Context,
    ) -> Result<T, Question> {
        let is_newer = context.is_newer();
        let mut asking = None;
        loop {
            tokio::select! {
                biased;
                said = next(said), if asking.is_none() => match said {
                    Said::Message(message) => Box::pin(self.tell(message, context)).await,
                    Said::Question(request, answer) if is_newer => {
                        return Err(Question { request, answer });
                    }
                    Said::Question(request, answer) => {
                        let peer = context.peer().cloned();
                        asking = Some(Box::pin(async move {
                            if let Some(given) = ask(peer.as_ref(), request).await {
                                // Nobody waits any more where this fails.
                                let _gone = answer.send(given);
                            }
                        }));
                    }
                },
                () = async {
                    match &mut asking {
                        Some(own) => own.await,
                        None => std::future::pending().await,
                    }
                } => asking = None,
                ended = &mut running => break Ok(ended),
            }
        }
    }

    /// The same for what cannot wait for a next request: a question that would have to is declined.
    pub(super) async fn until_ended<T>(
        &self,
        running: impl Future<Output = T>,
        mut said: Option<mpsc::Receiver<Said>>,
        context: &Context,
    ) -> T {
        let mut running = std::pin::pin!(running);
        loop {
            let ended = self.while_talking(running.as_mut(), &mut said, context);
            // Dropped unanswered, a question is declined.
            if let Ok(ended) = ended.await {
                return ended;
            }
        }
    }

    /// Passes a message on, unless the client wants only graver ones.
    async fn tell(&self, message: Value, context: &Context) {
        let Ok(message) = serde_json::from_value::<ServerNotification>(message) else {
            return;
        };
        let least = self.shared.sessions.level(context);
        if let (ServerNotification::LoggingMessageNotification(own), Some(least)) =
            (&message, least)
            && rank(own.params.level) < rank(least)
        {
            return;
        }
        // A client that has gone away is noticed by the transport.
        if let Some(peer) = context.peer() {
            let _gone = peer.send_notification(message).await;
        }
    }
}

/// The gravity of a message.
fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}

/// Waits for the next message; never returns if there is none.
async fn next(said: &mut Option<mpsc::Receiver<Said>>) -> Said {
    if let Some(receiver) = said
        && let Some(own) = receiver.recv().await
    {
        return own;
    }
    std::future::pending().await
}

async fn ask(peer: Option<&Peer<RoleServer>>, request: Value) -> Option<Value> {
    let request: ServerRequest = serde_json::from_value(request).ok()?;
    let options = PeerRequestOptions::with_timeout(ANSWER_WAIT);
    let sent = peer?.send_request_with_option(request, options).await;
    let answered = sent.ok()?.await_response().await.ok()?;
    Some(json!(answered))
}

/// An error of the protocol that a server behind the gateway has answered with.
pub(super) fn refusal(code: i32, message: String, data: Option<Value>) -> ErrorData {
    ErrorData::new(rmcp::model::ErrorCode(code), message, data)
}
