//! `/v1/keys`: API keys over HTTP, for whoever holds [`SCOPE_KEYS`](super::SCOPE_KEYS).

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post};
use axum::{Extension, Json, Router};
use countersign::contract::{ErrorBody, ErrorCode, ReplyEnvelope};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::api_key::{ApiKey, IssuedKey, KeyState, NewKey};
use super::api_keys::ApiKeys;
use super::challenge::METADATA;
use super::keys_error::KeysError;
use super::metadata::metadata;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::policy::Period;

/// What is answered to everybody.
pub fn for_anybody() -> Router<Gateway> {
    let below = format!("{METADATA}/mcp");
    Router::new()
        .route(METADATA, get(metadata))
        .route(&below, get(metadata))
}

/// What needs a caller.
pub fn for_callers() -> Router<Gateway> {
    Router::new()
        .route("/v1/keys", get(list).post(create))
        .route("/v1/keys/{id}", delete(revoke))
        .route("/v1/keys/{id}/rotate", post(rotate))
}

/// A key in a list.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    key: ApiKey,
    state: KeyState,
}

/// What a rotation may say.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Rotate {
    /// For how long the old key is accepted as well.
    grace: Option<Period>,
}

async fn list(State(gateway): State<Gateway>, Extension(caller): Extension<Caller>) -> Response {
    let answer = async {
        let api_keys = keys(&gateway)?;
        let keys = api_keys.list(&caller.principal).await;
        let keys = keys.map_err(failed)?;
        let listed = |key: ApiKey| Listed {
            state: api_keys.state_of(&key),
            key,
        };
        let keys: Vec<Listed> = keys.into_iter().map(listed).collect();
        Ok(Json(json!({"keys": keys})).into_response())
    };
    answer
        .await
        .unwrap_or_else(|body: Box<ErrorBody>| refuse(&gateway, *body))
}

async fn create(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Response {
    let answer = async {
        let new: NewKey = read(&body)?;
        let issued = keys(&gateway)?.create(new, &caller.principal).await;
        Ok(once(&issued.map_err(failed)?))
    };
    answer
        .await
        .unwrap_or_else(|body: Box<ErrorBody>| refuse(&gateway, *body))
}

async fn rotate(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response {
    let answer = async {
        let asked = if body.is_empty() {
            Rotate::default()
        } else {
            read(&body)?
        };
        let grace = asked.grace.map_or(Duration::ZERO, Period::duration);
        let issued = keys(&gateway)?.rotate(&id, grace, &caller.principal).await;
        Ok(once(&issued.map_err(failed)?))
    };
    answer
        .await
        .unwrap_or_else(|body: Box<ErrorBody>| refuse(&gateway, *body))
}

async fn revoke(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let answer = async {
        let key = keys(&gateway)?.revoke(&id, &caller.principal).await;
        let key = key.map_err(failed)?;
        Ok(Json(json!({"key": key})).into_response())
    };
    answer
        .await
        .unwrap_or_else(|body: Box<ErrorBody>| refuse(&gateway, *body))
}

fn keys(gateway: &Gateway) -> Result<&ApiKeys, Box<ErrorBody>> {
    gateway.identity().keys().ok_or_else(|| {
        let body = ErrorBody::new(ErrorCode::NotFound, "this server has no API keys");
        Box::new(body.hint("start it on a store that stays"))
    })
}

/// The one time that a secret is shown; nobody on the way may keep it.
fn once(issued: &IssuedKey) -> Response {
    let body = Json(json!({"key": issued.key, "secret": issued.token.as_str()}));
    let mut response = (StatusCode::CREATED, body).into_response();
    let never = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, never);
    response
}

fn read<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, Box<ErrorBody>> {
    serde_json::from_slice(body).map_err(|error| {
        let message = format!("the body is not what is asked for: {error}");
        let body = ErrorBody::new(ErrorCode::InvalidArgument, message);
        Box::new(body.hint("docs/identity.md shows an example"))
    })
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn failed(error: KeysError) -> Box<ErrorBody> {
    if let KeysError::Store(error) = &error {
        tracing::warn!(%error, "the API keys cannot be read or written");
    }
    Box::new(error.body())
}

fn refuse(gateway: &Gateway, body: ErrorBody) -> Response {
    let reply = ReplyEnvelope::failure(gateway.ids().request_id(), body);
    let status = StatusCode::from_u16(reply.http_status()).unwrap_or_default();
    (status, Json(reply)).into_response()
}
