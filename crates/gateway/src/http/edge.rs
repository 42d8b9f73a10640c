//! The edge: the middleware around all routes.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use countersign::contract::{ErrorBody, ErrorCode, FaultSource, Language, RequestId};
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, StatusCode, Version};

use super::answer::Refusal;
use super::body::Bounded;
use super::headers;
use super::interop::{self, Profile};
use super::origin;
use crate::gateway::Gateway;
use crate::operator::AtSocket;
use crate::words::Say;

/// Maximum body size for the operator, who also sends policy files.
const OPERATOR_BODY_BYTES_MAX: usize = 16 << 20;

/// Limits the request, refuses foreign web pages, and gives every refusal the same form.
pub async fn layer(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let profile = Profile::of_path(request.uri().path());
    let request_id = interop::request_id(profile, request.headers()).cloned();
    let language = Language::of(headers::language(request.headers()).as_deref());
    let is_ours = request.uri().path().starts_with("/v1/") || profile.is_some();
    let is_rpc = request.uri().path() == crate::mcp::PATH;
    let mut response = match check(&gateway, &request) {
        Ok(()) => {
            let is_operator = request.extensions().get::<AtSocket>().is_some();
            let bytes_max = if is_operator {
                OPERATOR_BODY_BYTES_MAX
            } else {
                gateway.settings().body_bytes_max
            };
            let request = request.map(|body| Bounded::wrap(body, &gateway, bytes_max));
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    let refusal = response.extensions_mut().remove::<Refusal>();
    let Some(refusal) = refusal.or_else(|| is_ours.then(|| bare(&response)).flatten()) else {
        return response;
    };
    let refusal = refusal.in_language(language);
    let request_id = request_id
        .as_ref()
        .and_then(|id| id.to_str().ok())
        .and_then(|id| RequestId::new(id).ok())
        .unwrap_or_else(|| gateway.ids().request_id());
    match profile {
        None if is_rpc => refusal.rpc_answer(&request_id, response.headers()),
        None => refusal.answer(request_id, response.headers()),
        Some(profile) => interop::refused(profile, &refusal, &request_id, response.headers()),
    }
}

fn check(gateway: &Gateway, request: &Request) -> Result<(), Refusal> {
    let max = gateway.settings().head_bytes_max;
    let path = request
        .uri()
        .path_and_query()
        .map_or(0, |path| path.as_str().len());
    if path.saturating_add(head_bytes(request.headers())) > max {
        let message = Say::HeadTooLong {
            max: max.to_string(),
        };
        return Err(Refusal::new(ErrorCode::InvalidArgument, message)
            .status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
            .hint(Say::FewerHeaders));
    }
    let hosts = request.headers().get_all(HOST).iter().count();
    // As RFC 9112 requires: a proxy in between may have used the other one.
    if hosts > 1 || hosts == 0 && request.version() == Version::HTTP_11 {
        let message = Say::HostNotOnce;
        return Err(Refusal::new(ErrorCode::InvalidArgument, message).hint(Say::SendHostOnce));
    }
    let public_url = gateway.settings().public_url.as_deref();
    origin::check(request.headers(), request.uri().path(), public_url)
}

/// Returns the refusal for an error that the framework answered, such as a path segment that is not text.
fn bare(response: &Response) -> Option<Refusal> {
    let status = response.status();
    if response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind == "application/json")
    {
        return None;
    }
    if status.is_client_error() {
        let refusal = Refusal::new(ErrorCode::InvalidArgument, Say::RequestUnreadable);
        return Some(refusal.status(status).hint(Say::SeeOpenApi));
    }
    status.is_server_error().then(|| {
        let message = Say::NotAnswered;
        let body = ErrorBody::new(ErrorCode::UpstreamError, message).source(FaultSource::Gateway);
        Refusal::from(body.hint(Say::SameRequestLater)).status(status)
    })
}

fn head_bytes(headers: &HeaderMap) -> usize {
    // Four more for the colon, the space and the end of the line.
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        name.as_str().len() + value.len() + 4
    };
    headers.iter().map(line).sum()
}

/// Refuses an unknown path.
pub async fn no_such_path(request: Request) -> Refusal {
    let path: String = request.uri().path().chars().take(80).collect();
    Refusal::new(ErrorCode::NotFound, Say::NoPath { path }).hint(Say::ListOfPaths)
}

/// Refuses a method that the path does not have.
pub async fn no_such_method(request: Request) -> Refusal {
    let message = Say::NoMethod {
        method: request.method().to_string(),
    };
    Refusal::new(ErrorCode::InvalidArgument, message)
        .status(StatusCode::METHOD_NOT_ALLOWED)
        .hint(Say::SeeAllow)
}
