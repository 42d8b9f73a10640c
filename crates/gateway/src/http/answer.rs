//! What goes back: reply envelopes, other JSON, and refusals, each written once into one buffer.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use countersign::archive;
use countersign::contract::{
    ErrorBody, ErrorCode, FaultSource, Language, ReplyEnvelope, RequestId, Wording,
};
use countersign::ledger;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;

use crate::words::Say;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The caller's name for a request, and ours for the answer.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Says that the answer is the stored one of an earlier call with the same key.
pub const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The code of JSON-RPC for a request that was refused before it was a message.
const RPC_REFUSED: i32 = -32001;

/// Room for a usual reply.
const REPLY_BYTES: usize = 1024;

/// Why a request is not answered as it was asked. The edge writes it as a reply envelope, because it
/// knows the request's id.
#[derive(Debug, Clone)]
pub struct Refusal {
    status: StatusCode,
    body: Box<ErrorBody>,
    header: Option<(HeaderName, HeaderValue)>,
    /// The code that a standard of agent commerce has for it, where that is more precise than ours.
    foreign: Option<&'static str>,
}

impl Refusal {
    /// A refusal with the status of its code.
    pub fn new(code: ErrorCode, message: impl Into<Wording>) -> Self {
        ErrorBody::new(code, message).into()
    }

    /// Where HTTP has a more precise status than the code.
    pub(crate) fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<Wording>) -> Self {
        self.body.details.hint = Some(hint.into());
        self
    }

    pub(crate) fn field(mut self, pointer: impl Into<String>) -> Self {
        self.body.details.field = Some(pointer.into());
        self
    }

    /// The same about something that stands deeper in the body.
    pub(super) fn under(mut self, pointer: &str) -> Self {
        let field = &mut self.body.details.field;
        *field = field.take().map(|field| format!("{pointer}{field}"));
        self
    }

    /// Which of the known names was probably meant: in words, and for programs.
    pub(crate) fn did_you_mean(self, name: Option<&str>) -> Self {
        let Some(name) = name else { return self };
        let mut refusal = self.hint(Say::DidYouMean {
            name: name.to_owned(),
        });
        let extra = &mut refusal.body.details.extra;
        extra.insert("did_you_mean".to_owned(), name.into());
        refusal
    }

    /// With a header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some((name, value));
        self
    }

    /// With the code of a standard, for the paths that speak its words.
    pub(super) fn foreign(mut self, code: &'static str) -> Self {
        self.foreign = Some(code);
        self
    }

    /// The code of a standard, where it has one of its own for this.
    pub(super) fn foreign_code(&self) -> Option<&'static str> {
        self.foreign
    }

    /// As a reader of this language gets it.
    pub(super) fn in_language(mut self, language: Language) -> Self {
        self.body = Box::new(self.body.in_language(language));
        self
    }

    /// Why, as a reply envelope says it.
    pub(crate) fn body(&self) -> &ErrorBody {
        &self.body
    }

    /// The status of the answer.
    pub(super) fn status_code(&self) -> StatusCode {
        self.status
    }

    /// The header that it goes with.
    pub(super) fn extra_header(&self) -> Option<&(HeaderName, HeaderValue)> {
        self.header.as_ref()
    }

    /// What the client is sent.
    pub(super) fn answer(self, request_id: RequestId, headers: &HeaderMap) -> Response {
        let response = reply(&ReplyEnvelope::failure(request_id, (*self.body).clone()));
        self.head(response, headers)
    }

    /// What an MCP client is sent: an error of JSON-RPC, because most of them show nothing else to people.
    pub(super) fn rpc_answer(self, request_id: &RequestId, headers: &HeaderMap) -> Response {
        let body = &self.body;
        let message = match &body.details.hint {
            Some(hint) => format!("{body}; {hint}"),
            None => body.to_string(),
        };
        let error = serde_json::json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": {
                "code": RPC_REFUSED,
                "message": message,
                "data": { "request_id": request_id, "error": body },
            },
        });
        let mut response = json(&error);
        if let Ok(id) = HeaderValue::from_str(request_id.as_str()) {
            response.headers_mut().insert(X_REQUEST_ID, id);
        }
        if let Some(seconds) = retry_after_seconds(&self.body) {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        self.head(response, headers)
    }

    fn head(self, mut response: Response, headers: &HeaderMap) -> Response {
        *response.status_mut() = self.status;
        // axum knows which methods a path has.
        if let Some(allow) = headers.get(ALLOW) {
            response.headers_mut().insert(ALLOW, allow.clone());
        }
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl From<ErrorBody> for Refusal {
    fn from(body: ErrorBody) -> Self {
        Self {
            status: StatusCode::from_u16(body.code.http_status()).unwrap_or_default(),
            body: Box::new(body),
            header: None,
            foreign: None,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        response.extensions_mut().insert(self);
        response
    }
}

/// A reply with the status of its code.
pub(crate) fn reply(reply: &ReplyEnvelope) -> Response {
    let mut bytes = Vec::with_capacity(REPLY_BYTES);
    let Ok(()) = serde_json::to_writer(&mut bytes, reply) else {
        return unwritable().into_response();
    };
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = StatusCode::from_u16(reply.http_status()).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    if let Ok(id) = HeaderValue::from_str(reply.request_id.as_str()) {
        headers.insert(X_REQUEST_ID, id);
    }
    if reply.replayed {
        headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    if let Some(seconds) = reply.error.as_ref().and_then(retry_after_seconds) {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// When to come back: whole seconds, and never earlier than the error says.
pub(super) fn retry_after_seconds(error: &ErrorBody) -> Option<u64> {
    let ms = error.details.retry_after_ms?;
    Some(ms.div_ceil(1000))
}

/// Data that is no reply of a tool.
pub(crate) fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => typed(bytes, JSON),
        Err(_) => unwritable().into_response(),
    }
}

/// Bytes of a type.
pub(crate) fn typed(bytes: impl Into<Body>, content_type: HeaderValue) -> Response {
    let mut response = Response::new(bytes.into());
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Plain text.
pub(crate) fn text(text: String) -> Response {
    typed(text, HeaderValue::from_static("text/plain; charset=utf-8"))
}

/// There is no such thing, or none that this caller may see: nobody can tell which.
pub(crate) fn not_found(what: &str, name: &str) -> Refusal {
    let shown: String = name.chars().take(80).collect();
    Refusal::new(
        ErrorCode::NotFound,
        format!("there is no {what} {shown:?} that this credential may see"),
    )
}

/// Something behind the request failed; the log has the cause, the caller does not.
pub(crate) fn gateway_failed(error: &(dyn std::error::Error + 'static)) -> Refusal {
    let error = countersign::redact::error_text(error);
    tracing::error!(error, "a request could not be answered");
    ErrorBody::new(
        ErrorCode::UpstreamError,
        "the gateway could not answer the request",
    )
    .source(FaultSource::Gateway)
    .hint("send the same request again later")
    .into()
}

/// What the archive said, in the closed codes.
impl From<archive::Error> for Refusal {
    fn from(error: archive::Error) -> Self {
        use archive::Error;
        match &error {
            Error::MissingScope { scope } => Self::new(ErrorCode::Forbidden, error.to_string())
                .hint(format!("use a credential with the scope {scope}")),
            Error::NoReason => Self::new(ErrorCode::InvalidArgument, error.to_string())
                .field("/reason")
                .hint("say why in `reason`; it is sealed with the record"),
            Error::NoRecord { id } => not_found("record", id.as_str()),
            Error::UnknownUser { .. } => Self::new(ErrorCode::NotFound, error.to_string())
                .hint("name a user who has made a call, or a record"),
            Error::NoUser | Error::TooMany { .. } | Error::NotCanonical(_) => {
                Self::new(ErrorCode::InvalidArgument, error.to_string())
            }
            Error::NoCheckpoint | Error::NotSignedYet { .. } => {
                // There is no proof yet, and soon there will be.
                let body = ErrorBody::new(ErrorCode::NotFound, error.to_string());
                body.retry_after_ms(SIGNED_SOON_MS)
                    .hint("wait for retry_after_ms, then ask again")
                    .into()
            }
            Error::Held(_) => Self::new(ErrorCode::InvalidArgument, error.to_string()),
            Error::Store(ledger::Error::UnderHold { .. }) => {
                Self::new(ErrorCode::Conflict, error.to_string())
            }
            Error::Store(_)
            | Error::Checkpoint(_)
            | Error::NotGrown(_)
            | Error::Tampered { .. } => gateway_failed(&error),
        }
    }
}

/// A checkpoint is signed at least once a second while something waits for it.
const SIGNED_SOON_MS: u64 = 1_000;

fn unwritable() -> Refusal {
    let message = "the answer could not be written as JSON";
    ErrorBody::new(ErrorCode::UpstreamError, message)
        .source(FaultSource::Gateway)
        .into()
}
