//! The master key, which wraps the keys of the users.

use std::sync::Arc;

use countersign::contract::{RecordKind, Retention};
use countersign::ledger::{Durability, Installation};
use countersign::scribe::{Act, Draft};
use countersign_evidence::seal::MasterKey;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::counted;
use crate::answer::write_json;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::keys::{self, MASTER, MASTER_OLD, MasterSource};
use crate::operations::Operation;
use crate::place::{Place, store_failed};
use crate::terminal::Terminal;

/// Replace the master key, and encrypt the key of every user with the new one
///
/// Payloads are not changed. If the command is interrupted, run it again: it continues. The old key stays in
/// master.key.old until it is no longer needed.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign keys rotate-master
  COUNTERSIGN_MASTER_KEY=$NEW COUNTERSIGN_MASTER_KEY_OLD=$OLD countersign keys rotate-master

Backups that were made before still need the old key. With PostgreSQL, start every other process again
afterwards, and then run `countersign keys rotate-master --finish`.")]
pub(crate) struct RotateMaster {
    /// Encrypt the remaining user keys with the new master key, and remove the old one
    #[arg(long)]
    finish: bool,
}

impl Operation for RotateMaster {
    const NAME: &'static str = "keys.rotate-master";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let rotation = place.served.as_ref().map(|served| served.rotation.clone());
        let _only_one = match &rotation {
            Some(rotation) => Some(rotation.try_lock().map_err(|_| busy())?),
            None => None,
        };
        let mut journal = Journal::start(place)?;
        let old = self.prepare(place)?;
        let bar = terminal.bar(0, "keys");
        let rewrapped = place
            .runtime
            .block_on(place.vault().rewrap_all(&*old, |done| {
                bar.set_length(done as u64);
                bar.set_position(done as u64);
            }))
            .map_err(store_failed)?;
        bar.finish_and_clear();
        record(place, &old, rewrapped)?;
        journal.sign(place)?;
        let is_alone = place.backend.is_alone();
        let is_done = place.master_source == MasterSource::Folder && (is_alone || self.finish);
        if is_done {
            place.folder.remove(MASTER_OLD)?;
            place.runtime.block_on(place.vault().forget_former());
        }
        if terminal.is_for_programs() {
            write_json(
                terminal,
                &json!({"rewrapped": rewrapped, "master": place.master.get().id(), "old": old.id()}),
            )?;
        } else {
            terminal.say(format_args!(
                "ok: {} encrypted with the master key {}",
                counted(rewrapped, "data key", "data keys"),
                place.master.get().id()
            ))?;
        }
        if !is_done && place.master_source == MasterSource::Folder {
            terminal.say(
                "to do: restart every other server, then run `countersign keys rotate-master --finish`",
            )?;
        }
        Ok(Exit::Ok)
    }
}

impl RotateMaster {
    /// The key that was; the new one is in its place already, durably, so that nothing is ever wrapped
    /// by a key that is in no file.
    fn prepare(&self, place: &Place) -> Result<Arc<MasterKey>, Failure> {
        let folder = &place.folder;
        let (source, named) = (place.master_source, &place.config().keys);
        let (whose, hint) = match source {
            MasterSource::Environment => (
                "in the environment",
                "set COUNTERSIGN_MASTER_KEY to the new key and COUNTERSIGN_MASTER_KEY_OLD to the old one",
            ),
            MasterSource::NamedFile => (
                "in a file that keys.master names",
                "put the new key into that file, and name a file with the old one in keys.master_old",
            ),
            MasterSource::Folder => ("", ""),
        };
        if source != MasterSource::Folder {
            let before = keys::master_before(folder, named, source)?;
            return before.ok_or_else(|| {
                let message =
                    format!("the master key is {whose}, so this command cannot replace it");
                Failure::new(message).hint(hint)
            });
        }
        if let Some(old) = keys::master_in(folder, MASTER_OLD)?
            && old.id() != place.master.get().id()
        {
            // A rotation that was interrupted, or is to be finished.
            return Ok(old);
        }
        if self.finish {
            return Err(Failure::new("there is no rotation to finish")
                .hint("start one with `countersign keys rotate-master`"));
        }
        let old = place.master.get();
        if let Some(text) = folder.read_secret(MASTER)? {
            folder.write_secret(MASTER_OLD, &text)?;
        }
        let new = keys::make_master(folder, MASTER, &*place.ids)?;
        place.master.set(new.clone());
        // From here on nothing is wrapped by the old one any more, also not by calls that run now.
        place.runtime.block_on(place.vault().change_master(new));
        Ok(old)
    }
}

fn busy() -> Failure {
    Failure::new("another command is replacing the master key")
        .hint(
            "wait until it has ended; `countersign doctor` shows whether the rotation is finished",
        )
        .refused()
}

/// Binds the store to the new key, with the record of the rotation, in one commit.
fn record(place: &Place, old: &MasterKey, rewrapped: usize) -> Result<(), Failure> {
    let act = Act {
        kind: RecordKind::Config,
        at: place.clock.now(),
        user_id: String::new(),
        actor: Some(place.by.actor.clone()),
        about: json!({
            "event": "master_key_rotated",
            "from": old.id(),
            "to": place.master.get().id(),
            "rewrapped": rewrapped,
        }),
        retention: Retention::Long,
    };
    let entry = act.entry(place.ids.snapshot_id(), None);
    let store = place.store();
    let bound = place.runtime.block_on(async {
        let Some(from) = store.installation().await? else {
            let append = store.append(Draft::from(entry), Durability::Committed);
            return append.await.map(|()| true);
        };
        let to = Installation {
            master: place.master.get().id().to_owned(),
            ..from.clone()
        };
        store.rebind(&from, to, entry).await
    });
    if bound.map_err(store_failed)? {
        return Ok(());
    }
    Err(
        Failure::new("another process changed the keys of this store at the same time")
            .hint("run the command again; it continues where it stopped"),
    )
}
