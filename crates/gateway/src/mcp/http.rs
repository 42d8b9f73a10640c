//! The endpoint: one path for both eras, bounded before anything is parsed.

use std::sync::Arc;

use ::http::{HeaderValue, Method, Response, StatusCode, header};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::routing::any;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;

use super::PATH;
use super::alone::Alone;
use super::handler::Handler;
use super::owners::Owners;
use super::raw::{self, Kind};
use super::streams::{self, Streams};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::settings::Settings;

/// Maximum number of sessions for the conformance suite.
const CONFORMANCE_SESSIONS: usize = 256;

/// Delay after which a client that had no room for a stream may ask again.
const STREAM_RETRY_SECONDS: HeaderValue = HeaderValue::from_static("5");

#[derive(Clone)]
struct Endpoint {
    service: StreamableHttpService<Handler, LocalSessionManager>,
    handler: Handler,
    sessions: Arc<LocalSessionManager>,
    owners: Arc<Owners>,
    streams: Arc<Streams>,
    body_bytes_max: usize,
    sessions_max: usize,
}

/// Builds the route of the endpoint. It must be mounted behind the edge, which checks `Host` and `Origin`, and behind
/// [`identity::layer`](crate::identity::layer).
pub fn router<S: Clone + Send + Sync + 'static>(gateway: &Gateway) -> Router<S> {
    let handler = Handler::new(gateway);
    let settings = gateway.settings();
    let sessions = Arc::new(LocalSessionManager::default());
    let made = handler.clone();
    let service =
        StreamableHttpService::new(move || Ok(made.clone()), sessions.clone(), config(settings));
    let endpoint = Endpoint {
        service,
        handler,
        sessions,
        owners: Arc::default(),
        streams: Arc::new(Streams::new(settings, sessions_max(settings))),
        body_bytes_max: settings.body_bytes_max,
        sessions_max: sessions_max(settings),
    };
    Router::new().route(PATH, any(serve).with_state(endpoint))
}

/// The conformance suite asks older clients back, which needs a session.
fn sessions_max(settings: &Settings) -> usize {
    if settings.conformance {
        settings.mcp_sessions_max.max(CONFORMANCE_SESSIONS)
    } else {
        settings.mcp_sessions_max
    }
}

/// Without sessions every request stands alone, so any replica can answer it. `Host` and `Origin` have been
/// looked at before, by the rule of all routes.
fn config(settings: &Settings) -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .with_json_response(true)
        .with_legacy_session_mode(sessions_max(settings) > 0)
        .with_max_request_body_bytes(settings.body_bytes_max)
        .disable_allowed_hosts()
        .disable_allowed_origins()
}

async fn serve(State(endpoint): State<Endpoint>, request: Request) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let caller = parts.extensions.get::<Caller>().cloned();
    let is_theirs = caller.as_ref().is_none_or(|caller| {
        endpoint.sessions_max == 0 || endpoint.owners.admit(&parts.headers, &caller.principal)
    });
    if !is_theirs {
        let text = "there is no such session; begin a new one";
        return refusal(StatusCode::NOT_FOUND, -32600, text);
    }
    if parts.method != Method::POST {
        return Box::pin(listen(&endpoint, Request::from_parts(parts, body))).await;
    }
    let Ok(bytes) = axum::body::to_bytes(body, endpoint.body_bytes_max).await else {
        let message = format!(
            "the message is longer than {} bytes",
            endpoint.body_bytes_max
        );
        return refusal(StatusCode::PAYLOAD_TOO_LARGE, -32600, &message);
    };
    let message = raw::take_arguments(bytes, |name| endpoint.handler.needs_arguments(name));
    let message = match message {
        Ok(message) => message,
        Err(malformed) => {
            return refusal(
                StatusCode::BAD_REQUEST,
                malformed.code(),
                &malformed.to_string(),
            );
        }
    };
    if message.kind == Kind::Initialize && !endpoint.has_room().await {
        let text = "there is no room for another session; try again later";
        return refusal(StatusCode::SERVICE_UNAVAILABLE, -32603, text);
    }
    if let Some(arguments) = message.arguments {
        parts.extensions.insert(arguments);
    }
    if message.kind == Kind::Call
        && let Some(alone) = Alone::read(&parts.headers, &message.bytes, &endpoint.handler)
    {
        return Box::pin(alone.answer(&endpoint.handler, parts)).await;
    }
    // The length of the message has changed with its arguments.
    parts.headers.remove(header::CONTENT_LENGTH);
    let request = Request::from_parts(parts, Body::from(message.bytes));
    match message.kind {
        // The time and the number of calls are bounded by themselves.
        Kind::Call => Box::pin(answer(&endpoint, request)).await,
        Kind::Initialize => {
            let response = Box::pin(listen(&endpoint, request)).await;
            if let Some(caller) = caller.filter(|_| endpoint.sessions_max > 0) {
                let open = endpoint.sessions.sessions.read().await;
                let is_open = |session: &str| open.contains_key(session);
                endpoint
                    .owners
                    .keep(response.headers(), &caller.principal, is_open);
            }
            response
        }
        Kind::Other => Box::pin(listen(&endpoint, request)).await,
    }
}

async fn answer(endpoint: &Endpoint, request: Request) -> Response<Body> {
    let is_json = is_json(request.headers().get(header::CONTENT_TYPE));
    let response = endpoint.service.handle(request).await.map(Body::new);
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if is_error && !is_of_type(&response, "application/json") {
        return in_json(&response, is_json);
    }
    response
}

fn is_json(kind: Option<&HeaderValue>) -> bool {
    let kind = kind.and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// Turns a plain-text refusal of the protocol library into the form of every other refusal.
fn in_json(response: &Response<Body>, is_json: bool) -> Response<Body> {
    let (status, text) = match response.status() {
        StatusCode::METHOD_NOT_ALLOWED => (
            StatusCode::METHOD_NOT_ALLOWED,
            "this is not possible here; send messages with POST",
        ),
        // It is JSON, but no message could be read from it.
        StatusCode::UNSUPPORTED_MEDIA_TYPE if is_json => (
            StatusCode::BAD_REQUEST,
            "the message is not a valid request: a member is malformed or nested too deep",
        ),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body has to be of the type application/json",
        ),
        StatusCode::NOT_ACCEPTABLE => (
            StatusCode::NOT_ACCEPTABLE,
            "Accept has to name application/json and text/event-stream",
        ),
        other => (
            other,
            other.canonical_reason().unwrap_or("the request is refused"),
        ),
    };
    let code = if status.is_server_error() {
        -32603
    } else {
        -32600
    };
    let mut refusal = refusal(status, code, text);
    if let Some(allowed) = response.headers().get(header::ALLOW) {
        let headers = refusal.headers_mut();
        headers.insert(header::ALLOW, allowed.clone());
    }
    refusal
}

/// Answers what may be answered with a stream that stays open, as far as there is room for one.
async fn listen(endpoint: &Endpoint, request: Request) -> Response<Body> {
    let headers = request.headers().clone();
    let caller = request.extensions().get::<Caller>().cloned();
    let response = answer(endpoint, request).await;
    if !is_of_type(&response, "text/event-stream") {
        return response;
    }
    let slot = caller.and_then(|caller| endpoint.streams.enter(&caller));
    let Some(slot) = slot else {
        let text = "too many streams are open; close one, or try again later";
        let mut refusal = refusal(StatusCode::TOO_MANY_REQUESTS, -32603, text);
        let headers = refusal.headers_mut();
        headers.insert(header::RETRY_AFTER, STREAM_RETRY_SECONDS);
        return refusal;
    };
    let gateway = endpoint.handler.shared.gateway.clone();
    response.map(|body| streams::held(body, slot, gateway, headers))
}

fn is_of_type(response: &Response<Body>, expected: &str) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(expected))
}

impl Endpoint {
    async fn has_room(&self) -> bool {
        self.sessions_max == 0 || self.sessions.sessions.read().await.len() < self.sessions_max
    }
}

/// Builds a refusal that is sent before the message is parsed, so without its id.
fn refusal(status: StatusCode, code: i32, message: &str) -> Response<Body> {
    let error = json!({
        "jsonrpc": "2.0",
        "id": null,
        "error": { "code": code, "message": message },
    });
    let mut response = Response::new(Body::from(error.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
