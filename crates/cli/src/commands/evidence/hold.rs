//! `countersign evidence hold`, `release`, `holds` and `erase`: longer retention, and erasure.

use countersign::archive::{self, Coverage};
use countersign::contract::SnapshotId;
use countersign::ledger;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::say_done;
use crate::answer::write_table;
use crate::commands::lookup::Name;
use crate::commands::{counted, reason};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, archive_failed};
use crate::table::{Table, visible};
use crate::terminal::Terminal;

/// Hold the data of a user or a record: it is neither deleted nor erased
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign evidence hold u_7 --reason 'case 12 of 2026'
  countersign evidence hold order_0123456789abcdef --reason 'dispute 4711'

The hold of an order covers its whole case: what it rests on, the questions and answers about it, and what came of it.")]
pub(crate) struct HoldCommand {
    #[command(flatten)]
    target: Target,
}

/// Release a hold
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Example:
  countersign evidence release u_7 --reason 'case 12 of 2026 is closed'")]
pub(crate) struct Release {
    #[command(flatten)]
    target: Target,
}

/// Target and reason of a hold.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
struct Target {
    /// User, record id, request id, order id, or leaf hash
    #[arg(value_name = "USER|ID")]
    name: String,

    /// Reason; stored encrypted in the record
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

/// List holds
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub(crate) struct Holds {
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

/// Erase a user: delete keys, payloads, documents and idempotency keys
///
/// This cannot be undone, and the command does not ask. It refuses while a hold covers the user. The log stays
/// verifiable.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Example:
  countersign evidence erase u_7 --reason 'request of the user'

Older backups still have the user's key: delete backups after 30 days.")]
pub(crate) struct Erase {
    /// User to erase
    #[arg(value_name = "USER")]
    user: String,

    /// Reason; stored encrypted in the record
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

impl Operation for HoldCommand {
    const NAME: &'static str = "evidence.hold";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let held = self.target.of(place)?;
        let mut journal = Journal::start(place)?;
        let (archive, by) = (place.archive(), &place.by);
        let placed = archive.hold_all(&held, by, &self.target.reason);
        let ids = place.runtime.block_on(placed).map_err(archive_failed)?;
        journal.sign(place)?;
        self.target.say_done(terminal, "held", &held, &ids)
    }
}

impl Operation for Release {
    const NAME: &'static str = "evidence.release";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let held = self.target.of(place)?;
        let mut journal = Journal::start(place)?;
        let (archive, by) = (place.archive(), &place.by);
        let released = archive.release_all(&held, by, &self.target.reason);
        let ids = place.runtime.block_on(released).map_err(archive_failed)?;
        if ids.is_empty() {
            let message = format!("{:?} has no hold", self.target.name);
            return Err(Failure::new(message)
                .hint("`countersign evidence holds` lists the holds")
                .refused());
        }
        journal.sign(place)?;
        self.target.say_done(terminal, "released", &held, &ids)
    }
}

impl Target {
    /// Resolves the target to a user, and to the records that are meant if it is not all of them. An order stands for its whole case.
    fn of(&self, place: &Place) -> Result<Coverage, Failure> {
        let archive = place.archive();
        let named = match self.name.parse::<Name>() {
            Ok(name) => name.found(place, None)?,
            Err(_) => Vec::new(),
        };
        let knows = archive.knows_user(&self.name);
        let is_user = place.runtime.block_on(knows).map_err(archive_failed)?;
        let Some(first) = named.first() else {
            if is_user {
                return Ok(Coverage::of_user(&self.name));
            }
            let message = format!("no user, record, call or order has the id {:?}", self.name);
            return Err(Failure::new(message)
                .hint("`countersign evidence list` lists the newest records with their users")
                .refused());
        };
        if is_user {
            let message = format!(
                "{:?} is a user and also the id of record {}",
                self.name, first.id
            );
            return Err(Failure::new(message)
                .hint("give the record id instead")
                .refused());
        }
        if first.user_id.is_empty() {
            let message = format!("record {} has no user, or its user was erased", first.id);
            return Err(Failure::new(message)
                .hint("there is nothing to hold")
                .refused());
        }
        let covered = archive.coverage(&self.name, &named);
        place.runtime.block_on(covered).map_err(archive_failed)
    }

    fn say_done(
        &self,
        terminal: &mut Terminal,
        done: &str,
        covered: &Coverage,
        evidence: &[SnapshotId],
    ) -> Result<Exit, Failure> {
        let Coverage {
            user_id: user,
            records,
            of: _,
        } = covered;
        let record = match records.as_slice() {
            [record] => Some(record),
            _ => None,
        };
        let value = json!({
            "user_id": user,
            "record": record,
            "records": records,
            "evidence": evidence.first(),
        });
        let line = match records.len() {
            0 | 1 => format!("{done}: {}", self.name),
            count => format!("{done}: {}, {count} records", self.name),
        };
        say_done(terminal, &value, &line)?;
        if let Some(id) = evidence.first() {
            terminal.say(format_args!("evidence: {id}"))?;
        }
        Ok(Exit::Ok)
    }
}

impl Operation for Holds {
    const NAME: &'static str = "evidence.holds";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let archive = place.archive();
        let holds = place
            .runtime
            .block_on(archive.holds(self.limit))
            .map_err(archive_failed)?;
        let mut table = Table::new(["USER", "ORDER", "RECORD", "REASON"]);
        let mut values: Vec<Value> = Vec::new();
        for hold in &holds {
            let record = hold.record.as_ref().map(SnapshotId::as_str);
            let of = hold.of.as_deref();
            table.row([
                &hold.user_id,
                of.unwrap_or("-"),
                record.unwrap_or("all"),
                &hold.reason,
            ]);
            values.push(json!({
                "user_id": hold.user_id,
                "order": of,
                "record": record,
                "reason": hold.reason,
            }));
        }
        write_table(terminal, &values, table, "no holds")?;
        Ok(Exit::Ok)
    }
}

/// Maximum number of holds that are searched for those of a user.
const HOLDS_MAX: usize = 10_000;

impl Erase {
    /// Builds the failure of an erasure. Under a hold it names every hold of the user by the id that releases it.
    fn refused(&self, place: &Place, error: archive::Error) -> Failure {
        let is_held = matches!(
            error,
            archive::Error::Store(ledger::Error::UnderHold { .. })
        );
        let failure = archive_failed(error);
        if !is_held {
            return failure;
        }
        let archive = place.archive();
        let holds = place.runtime.block_on(archive.holds(HOLDS_MAX));
        let holds = holds.unwrap_or_default().into_iter();
        let mut named: Vec<(String, String)> = Vec::new();
        for hold in holds.filter(|hold| hold.user_id == self.user) {
            let record = hold.record.map(|record| record.to_string());
            let id = hold.of.or(record).unwrap_or(hold.user_id);
            // The hold of an order has one entry for each record of its case.
            if !named.iter().any(|(known, _)| *known == id) {
                named.push((id, hold.reason));
            }
        }
        let Some((first, _)) = named.first().cloned() else {
            return failure;
        };
        let lines = named.into_iter();
        let lines =
            lines.map(|(id, reason)| format!("hold on {}: {}", visible(&id), visible(&reason)));
        failure.lines(lines.collect()).hint(format!(
            "when it is no longer needed, `countersign evidence release {} --reason TEXT` releases a hold",
            visible(&first)
        ))
    }
}

impl Operation for Erase {
    const NAME: &'static str = "evidence.erase";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut journal = Journal::start(place)?;
        let (archive, by) = (place.archive(), &place.by);
        let erasure = archive.erase(&self.user, by, &self.reason);
        let erasure = place.runtime.block_on(erasure);
        let erasure = erasure.map_err(|error| self.refused(place, error))?;
        journal.sign(place)?;
        let (erased, forgotten) = (erasure.erased, erasure.belongings);
        if erasure.record.is_none() && forgotten == 0 {
            let message = format!("the store has no data of user {:?}", self.user);
            return Err(Failure::new(message)
                .hint("the user may have been erased before; `countersign evidence list` lists the newest records with their users")
                .refused());
        }
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
                counted(erased.claims, "idempotency key", "idempotency keys"),
            ),
            None => "nothing: the store has no data of this user".to_owned(),
        };
        say_done(terminal, &value, &line)?;
        if let Some(id) = &erasure.record {
            terminal.say(format_args!("evidence: {id}"))?;
        }
        if forgotten > 0 {
            let keys = counted(forgotten, "API key was deleted", "API keys were deleted");
            terminal.say(format_args!("note: {keys} too"))?;
        }
        Ok(Exit::Ok)
    }
}
