//! `/v1/keys`: API keys over HTTP, for callers with [`SCOPE_KEYS`](super::SCOPE_KEYS).

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{delete, get, post};
use axum::{Extension, Router};
use countersign::contract::ErrorCode;
use http::header::{CACHE_CONTROL, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::api_key::{ApiKey, IssuedKey, KeyState, NewKey};
use super::api_keys::ApiKeys;
use super::challenge::METADATA;
use super::keys_error::KeysError;
use super::metadata::metadata;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::http::answer::{self, Refusal};
use crate::http::body;
use crate::policy::Period;
use crate::strict;
use crate::words::Say;

/// Routes that need no credential.
pub fn for_anybody() -> Router<Gateway> {
    let below = format!("{METADATA}/mcp");
    Router::new()
        .route(METADATA, get(metadata))
        .route(&below, get(metadata))
}

/// Routes that need a caller.
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

/// Body of a rotation.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Rotate {
    /// Time for which the old key is accepted as well.
    grace: Option<Period>,
}

async fn list(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refusal> {
    let api_keys = keys(&gateway)?;
    let keys = api_keys.list(&caller.principal).await?;
    let listed = |key: ApiKey| Listed {
        state: api_keys.state_of(&key),
        key,
    };
    let keys: Vec<Listed> = keys.into_iter().map(listed).collect();
    Ok(answer::json(&json!({"keys": keys})))
}

async fn create(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, Refusal> {
    let new: NewKey = parsed(&body::read(body, gateway.settings()).await?)?;
    let issued = keys(&gateway)?.create(new, &caller.principal).await?;
    Ok(once(&issued))
}

async fn rotate(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, Refusal> {
    let body = body::read(body, gateway.settings()).await?;
    let asked = if body.is_empty() {
        Rotate::default()
    } else {
        parsed(&body)?
    };
    let grace = asked.grace.map_or(Duration::ZERO, Period::duration);
    let issued = keys(&gateway)?.rotate(&id, grace, &caller.principal);
    Ok(once(&issued.await?))
}

async fn revoke(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let key = keys(&gateway)?.revoke(&id, &caller.principal).await?;
    Ok(answer::json(&json!({"key": key})))
}

fn keys(gateway: &Gateway) -> Result<&ApiKeys, Refusal> {
    gateway
        .identity()
        .keys()
        .ok_or_else(|| Refusal::new(ErrorCode::NotFound, Say::NoApiKeys).hint(Say::StartOnStore))
}

/// Builds the only response that shows a secret; no cache may keep it.
fn once(issued: &IssuedKey) -> Response {
    let body = json!({"key": issued.key, "secret": issued.token.as_str()});
    let mut response = answer::json(&body);
    *response.status_mut() = StatusCode::CREATED;
    let never = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, never);
    response
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    strict::from_slice(body).map_err(|error| {
        let message = format!("the body is not what is asked for: {error}");
        Refusal::new(ErrorCode::InvalidArgument, message).hint(Say::IdentityExample)
    })
}

impl From<KeysError> for Refusal {
    fn from(error: KeysError) -> Self {
        let refusal = Self::from(error.body());
        match &error {
            KeysError::Store(error) => {
                tracing::warn!(%error, "the API keys could not be read from or written to the store");
                refusal
            }
            KeysError::MissingScope { .. } => refusal.header(
                WWW_AUTHENTICATE,
                HeaderValue::from_static(
                    "Bearer error=\"insufficient_scope\", scope=\"keys:manage\"",
                ),
            ),
            KeysError::Invalid { .. }
            | KeysError::Beyond { .. }
            | KeysError::NoKey { .. }
            | KeysError::Ended { .. }
            | KeysError::Full { .. }
            | KeysError::Busy => refusal,
        }
    }
}
