//! `countersign call-show`: the records of one call, also of one that has not ended.

use std::io::Write as _;

use countersign::archive::Shown;
use countersign::contract::{EvidenceRecord, RecordKind, RequestId};
use serde::{Deserialize, Serialize};

use super::{record, show};
use crate::answer::write_json;
use crate::commands::lookup::{Name, Whose};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, archive_failed};
use crate::terminal::Terminal;

/// Show the records of one call
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign call-show req_01a1e15b-81de-77a5-b22a-d902aa893ab3
  countersign call-show order-4711 --user u_7

ID is the request id of the call or, for a call that is in doubt or running, its idempotency key: the caller's,
the one that your service received, or KEY of `countersign claims list`.
Each repeat with the same request id has its own record. A call that stopped before its final record has an intent.
The arguments and the answer are sealed: `countersign evidence open` shows them.")]
pub(crate) struct CallShow {
    /// Request id of the call, or the key of a call in doubt
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    whose: Whose,
}

impl CallShow {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        if self.id.starts_with("ev_") {
            let message = format!(
                "{} is the id of a record; a request id begins with req_",
                self.id
            );
            let hint = format!("`countersign evidence show {}` shows it", self.id);
            return Err(Failure::new(message).hint(hint));
        }
        options.perform(self, terminal)
    }

    /// The records of the call, newest first; at least one.
    fn records(&self, place: &Place) -> Result<Vec<Shown>, Failure> {
        let user = self.whose.user.as_deref();
        let name = RequestId::new(&self.id).map(Name::Call);
        let named = match &name {
            Ok(name) => name.found(place, user)?,
            Err(_) => Vec::new(),
        };
        let archive = place.archive();
        let mut calls: Vec<(RequestId, String)> = named
            .iter()
            .filter_map(|row| Some((row.request_id.clone()?, row.user_id.clone())))
            .collect();
        if named.is_empty() {
            let open = place
                .runtime
                .block_on(archive.unsettled_calls(&self.id, user));
            let open = open.map_err(archive_failed)?.into_iter();
            calls.extend(open.map(|claim| (claim.row.request_id, claim.row.scope.user_id)));
        }
        calls.sort_unstable();
        calls.dedup();
        let mut rows = Vec::new();
        for (request_id, user_id) in calls {
            let user_id = Some(user_id.as_str()).filter(|user_id| !user_id.is_empty());
            let found = archive.with_intents(&request_id, user_id, RECORDS_MAX);
            rows.extend(place.runtime.block_on(found).map_err(archive_failed)?);
        }
        if rows.is_empty() {
            return Err(not_found(&self.id));
        }
        let records = rows.iter().map(|row| record(place, &row.id));
        let mut records = records.collect::<Result<Vec<_>, _>>()?;
        drop_settled_intents(&mut records);
        Ok(records)
    }
}

/// Maximum number of records of one call.
const RECORDS_MAX: usize = 100;

fn not_found(id: &str) -> Failure {
    Failure::new(format!("no call has the request id {id:?}, and no call in doubt has this key"))
        .hint(
            "`countersign calls` lists the newest calls; `countersign claims list --state in_doubt` lists calls in doubt",
        )
        .refused()
}

/// Leaves out the intents of attempts that have a final record.
fn drop_settled_intents(records: &mut Vec<Shown>) {
    let settled: Vec<(String, u32)> = records
        .iter()
        .filter(|known| known.record.kind == RecordKind::Call)
        .filter_map(|known| known.record.idempotency.as_ref())
        .map(|key| (key.key.clone(), key.attempt))
        .collect();
    records.retain(|known| {
        known.record.kind != RecordKind::Intent
            || intent_of(known).is_none_or(|intent| !settled.contains(&intent))
    });
}

/// Key and attempt of an intent.
fn intent_of(known: &Shown) -> Option<(String, u32)> {
    let act = &known.record.act;
    let attempt = u32::try_from(act.get("attempt")?.as_u64()?).ok()?;
    Some((act.get("key")?.as_str()?.to_owned(), attempt))
}

impl Operation for CallShow {
    const NAME: &'static str = "call-show";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let records = self.records(place)?;
        if terminal.is_for_programs() {
            let leaves: Vec<&EvidenceRecord> = records.iter().map(|known| &known.record).collect();
            write_json(terminal, &leaves)?;
            return Ok(Exit::Ok);
        }
        for (number, known) in records.iter().enumerate() {
            if number > 0 {
                writeln!(terminal.data())?;
            }
            show(terminal, known)?;
            if let Some((key, _)) = intent_of(known).filter(|_| is_intent(known)) {
                let key = key.get(..16).unwrap_or(&key);
                terminal.say(format_args!(
                    "note: this attempt has no final record, so its effect may have happened; \
                     `countersign claims list --key {key}` shows its state"
                ))?;
            }
        }
        Ok(Exit::Ok)
    }
}

fn is_intent(known: &Shown) -> bool {
    known.record.kind == RecordKind::Intent
}
