//! `countersign evidence hold`, `release`, `holds` and `erase`: what is kept longer, and what is forgotten.

use countersign::contract::SnapshotId;
use serde_json::{Value, json};

use super::say_done;
use crate::answer::write_table;
use crate::commands::counted;
use crate::commands::keys::keys_failed;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::place::{Place, PlaceOptions, archive_failed, operator, store_failed};
use crate::table::Table;
use crate::terminal::Terminal;

/// Keep the content of a user, or of one record, whatever its retention; erasing is refused
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Example:
  countersign evidence hold u_7 --reason 'case 12 of 2026'")]
pub(super) struct HoldCommand {
    #[command(flatten)]
    target: Target,
}

/// Lift a hold
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Example:
  countersign evidence release u_7 --reason 'case 12 of 2026 is closed'")]
pub(super) struct Release {
    #[command(flatten)]
    target: Target,
}

/// What is held, and why.
#[derive(Debug, clap::Args)]
struct Target {
    /// A user, or the name of one record
    #[arg(value_name = "USER|ID")]
    name: String,

    /// Why; it is sealed in the record
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// List the holds that there are
#[derive(Debug, clap::Args)]
pub(super) struct Holds {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

/// Forget a user for good: keys, content, documents and keys of calls go, every proof still holds
///
/// There is no way back, and no question is asked. Refused while a hold covers the user.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Example:
  countersign evidence erase u_7 --reason 'request of the user'

A backup that was made before still has the user's key: keep backups no longer than 30 days.")]
pub(super) struct Erase {
    /// Who
    #[arg(value_name = "USER")]
    user: String,

    /// Why; it is sealed in the record
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl HoldCommand {
    pub(super) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let place = options.open()?;
        let (user, record) = self.target.of(&place)?;
        let mut journal = Journal::start(&place)?;
        let (archive, by) = (place.archive(), operator());
        let held = archive.hold(&user, record.as_ref(), &by, &self.target.reason);
        let id = place.runtime.block_on(held).map_err(archive_failed)?;
        journal.sign(&place)?;
        let value = json!({"user_id": user, "record": record, "evidence": id});
        say_done(terminal, &value, &format!("held: {}", self.target.name))?;
        terminal.say(format_args!("evidence: {id}"))?;
        Ok(Exit::Ok)
    }
}

impl Release {
    pub(super) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let place = options.open()?;
        let (user, record) = self.target.of(&place)?;
        let mut journal = Journal::start(&place)?;
        let (archive, by) = (place.archive(), operator());
        let released = archive.release_hold(&user, record.as_ref(), &by, &self.target.reason);
        let id = place.runtime.block_on(released).map_err(archive_failed)?;
        let Some(id) = id else {
            let message = format!("there is no hold on {:?}", self.target.name);
            return Err(Failure::new(message).hint("`countersign evidence holds` lists them"));
        };
        journal.sign(&place)?;
        let value = json!({"user_id": user, "record": record, "evidence": id});
        say_done(terminal, &value, &format!("released: {}", self.target.name))?;
        terminal.say(format_args!("evidence: {id}"))?;
        Ok(Exit::Ok)
    }
}

impl Target {
    /// Whose records are meant, and which one where it is one.
    fn of(&self, place: &Place) -> Result<(String, Option<SnapshotId>), Failure> {
        let id = SnapshotId::new(&self.name)
            .ok()
            .filter(|_| self.name.starts_with("ev_"));
        let Some(id) = id else {
            return Ok((self.name.clone(), None));
        };
        let stored = place
            .runtime
            .block_on(place.store().record(&id))
            .map_err(store_failed)?;
        let Some(stored) = stored else {
            return Err(Failure::new(format!("there is no record {id}"))
                .hint("`countersign evidence list` lists the newest ones"));
        };
        Ok((stored.row.user_id, Some(id)))
    }
}

impl Holds {
    pub(super) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let place = options.open()?;
        let archive = place.archive();
        let holds = place
            .runtime
            .block_on(archive.holds(self.limit))
            .map_err(archive_failed)?;
        let mut table = Table::new(["USER", "RECORD", "REASON"]);
        let mut values: Vec<Value> = Vec::new();
        for hold in &holds {
            let record = hold.record.as_ref().map(SnapshotId::as_str);
            table.row([&hold.user_id, record.unwrap_or("all"), &hold.reason]);
            values.push(json!({
                "user_id": hold.user_id,
                "record": record,
                "reason": hold.reason,
            }));
        }
        write_table(terminal, &values, &table, "there are no holds")?;
        Ok(Exit::Ok)
    }
}

impl Erase {
    pub(super) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let place = options.open()?;
        let mut journal = Journal::start(&place)?;
        let (archive, by) = (place.archive(), operator());
        let erasure = archive.erase(&self.user, &by, &self.reason);
        let erasure = place.runtime.block_on(erasure).map_err(archive_failed)?;
        // Afterwards, because a hold may forbid the erasure. Where this is interrupted, the same command
        // again does what is left.
        let forgotten = place.api_keys();
        let forgotten = place
            .runtime
            .block_on(forgotten.forget_user(&self.user, &by));
        let forgotten = forgotten.map_err(keys_failed)?;
        journal.sign(&place)?;
        let erased = erasure.erased;
        let value = json!({
            "evidence": erasure.record,
            "keys": erased.keys,
            "payloads": erased.payloads,
            "documents": erased.documents,
            "claims": erased.claims,
            "api_keys": forgotten,
        });
        let line = match &erasure.record {
            Some(_) => format!(
                "erased: {}, {}, {}, {}",
                counted(erased.keys, "key", "keys"),
                counted(erased.payloads, "payload", "payloads"),
                counted(erased.documents, "document", "documents"),
                counted(erased.claims, "key of a call", "keys of calls"),
            ),
            None => "nothing: the store has nothing of this user".to_owned(),
        };
        say_done(terminal, &value, &line)?;
        if let Some(id) = &erasure.record {
            terminal.say(format_args!("evidence: {id}"))?;
        }
        if forgotten > 0 {
            let keys = counted(forgotten, "API key is gone", "API keys are gone");
            terminal.say(format_args!("note: {keys}, too"))?;
        }
        Ok(Exit::Ok)
    }
}
