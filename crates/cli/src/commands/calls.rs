//! `countersign calls` and `countersign call-show`: calls, and the records of one call.

use std::io::Write as _;

use countersign::archive::{Manner, Shown, Standing};
use countersign::contract::evidence::{LinkRole, RecordedCredential};
use countersign::contract::{ErrorCode, EvidenceRecord, RecordKind, SnapshotId};
use countersign::ledger::{LogQuery, LogRow};
use countersign_gateway::moment::Moment;
use serde::{Deserialize, Serialize};

use super::shown_kind;
use crate::answer::write_table;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, archive_failed, store_failed};
use crate::table::{Table, visible};
use crate::terminal::Terminal;

mod show;

pub(crate) use show::CallShow;

/// List calls, newest first
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign calls
  countersign calls --tool notes.add --since 2h
  countersign calls --code INVALID_ARGUMENT --limit 100 --json")]
pub(crate) struct Calls {
    #[command(flatten)]
    wanted: Wanted,
}

/// Filter of the records to list.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub(crate) struct Wanted {
    /// Only calls of this user
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,

    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,

    /// Only calls with this result: OK, or an error code such as CONFLICT
    #[arg(long, value_name = "CODE", value_parser = code)]
    pub(crate) code: Option<Ended>,

    /// Only calls since a time: a timestamp, a date, or 2h for two hours ago
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<Moment>,

    /// Only calls before a time, in the same forms
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Moment>,

    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
}

/// Outcome of a call.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Ended {
    Ok,
    Error(ErrorCode),
}

impl Wanted {
    pub(crate) fn query(&self, place: &Place) -> LogQuery {
        LogQuery {
            user_id: self.user.clone(),
            tool: self.tool.clone(),
            code: match self.code {
                Some(Ended::Error(code)) => Some(code),
                Some(Ended::Ok) | None => None,
            },
            ok_only: matches!(self.code, Some(Ended::Ok)),
            since: self.since.map(|since| since.before(place.clock.now())),
            until: self.until.map(|until| until.before(place.clock.now())),
            limit: self.limit,
            ..LogQuery::default()
        }
    }
}

impl Calls {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        options.perform(self, terminal)
    }
}

impl Operation for Calls {
    const NAME: &'static str = "calls";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let rows = rows(place, self.wanted.query(place))?;
        let manners = place
            .wait(place.archive().manners(&rows))?
            .map_err(archive_failed)?;
        let shown: Vec<ShownCall> = rows.iter().zip(manners).map(ShownCall::of).collect();
        write(terminal, &shown)
    }
}

/// Returns calls, newest first, also those that were refused before they reached a tool: at most as many as the query allows.
pub(crate) fn rows(place: &Place, mut query: LogQuery) -> Result<Vec<LogRow>, Failure> {
    // A record is of a call where it has the call's id; that is asked for page by page, because the
    // store cannot be asked for two kinds at once.
    let mut rows = Vec::new();
    while rows.len() < query.limit {
        let page = place
            .wait(place.store().records(&query))?
            .map_err(store_failed)?;
        let Some(last) = page.last() else { break };
        query.before = Some((last.at, last.id.clone()));
        let is_call = |row: &LogRow| row.request_id.is_some() && row.kind != RecordKind::Intent;
        rows.extend(page.into_iter().filter(is_call));
    }
    rows.truncate(query.limit);
    Ok(rows)
}

fn write(terminal: &mut Terminal, shown: &[ShownCall]) -> Result<Exit, Failure> {
    let mut table = Table::new(["AT", "USER", "TOOL", "CODE", "EVIDENCE", "REQUEST"]);
    for call in shown {
        // A dry run has changed nothing, and a repeat neither: they must not look like what was done.
        let code = match call.how {
            Manner::Made => call.code.clone(),
            Manner::DryRun => format!("{} (dry run)", call.code),
            Manner::Replay => format!("{} (replay)", call.code),
            Manner::Recording => format!("{} (from a recording)", call.code),
        };
        table.row([
            &call.at,
            &call.user_id,
            call.tool.as_deref().unwrap_or("-"),
            &code,
            &call.evidence,
            call.request_id.as_deref().unwrap_or_default(),
        ]);
    }
    write_table(terminal, &shown, table, "no calls match")?;
    Ok(Exit::Ok)
}

/// A call of a list.
#[derive(Serialize)]
struct ShownCall {
    at: String,
    user_id: String,
    tool: Option<String>,
    code: String,
    manner: &'static str,
    #[serde(skip)]
    how: Manner,
    evidence: String,
    request_id: Option<String>,
}

impl ShownCall {
    fn of((row, manner): (&LogRow, Manner)) -> Self {
        Self {
            manner: manner.as_str(),
            how: manner,
            at: row.at.to_string(),
            user_id: row.user_id.clone(),
            tool: row.tool.clone(),
            code: row.code.map_or("OK", ErrorCode::as_str).to_owned(),
            evidence: row.id.to_string(),
            request_id: row.request_id.as_ref().map(ToString::to_string),
        }
    }
}

/// Returns one record with its proof.
pub(crate) fn record(place: &Place, id: &SnapshotId) -> Result<Shown, Failure> {
    let archive = place.archive();
    place
        .runtime
        .block_on(archive.show(id))
        .map_err(archive_failed)
}

/// A record, line by line.
pub(crate) fn show(terminal: &mut Terminal, known: &Shown) -> Result<(), Failure> {
    let out = terminal.data();
    let Shown { record, row, .. } = known;
    let mut line = |name: &str, value: &str| writeln!(out, "{name}: {}", visible(value));
    line("evidence", record.id.as_str())?;
    line("kind", shown_kind(record.kind, row.code))?;
    line("at", &record.at)?;
    if let Some(request_id) = &record.request_id {
        line("request", request_id.as_str())?;
    }
    match (row.user_id.as_str(), &record.subject) {
        ("", None) => {}
        ("", Some(_)) => line("user", "(erased)")?,
        (user_id, _) => line("user", user_id)?,
    }
    if let Some(actor) = &record.actor {
        line("actor", &format!("{} {}", actor.kind.as_str(), actor.id))?;
    }
    if let Some(credential) = &record.credential {
        line("credential", &credential_text(credential))?;
    }
    if let Some(tool) = &record.tool {
        let version = tool.version.as_deref().unwrap_or("unknown version");
        line("tool", &format!("{} ({version})", tool.name))?;
        if let Some(build) = &tool.build {
            line("program", &build.to_string())?;
        }
    }
    if let Some(reply) = &record.reply {
        line("code", reply.code.map_or("OK", ErrorCode::as_str))?;
        if let Some(until) = &reply.valid_until {
            line("valid until", until)?;
        }
    }
    if record.dry_run {
        line("dry run", "nothing was changed")?;
    }
    if let Some(key) = &record.idempotency {
        line(
            "key",
            &format!("{} {} (attempt {})", key.key, key.state, key.attempt),
        )?;
    }
    for (name, value) in basis(record) {
        line(name, &value)?;
    }
    if !record.act.is_null() {
        line("act", &record.act.to_string())?;
    }
    if record.payload.is_some() {
        line(
            "payload",
            if known.has_payload {
                "sealed"
            } else {
                "deleted"
            },
        )?;
    }
    if let Some(phases) = &record.phases {
        line("took", &took(phases))?;
    }
    let place = known.index.map(|index| index.to_string());
    line("place in the log", place.as_deref().unwrap_or("not yet"))?;
    line("proof", &proof(&known.standing))?;
    Ok(())
}

/// Lists the basis of a call's decision: its rules, the records that it used, and the arguments that may be shown.
fn basis(record: &EvidenceRecord) -> Vec<(&'static str, String)> {
    let rules = record.rules.iter();
    let mut lines: Vec<_> = rules
        .map(|(name, version)| ("rules", format!("{name} {version}")))
        .collect();
    lines.extend(record.links.iter().map(|link| {
        let name = match link.role {
            Some(LinkRole::RestsOn) | None => "rests on",
            Some(LinkRole::LookedAt) => "looked at",
        };
        (name, link.id.to_string())
    }));
    if let Some(arguments) = &record.arguments {
        // A record of version 1 has all of them, with everything sensitive replaced.
        let shown = [&arguments.public, &arguments.redacted];
        let shown = shown.into_iter().filter(|value| !value.is_null());
        lines.extend(shown.map(|value| ("arguments", value.to_string())));
    }
    lines
}

/// The credential behind a call.
fn credential_text(credential: &RecordedCredential) -> String {
    match credential {
        RecordedCredential::ApiKey { id } => format!("API key {id}"),
        RecordedCredential::Token { issuer, id: None } => format!("token of {issuer}"),
        RecordedCredential::Token {
            issuer,
            id: Some(id),
        } => format!("token {id} of {issuer}"),
    }
}

/// Describes the proof of a record in words.
pub(crate) fn proof(standing: &Standing) -> String {
    match standing {
        Standing::Waiting => "not yet: the record waits for the tree".to_owned(),
        Standing::Unsigned => "not yet: the record waits for a signature".to_owned(),
        Standing::Signed { size } => format!("included in the signed checkpoint of {size} records"),
        Standing::NotIncluded => {
            "WRONG: the signed tree has another record at this place".to_owned()
        }
    }
}

/// Formats the time that a call spent in each phase.
pub(crate) fn took(phases: &countersign::contract::record::PhaseTimes) -> String {
    format!(
        "{} µs to the tool, {} µs in it, {} µs to settle",
        phases.queued_us, phases.executing_us, phases.settling_us,
    )
}

fn code(text: &str) -> Result<Ended, String> {
    if text.eq_ignore_ascii_case("ok") {
        return Ok(Ended::Ok);
    }
    let named = |code: &ErrorCode| code.as_str().eq_ignore_ascii_case(text);
    ErrorCode::ALL
        .into_iter()
        .find(named)
        .map(Ended::Error)
        .ok_or_else(|| {
            let known = ErrorCode::ALL.map(ErrorCode::as_str);
            match countersign_gateway::nearest::nearest(text, known) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("expected OK or one of {}", known.join(", ")),
            }
        })
}
