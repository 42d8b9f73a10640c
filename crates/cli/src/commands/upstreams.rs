//! `countersign upstreams`: MCP servers behind the gateway, and the approvals of their tools.
//!
//! The approved definitions are in a file beside the configuration, and a running server follows that file. An approval is recorded
//! before it is in force.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use countersign::contract::{RecordKind, Retention};
use countersign::ledger::Durability;
use countersign::scribe::{Act, Draft};
use countersign_upstream::Upstreams;
use countersign_upstream::mcp::pins::{Change, Difference, Pin};
use countersign_upstream::mcp::{LeftOut, Server, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::lint::unconfirmed;
use super::{counted, reason};
use crate::answer::{write_json, write_table};
use crate::catalog::assemble;
use crate::config;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, store_failed};
use crate::table::{Table, visible};
use crate::terminal::Terminal;

/// List MCP servers behind the gateway, review changes of their tools, approve them
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign upstreams list
  countersign upstreams diff files
  countersign upstreams approve files

What is approved is written to countersign.lock.json beside the configuration; keep it in version control. A server that
runs takes it over within a second.")]
pub(crate) struct UpstreamsCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List MCP servers and their tools: approved, listed, changed
    List,
    /// Show changes of the tools since they were approved; exit code 1 if there are any
    Diff {
        /// Name of the upstream
        name: String,
    },
    /// Approve the tools that a server lists now; the approval is recorded
    Approve {
        /// Name of the upstream
        name: String,

        /// Approve only if the tools have this pin, which `diff` shows
        #[arg(long, value_name = "DIGEST")]
        pin: Option<String>,

        /// Reason; written to the record
        #[arg(long, value_name = "TEXT", value_parser = reason)]
        reason: Option<String>,
    },
}

impl UpstreamsCommand {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let upstreams = assemble::ready(options.loaded(), None).map_err(config::wrong)?;
        let upstreams = upstreams.upstreams;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let done = match &self.command {
            Command::List => list(&upstreams, &runtime, terminal),
            Command::Diff { name } => diff(&upstreams, name, &runtime, terminal),
            Command::Approve { name, pin, reason } => {
                let wish = Wish {
                    name,
                    pin: pin.as_deref(),
                    reason: reason.as_deref(),
                };
                approve(&upstreams, &wish, &runtime, options, terminal)
            }
        };
        runtime.block_on(upstreams.close());
        done
    }
}

/// Timeout of `list` for each server.
const PATIENCE: Duration = Duration::from_secs(30);

fn list(
    upstreams: &Arc<Upstreams>,
    runtime: &Runtime,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    runtime.block_on(async {
        let mut asked = JoinSet::new();
        for server in upstreams.servers() {
            let server = server.clone();
            asked.spawn(async move { tokio::time::timeout(PATIENCE, server.discover()).await });
        }
        while asked.join_next().await.is_some() {}
    });
    let states: Vec<(String, State)> = upstreams
        .servers()
        .map(|server| (server.name().to_owned(), server.state()))
        .collect();
    let mut table = Table::new([
        "UPSTREAM",
        "APPROVED",
        "LISTED",
        "DIFFERENT",
        "PIN",
        "STATE",
    ]);
    for (name, state) in &states {
        let pin = state.pin.map(|pin| pin.to_string()).unwrap_or_default();
        let pin: String = pin.chars().take(SHORT_PIN).collect();
        let listed = state.listed.map(|count| count.to_string());
        table.row([
            name.as_str(),
            &state.approved.to_string(),
            listed.as_deref().unwrap_or("-"),
            &state.differences.len().to_string(),
            &pin,
            &visible(&standing(name, state)),
        ]);
    }
    let values: Vec<Value> = states
        .iter()
        .map(|(name, state)| value(name, state))
        .collect();
    let nothing = "no MCP servers; add an [[upstream]] with kind = \"mcp\" to the configuration";
    write_table(terminal, &values, table, nothing)?;
    Ok(Exit::Ok)
}

/// Characters of a pin that tell it from others.
const SHORT_PIN: usize = "sha256:".len() + 12;

/// Describes the state of a server in one sentence, with what to do.
fn standing(name: &str, state: &State) -> String {
    let standing = match (&state.trouble, state.pin, state.differences.len()) {
        (Some(why), _, _) => format!("does not answer: {why}"),
        (None, None, _) => format!("not approved: run `countersign upstreams approve {name}`"),
        (None, Some(_), 0) => "as approved".to_owned(),
        (None, Some(_), _) => format!("changed: run `countersign upstreams diff {name}`"),
    };
    let left_out = state.left_out.iter();
    let left_out = left_out.map(|own| format!("; {} cannot be used: {}", own.tool, own.why));
    standing + &left_out.collect::<String>()
}

fn value(name: &str, state: &State) -> Value {
    let differences = state.differences.iter().map(|own| {
        let kind = match own.change {
            Change::Added(_) => "added",
            Change::Removed => "removed",
            Change::Renamed { .. } => "renamed",
            Change::Changed(_) => "changed",
        };
        json!({"tool": own.tool, "change": kind, "text": own.change.to_string()})
    });
    json!({
        "upstream": name,
        "pin": state.pin.map(|pin| pin.to_string()),
        "approved": state.approved,
        "listed": state.listed,
        "trouble": state.trouble,
        "differences": differences.collect::<Vec<_>>(),
        "left_out": unusable(&state.left_out),
    })
}

fn unusable(left_out: &[LeftOut]) -> Vec<Value> {
    let value = |own: &LeftOut| json!({"tool": own.tool, "why": own.why});
    left_out.iter().map(value).collect()
}

/// Shows what differs from the approved definitions, whole and with everything written out that a terminal would hide.
fn show(state: &State, terminal: &mut Terminal) -> Result<(), Failure> {
    for own in &state.differences {
        let head = match &own.change {
            Change::Added(_) => format!("{} is new", own.tool),
            Change::Changed(_) | Change::Removed | Change::Renamed { .. } => own.tool.clone(),
        };
        let said: Vec<String> = match &own.change {
            Change::Changed(said) | Change::Added(said) => said.clone(),
            other @ (Change::Removed | Change::Renamed { .. }) => vec![other.to_string()],
        };
        writeln!(terminal.data(), "{}", visible(&head))?;
        for line in said {
            writeln!(terminal.data(), "  {}", visible(&line))?;
        }
    }
    Ok(())
}

fn diff(
    upstreams: &Arc<Upstreams>,
    name: &str,
    runtime: &Runtime,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    let server = found(upstreams, name)?;
    runtime.block_on(server.discover()).map_err(away)?;
    let state = server.state();
    let pin = server.listed().map(|listed| Pin::of(listed).digest);
    if terminal.is_for_programs() {
        let mut told = value(name, &state);
        if let (Value::Object(told), Some(pin)) = (&mut told, pin) {
            told.insert("listed_pin".to_owned(), pin.to_string().into());
        }
        write_json(terminal, &told)?;
    } else if state.differences.is_empty() {
        terminal.say(format_args!(
            "no changes: the tools of {name} are as approved"
        ))?;
    } else {
        show(&state, terminal)?;
        if let Some(pin) = pin {
            terminal.say(format_args!(
                "to approve them, run `countersign upstreams approve {name} --pin {pin}`"
            ))?;
        }
    }
    Ok(if state.differences.is_empty() {
        Exit::Ok
    } else {
        Exit::Refused
    })
}

/// The approval that is asked for.
struct Wish<'a> {
    name: &'a str,
    pin: Option<&'a str>,
    reason: Option<&'a str>,
}

fn approve(
    upstreams: &Arc<Upstreams>,
    wish: &Wish<'_>,
    runtime: &Runtime,
    options: &PlaceOptions,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    let server = found(upstreams, wish.name)?;
    let pin = runtime
        .block_on(upstreams.proposed(wish.name))
        .map_err(away)?;
    if wish.pin.is_some_and(|seen| seen != pin.digest.to_string()) {
        return Err(Failure::new(format!(
            "the server lists other tools now: their pin is {}",
            pin.digest
        ))
        .hint(format!(
            "review them with `countersign upstreams diff {}`",
            wish.name
        ))
        .refused());
    }
    let state = server.state();
    if !terminal.is_for_programs() {
        show(&state, terminal)?;
    }
    let approval = Approval::of(wish, &pin, &state);
    let config = options.config();
    let mut declared = config.upstream.iter();
    let declared = declared.find(|upstream| upstream.name == wish.name);
    let writes = declared.map_or(0, |upstream| unconfirmed(config, upstream, &pin).len());
    for LeftOut { tool, why } in upstreams.unusable(wish.name, &pin) {
        let told = visible(&format!(
            "{tool} is left out because it cannot be used: {why}"
        ));
        terminal.say(format_args!("warning: {told}"))?;
    }
    // An approval without a record would be nobody's; a record without the approval is one that has to be given again.
    let exit = options.make_and_perform(&approval, terminal)?;
    upstreams.approve(wish.name, pin).map_err(away)?;
    if writes > 0 {
        terminal.say(format_args!(
            "note: {} count as writes, because no entry says otherwise: an agent that repeats a call soon gets the first answer. `countersign lint` shows the lines that confirm a read",
            counted(writes, "tool", "tools")
        ))?;
    }
    Ok(exit)
}

/// An approval of an MCP server's tools, to be recorded.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Approval {
    upstream: String,
    pin: String,
    /// The pin that was in force before.
    before: Option<String>,
    tools: usize,
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
    reason: Option<String>,
}

impl Approval {
    fn of(wish: &Wish<'_>, pin: &Pin, state: &State) -> Self {
        let named = |is_it: fn(&Change) -> bool| {
            let those = state.differences.iter().filter(|own| is_it(&own.change));
            those.map(|own: &Difference| own.tool.clone()).collect()
        };
        Self {
            upstream: wish.name.to_owned(),
            pin: pin.digest.to_string(),
            before: state.pin.map(|pin| pin.to_string()),
            tools: pin.tools.len(),
            added: named(|change| matches!(change, Change::Added(_))),
            removed: named(|change| matches!(change, Change::Removed)),
            changed: named(|change| matches!(change, Change::Renamed { .. } | Change::Changed(_))),
            reason: wish.reason.map(str::to_owned),
        }
    }
}

impl Operation for Approval {
    const NAME: &'static str = "upstreams.approve";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut journal = Journal::start(place)?;
        let id = place.ids.snapshot_id();
        let act = Act {
            kind: RecordKind::Config,
            at: place.clock.now(),
            user_id: String::new(),
            actor: Some(place.by.actor.clone()),
            about: json!({"event": "upstream_approved", "approval": self}),
            retention: Retention::Long,
        };
        let draft = Draft::from(act.entry(id.clone(), None));
        let store = place.store();
        let append = store.append(draft, Durability::Committed);
        place.runtime.block_on(append).map_err(store_failed)?;
        journal.sign(place)?;
        if terminal.is_for_programs() {
            let (upstream, pin, tools) = (&self.upstream, &self.pin, self.tools);
            let told = json!({"upstream": upstream, "pin": pin, "tools": tools, "evidence": id});
            write_json(terminal, &told)?;
        } else {
            let (upstream, tools) = (&self.upstream, counted(self.tools, "tool", "tools"));
            terminal.say(format_args!("approved {tools} of {upstream}: {}", self.pin))?;
            terminal.say(format_args!("evidence: {id}"))?;
        }
        Ok(Exit::Ok)
    }
}

fn found<'u>(upstreams: &'u Arc<Upstreams>, name: &str) -> Result<&'u Arc<Server>, Failure> {
    upstreams.server(name).ok_or_else(|| {
        let names: Vec<&str> = upstreams.servers().map(|server| server.name()).collect();
        let hint = if names.is_empty() {
            "add an [[upstream]] with kind = \"mcp\"".to_owned()
        } else {
            format!("choose one of {}", names.join(", "))
        };
        Failure::new(format!("the configuration has no MCP server {name:?}")).hint(hint)
    })
}

fn away(error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::from(anyhow::Error::new(error))
        .hint("check the configuration with `countersign lint`; a program that cannot start says why on stderr")
}
