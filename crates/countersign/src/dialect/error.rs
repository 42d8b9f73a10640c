//! Errors of showing tools to a provider, and of reading its messages.

use countersign_contract::{ErrorBody, ErrorCode, FaultSource, ToolName};

use super::schema::SchemaProblem;
use super::{CALLS_MAX, MESSAGE_BYTES_MAX};

/// Errors of a tool list that cannot be shown to a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolListError {
    /// A tool's schema has no form that the provider accepts.
    /// Usually it is recursive, or has a composition at its root.
    #[error("the schema of {tool} cannot be shown at {path:?}: {problem}")]
    Schema {
        /// The tool.
        tool: ToolName,
        /// JSON pointer into its schema.
        path: String,
        /// The problem.
        #[source]
        problem: SchemaProblem,
    },
    /// Two tools have the same alias. Usually their names differ only in characters that aliases do not have.
    #[error("{first} and {second} are both called {alias:?} in front of a provider; rename one")]
    NameTaken {
        /// The name they share.
        alias: String,
        /// The tool that comes first.
        first: ToolName,
        /// The other.
        second: ToolName,
    },
    /// The list does not fit into the token budget, with everything cut that may be cut. Usually it has too many tools.
    #[error(
        "the list needs about {needed} tokens at least, the budget is {budget}; offer fewer tools"
    )]
    BudgetTooSmall {
        /// The estimate after every cut.
        needed: usize,
        /// The token budget.
        budget: usize,
    },
}

/// Errors of a provider's message or event that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The message is larger than the maximum. Usually a whole conversation was sent in place of one message.
    #[error("the message has {bytes} bytes, the limit is {MESSAGE_BYTES_MAX}")]
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
    },
    /// The text is not JSON. Usually it was cut off, or is an error page of a proxy.
    #[error("the message is not JSON, see line {line} column {column}")]
    NotJson {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// A required member is missing, null or empty. Usually the message is of another dialect.
    #[error("{path} is missing")]
    Missing {
        /// JSON pointer into the message.
        path: String,
    },
    /// A value has another type than the dialect requires. Usually the message is of another dialect.
    #[error("{path:?} should be {expected} and is {found}")]
    Expected {
        /// JSON pointer into the message; empty for the whole.
        path: String,
        /// The required type.
        expected: &'static str,
        /// The type that was found.
        found: &'static str,
    },
    /// The provider has this feature, but this dialect does not read it.
    /// Usually it is a built-in tool of the provider.
    #[error("at {path:?}: {what}")]
    Unsupported {
        /// JSON pointer into the message.
        path: String,
        /// The feature, and the alternative.
        what: &'static str,
    },
    /// Two parts of a stream contradict each other. Usually events of two messages were mixed, or one was lost.
    #[error("at {path:?}: {what}")]
    Contradiction {
        /// JSON pointer into the event.
        path: String,
        /// The contradiction.
        what: &'static str,
    },
    /// A text ends inside thinking, or inside a call whose name has not arrived.
    /// Usually the model has reached its token limit.
    #[error("the text ends before its call does; raise the token limit and ask again")]
    CutOff,
    /// The message has more calls than the maximum. Usually the model repeats itself.
    #[error("the message has more than {CALLS_MAX} calls")]
    TooManyCalls,
    /// The provider itself reported that it failed.
    /// Usually it is overloaded, or a filter of the provider stopped the answer.
    #[error("the provider failed: {message}")]
    Provider {
        /// Its own code, if it gave one.
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
            | DecodeError::CutOff
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
            | DecodeError::CutOff
            | DecodeError::TooManyCalls => body,
        }
    }
}
