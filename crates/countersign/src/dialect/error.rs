//! What can go wrong on the way out and on the way in.

use countersign_contract::{ErrorBody, ErrorCode, FaultSource, ToolName};

use super::schema::SchemaProblem;
use super::{CALLS_MAX, MESSAGE_BYTES_MAX};

/// Why a list of tools cannot be shown to a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolListError {
    /// A tool's schema has no form that the provider accepts.
    #[error("the schema of {tool} cannot be shown at {path:?}: {problem}")]
    Schema {
        /// The tool.
        tool: ToolName,
        /// JSON pointer into its schema.
        path: String,
        /// What is wrong there.
        #[source]
        problem: SchemaProblem,
    },
    /// Two tools have the same name in front of a provider.
    #[error("{first} and {second} are both called {alias:?} in front of a provider; rename one")]
    NameTaken {
        /// The name they share.
        alias: String,
        /// The tool that comes first.
        first: ToolName,
        /// The other.
        second: ToolName,
    },
    /// The list does not fit, with everything cut that may be cut.
    #[error(
        "the list needs about {needed} tokens at least, the budget is {budget}; offer fewer tools"
    )]
    BudgetTooSmall {
        /// The estimate after every cut.
        needed: usize,
        /// What was allowed.
        budget: usize,
    },
}

/// Why a message or an event of a provider cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The text is larger than is read.
    #[error("the message has {bytes} bytes, the limit is {MESSAGE_BYTES_MAX}")]
    TooLarge {
        /// How large it is.
        bytes: usize,
    },
    /// The text is not JSON.
    #[error("the message is not JSON, see line {line} column {column}")]
    NotJson {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// A member that the dialect always has is not there, null or empty.
    #[error("{path} is missing")]
    Missing {
        /// JSON pointer into the message.
        path: String,
    },
    /// A value is of another type than the dialect has there.
    #[error("{path:?} should be {expected} and is {found}")]
    Expected {
        /// JSON pointer into the message; empty for the whole.
        path: String,
        /// What the dialect has there.
        expected: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// The provider has it, this dialect does not read it.
    #[error("at {path:?}: {what}")]
    Unsupported {
        /// JSON pointer into the message.
        path: String,
        /// What it is and what to do instead.
        what: &'static str,
    },
    /// Two parts of a stream contradict each other.
    #[error("at {path:?}: {what}")]
    Contradiction {
        /// JSON pointer into the event.
        path: String,
        /// What does not agree.
        what: &'static str,
    },
    /// More calls than one message may have.
    #[error("the message has more than {CALLS_MAX} calls")]
    TooManyCalls,
    /// The provider itself reported that it failed.
    #[error("the provider failed: {message}")]
    Provider {
        /// Its own code, where it gave one.
        code: Option<String>,
        /// Its own words.
        message: String,
    },
}

impl From<&DecodeError> for ErrorCode {
    fn from(error: &DecodeError) -> Self {
        match error {
            DecodeError::TooLarge { .. }
            | DecodeError::NotJson { .. }
            | DecodeError::Missing { .. }
            | DecodeError::Expected { .. }
            | DecodeError::Unsupported { .. }
            | DecodeError::Contradiction { .. }
            | DecodeError::TooManyCalls => Self::InvalidArgument,
            DecodeError::Provider { .. } => Self::UpstreamError,
        }
    }
}

impl From<&DecodeError> for ErrorBody {
    /// A provider's own failure keeps the provider's code in its details (A12).
    fn from(error: &DecodeError) -> Self {
        let body = Self::new(ErrorCode::from(error), error.to_string());
        match error {
            DecodeError::Provider { code, .. } => {
                let mut body = body.source(FaultSource::Upstream);
                body.details.upstream_code.clone_from(code);
                body
            }
            DecodeError::Missing { path }
            | DecodeError::Expected { path, .. }
            | DecodeError::Unsupported { path, .. }
            | DecodeError::Contradiction { path, .. } => body.field(path.clone()),
            DecodeError::TooLarge { .. }
            | DecodeError::NotJson { .. }
            | DecodeError::TooManyCalls => body,
        }
    }
}
