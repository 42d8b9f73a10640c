//! Errors of a tool: one text for the caller, another for the log.

use std::error::Error;
use std::fmt;

use countersign_contract::{ConflictReason, ErrorBody, ErrorCode, FaultSource, Language, Wording};
use serde_json::Value;

use crate::words::Say;

/// A tool's refusal or failure.
///
/// The body goes to the caller, in the language of the caller's locale if its texts have one (see [`Wording`]); the
/// [`source`](Error::source) goes to the log only. There is no constructor for a code of the tool's own: the codes are
/// closed (A11), and an upstream's own code is added beside one of them (A12).
///
/// # Example
///
/// ```
/// use countersign::ToolError;
/// use countersign::contract::ErrorCode;
///
/// let error = ToolError::not_found("there is no note \"n_7\"").field("/note_id");
/// assert_eq!(error.code(), ErrorCode::NotFound);
///
/// let error = ToolError::upstream("E_QUOTA", "the geocoder refused the request")
///     .hint("send the same call again later");
/// assert_eq!(error.body().details.upstream_code.as_deref(), Some("E_QUOTA"));
/// ```
pub struct ToolError(Box<Inner>);

// Boxed: the error is several hundred bytes and every tool's result would carry them.
struct Inner {
    body: ErrorBody,
    source: Option<Box<dyn Error + Send + Sync>>,
    without_effect: bool,
}

impl ToolError {
    /// An error with one of the closed codes.
    pub fn new(code: ErrorCode, message: impl Into<Wording>) -> Self {
        Self::from(ErrorBody::new(code, message))
    }

    /// `INVALID_ARGUMENT`: the argument at this JSON pointer cannot be used.
    pub fn invalid(pointer: impl Into<String>, message: impl Into<Wording>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message).field(pointer)
    }

    /// `NOT_FOUND`: the thing that an argument names does not exist.
    pub fn not_found(message: impl Into<Wording>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    /// `FORBIDDEN`: this user may not do this.
    pub fn forbidden(message: impl Into<Wording>) -> Self {
        Self::new(ErrorCode::Forbidden, message)
    }

    /// `CONFLICT`, with its reason.
    pub fn conflict(reason: ConflictReason, message: impl Into<Wording>) -> Self {
        Self::from(ErrorBody::new(ErrorCode::Conflict, message).reason(reason))
    }

    /// `RATE_LIMITED`: an upstream's limit is reached until then.
    pub fn rate_limited(retry_after_ms: u64, message: impl Into<Wording>) -> Self {
        Self::from(ErrorBody::new(ErrorCode::RateLimited, message).retry_after_ms(retry_after_ms))
    }

    /// `TIMEOUT`: an upstream did not answer in time.
    pub fn timeout(message: impl Into<Wording>) -> Self {
        Self::from(ErrorBody::new(ErrorCode::Timeout, message).source(FaultSource::Upstream))
    }

    /// `UPSTREAM_ERROR`: an upstream of the tool failed, with the upstream's own code (A12).
    pub fn upstream(upstream_code: impl Into<String>, message: impl Into<Wording>) -> Self {
        let mut body =
            ErrorBody::new(ErrorCode::UpstreamError, message).source(FaultSource::Upstream);
        body.details.upstream_code = Some(upstream_code.into());
        Self::from(body)
    }

    /// Adds a hint: the next step for the caller.
    pub fn hint(mut self, hint: impl Into<Wording>) -> Self {
        self.0.body.details.hint = Some(hint.into());
        self
    }

    /// Names the argument by its JSON pointer.
    pub fn field(mut self, pointer: impl Into<String>) -> Self {
        self.0.body.details.field = Some(pointer.into());
        self
    }

    /// Adds a member of the tool's own to `details`.
    pub fn detail(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.body.details.extra.insert(name.into(), value.into());
        self
    }

    /// Names the upstream's own code beside the closed one (A12).
    pub fn upstream_code(mut self, code: impl Into<String>) -> Self {
        self.0.body.details.upstream_code = Some(code.into());
        self
    }

    /// Adds the cause for the log; the caller never sees it.
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Marks the error as one without an external effect, although the code would leave that open, so that the key of
    /// the call may be used again (a refused connection, for instance).
    pub fn without_effect(mut self) -> Self {
        self.0.without_effect = true;
        self
    }

    /// The code.
    pub fn code(&self) -> ErrorCode {
        self.0.body.code
    }

    /// The body for the caller.
    pub fn body(&self) -> &ErrorBody {
        &self.0.body
    }

    /// The error in this language. The executor does this for the caller's language; a tool that quotes another error
    /// has to call it.
    pub fn in_language(mut self, language: Language) -> Self {
        self.0.body = self.0.body.in_language(language);
        self
    }

    /// True if the tool may have had an external effect: the answer was lost, not given.
    pub fn leaves_doubt(&self) -> bool {
        !self.0.without_effect
            && match self.code() {
                ErrorCode::Timeout | ErrorCode::UpstreamError => true,
                ErrorCode::InvalidArgument
                | ErrorCode::Unauthorized
                | ErrorCode::Forbidden
                | ErrorCode::NotFound
                | ErrorCode::Conflict
                | ErrorCode::RateLimited
                | ErrorCode::NeedsUserConfirmation
                | ErrorCode::ComplianceBlocked
                | ErrorCode::PriceChanged
                | ErrorCode::OutOfStock
                | ErrorCode::AddressInvalid => false,
            }
    }

    pub(crate) fn into_body(self) -> ErrorBody {
        self.0.body
    }

    /// The error for an argument that the declaration accepts and the Rust type refuses.
    ///
    /// The message of serde may quote the argument, so it is shown only if nothing is sensitive.
    pub(crate) fn unreadable_arguments(error: &serde_json::Error, is_quotable: bool) -> Self {
        let message = if is_quotable {
            Say::NotOfTheTool {
                why: error.to_string(),
            }
        } else {
            Say::NotOfTheToolAt {
                column: error.column().to_string(),
            }
        };
        Self::new(ErrorCode::InvalidArgument, message)
    }

    pub(crate) fn unwritable_output(error: serde_json::Error) -> Self {
        let body =
            ErrorBody::new(ErrorCode::UpstreamError, Say::AnswerNotJson).source(FaultSource::Tool);
        Self::from(body).with_source(error)
    }
}

impl From<ErrorBody> for ToolError {
    fn from(body: ErrorBody) -> Self {
        Self(Box::new(Inner {
            body,
            source: None,
            without_effect: false,
        }))
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError")
            .field("body", &self.0.body)
            .field("source", &self.0.source)
            .finish()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.body.fmt(f)
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
