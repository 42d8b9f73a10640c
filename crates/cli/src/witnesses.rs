//! The witnesses of the log, from the configuration.

use std::sync::Arc;

use countersign_config::sections::WitnessEntry;
use countersign_config::{Loaded, Mistakes};
use countersign_evidence::cosignature::{InvalidWitnessKey, WitnessKey};
use countersign_gateway::Gateway;
use countersign_gateway::witness::Witnesses;

use crate::place::Place;

/// The newest checkpoint that a witness has cosigned, outside of the store.
const COSIGNED: &str = "checkpoint.cosigned";

/// Reads the key of every witness; or everything that is wrong with them.
pub(crate) fn configured(loaded: &Loaded) -> Result<Vec<(String, WitnessKey)>, Mistakes> {
    let (mut witnesses, mut mistakes) = (Vec::new(), Vec::new());
    for (place, entry) in loaded.config().witness.iter().enumerate() {
        let WitnessEntry { url, key } = entry;
        match key.trim().parse() {
            Ok(key) => witnesses.push((url.to_string(), key)),
            Err(error @ InvalidWitnessKey) => {
                let key = format!("witness[{place}].key");
                mistakes.push(loaded.mistake(&key, error.to_string()));
            }
        }
    }
    if mistakes.is_empty() {
        Ok(witnesses)
    } else {
        Err(Mistakes(mistakes))
    }
}

/// Sends new checkpoints to the witnesses from now on; does nothing if there are none.
pub(crate) fn start(place: &Place, gateway: &Gateway, witnesses: Vec<(String, WitnessKey)>) {
    if witnesses.is_empty() {
        return;
    }
    let witnesses = Arc::new(Witnesses::new(witnesses));
    gateway.set_witnesses(witnesses.clone());
    let folder = place.folder.clone();
    let keep = move |note: &str| {
        if let Err(failure) = folder.write(COSIGNED, note, 0o644) {
            let error = format!("{:#}", failure.error);
            tracing::warn!(error, "a cosigned checkpoint could not be kept");
        }
    };
    let (archive, newest) = (gateway.archive().clone(), place.newest.clone());
    place.runtime.spawn(witnesses.run(archive, newest, keep));
}
