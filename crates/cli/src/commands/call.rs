//! `countersign call`: one call through the executor, recorded in the store.

mod envelope;

use std::convert::Infallible;
use std::io::Write as _;
use std::sync::Arc;

use countersign::contract::record::PhaseTimes;
use countersign::contract::{ErrorBody, ErrorCode, Issue, ReplyEnvelope, Warning};
use countersign::ledger::MemoryStore;
use countersign::{Executor, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::calls::{record, took};
use super::{BEHIND_ARGS, issue_table};
use crate::answer::write_json;
use crate::config::parts;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions};
use crate::rules::RuleOptions;
use crate::rules::brought::Brought;
use crate::table::{Table, visible};
use crate::terminal::Terminal;
use crate::{catalog, json, policy};
use envelope::EnvelopeOptions;

/// Call a tool and show its reply
///
/// stdout has the data of the reply. stderr has warnings, the evidence id and times. With --json, stdout has the whole
/// reply envelope. Exit code 1 if the reply is an error.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign call memory.search --args \"{query: 'agent state', limit: '2',}\"
  countersign call diagnostics.echo --args '{\"note\": \"hello\"}' --json
  countersign call notes.add --args '{\"text\": \"buy milk\"}' --key k_1
  countersign call notes.add --args '{\"text\": \"buy tea\"}' --user u_7 --dry-run
  countersign call notes.list --user u_7 --actor agent:a_7 --session s_1 --request-id r_1

A call with a key runs once. A repeat with the same key gets the stored answer.
With --store memory nothing is stored.")]
pub(crate) struct Call {
    /// Name of the tool
    #[arg(value_name = "TOOL")]
    tool: String,

    /// Nothing stands here; arguments that are put here are refused with their right place.
    #[arg(hide = true, value_name = "TEXT", value_parser = misplaced)]
    misplaced: Option<Infallible>,

    /// Arguments, as a model wrote them
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "{}",
        allow_hyphen_values = true
    )]
    args: String,

    #[command(flatten)]
    rules: RuleOptions,

    #[command(flatten)]
    envelope: EnvelopeOptions,
}

impl Call {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        self.envelope.check()?;
        if options.is_memory()? {
            let (reply, recorded) = self.in_memory(options)?;
            return write(terminal, &reply, recorded.as_ref());
        }
        // A server knows its own tools; without one, nothing is made for a tool that there is not.
        if options.running()?.is_none() {
            catalog::find(&catalog::declared(options.loaded())?, &self.tool)?;
        }
        let asked = Asked {
            tool: self.tool.clone(),
            args: self.args.clone(),
            envelope: self.envelope.clone(),
            brought: self.rules.brought()?,
        };
        options.make_and_perform(&asked, terminal)
    }

    /// Runs the call on a store in memory, of which nothing is kept.
    fn in_memory(
        &self,
        options: &PlaceOptions,
    ) -> Result<(ReplyEnvelope, Option<Recorded>), Failure> {
        let options = options.with(self.rules.given()?)?;
        let (loaded, config) = (options.loaded(), options.config());
        let catalog = catalog::ready(loaded)?;
        catalog::find(&catalog, &self.tool)?;
        let store = Arc::new(MemoryStore::new());
        let builder = Executor::builder(catalog.clone())
            .store(store.clone())
            .approval_limits(parts::approval_limits(&config.approvals))
            .rules(RuleOptions::configured(&config.rules).known(None)?.rules);
        let executor = policy::decide(builder, loaded, &catalog)?.build();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let reply = runtime.block_on(executor.execute(self.call()));
        let record = store.records_of(&reply.request_id).pop();
        let recorded = record.map(|record| Recorded {
            at: record.at,
            phases: Some(record.phases),
        });
        Ok((reply, recorded))
    }

    fn call(&self) -> ToolCall {
        self.envelope.call(&self.tool, &self.args)
    }
}

/// A call, as it is sent to the process that has the store.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    tool: String,
    args: String,
    envelope: EnvelopeOptions,
    /// The rules that it is decided by, where they are not those in force.
    brought: Brought,
}

impl Operation for Asked {
    const NAME: &'static str = "call";

    /// The reply is shown when its evidence is in the signed log, so that it can be verified at once.
    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let call = self.envelope.call(&self.tool, &self.args);
        if let Some(served) = &place.served {
            catalog::find(served.gateway.executor().catalog(), &self.tool)?;
        }
        let (reply, mut journal) = match &place.served {
            Some(served) if self.brought.is_empty() => {
                let journal = Journal::start(place)?;
                let reply = place.runtime.block_on(served.gateway.call(call));
                (reply, journal)
            }
            Some(_) | None => {
                let executor = self.executor(place, terminal)?;
                let journal = Journal::start(place)?;
                let reply = place.runtime.block_on(executor.execute(call));
                (reply, journal)
            }
        };
        journal.sign(place)?;
        let user = Some(self.envelope.user.as_str());
        let archive = place.archive();
        let rows = archive.of_request(&reply.request_id, user, 1);
        // The reply is shown whether or not its record can be read: the call is made.
        let rows = match place.runtime.block_on(rows) {
            Ok(rows) => rows,
            Err(error) => {
                terminal.say(format!(
                    "note: the record of the call cannot be read: {error}"
                ))?;
                Vec::new()
            }
        };
        let known = rows.first().map(|row| record(place, &row.id));
        let known = known.transpose()?;
        let recorded = known.map(|known| Recorded {
            at: known.record.at,
            phases: known.record.phases,
        });
        write(terminal, &reply, recorded.as_ref())
    }
}

impl Asked {
    /// Decides by the rules that were brought, and by the policy of the server where there is one.
    fn executor(&self, place: &Place, terminal: &mut Terminal) -> Result<Executor, Failure> {
        let known = self.brought.known(place)?.keep(&place.folder)?;
        for problem in &known.problems {
            terminal.say(format_args!("warning: {problem}"))?;
        }
        match &place.served {
            None => {
                let catalog = catalog::ready(place.loaded())?;
                let builder = place.executor_builder(catalog.clone(), known.rules);
                Ok(policy::decide(builder, place.loaded(), &catalog)?.build())
            }
            Some(served) => {
                let catalog = served.gateway.executor().catalog().clone();
                let policy = served.gateway.identity().policy().clone();
                let builder = place.executor_builder(catalog, known.rules);
                let builder = builder.authorizer(policy.clone());
                Ok(policy.controls().install(builder).build())
            }
        }
    }
}

fn write(
    terminal: &mut Terminal,
    reply: &ReplyEnvelope,
    recorded: Option<&Recorded>,
) -> Result<Exit, Failure> {
    if terminal.is_for_programs() {
        write_json(terminal, reply)?;
    } else {
        show(terminal, reply, recorded)?;
    }
    Ok(if reply.ok { Exit::Ok } else { Exit::Refused })
}

/// Parts of a call's record that are shown.
struct Recorded {
    at: String,
    phases: Option<PhaseTimes>,
}

fn misplaced(_: &str) -> Result<Infallible, String> {
    Err(BEHIND_ARGS.to_owned())
}

fn show(
    terminal: &mut Terminal,
    reply: &ReplyEnvelope,
    recorded: Option<&Recorded>,
) -> Result<(), Failure> {
    if reply.ok {
        writeln!(
            terminal.data(),
            "{}",
            json::pretty(&serde_json::to_string(&reply.data)?)
        )?;
    }
    match &reply.error {
        Some(error) => show_error(terminal, error)?,
        None => terminal.say(match (reply.dry_run, reply.replayed) {
            (true, _) => "ok (dry run: nothing was changed)",
            (false, true) => "ok (stored answer of an earlier call)",
            (false, false) => "ok",
        })?,
    }
    show_warnings(terminal, &reply.warnings)?;
    if let Some(seconds) = reply.ttl_seconds {
        terminal.say(format_args!("valid for: {seconds} s"))?;
    }
    // Of an answer that was given before, this is the evidence of the first.
    if let Some(evidence) = &reply.evidence {
        terminal.say(format_args!("evidence: {}", evidence.snapshot_id))?;
    }
    terminal.say(format_args!(
        "request: {}",
        visible(reply.request_id.as_str())
    ))?;
    if let Some(recorded) = recorded {
        terminal.say(format_args!("at: {}", recorded.at))?;
        if let Some(phases) = &recorded.phases {
            terminal.say(format_args!("took: {}", took(phases)))?;
        }
    }
    Ok(())
}

fn show_error(terminal: &mut Terminal, error: &ErrorBody) -> Result<(), Failure> {
    let details = &error.details;
    terminal.say(format_args!("{}: {}", error.code, visible(&error.message)))?;
    if let Some(hint) = &details.hint {
        terminal.say(format_args!("hint: {}", visible(hint)))?;
    }
    if let Some(field) = &details.field {
        terminal.say(format_args!("field: {}", visible(field)))?;
    }
    if let Some(reason) = details.reason {
        terminal.say(format_args!("reason: {}", reason.as_str()))?;
    }
    let extra = |name: &str| details.extra.get(name).and_then(Value::as_str);
    if let Some(id) = extra("approval_id") {
        terminal.say(format_args!("approval: {}", visible(id)))?;
    }
    if let Some(because) = extra("asked_because") {
        terminal.say(format_args!("asked because: {}", visible(because)))?;
    }
    let retry = match (details.retryable, details.retry_after_ms) {
        (false, _) if error.code == ErrorCode::NeedsUserConfirmation => {
            "yes, after the user has confirmed".to_owned()
        }
        (false, _) => "no, the same call fails again".to_owned(),
        (true, None) => "yes".to_owned(),
        (true, Some(wait)) => format!("yes, after {wait} ms"),
    };
    terminal.say(format_args!("retry: {retry}"))?;
    let table = issue_table(&details.issues);
    if !table.is_empty() {
        terminal.say(table)?;
    }
    Ok(())
}

fn show_warnings(terminal: &mut Terminal, warnings: &[Warning]) -> Result<(), Failure> {
    let mut remarks = Table::new(["REMARK", "MESSAGE"]);
    let mut issues: Vec<&Issue> = Vec::new();
    for warning in warnings {
        match warning {
            Warning::Issue(issue) => issues.push(issue),
            Warning::Remark { code, message } => remarks.row([code, message]),
        }
    }
    for table in [issue_table(issues), remarks] {
        if !table.is_empty() {
            terminal.say(table)?;
        }
    }
    Ok(())
}
