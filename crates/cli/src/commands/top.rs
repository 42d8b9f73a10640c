//! `countersign top`: live calls of a server in the terminal.

use std::io::Write as _;
use std::time::Duration;

use countersign::contract::{ErrorCode, Language};
use countersign::ledger::{LogQuery, LogRow};
use countersign_gateway::caller::{Caller, Proof};
use countersign_gateway::pulse::ToolFigures;
use countersign_gateway::status::{About, View};
use serde::{Deserialize, Serialize};

use crate::commands::calls;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::json;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, archive_failed};
use crate::table::{fit, visible};
use crate::terminal::Terminal;

mod frame;
mod screen;

use screen::{Key, Screen};

/// Watch calls live: rates, tools, running calls, problems
///
/// Redraws every second while a server runs. `q` quits. With --once it shows the state once, also without a server.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign top
  countersign top --interval 5
  countersign top --once
  countersign top --json | jq .calls_last_minute")]
pub(crate) struct Top {
    /// Show the state once, and end
    #[arg(long)]
    once: bool,

    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,

    /// Number of newest calls
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=200))]
    calls: u16,
}

/// The state of a server at one moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) at: String,
    /// Seconds since the server was started; `None` without a server.
    pub(super) up_seconds: Option<i64>,
    /// Calls of the last 60 seconds.
    pub(super) calls_last_minute: u64,
    /// Number of these calls that ended with an error.
    pub(super) errors_last_minute: u64,
    /// Calls that run now; `None` without a server.
    pub(super) running: Option<usize>,
    pub(super) in_doubt: Option<u64>,
    pub(super) approvals_open: Option<usize>,
    pub(super) unsigned: Option<u64>,
    /// Problems that the server reports, the gravest first.
    pub(super) problems: Vec<String>,
    /// Figures of each tool, of the newest 20,000 records before the server was started and since then; the most called first.
    pub(super) tools: Vec<Tool>,
    /// The newest calls, newest first.
    pub(super) calls: Vec<Call>,
}

/// Figures of one tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Tool {
    #[serde(rename = "tool")]
    pub(super) name: String,
    pub(super) calls: u64,
    pub(super) errors: u64,
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
}

/// One call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) at: String,
    pub(super) user_id: String,
    pub(super) tool: Option<String>,
    pub(super) code: String,
    /// Time from arrival to the record, without waiting for a person.
    pub(super) took_us: Option<u64>,
    pub(super) request_id: Option<String>,
}

/// Maximum number of records of the last minute that are counted one by one, without a server that counts them.
const COUNTED_MAX: usize = 10_000;

impl Top {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        if self.once {
            let snapshot = self.look(options, terminal)?;
            self.write(&snapshot, None, terminal)?;
            return Ok(Exit::Ok);
        }
        if options.running()?.is_none() {
            return Err(Failure::new("no server runs on this data folder")
                .hint("start one with `countersign serve`, or use --once to look at the store"));
        }
        if terminal.is_for_programs() {
            return self.stream(options, terminal);
        }
        if terminal.rows().is_none() {
            return Err(Failure::new("stdout is not a terminal")
                .hint("use --once for one look, or --json for a line every second"));
        }
        self.watch(options, terminal)
    }

    /// Writes a line of JSON for every look, until the reader or the server is gone.
    fn stream(&self, options: &PlaceOptions, terminal: &mut Terminal) -> Result<Exit, Failure> {
        loop {
            let snapshot = self.look(options, terminal)?;
            self.write(&snapshot, None, terminal)?;
            terminal.flush()?;
            std::thread::sleep(Duration::from_secs(self.interval));
        }
    }

    /// Redraws the screen until `q`.
    fn watch(&self, options: &PlaceOptions, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let screen = Screen::open()?;
        let server = options.running()?.map(|running| running.place());
        let mut last = None;
        loop {
            let (lines, is_lost) = match self.look(options, terminal) {
                Ok(snapshot) => {
                    let lines = self.lines(&snapshot, server.as_deref(), terminal);
                    last = Some(snapshot);
                    (lines, false)
                }
                // The server may be starting again.
                Err(failure) => match &last {
                    Some(last) => {
                        let mut lines = self.lines(last, server.as_deref(), terminal);
                        let error = format!("error: {:#}; trying again", failure.error);
                        let error = fit(&visible(&error), terminal.columns().unwrap_or(usize::MAX));
                        lines.insert(0, terminal.paint().labelled(&error));
                        (lines, true)
                    }
                    None => return Err(failure),
                },
            };
            let rows = terminal.rows().unwrap_or(usize::MAX);
            Screen::draw(&lines, rows)?;
            let wait = Duration::from_secs(if is_lost { 1 } else { self.interval });
            match screen.key_within(wait) {
                Some(Key::Quit) => return Ok(Exit::Ok),
                Some(Key::Other) | None => {}
            }
        }
    }

    fn look(&self, options: &PlaceOptions, terminal: &Terminal) -> Result<Snapshot, Failure> {
        let (mut kept_terminal, kept) = terminal.kept();
        let asked = Asked {
            calls: usize::from(self.calls),
        };
        options.perform(&asked, &mut kept_terminal)?;
        kept_terminal.flush()?;
        Ok(serde_json::from_slice(&kept.take())?)
    }

    fn lines(&self, snapshot: &Snapshot, server: Option<&str>, terminal: &Terminal) -> Vec<String> {
        let keys = if self.once { "" } else { "q quits" };
        frame::lines(snapshot, server, keys, terminal)
    }

    fn write(
        &self,
        snapshot: &Snapshot,
        server: Option<&str>,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        if terminal.is_for_programs() {
            let mut line = String::new();
            json::compact(&serde_json::to_string(snapshot)?, &mut line);
            return Ok(writeln!(terminal.data(), "{line}")?);
        }
        let lines = self.lines(snapshot, server, terminal);
        Ok(writeln!(terminal.data(), "{}", lines.join("\n"))?)
    }
}

/// One look at a place.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    calls: usize,
}

impl Operation for Asked {
    const NAME: &'static str = "top";

    /// Writes a [`Snapshot`] for a terminal or for programs.
    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut snapshot = Snapshot {
            at: place.clock.now().to_string(),
            up_seconds: None,
            calls_last_minute: 0,
            errors_last_minute: 0,
            running: None,
            in_doubt: None,
            approvals_open: None,
            unsigned: None,
            problems: Vec::new(),
            tools: Vec::new(),
            calls: self.newest(place)?,
        };
        last_minute(place, &mut snapshot)?;
        of_server(place, &mut snapshot);
        let text = serde_json::to_string(&snapshot)?;
        Ok(writeln!(terminal.data(), "{text}").map(|()| Exit::Ok)?)
    }
}

impl Asked {
    fn newest(&self, place: &Place) -> Result<Vec<Call>, Failure> {
        let archive = place.archive();
        let query = LogQuery {
            limit: self.calls,
            ..LogQuery::default()
        };
        let mut calls = Vec::new();
        for row in calls::rows(place, query)? {
            let shown = place.wait(archive.show(&row.id))?.map_err(archive_failed)?;
            let took = shown.record.phases.map(|phases| {
                phases
                    .queued_us
                    .saturating_add(phases.executing_us)
                    .saturating_add(phases.settling_us)
            });
            calls.push(Call {
                at: row.at.to_string(),
                user_id: row.user_id,
                tool: row.tool,
                code: row.code.map_or("OK", ErrorCode::as_str).to_owned(),
                took_us: took,
                request_id: row.request_id.map(|id| id.to_string()),
            });
        }
        Ok(calls)
    }
}

/// Counts the calls of the last 60 seconds.
fn last_minute(place: &Place, snapshot: &mut Snapshot) -> Result<(), Failure> {
    let minute = jiff::SignedDuration::from_secs(60);
    let since = place.clock.now().checked_sub(minute).ok();
    let query = LogQuery {
        since,
        limit: COUNTED_MAX,
        ..LogQuery::default()
    };
    let rows = calls::rows(place, query)?;
    let is_error = |row: &&LogRow| row.code.is_some_and(|code| !code.is_question());
    snapshot.calls_last_minute = rows.len() as u64;
    snapshot.errors_last_minute = rows.iter().filter(is_error).count() as u64;
    Ok(())
}

/// Adds what only a running server knows.
fn of_server(place: &Place, snapshot: &mut Snapshot) {
    let Some(served) = &place.served else { return };
    let caller = Caller {
        principal: std::sync::Arc::new(place.by.clone()),
        proof: Proof::Operator,
    };
    let status =
        served
            .gateway
            .status(&caller, About::default(), View::Operator, Language::English);
    let status = place.runtime.block_on(status);
    snapshot.up_seconds = Some(status.program.up_seconds);
    snapshot.unsigned = status.signing.unsigned_records;
    let problems = status.problems.into_iter();
    snapshot.problems = problems.map(|problem| problem.message).collect();
    if let Some(server) = status.server {
        snapshot.running = Some(server.calls_running);
        snapshot.in_doubt = server.calls_in_doubt;
        snapshot.approvals_open = server.approvals_open;
    }
    let figures = served.gateway.pulse().figures(place.clock.now());
    let mut tools: Vec<Tool> = figures.tools.into_iter().map(Tool::from).collect();
    tools.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.name.cmp(&b.name)));
    snapshot.tools = tools;
}

impl From<ToolFigures> for Tool {
    fn from(figures: ToolFigures) -> Self {
        let ToolFigures {
            tool,
            calls,
            errors,
            p50_us,
            p99_us,
        } = figures;
        Self {
            name: tool,
            calls,
            errors,
            p50_us,
            p99_us,
        }
    }
}
