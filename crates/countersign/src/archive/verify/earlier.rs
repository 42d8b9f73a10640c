//! Logs that this one continues after a restore: their records are the first ones of this log, and their checkpoints
//! are still valid for them.

use countersign_contract::RecordKind;
use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::note::{Note, VerifyingKey};
use serde::Serialize;
use serde_json::Value;

use super::batch::ReadRecord;
use super::{Fault, Found, NotChecked};
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

/// A kept checkpoint of a log that this one continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldEarlier {
    /// Public key of that log, with its name.
    pub log_key: String,
    /// Number of records under the checkpoint.
    pub size: u64,
    /// Result of the comparison with this log.
    pub standing: HeldStanding,
}

/// Result of comparing a kept checkpoint of an earlier log with this one. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldStanding {
    /// This log begins with exactly the records that were signed.
    Here,
    /// It is the newest checkpoint that this log names; some of its records are lost.
    Newest,
    /// Some of its records are lost, and this log names no checkpoint of that size: it could not be compared.
    Lost,
}

/// The event of a record that begins a log.
pub(super) const LOG_BEGUN: &str = "log_begun";

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
            && read.record.act.get("event").and_then(Value::as_str) == Some(LOG_BEGUN)
    };
    let found = records.iter().filter(begins).map(|read| Begun {
        index: read.index,
        id: read.record.id.as_str().into(),
        previous: read.record.act.get("previous").cloned().unwrap_or_default(),
    });
    found.collect()
}

/// An earlier log whose checkpoints agree with this one.
struct Known {
    key: VerifyingKey,
    restored: Option<Checkpoint>,
    newest: Option<Checkpoint>,
}

impl Known {
    fn log(&self) -> EarlierLog {
        let size = |known: &Option<Checkpoint>| known.as_ref().map_or(0, |known| known.size);
        EarlierLog {
            log_key: self.key.to_string(),
            signed: size(&self.restored),
            newest: size(&self.newest),
        }
    }
}

/// Compares the statements of these records about earlier logs with the tree, and with a kept checkpoint that is not of this log.
pub(super) async fn check(
    archive: &Archive,
    begun: Vec<Begun>,
    whole: &Head,
    found: &mut Found,
) -> Result<(), Error> {
    let mut held = found.held_elsewhere.take();
    for begun in begun {
        match check_one(archive, &begun, whole).await? {
            Ok(known) => {
                found.earlier.push(known.log());
                held = match held {
                    Some((note, error)) => match Checkpoint::open(&note, &known.key) {
                        Ok(checkpoint) => {
                            check_held(archive, &checkpoint, &known, whole, found).await?;
                            if Note::parse(&note)
                                .is_ok_and(|note| note.signatures_of_others(&known.key) > 0)
                            {
                                found.not_checked.insert(NotChecked::FurtherSignatures);
                            }
                            None
                        }
                        Err(_) => Some((note, error)),
                    },
                    None => None,
                };
            }
            Err(what) => found.add(
                Some(begun.index),
                Some(begun.id),
                Fault::EarlierLog { what },
            ),
        }
    }
    // It is of no log that is known here.
    found.held_elsewhere = held;
    Ok(())
}

/// Compares a kept checkpoint of an earlier log with what is here of that log, and with what this log says about it.
async fn check_held(
    archive: &Archive,
    held: &Checkpoint,
    known: &Known,
    whole: &Head,
    found: &mut Found,
) -> Result<(), Error> {
    let log = known.log();
    let size = held.size;
    let is_here = match grown(&*archive.store, held, whole).await {
        Ok(_) => true,
        Err(NotGrown::Store(error)) => return Err(error.into()),
        Err(
            NotGrown::RolledBack { .. }
            | NotGrown::Forked { .. }
            | NotGrown::Damaged { .. }
            | NotGrown::Tile(_),
        ) => false,
    };
    let stated = log.signed.max(log.newest);
    let standing = match &known.newest {
        _ if size > stated && !is_here => {
            let fault = Fault::EarlierLonger { held: size, stated };
            found.add(None, None, fault);
            return Ok(());
        }
        _ if is_here => HeldStanding::Here,
        Some(newest) if newest.size == size && newest.root == held.root => HeldStanding::Newest,
        Some(newest) if size > log.signed && size < newest.size => {
            found.not_checked.insert(NotChecked::HeldEarlier);
            HeldStanding::Lost
        }
        Some(_) | None => {
            found.add(None, None, Fault::EarlierForked { size });
            return Ok(());
        }
    };
    found.held_earlier = Some(HeldEarlier {
        log_key: log.log_key,
        size,
        standing,
    });
    Ok(())
}

async fn check_one(
    archive: &Archive,
    begun: &Begun,
    whole: &Head,
) -> Result<Result<Known, &'static str>, Error> {
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
    Ok(Ok(Known {
        key,
        restored,
        newest,
    }))
}
