//! The body around an error code: the fault, its place, the remedy, and whether a retry is safe.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error_code::{ErrorCode, Retry};
use crate::issue::Issue;
use crate::language::{Language, Wording};

/// The `error` of a reply envelope: a code, one sentence for the caller, and details.
///
/// # Example
///
/// ```
/// use countersign_contract::{ErrorBody, ErrorCode};
///
/// let error = ErrorBody::new(ErrorCode::RateLimited, "60 calls a minute are used up")
///     .hint("wait for retry_after_ms, then send the same call again")
///     .retry_after_ms(1_500);
/// assert!(error.details.retryable);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ErrorBody {
    /// Error code.
    pub code: ErrorCode,
    /// One sentence for the caller, in the language of the call's locale. Lower case, no full stop; it names the
    /// thing and the limit.
    pub message: Wording,
    /// Details.
    pub details: ErrorDetails,
}

/// `error.details`: the same members for every tool, plus the tool's own members in `extra`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ErrorDetails {
    /// True if sending the same call again can succeed.
    pub retryable: bool,
    /// Time to wait before a retry, in milliseconds, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Hint: what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Wording>,
    /// JSON pointer to the argument that caused the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Reason of a `CONFLICT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ConflictReason>,
    /// Side that failed, with `UPSTREAM_ERROR` and `TIMEOUT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<FaultSource>,
    /// Original error code of the upstream (A12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_code: Option<String>,
    /// Issues that the binder found, with `INVALID_ARGUMENT`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<Issue>,
    /// Further members of the tool: data, never a code.
    #[serde(flatten, default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// Reason of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConflictReason {
    /// The first call with this key is still running.
    InFlight,
    /// The key was used for other arguments.
    KeyReused,
    /// The stored answer of the key has expired. The call is refused and never runs again.
    KeyExpired,
    /// It is not known whether the first call had its effect.
    InDoubt,
    /// Data that the call read was changed by another call.
    Version,
    /// Stock is locked by another call.
    Stock,
}

/// Side that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FaultSource {
    /// Countersign itself: the store is down, a step could not be completed.
    Gateway,
    /// The tool's own code: a panic, an output that could not be written as JSON.
    Tool,
    /// A service that the tool called.
    Upstream,
}

impl ConflictReason {
    /// Every reason.
    pub const ALL: [Self; 6] = [
        Self::InFlight,
        Self::KeyReused,
        Self::KeyExpired,
        Self::InDoubt,
        Self::Version,
        Self::Stock,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::KeyReused => "key_reused",
            Self::KeyExpired => "key_expired",
            Self::InDoubt => "in_doubt",
            Self::Version => "version",
            Self::Stock => "stock",
        }
    }
}

impl FaultSource {
    /// Every source.
    pub const ALL: [Self; 3] = [Self::Gateway, Self::Tool, Self::Upstream];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Tool => "tool",
            Self::Upstream => "upstream",
        }
    }
}

impl ErrorBody {
    /// Creates an error. `retryable` follows from the retry class of the code.
    pub fn new(code: ErrorCode, message: impl Into<Wording>) -> Self {
        let details = ErrorDetails {
            retryable: code.retry() == Retry::Later,
            ..ErrorDetails::default()
        };
        Self {
            code,
            message: message.into(),
            details,
        }
    }

    /// Sets the hint: what to do.
    pub fn hint(mut self, hint: impl Into<Wording>) -> Self {
        self.details.hint = Some(hint.into());
        self
    }

    /// Returns the error in this language.
    pub fn in_language(mut self, language: Language) -> Self {
        self.message = self.message.in_language(language);
        let hint = self.details.hint.take();
        self.details.hint = hint.map(|hint| hint.in_language(language));
        self
    }

    /// Sets the argument that caused the error, as a JSON pointer.
    pub fn field(mut self, pointer: impl Into<String>) -> Self {
        self.details.field = Some(pointer.into());
        self
    }

    /// Sets the reason of a `CONFLICT`. Only `in_flight` is retryable without a change.
    pub fn reason(mut self, reason: ConflictReason) -> Self {
        self.details.reason = Some(reason);
        self.details.retryable = match reason {
            ConflictReason::InFlight | ConflictReason::Version | ConflictReason::Stock => true,
            ConflictReason::KeyReused | ConflictReason::KeyExpired | ConflictReason::InDoubt => {
                false
            }
        };
        self
    }

    /// Sets the side that failed.
    pub fn source(mut self, source: FaultSource) -> Self {
        self.details.source = Some(source);
        self
    }

    /// Sets the time after which the same call may be sent again, and makes the error retryable.
    pub fn retry_after_ms(mut self, ms: u64) -> Self {
        self.details.retry_after_ms = Some(ms);
        self.details.retryable = true;
        self
    }

    /// Adds a member of the tool to `details`.
    pub fn detail(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.details.extra.insert(name.into(), value.into());
        self
    }
}

impl std::fmt::Display for ErrorBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ErrorBody {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `as_str` and serde are two ways to the same name.
    #[test]
    fn names_are_those_on_the_wire() {
        for reason in ConflictReason::ALL {
            assert_eq!(json!(reason), reason.as_str());
        }
        for source in FaultSource::ALL {
            assert_eq!(json!(source), source.as_str());
        }
        for retry in [Retry::Later, Retry::AfterChange, Retry::Never] {
            assert_eq!(json!(retry), retry.as_str());
        }
        for code in ErrorCode::ALL {
            assert_eq!(json!(code), code.as_str());
        }
    }
}
