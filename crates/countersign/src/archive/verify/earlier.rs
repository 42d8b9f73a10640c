//! Logs that this one continues after a restore: their records are the first ones of this log, and their checkpoints
//! are still valid for them.

use countersign_contract::RecordKind;
use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::note::VerifyingKey;
use serde::Serialize;
use serde_json::Value;

use super::batch::ReadRecord;
use super::{Fault, Found};
use crate::archive::growth::{NotGrown, grown};
use crate::archive::{Archive, Error};
use crate::ledger::Head;

/// A log that this one continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EarlierLog {
    /// Its public key, with its name.
    pub log_key: String,
    /// Number of its records that are here, under a checkpoint of its own.
    pub signed: u64,
    /// Number of records under its newest known checkpoint; those that are not here are lost.
    pub newest: u64,
}

/// A record that begins a log.
#[derive(Debug)]
pub(super) struct Begun {
    index: u64,
    id: std::sync::Arc<str>,
    previous: Value,
}

/// The records that begin a log.
pub(super) fn begun(records: &[ReadRecord]) -> Vec<Begun> {
    let begins = |read: &&ReadRecord| {
        read.record.kind == RecordKind::Config
            && read.record.act.get("event").and_then(Value::as_str) == Some("log_begun")
    };
    let found = records.iter().filter(begins).map(|read| Begun {
        index: read.index,
        id: read.record.id.as_str().into(),
        previous: read.record.act.get("previous").cloned().unwrap_or_default(),
    });
    found.collect()
}

/// Compares the statements of these records about earlier logs with the tree.
pub(super) async fn check(
    archive: &Archive,
    begun: Vec<Begun>,
    whole: &Head,
    found: &mut Found,
) -> Result<Vec<EarlierLog>, Error> {
    let mut logs = Vec::new();
    for begun in begun {
        match check_one(archive, &begun, whole).await? {
            Ok(log) => logs.push(log),
            Err(what) => found.add(
                Some(begun.index),
                Some(begun.id),
                Fault::EarlierLog { what },
            ),
        }
    }
    Ok(logs)
}

async fn check_one(
    archive: &Archive,
    begun: &Begun,
    whole: &Head,
) -> Result<Result<EarlierLog, &'static str>, Error> {
    let text = |name| begun.previous.get(name).and_then(Value::as_str);
    let key = text("log_key").and_then(|key| key.parse::<VerifyingKey>().ok());
    let Some(key) = key else {
        return Ok(Err("it names no key"));
    };
    let open = |name| match text(name) {
        None => Ok(None),
        Some(note) => Checkpoint::open(note, &key).map(Some),
    };
    let (Ok(restored), Ok(newest)) = (open("restored"), open("newest")) else {
        return Ok(Err("its checkpoint was not signed by its key"));
    };
    if let Some(restored) = &restored {
        if restored.size > begun.index {
            return Ok(Err(
                "its checkpoint is of more records than stand before this one",
            ));
        }
        match grown(&*archive.store, restored, whole).await {
            Ok(_) => {}
            Err(NotGrown::Store(error)) => return Err(error.into()),
            Err(
                NotGrown::RolledBack { .. }
                | NotGrown::Forked { .. }
                | NotGrown::Damaged { .. }
                | NotGrown::Tile(_),
            ) => return Ok(Err("its records are not those that it has signed")),
        }
    }
    let size = |checkpoint: &Option<Checkpoint>| checkpoint.as_ref().map_or(0, |known| known.size);
    Ok(Ok(EarlierLog {
        log_key: key.to_string(),
        signed: size(&restored),
        newest: size(&newest),
    }))
}
