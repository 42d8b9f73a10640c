//! Where API keys are kept: in the store, or with the server that holds it.

use std::future::Future;

use countersign::Principal;
use countersign::contract::{ErrorBody, ErrorCode};
use countersign_gateway::identity::{ApiKeys, IssuedKey, KeysError};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::journal::Journal;
use crate::place::{Place, PlaceOptions, operator, store_failed};
use crate::running::Running;
use crate::terminal::Terminal;

/// Either of the two. Both answer with the same JSON.
pub(super) enum Shelf {
    Server(Running),
    Store(Box<Place>),
}

impl Shelf {
    /// A server that runs goes first: it may be the only one who can open the store.
    pub(super) fn open(options: &PlaceOptions) -> Result<Self, Failure> {
        match options.running()? {
            Some(running) => Ok(Self::Server(running)),
            None => Ok(Self::Store(Box::new(options.open()?))),
        }
    }

    /// The same, made where there is none.
    pub(super) fn open_or_make(
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Self, Failure> {
        match options.running()? {
            Some(running) => Ok(Self::Server(running)),
            None if options.is_memory()? => Err(Failure::new("a store in memory keeps no keys")
                .hint("leave --store out, or name a store that stays")),
            None => Ok(Self::Store(Box::new(options.open_or_make(terminal)?))),
        }
    }
}

/// Does something with the keys in a store, and signs its record.
pub(super) fn in_store<T, F>(
    place: &Place,
    deed: impl FnOnce(ApiKeys, Principal) -> F,
) -> Result<T, Failure>
where
    F: Future<Output = Result<T, KeysError>>,
{
    let mut journal = Journal::start(place)?;
    let done = place.runtime.block_on(deed(place.api_keys(), operator()));
    let done = done.map_err(keys_failed)?;
    journal.sign(place)?;
    Ok(done)
}

/// A new key as a server writes it.
pub(super) fn issued(issued: &IssuedKey) -> Value {
    json!({"key": issued.key, "secret": issued.token.as_str()})
}

/// What to do where keys could not be read or changed.
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

/// The same where a server said it. Its hints are for whoever speaks HTTP.
pub(super) fn refused(error: ErrorBody) -> Failure {
    let failure = Failure::new(error.message);
    if error.code == ErrorCode::NotFound {
        return failure.hint("`countersign keys list` lists all keys");
    }
    if error.details.field.is_some() {
        return failure;
    }
    if error.code == ErrorCode::Conflict {
        return failure.refused().hint("look at the key and try again");
    }
    match error.details.hint {
        Some(hint) => failure.refused().hint(hint),
        None => failure.refused(),
    }
}
