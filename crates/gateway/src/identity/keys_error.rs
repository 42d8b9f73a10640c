//! Errors of operations on API keys.

use std::borrow::Cow;

use countersign::contract::{ErrorBody, ErrorCode, FaultSource};
use countersign::ledger;

use crate::words::Say;

/// Reason why an operation on an API key failed.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The store failed. Usually the database cannot be reached, or the disk is full.
    #[error(transparent)]
    Store(#[from] ledger::Error),
    /// A field of the requested key is not valid. Usually it is empty, too long or has a space.
    #[error("{field} must be {form}")]
    Invalid {
        /// Field, as a JSON Pointer.
        field: &'static str,
        /// Required form.
        form: Cow<'static, str>,
    },
    /// The key would have more rights than its creator. Usually a scope is asked for that the creator does not have.
    #[error("{field} must be {form}: a key can do no more than its maker")]
    Beyond {
        /// Field, as a JSON Pointer.
        field: &'static str,
        /// Required form.
        form: &'static str,
    },
    /// No key that this caller may see has this id. Usually the key itself was given in place of its id.
    #[error("there is no key {id:?}")]
    NoKey {
        /// Public id.
        id: String,
    },
    /// The key was revoked or has expired. Usually it was rotated, and its grace is over.
    #[error("the key {id:?} has ended")]
    Ended {
        /// Public id.
        id: String,
    },
    /// The maximum number of keys is reached. Usually a program makes a key for each run and never revokes it.
    #[error("there are {limit} keys, which is the maximum")]
    Full {
        /// The maximum.
        limit: usize,
    },
    /// Other processes kept changing the same key.
    /// Usually several replicas use one key at the same moment; try again.
    #[error("the key was changed at the same time; try again")]
    Busy,
    /// The caller's credential lacks the scope for managing keys.
    /// Usually the key was made without `--scope keys:manage`.
    #[error("the credential does not grant {scope:?}")]
    MissingScope {
        /// Missing scope.
        scope: &'static str,
    },
}

impl KeysError {
    pub(super) fn invalid(field: &'static str, form: impl Into<Cow<'static, str>>) -> Self {
        let form = form.into();
        Self::Invalid { field, form }
    }

    /// Builds the error body for the caller.
    pub fn body(&self) -> ErrorBody {
        let message = self.to_string();
        match self {
            Self::Store(_) => ErrorBody::new(ErrorCode::UpstreamError, Say::StoreSilent)
                .source(FaultSource::Gateway)
                .hint(Say::SameRequestLater),
            Self::Invalid { field, .. } => ErrorBody::new(ErrorCode::InvalidArgument, message)
                .field(*field)
                .hint(Say::CorrectAndSend),
            Self::Beyond { field, .. } => ErrorBody::new(ErrorCode::Forbidden, message)
                .field(*field)
                .hint(Say::LetAnotherMakeIt),
            Self::NoKey { .. } => {
                ErrorBody::new(ErrorCode::NotFound, message).hint(Say::ListOfKeys)
            }
            Self::Ended { .. } => {
                ErrorBody::new(ErrorCode::InvalidArgument, message).hint(Say::NewKeyInstead)
            }
            Self::Full { .. } => {
                ErrorBody::new(ErrorCode::InvalidArgument, message).hint(Say::RevokeKeys)
            }
            Self::Busy => ErrorBody::new(ErrorCode::Conflict, message).hint(Say::LookAtKey),
            Self::MissingScope { scope } => {
                ErrorBody::new(ErrorCode::Forbidden, message).hint(Say::UseScope {
                    scope: (*scope).to_owned(),
                })
            }
        }
    }
}
