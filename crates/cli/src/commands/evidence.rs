//! `countersign evidence`: records of calls and acts are listed, opened, exported, held and erased.

use std::io::Write as _;

use countersign::archive::{CasePart, Content, Shown, Standing};
use countersign::contract::{ErrorCode, RecordKind, RequestId, SnapshotId};
use countersign::ledger::{LogQuery, LogRow};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::calls::{Wanted, record, show};
use super::lookup::{Name, Whose};
use super::{reason, shown_kind};
use crate::answer::{write_json, write_table};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, archive_failed, store_failed};
use crate::table::{Table, visible};
use crate::terminal::Terminal;

mod cose;
pub(crate) mod export;
pub(crate) mod hold;
pub(crate) mod key;
pub(crate) mod trail;

/// List, show, open, export, hold and erase records of the log
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Evidence {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(List),
    Show(Show),
    Open(Open),
    Export(export::Export),
    Trail(trail::Trail),
    Key(key::Key),
    Hold(hold::HoldCommand),
    Release(hold::Release),
    Holds(hold::Holds),
    Erase(hold::Erase),
}

impl Evidence {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        match &self.command {
            Command::List(list) => options.perform(list, terminal),
            Command::Show(show) => options.perform(show, terminal),
            Command::Open(open) => options.perform(open, terminal),
            Command::Export(export) => export.run(options, terminal),
            Command::Trail(trail) => options.perform(trail, terminal),
            Command::Key(key) => options.perform(key, terminal),
            Command::Hold(hold) => options.perform(hold, terminal),
            Command::Release(release) => options.perform(release, terminal),
            Command::Holds(holds) => options.perform(holds, terminal),
            Command::Erase(erase) => options.perform(erase, terminal),
        }
    }
}

/// List records, newest first: calls, denials and actions of operators
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign evidence list --user u_7
  countersign evidence list --kind access --since 7d --json")]
pub(crate) struct List {
    #[command(flatten)]
    wanted: Wanted,

    /// Only records of this kind: call, denial, approval, access, erasure, config, intent, resolution, checkpoint
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<RecordKind>,
}

impl Operation for List {
    const NAME: &'static str = "evidence.list";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let query = LogQuery {
            kind: self.kind,
            ..self.wanted.query(place)
        };
        let rows = place
            .runtime
            .block_on(place.store().records(&query))
            .map_err(store_failed)?;
        let shown: Vec<Listed<'_>> = rows.iter().map(Listed::of).collect();
        let mut table = Table::new(["AT", "KIND", "USER", "TOOL", "CODE", "EVIDENCE"]);
        for (row, stored) in shown.iter().zip(&rows) {
            table.row([
                &row.at,
                shown_kind(stored.kind, stored.code),
                row.user_id,
                row.tool.unwrap_or("-"),
                row.code.unwrap_or("-"),
                row.evidence.as_str(),
            ]);
        }
        write_table(terminal, &shown, table, "no records match")?;
        Ok(Exit::Ok)
    }
}

/// A record of a list.
#[derive(Serialize)]
struct Listed<'a> {
    at: String,
    kind: &'static str,
    user_id: &'a str,
    tool: Option<&'a str>,
    /// `None` for a record that is not a call.
    code: Option<&'static str>,
    evidence: &'a SnapshotId,
    request_id: Option<&'a RequestId>,
}

impl<'a> Listed<'a> {
    fn of(row: &'a LogRow) -> Self {
        let code = row.code.map(ErrorCode::as_str);
        let is_call = row.request_id.is_some() && row.kind != RecordKind::Intent;
        Self {
            at: row.at.to_string(),
            kind: row.kind.as_str(),
            user_id: &row.user_id,
            tool: row.tool.as_deref(),
            code: code.or_else(|| is_call.then_some("OK")),
            evidence: &row.id,
            request_id: row.request_id.as_ref(),
        }
    }
}

/// Show a record and its proof, without its payload
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign evidence show ev_01a1e209-3e99-736c-842c-57d140cc68f6
  countersign evidence show req_01a1e15b-81de-77a5-b22a-d902aa893ab3
  countersign evidence show order_0123456789abcdef")]
pub(crate) struct Show {
    /// Record id, request id, order id, or leaf hash
    #[arg(value_name = "ID")]
    name: Name,

    #[command(flatten)]
    whose: Whose,
}

impl Operation for Show {
    const NAME: &'static str = "evidence.show";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let id = self.name.one(place, self.whose.user.as_deref())?;
        let shown = record(place, &id)?;
        let later = self.later(place, &id)?;
        if terminal.is_for_programs() {
            let (proof, size) = match shown.standing {
                Standing::Waiting => ("waiting", None),
                Standing::Unsigned => ("unsigned", None),
                Standing::Signed { size } => ("signed", Some(size)),
                Standing::NotIncluded => ("not_included", None),
            };
            let value = json!({
                "record": shown.record,
                "user_id": shown.row.user_id,
                "index": shown.index,
                "has_payload": shown.has_payload,
                "proof": {"state": proof, "checkpoint_size": size},
                "later": later,
            });
            write_json(terminal, &value)?;
        } else {
            show(terminal, &shown)?;
            for one in &later {
                writeln!(terminal.data(), "later: {}", one.line())?;
            }
            if !later.is_empty() {
                let name = self.name.text();
                terminal.say(format_args!("`countersign case {name}` tells all of it"))?;
            }
        }
        Ok(match shown.standing {
            Standing::NotIncluded => Exit::NotVerified,
            Standing::Waiting | Standing::Unsigned | Standing::Signed { .. } => Exit::Ok,
        })
    }
}

impl Show {
    /// The records that an order led to, such as its payment and the approval of it; nothing else has such records.
    fn later(&self, place: &Place, id: &SnapshotId) -> Result<Vec<Later>, Failure> {
        let name = self.name.text();
        let archive = place.archive();
        if !archive.is_thing(&name) {
            return Ok(Vec::new());
        }
        let case = place
            .runtime
            .block_on(archive.case(&name, std::slice::from_ref(id)));
        let records = case.map_err(archive_failed)?.records.into_iter();
        let followed = records.filter(|one| one.part == CasePart::Followed);
        Ok(followed.map(|one| Later::of(&one.shown)).collect())
    }
}

/// A record that came of an order.
#[derive(Serialize)]
struct Later {
    at: String,
    kind: &'static str,
    /// The kind for people.
    #[serde(skip)]
    shown_kind: &'static str,
    tool: Option<String>,
    /// Outcome of a question; `None` for a call.
    event: Option<String>,
    code: Option<&'static str>,
    evidence: SnapshotId,
}

impl Later {
    fn of(shown: &Shown) -> Self {
        let event = shown.record.act.get("event").and_then(Value::as_str);
        Self {
            at: shown.record.at.clone(),
            kind: shown.row.kind.as_str(),
            shown_kind: shown_kind(shown.row.kind, shown.row.code),
            tool: shown.row.tool.clone(),
            event: event.map(str::to_owned),
            code: shown.row.code.map(ErrorCode::as_str),
            evidence: shown.row.id.clone(),
        }
    }

    fn line(&self) -> String {
        let what = self.event.as_deref().or(self.code).unwrap_or("OK");
        let tool = self.tool.as_deref().unwrap_or("-");
        visible(&format!(
            "{} {} {tool} {what} {}",
            self.at, self.shown_kind, self.evidence
        ))
    }
}

/// Decrypt a record and show what was sent and answered
///
/// The access is recorded before anything is shown. stdout has the payload. Exit code 1 if the payload was deleted.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Example:
  countersign evidence open ev_01a1e209-3e99-736c-842c-57d140cc68f6 --reason 'dispute 4711'")]
pub(crate) struct Open {
    /// Record id, request id, order id, or leaf hash
    #[arg(value_name = "ID")]
    name: Name,

    #[command(flatten)]
    whose: Whose,

    /// Reason; stored encrypted in the record of the access
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

impl Operation for Open {
    const NAME: &'static str = "evidence.open";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut journal = Journal::start(place)?;
        let id = self.name.one(place, self.whose.user.as_deref())?;
        let archive = place.archive();
        let opening = archive.open(&id, &place.by, &self.reason);
        let opened = place.runtime.block_on(opening);
        journal.sign(place)?;
        let opened = opened.map_err(archive_failed)?;
        let refuse = |why: &str| Err(Failure::new(format!("{id}: {why}")).refused());
        match opened.content {
            Content::Open(payload) => write_json(terminal, &payload)?,
            Content::Nothing => {
                return refuse(
                    "this record has no payload; records of this kind have metadata only",
                );
            }
            Content::Pruned => return refuse("its payload was deleted when its retention ended"),
            Content::Erased => {
                return refuse("its user was erased, so the payload cannot be read any more");
            }
        }
        if let Some(access) = opened.access {
            terminal.say(format_args!("access recorded: {access}"))?;
        }
        Ok(Exit::Ok)
    }
}

fn kind(text: &str) -> Result<RecordKind, String> {
    let mut kinds = RecordKind::ALL.into_iter();
    kinds.find(|kind| kind.as_str() == text).ok_or_else(|| {
        let known = RecordKind::ALL.map(RecordKind::as_str);
        format!("expected one of {}", known.join(", "))
    })
}

/// Writes one line about what was done or, for programs, the value.
fn say_done(terminal: &mut Terminal, value: &Value, line: &str) -> Result<(), Failure> {
    if terminal.is_for_programs() {
        return write_json(terminal, value);
    }
    Ok(writeln!(terminal.data(), "{line}")?)
}
