//! The log of a restored store: the same one where nothing is lost, a new one where something is.

use std::path::PathBuf;

use countersign::contract::{RecordKind, Retention};
use countersign::ledger::{Entry, Installation};
use countersign::scribe::Act;
use countersign::{approve, grant};
use countersign_gateway::identity::API_KEYS;
use serde_json::{Value, json};

use super::judge::Judgement;
use super::{How, Outcome, would_lose};
use crate::backend::StoreName;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::journal::Journal;
use crate::keys;
use crate::place::{Place, PlaceOptions, store_failed};

/// Looks at a store that was put in its place by other means.
pub(super) fn restore_in_place(
    data: PathBuf,
    store: &StoreName,
    options: &PlaceOptions,
    accept_loss: bool,
) -> Result<Outcome, Failure> {
    let place = Place::open_copy(Folder::existing(data)?, store, options)?;
    let is_copy = installation(&place)?.is_copy;
    let how = go_on(&place, is_copy, accept_loss)?;
    finish(place, store, options, how)
}

/// Binds a restored store to its log, or to a new one; nothing is signed yet.
pub(super) fn go_on(place: &Place, is_copy: bool, accept_loss: bool) -> Result<How, Failure> {
    let installation = installation(place)?;
    let judgement = Judgement::of(place, is_copy)?;
    if judgement.is_newest() {
        if is_copy {
            let about = json!({"event": "store_restored", "records": judgement.size});
            let to = Installation {
                is_copy: false,
                ..installation.clone()
            };
            let store = place.store();
            let rebind = store.rebind(&installation, to, act(place, about));
            is_done(place.runtime.block_on(rebind).map_err(store_failed)?)?;
        }
        return Ok(How::Same);
    }
    if !accept_loss {
        return Err(would_lose(&judgement, judgement.size, place.folder.path()));
    }
    begin_log(place, &installation, &judgement)?;
    Ok(How::NewLog {
        lost: judgement.lost(),
    })
}

/// Signs the restored store, with the key that it is bound to.
pub(super) fn finish(
    place: Place,
    store: &StoreName,
    options: &PlaceOptions,
    how: How,
) -> Result<Outcome, Failure> {
    let folder = place.folder.clone();
    // What is open has the keys from before.
    drop(place);
    let place = Place::open_copy(folder, store, options)?;
    Journal::start(&place)?.sign(&place)?;
    let head = place.runtime.block_on(place.store().head());
    Ok(Outcome {
        records: head.map_err(store_failed)?.size,
        origin: place.log_key.name().to_owned(),
        how,
    })
}

/// Begins a new log. Its key is in the folder before the store is bound to it, and is moved to its place afterwards, so that an interrupted
/// restore finds it there.
fn begin_log(
    place: &Place,
    installation: &Installation,
    judgement: &Judgement,
) -> Result<(), Failure> {
    let next = keys::make_next_log(&place.folder, &place.log_key, &*place.ids)?;
    let public = next.verifying_key().to_string();
    let about = json!({
        "event": "log_begun",
        "log_key": public,
        "previous": {
            "log_key": place.log_key.to_string(),
            // What others may hold of it, and what is here of it.
            "newest": judgement.newest,
            "restored": judgement.signed,
            "records": judgement.size,
        },
    });
    let to = Installation {
        log_key: public,
        is_copy: false,
        ..installation.clone()
    };
    // A key or a grant that was revoked and an approval that was used since the backup would count again.
    let forgotten = [API_KEYS, approve::COLLECTION, grant::COLLECTION];
    let store = place.store();
    let begun = store.begin_log(installation, to, &forgotten, act(place, about));
    is_done(place.runtime.block_on(begun).map_err(store_failed)?)
}

/// Builds the record of an operator's act.
pub(super) fn act(place: &Place, about: Value) -> Entry {
    let act = Act {
        kind: RecordKind::Config,
        at: place.clock.now(),
        user_id: String::new(),
        actor: Some(place.by.actor.clone()),
        about,
        retention: Retention::Long,
    };
    act.entry(place.ids.snapshot_id(), None)
}

pub(super) fn installation(place: &Place) -> Result<Installation, Failure> {
    let store = place.store();
    let found = place.runtime.block_on(store.installation());
    let found = found.map_err(store_failed)?;
    found.ok_or_else(|| {
        Failure::new("the store does not name the keys that it belongs to")
            .hint("use a backup made by `countersign store backup`")
    })
}

fn is_done(is_done: bool) -> Result<(), Failure> {
    if is_done {
        return Ok(());
    }
    Err(
        Failure::new("another process changed the store during the restore")
            .hint("stop every process that uses the store, and run the command again"),
    )
}
