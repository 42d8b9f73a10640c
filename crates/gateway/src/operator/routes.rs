//! `/v1/operator`: what only the operator may ask for. Other callers find nothing here.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use countersign::contract::{ErrorBody, ErrorCode};
use futures_util::stream;
use http::HeaderValue;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::desk::{Asked, Lines, Operations};
use crate::caller::{Caller, Proof};
use crate::gateway::Gateway;
use crate::http::answer::{self, Refusal};
use crate::http::{body, edge};
use crate::strict;
use crate::words::Say;

/// Interval of empty lines that show that an operation is still running.
const BEAT: Duration = Duration::from_secs(5);

/// Delay after which an operator who found no room should try again.
const BUSY_RETRY_MS: u64 = 1_000;

/// The routes that need a caller, who has to be the operator.
pub(crate) fn for_callers() -> Router<Gateway> {
    Router::new()
        .route("/v1/operator", get(about))
        .route("/v1/operator/{operation}", post(perform))
}

/// Routes with which a server proves that it knows the secret of its folder, before a command trusts it.
pub(crate) fn for_anybody() -> Router<Gateway> {
    Router::new().route("/v1/operator/prove", post(prove))
}

async fn about(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Refusal> {
    match operations(&gateway, &caller) {
        Some(operations) => Ok(answer::json(&operations.about())),
        None => Err(edge::no_such_path(request).await),
    }
}

async fn perform(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(operation): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let Some(operations) = operations(&gateway, &caller) else {
        return Err(edge::no_such_path(request).await);
    };
    let request = body::read(request.into_body(), gateway.settings()).await?;
    let Ok(room) = gateway.operation_slots().try_acquire_owned() else {
        let message = "the server is at work for the operator as often as it can be";
        let body = ErrorBody::new(ErrorCode::RateLimited, message).retry_after_ms(BUSY_RETRY_MS);
        let hint = "wait for one of them to end, then ask again; nothing was done";
        return Err(Refusal::from(body.hint(hint)));
    };
    let (lines, receiver) = Lines::new(gateway.clone());
    let asked = Asked { operation, request };
    tokio::task::spawn_blocking(move || {
        operations.perform(&gateway, &asked, lines);
        drop(room);
    });
    let kind = HeaderValue::from_static("application/x-ndjson");
    Ok(answer::typed(streamed(receiver), kind))
}

fn operations(gateway: &Gateway, caller: &Caller) -> Option<Arc<dyn Operations>> {
    match caller.proof {
        Proof::Operator => gateway.operations().cloned(),
        Proof::Loopback | Proof::ApiKey | Proof::Token => None,
    }
}

/// The lines as they come. Dropped with the connection, and with it the receiver, which ends what can be ended.
fn streamed(receiver: mpsc::Receiver<Bytes>) -> Body {
    Body::from_stream(stream::unfold(receiver, async |mut receiver| {
        let line = match tokio::time::timeout(BEAT, receiver.recv()).await {
            Ok(None) => return None,
            Ok(Some(line)) => line,
            Err(_) => Bytes::from_static(b"\n"),
        };
        Some((Ok::<_, std::convert::Infallible>(line), receiver))
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Challenge {
    nonce: String,
}

#[derive(Serialize)]
struct Proved {
    ticket: String,
    proof: String,
}

async fn prove(State(gateway): State<Gateway>, request: Request) -> Result<Response, Refusal> {
    let Some(prover) = gateway.identity().prover() else {
        return Err(edge::no_such_path(request).await);
    };
    let body = body::read(request.into_body(), gateway.settings()).await?;
    let challenge: Option<Challenge> = strict::from_slice(&body).ok();
    let answered = challenge.and_then(|challenge| prover.answer(&challenge.nonce));
    let Some((ticket, proof)) = answered else {
        return Err(Refusal::new(ErrorCode::InvalidArgument, Say::NotANonce).hint(Say::SendNonce));
    };
    Ok(answer::json(&Proved { ticket, proof }))
}
