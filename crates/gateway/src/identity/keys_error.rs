//! Why something could not be done with an API key.

use std::borrow::Cow;

use countersign::contract::{ErrorBody, ErrorCode, FaultSource};
use countersign::ledger;

/// Why something could not be done with an API key.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ledger::Error),
    /// What was asked for cannot be a key.
    #[error("{field} must be {form}")]
    Invalid {
        /// Where, as a JSON Pointer.
        field: &'static str,
        /// What it has to be.
        form: Cow<'static, str>,
    },
    /// The key could do more than its maker.
    #[error("{field} must be {form}: a key can do no more than its maker")]
    Beyond {
        /// Where, as a JSON Pointer.
        field: &'static str,
        /// What it has to be.
        form: &'static str,
    },
    /// There is no such key.
    #[error("there is no key {id:?}")]
    NoKey {
        /// Its public name.
        id: String,
    },
    /// It was revoked, or its time is over.
    #[error("the key {id:?} has ended")]
    Ended {
        /// Its public name.
        id: String,
    },
    /// There are as many as there may be.
    #[error("there are {limit} keys, and no more may be")]
    Full {
        /// How many.
        limit: usize,
    },
    /// Others kept changing the same key.
    #[error("the key was changed by somebody else at the same time")]
    Busy,
    /// The caller may not manage keys.
    #[error("the credential does not grant {scope:?}")]
    MissingScope {
        /// What it would have to grant.
        scope: &'static str,
    },
}

impl KeysError {
    pub(super) fn invalid(field: &'static str, form: impl Into<Cow<'static, str>>) -> Self {
        let form = form.into();
        Self::Invalid { field, form }
    }

    /// What the caller is told.
    pub fn body(&self) -> ErrorBody {
        let message = self.to_string();
        match self {
            Self::Store(_) => ErrorBody::new(ErrorCode::UpstreamError, "the store does not answer")
                .source(FaultSource::Gateway)
                .hint("send the same request again later"),
            Self::Invalid { field, .. } => ErrorBody::new(ErrorCode::InvalidArgument, message)
                .field(*field)
                .hint("correct it and send the request again"),
            Self::Beyond { field, .. } => ErrorBody::new(ErrorCode::Forbidden, message)
                .field(*field)
                .hint("let somebody make it who has that right, or the operator"),
            Self::NoKey { .. } => {
                ErrorBody::new(ErrorCode::NotFound, message).hint("GET /v1/keys lists all keys")
            }
            Self::Ended { .. } => ErrorBody::new(ErrorCode::InvalidArgument, message)
                .hint("make a new key in its place"),
            Self::Full { .. } => ErrorBody::new(ErrorCode::InvalidArgument, message)
                .hint("revoke keys; they are forgotten 30 days later"),
            Self::Busy => ErrorBody::new(ErrorCode::Conflict, message)
                .hint("look at the key and send the request again"),
            Self::MissingScope { scope } => ErrorBody::new(ErrorCode::Forbidden, message)
                .hint(format!("use a credential with the scope {scope}")),
        }
    }
}
