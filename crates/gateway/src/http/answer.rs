//! Answers: reply envelopes, other JSON, and refusals, each written once into one buffer.

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

/// Header with the caller's request id, and with the gateway's in the answer.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Header that marks the stored answer of an earlier call with the same idempotency key.
pub const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// JSON-RPC error code for a request that was refused before it was a message.
const RPC_REFUSED: i32 = -32001;

/// Buffer size of a usual reply, in bytes.
const REPLY_BYTES: usize = 1024;

/// Reason why a request is refused. The edge writes it as a reply envelope, because it knows the request's id.
#[derive(Debug, Clone)]
pub struct Refusal {
    status: StatusCode,
    body: Box<ErrorBody>,
    header: Option<(HeaderName, HeaderValue)>,
    /// Code of an agent commerce standard, if it is more precise than the closed code.
    foreign: Option<&'static str>,
}

impl Refusal {
    /// Creates a refusal with the status of its code.
    pub fn new(code: ErrorCode, message: impl Into<Wording>) -> Self {
        ErrorBody::new(code, message).into()
    }

    /// Sets another HTTP status, if one is more precise than that of the code.
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

    /// Moves the refusal's field to a pointer deeper in the body.
    pub(super) fn under(mut self, pointer: &str) -> Self {
        let field = &mut self.body.details.field;
        *field = field.take().map(|field| format!("{pointer}{field}"));
        self
    }

    /// Adds the known name that was probably meant: as a hint, and for programs.
    pub(crate) fn did_you_mean(self, name: Option<&str>) -> Self {
        let Some(name) = name else { return self };
        let mut refusal = self.hint(Say::DidYouMean {
            name: name.to_owned(),
        });
        let extra = &mut refusal.body.details.extra;
        extra.insert("did_you_mean".to_owned(), name.into());
        refusal
    }

    /// Adds a header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some((name, value));
        self
    }

    /// Adds the code of a standard, for the paths of that standard.
    pub(super) fn foreign(mut self, code: &'static str) -> Self {
        self.foreign = Some(code);
        self
    }

    /// Returns the code of a standard, if it has one of its own for this.
    pub(super) fn foreign_code(&self) -> Option<&'static str> {
        self.foreign
    }

    /// Translates the refusal to a language.
    pub(super) fn in_language(mut self, language: Language) -> Self {
        self.body = Box::new(self.body.in_language(language));
        self
    }

    /// Returns the error body of the reply envelope.
    pub(crate) fn body(&self) -> &ErrorBody {
        &self.body
    }

    /// Returns the status of the answer.
    pub(super) fn status_code(&self) -> StatusCode {
        self.status
    }

    /// Returns the additional header.
    pub(super) fn extra_header(&self) -> Option<&(HeaderName, HeaderValue)> {
        self.header.as_ref()
    }

    /// Builds the response to the client.
    pub(super) fn answer(self, request_id: RequestId, headers: &HeaderMap) -> Response {
        let response = reply(&ReplyEnvelope::failure(request_id, (*self.body).clone()));
        self.head(response, headers)
    }

    /// Builds the response to an MCP client: a JSON-RPC error, because most of these clients show nothing else
    /// to people.
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
        // axum sets the methods that a path has.
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

/// Builds the response of a reply, with the status of its code.
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

/// Returns the value of `Retry-After`: whole seconds, and never earlier than the error says.
pub(super) fn retry_after_seconds(error: &ErrorBody) -> Option<u64> {
    let ms = error.details.retry_after_ms?;
    Some(ms.div_ceil(1000))
}

/// Builds a JSON response that is not a reply of a tool.
pub(crate) fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => typed(bytes, JSON),
        Err(_) => unwritable().into_response(),
    }
}

/// Builds a response of a content type.
pub(crate) fn typed(bytes: impl Into<Body>, content_type: HeaderValue) -> Response {
    let mut response = Response::new(bytes.into());
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Builds a response of plain text.
pub(crate) fn text(text: String) -> Response {
    typed(text, HeaderValue::from_static("text/plain; charset=utf-8"))
}

/// Refuses an unknown name. A name that the caller may not see is answered in the same way, so that the two
/// cannot be told apart.
pub(crate) fn not_found(kind: Kind, name: &str) -> Refusal {
    let name: String = name.chars().take(80).collect();
    let message = match kind {
        Kind::Call => Say::NoCallSeen { name },
        Kind::Case => Say::NoCaseSeen { name },
        Kind::Record => Say::NoRecordSeen { name },
        Kind::Session => Say::NoSessionSeen { name },
        Kind::Tile => Say::NoTileSeen { name },
        Kind::Tool => Say::NoToolSeen { name },
        Kind::Upstream => Say::NoUpstreamSeen { name },
    };
    Refusal::new(ErrorCode::NotFound, message)
}

/// Kinds of things that a request names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Call,
    Case,
    Record,
    Session,
    Tile,
    Tool,
    Upstream,
}

/// Refuses because the gateway failed; the cause goes to the log, not to the caller.
pub(crate) fn gateway_failed(error: &(dyn std::error::Error + 'static)) -> Refusal {
    let error = countersign::redact::error_text(error);
    tracing::error!(error, "the gateway failed, so a request was not answered");
    ErrorBody::new(ErrorCode::UpstreamError, Say::NotAnswered)
        .source(FaultSource::Gateway)
        .hint(Say::SameRequestLater)
        .into()
}

/// Maps errors of the archive to the closed codes.
impl From<archive::Error> for Refusal {
    fn from(error: archive::Error) -> Self {
        use archive::Error;
        match &error {
            Error::MissingScope { scope } => Self::new(
                ErrorCode::Forbidden,
                Say::ScopeMissing {
                    scope: format!("{scope:?}"),
                },
            )
            .hint(Say::UseScope {
                scope: (*scope).to_owned(),
            }),
            Error::NoReason => Self::new(ErrorCode::InvalidArgument, Say::NoReason)
                .field("/reason")
                .hint(Say::ReasonNeeded),
            Error::NoRecord { id } => not_found(Kind::Record, id.as_str()),
            Error::UnknownUser { user_id } => Self::new(
                ErrorCode::NotFound,
                Say::UnknownUser {
                    user_id: user_id.clone(),
                },
            )
            .hint(Say::NameKnownUser),
            Error::NameTheUser { .. } => Self::new(ErrorCode::InvalidArgument, error.to_string())
                .field("/user")
                .hint(Say::NameTheUser),
            Error::NoUser => Self::new(ErrorCode::InvalidArgument, Say::NoUserId),
            Error::TooMany { .. } | Error::NotCanonical(_) => {
                Self::new(ErrorCode::InvalidArgument, error.to_string())
            }
            Error::NoCheckpoint => signed_soon(Say::NoCheckpoint),
            Error::NotSignedYet { id } => signed_soon(Say::NotSignedYet { id: id.to_string() }),
            Error::NoSigner => {
                Self::new(ErrorCode::NotFound, Say::NoSigningKey).hint(Say::NoSigner)
            }
            Error::Held(_) => Self::new(ErrorCode::InvalidArgument, error.to_string()),
            Error::Store(ledger::Error::UnderHold { reason }) => Self::new(
                ErrorCode::Conflict,
                Say::UnderHold {
                    reason: reason.clone(),
                },
            ),
            Error::Store(_)
            | Error::Checkpoint(_)
            | Error::NotGrown(_)
            | Error::NotARecord { .. }
            | Error::Receipt(_)
            | Error::Tampered { .. } => gateway_failed(&error),
        }
    }
}

/// Refuses a proof that will be there soon.
fn signed_soon(message: Say) -> Refusal {
    let body = ErrorBody::new(ErrorCode::NotFound, message).retry_after_ms(SIGNED_SOON_MS);
    body.hint(Say::WaitThenAsk).into()
}

/// Time until the next checkpoint: one is signed at least once a second while records wait for it.
const SIGNED_SOON_MS: u64 = 1_000;

fn unwritable() -> Refusal {
    let message = "the answer could not be written as JSON";
    ErrorBody::new(ErrorCode::UpstreamError, message)
        .source(FaultSource::Gateway)
        .into()
}
