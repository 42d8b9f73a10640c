//! Helpers that all commands for API keys share.

use std::future::Future;

use countersign::Principal;
use countersign::contract::{ErrorBody, ErrorCode};
use countersign_gateway::identity::{ApiKeys, IssuedKey, KeysError};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::journal::Journal;
use crate::place::{Place, store_failed};

/// Does something with the keys in a store, and signs its record.
pub(super) fn in_store<T, F>(
    place: &Place,
    deed: impl FnOnce(ApiKeys, Principal) -> F,
) -> Result<T, Failure>
where
    F: Future<Output = Result<T, KeysError>>,
{
    let mut journal = Journal::start(place)?;
    let done = place
        .runtime
        .block_on(deed(place.api_keys(), place.by.clone()));
    let done = done.map_err(keys_failed)?;
    journal.sign(place)?;
    Ok(done)
}

/// A new key as a server writes it.
pub(super) fn issued(issued: &IssuedKey) -> Value {
    json!({"key": issued.key, "secret": issued.token.as_str()})
}

/// Turns an error of the API keys into a failure with a hint.
pub(super) fn keys_failed(error: KeysError) -> Failure {
    match error {
        KeysError::Store(error) => store_failed(error),
        KeysError::Invalid { .. }
        | KeysError::Beyond { .. }
        | KeysError::NoKey { .. }
        | KeysError::Ended { .. }
        | KeysError::Full { .. }
        | KeysError::Busy
        | KeysError::MissingScope { .. } => refused(error.body()),
    }
}

/// Turns a refusal into a failure, with a hint for the command line in place of the one for HTTP.
fn refused(error: ErrorBody) -> Failure {
    let failure = Failure::new(error.message);
    if error.code == ErrorCode::NotFound {
        return failure.hint("`countersign keys list` lists all keys");
    }
    if error.details.field.is_some() {
        return failure;
    }
    if error.code == ErrorCode::Conflict {
        return failure
            .refused()
            .hint("check the key with `countersign keys list` and try again");
    }
    match error.details.hint {
        Some(hint) => failure.refused().hint(hint),
        None => failure.refused(),
    }
}
