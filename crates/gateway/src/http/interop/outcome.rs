//! Errors in the form of a standard: a status with one code for errors of the request itself, or messages about
//! something that an agent and its buyer can resolve.

use axum::body::Body;
use axum::response::Response;
use countersign::contract::{ErrorBody, ErrorCode, IssueCode, RequestId, ToolSpec};
use http::header::{ALLOW, HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;

use super::profile::Profile;
use super::{acp, ucp};
use crate::http::answer::{self, JSON, Refusal, X_REQUEST_ID};
use crate::http::members;

/// Header of the request id in both standards; ours starts with `X-`.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// Header with the closed code of an error, next to the code of the standard: every client of ours knows it.
const CLOSED_CODE: HeaderName = HeaderName::from_static("x-countersign-code");

/// Member of an error that lists the supported versions of a standard.
pub(super) const SUPPORTED_VERSIONS: &str = "supported_versions";

/// Form of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The request itself failed: an HTTP status and one code.
    Protocol {
        /// HTTP status.
        status: StatusCode,
        /// Code of the standard.
        code: &'static str,
    },
    /// The request was valid, but cannot be fulfilled as it is: HTTP 200 and messages.
    Business(Vec<Message>),
}

/// A message about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    /// Severity of the message.
    pub(super) kind: Kind,
    /// Code of the standard.
    pub(super) code: &'static str,
    /// Party that can resolve it.
    pub(super) resolution: Resolution,
}

/// Severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The call failed.
    Error,
    /// Something has changed.
    Warning,
}

/// Party that can resolve an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolution {
    /// The agent, by another call.
    Recoverable,
    /// The buyer, by supplying missing information.
    BuyerInput,
    /// The buyer, by reviewing and agreeing.
    BuyerReview,
    /// No one.
    Unrecoverable,
}

impl Outcome {
    pub(super) const fn protocol(status: StatusCode, code: &'static str) -> Self {
        Self::Protocol { status, code }
    }

    pub(super) fn error(code: &'static str, resolution: Resolution) -> Self {
        Self::Business(vec![Message {
            kind: Kind::Error,
            code,
            resolution,
        }])
    }
}

/// Writes a refusal, which never became a call, in the form of a profile.
pub(in crate::http) fn refused(
    profile: Profile,
    refusal: &Refusal,
    request_id: &RequestId,
    headers: &HeaderMap,
) -> Response {
    let error = refusal.body();
    let code = refusal.foreign_code();
    let outcome = (
        refusal.status_code(),
        code.unwrap_or(refusal_code(error.code)),
    );
    // A refusal is about the body as it was sent.
    let param = error.details.field.as_deref().map(|field| path("$", field));
    let mut response = protocol_error(profile, error, outcome, param);
    let out = response.headers_mut();
    headed(out, request_id, error);
    if let Some(allow) = headers.get(ALLOW) {
        out.insert(ALLOW, allow.clone());
    }
    if let Some((name, value)) = refusal.extra_header() {
        out.insert(name.clone(), value.clone());
    }
    response
}

/// Builds an error of the request itself.
pub(super) fn protocol_error(
    profile: Profile,
    error: &ErrorBody,
    (status, code): (StatusCode, &str),
    param: Option<String>,
) -> Response {
    let message = text_of(error);
    let mut body = match profile {
        Profile::Acp => acp::flat_error(status, code, &message, param),
        Profile::Ucp => ucp::flat_error(code, &message),
    };
    let versions = error.details.extra.get(SUPPORTED_VERSIONS);
    if let (Value::Object(members), Some(versions)) = (&mut body, versions) {
        members.insert(SUPPORTED_VERSIONS.to_owned(), versions.clone());
    }
    written(status, &body)
}

/// Builds a response with a JSON body.
pub(super) fn written(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, JSON);
    response
}

/// Returns the client's request id header: ours, or that of the standard if ours is missing.
pub(in crate::http) fn request_id(
    profile: Option<Profile>,
    headers: &HeaderMap,
) -> Option<&HeaderValue> {
    let ours = headers.get(X_REQUEST_ID);
    ours.or_else(|| profile.and_then(|_| headers.get(REQUEST_ID)))
}

/// Adds the request id, in our header and in that of the standards.
pub(super) fn named(headers: &mut HeaderMap, request_id: &RequestId) {
    if let Ok(id) = HeaderValue::from_str(request_id.as_str()) {
        headers.insert(X_REQUEST_ID, id.clone());
        headers.insert(REQUEST_ID, id);
    }
}

/// Adds the headers of every error: the request id, our closed code, and `Retry-After` in whole seconds, never
/// too early.
pub(super) fn headed(headers: &mut HeaderMap, request_id: &RequestId, error: &ErrorBody) {
    named(headers, request_id);
    let code = HeaderValue::from_static(error.code.as_str());
    headers.insert(CLOSED_CODE, code);
    if let Some(seconds) = answer::retry_after_seconds(error) {
        headers.insert(RETRY_AFTER, seconds.into());
    }
}

/// Returns the message with its hint: neither standard has a separate place for a hint.
pub(super) fn text_of(error: &ErrorBody) -> String {
    match &error.details.hint {
        Some(hint) => format!("{}; {hint}", error.message),
        None => error.message.to_string(),
    }
}

/// True if an argument is missing, and not only wrong.
pub(super) fn is_missing(error: &ErrorBody) -> bool {
    let mut issues = error.details.issues.iter();
    issues.any(|issue| issue.code == IssueCode::MissingRequired)
}

/// Returns the JSON path of an error's field in the body of a call: among the arguments, or a member of the
/// envelope if the tool has no argument of that name.
pub(super) fn path_in_call(error: &ErrorBody, spec: Option<&ToolSpec>) -> Option<String> {
    let field = error.details.field.as_deref()?;
    let first = field.split('/').nth(1).unwrap_or_default();
    let is_argument = spec.is_some_and(|spec| {
        let schema = spec.json_schema();
        let properties = schema.get("properties");
        properties.is_some_and(|properties| properties.get(first).is_some())
    });
    let is_of_envelope = members::is_of_envelope(first) && !is_argument;
    let root = if is_of_envelope { "$" } else { "$.arguments" };
    Some(path(root, field))
}

/// Converts a JSON pointer to a JSON path (RFC 9535) below a root.
fn path(root: &str, pointer: &str) -> String {
    let mut path = root.to_owned();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        let is_index = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_name = part.bytes().enumerate().all(|(at, byte)| {
            byte == b'_' || byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit())
        });
        if is_index {
            path = format!("{path}[{part}]");
        } else if is_name && !part.is_empty() {
            path = format!("{path}.{part}");
        } else {
            let quoted = part.replace('\\', "\\\\").replace('\'', "\\'");
            path = format!("{path}['{quoted}']");
        }
    }
    path
}

/// Returns the code of a request that never became a call.
const fn refusal_code(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::InvalidArgument | ErrorCode::AddressInvalid => "invalid",
        ErrorCode::Unauthorized => "unauthorized",
        ErrorCode::Forbidden => "forbidden",
        ErrorCode::NotFound => "not_found",
        ErrorCode::Conflict => "conflict",
        ErrorCode::RateLimited => "rate_limited",
        ErrorCode::Timeout => "timeout",
        ErrorCode::UpstreamError => "upstream_error",
        ErrorCode::NeedsUserConfirmation => "approval_required",
        ErrorCode::ComplianceBlocked => "region_restricted",
        ErrorCode::PriceChanged => "price_change",
        ErrorCode::OutOfStock => "out_of_stock",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_becomes_a_path() {
        for (pointer, expected) in [
            ("", "$"),
            ("/sku", "$.sku"),
            ("/items/0/quantity", "$.items[0].quantity"),
            ("/a~1b", "$['a/b']"),
            ("/it's", "$['it\\'s']"),
            ("/", "$['']"),
            ("/2nd", "$['2nd']"),
        ] {
            assert_eq!(path("$", pointer), expected, "{pointer}");
        }
    }
}
