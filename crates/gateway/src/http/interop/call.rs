//! `POST /acp/tools/{name}` and `POST /ucp/tools/{name}`: the calls of `/v1`, with the keys and the answers of a
//! standard.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use countersign::contract::{ErrorBody, ErrorCode, ReplyEnvelope};
use http::header::HeaderName;
use http::request::Parts;
use http::{HeaderMap, StatusCode};

use super::outcome::{self, Outcome, REQUEST_ID, SUPPORTED_VERSIONS};
use super::profile::Profile;
use super::{acp, codes, key, ucp};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::http::answer::{IDEMPOTENT_REPLAYED, Refusal, X_REQUEST_ID};
use crate::http::headers::IDEMPOTENCY_KEY;
use crate::http::{body, call, headers, query};
use crate::metrics::OfCall;

/// Header with the version of ACP that a client speaks.
const API_VERSION: HeaderName = HeaderName::from_static("api-version");

pub(super) async fn acp(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Refusal> {
    answer(
        Profile::Acp,
        &gateway,
        &caller,
        query::segment(name)?,
        request,
    )
    .await
}

pub(super) async fn ucp(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Refusal> {
    answer(
        Profile::Ucp,
        &gateway,
        &caller,
        query::segment(name)?,
        request,
    )
    .await
}

async fn answer(
    profile: Profile,
    gateway: &Gateway,
    caller: &Caller,
    name: String,
    request: Request,
) -> Result<Response, Refusal> {
    let (Parts { mut headers, .. }, body) = request.into_parts();
    adopt_request_id(&mut headers);
    check_version(profile, &headers)?;
    let kind = headers::kind(&headers)?;
    let body = body::read(body, gateway.settings()).await?;
    let asked = call::asked(&headers, kind, &body)?;
    let key = asked.envelope.idempotency_key.as_deref();
    key::check(profile, key).map_err(|fault| {
        Refusal::new(ErrorCode::InvalidArgument, fault.message()).foreign(fault.code())
    })?;
    let reply = gateway
        .call(call::made(&name, asked, &headers, caller))
        .await;
    let mut response = write(profile, gateway, &name, &reply);
    if let Some(key) = headers.get(IDEMPOTENCY_KEY) {
        response.headers_mut().insert(IDEMPOTENCY_KEY, key.clone());
    }
    Ok(response)
}

/// Copies the request id header of the standards, which has no `X-`, to ours.
pub(super) fn adopt_request_id(headers: &mut HeaderMap) {
    if !headers.contains_key(X_REQUEST_ID)
        && let Some(id) = headers.get(REQUEST_ID).cloned()
    {
        headers.insert(X_REQUEST_ID, id);
    }
}

/// Refuses a client that asks for another version of ACP. A client that names no version is assumed to speak
/// this one.
pub(super) fn check_version(profile: Profile, headers: &HeaderMap) -> Result<(), Refusal> {
    let asked = match profile {
        Profile::Acp => headers.get(API_VERSION),
        Profile::Ucp => None,
    };
    let ours = profile.version();
    if asked.is_none_or(|asked| asked == ours) {
        return Ok(());
    }
    let message = format!("the API-Version is not {ours}, the only one that is spoken here");
    let body = ErrorBody::new(ErrorCode::InvalidArgument, message);
    let body = body.detail(SUPPORTED_VERSIONS, vec![ours]);
    Err(Refusal::from(body).foreign("unsupported_api_version"))
}

/// Writes the reply of a tool in the form of a profile.
fn write(profile: Profile, gateway: &Gateway, name: &str, reply: &ReplyEnvelope) -> Response {
    let mut response = match &reply.error {
        None => success(profile, reply),
        Some(error) => {
            let entry = gateway.executor().catalog().get(name);
            let is_unknown = error.code == ErrorCode::NotFound && entry.is_none();
            let outcome = if is_unknown {
                // The tool does not exist: an unknown path, in the terms of a standard.
                Outcome::protocol(StatusCode::NOT_FOUND, "not_found")
            } else {
                codes::outcome(profile, error)
            };
            let param = outcome::path_in_call(error, entry.as_ref().map(|entry| entry.spec()));
            failure(profile, gateway, reply, (error, param.as_deref()), &outcome)
        }
    };
    let headers = response.headers_mut();
    if reply.replayed {
        headers.insert(IDEMPOTENT_REPLAYED, http::HeaderValue::from_static("true"));
    }
    response
}

fn success(profile: Profile, reply: &ReplyEnvelope) -> Response {
    let body = match profile {
        Profile::Acp => serde_json::to_value(reply).unwrap_or_default(),
        Profile::Ucp => ucp::success(reply),
    };
    let mut response = outcome::written(StatusCode::OK, &body);
    outcome::named(response.headers_mut(), &reply.request_id);
    response
}

/// Writes the answer to a failed call.
pub(super) fn failure(
    profile: Profile,
    gateway: &Gateway,
    reply: &ReplyEnvelope,
    (error, param): (&ErrorBody, Option<&str>),
    outcome: &Outcome,
) -> Response {
    let mut response = match outcome {
        Outcome::Protocol { status, code } => {
            outcome::protocol_error(profile, error, (*status, code), param.map(str::to_owned))
        }
        Outcome::Business(messages) => {
            let url = page_to_confirm(gateway, error);
            let body = match profile {
                Profile::Acp => acp::failure(reply, error, messages, param, url.as_deref()),
                Profile::Ucp => ucp::failure(error, messages, param, url.as_deref()),
            };
            outcome::written(StatusCode::OK, &body)
        }
    };
    // The executor has already reported it.
    response.extensions_mut().insert(OfCall);
    outcome::headed(response.headers_mut(), &reply.request_id, error);
    response
}

/// Returns the address of the page where the user can confirm the call, if there is one.
fn page_to_confirm(gateway: &Gateway, error: &ErrorBody) -> Option<String> {
    let page = gateway.settings().approvals_url.as_ref()?;
    let approval_id = error.details.extra.get("approval_id")?.as_str()?;
    let is_asked = error.code == ErrorCode::NeedsUserConfirmation;
    is_asked.then(|| page.replace("{id}", approval_id))
}
