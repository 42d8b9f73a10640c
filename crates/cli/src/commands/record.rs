//! `countersign record`: calls of the log as a recording that a server can answer from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use countersign::archive::{LeftOut, Recorded};
use countersign::contract::{Digest, SnapshotId};
use countersign::ledger::LogQuery;
use countersign_gateway::moment::Moment;
use serde::{Deserialize, Serialize};

use super::lookup::Name;
use super::{counted, reason};
use crate::catalog;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, archive_failed, store_failed};
use crate::recording::beside;
use crate::table::visible;
use crate::terminal::Terminal;

/// Record calls and answers in a file, for tests with `serve --from-recording`
///
/// Sensitive values are replaced by placeholders such as [email:1]; equal values get equal placeholders. FILE.digests has
/// digests of those in arguments, so that only the recorded values match; keep it as private as the values. The log records
/// that the calls were opened.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign record -o calls.jsonl
  countersign record --session s_1 --since 2h -o calls.jsonl
  countersign record --tool notes.add --tool notes.list > calls.jsonl
  countersign serve --from-recording calls.jsonl")]
pub(crate) struct Record {
    #[command(flatten)]
    wanted: Wanted,

    /// Do not replace sensitive values: the file has personal data
    #[arg(long, requires = "reason")]
    clear: bool,

    /// Reason for opening the calls; stored encrypted in the record of the access [default: a recording for tests]
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write no FILE.digests: a masked argument then matches any value of its kind, with a warning
    #[arg(long, conflicts_with = "clear")]
    any_masked: bool,
}

/// Filters of the calls.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
struct Wanted {
    /// Only calls of this session
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,

    /// Only calls since a time: a timestamp, a date, or 2h for two hours ago
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,

    /// Only calls before a time
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,

    /// Only calls of this tool; may be repeated
    #[arg(long, value_name = "TOOL")]
    tool: Vec<String>,

    /// Only calls of this user
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// Only this call, by request id or record id; may be repeated
    #[arg(long, value_name = "ID")]
    request: Vec<Name>,

    /// Maximum number of calls, newest first
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    limit: usize,
}

/// Number of rows that are asked for at once.
const PAGE: usize = 256;

impl Record {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let asked = Asked {
            wanted: self.wanted.clone(),
            clear: self.clear,
            reason: self.reason.clone(),
            with_digests: self.output.is_some() && !self.any_masked,
        };
        let Some(path) = &self.output else {
            return options.perform(&asked, terminal);
        };
        // The file is written by whoever named it, and only where the recording is whole.
        let (mut kept_terminal, kept) = terminal.kept();
        let exit = options.perform(&asked, &mut kept_terminal)?;
        kept_terminal.flush()?;
        let text = kept.take();
        let (recording, digests) = parts(&text);
        write_digests(&beside(path), digests)?;
        std::fs::write(path, recording).map_err(|error| cannot_write(path, error))?;
        if !digests.is_empty() {
            terminal.say(format_args!(
                "digests of the masked arguments: {}; short values can be guessed from them, so keep them apart when you give the recording away",
                beside(path).display()
            ))?;
        }
        Ok(exit)
    }
}

/// The recording, and the digests behind it; these are empty if there are none.
fn parts(text: &[u8]) -> (&[u8], &[u8]) {
    let whole = text.strip_suffix(b"\n").unwrap_or(text);
    let last = whole.iter().rposition(|byte| *byte == b'\n');
    let last = last.map_or(0, |at| at + 1);
    match text.split_at_checked(last) {
        Some((recording, digests)) if digests.starts_with(DIGESTS) => (recording, digests),
        Some(_) | None => (text, &[]),
    }
}

/// Beginning of the line with the digests.
const DIGESTS: &[u8] = b"{\"digests\":";

/// Writes the digests so that only their owner can read them, and removes those of an earlier recording.
fn write_digests(path: &Path, digests: &[u8]) -> Result<(), Failure> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(cannot_write(path, error)),
        Ok(()) | Err(_) => {}
    }
    if digests.is_empty() {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(digests));
    written.map_err(|error| cannot_write(path, error))
}

fn cannot_write(path: &Path, error: std::io::Error) -> Failure {
    let what = format!("cannot write {}", path.display());
    anyhow::Error::new(error).context(what).into()
}

/// Request for a recording, as it is sent to a server.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    wanted: Wanted,
    clear: bool,
    reason: Option<String>,
    /// True if a line with the digests of masked arguments follows the recording.
    with_digests: bool,
}

impl Operation for Asked {
    const NAME: &'static str = "record";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut journal = Journal::start(place)?;
        // What is committed and not signed yet is signed now: the file names the checkpoint that it was read at.
        journal.sign(place)?;
        let ids = self.wanted.ids(place)?;
        let catalog = match &place.served {
            Some(served) => served.gateway.executor().catalog().clone(),
            None => catalog::declared(place.loaded())?,
        };
        let recorded = Recorded {
            by: &place.by,
            reason: self.reason.as_deref().unwrap_or("a recording for tests"),
            session: self.wanted.session.as_deref(),
            is_masked: !self.clear,
            program: concat!("countersign ", env!("CARGO_PKG_VERSION")),
        };
        let archive = place.archive();
        let recording = archive.record_calls(&ids, &catalog, recorded);
        let recording = place.runtime.block_on(recording);
        journal.sign(place)?;
        let recording = recording.map_err(archive_failed)?;
        say_left_out(terminal, &recording.left_out)?;
        let calls = recording.recording.calls.len();
        if calls == 0 {
            return Err(Failure::new("no calls match")
                .hint("`countersign calls` lists the newest calls")
                .refused());
        }
        let text = recording.recording.to_text();
        write!(terminal.data(), "{text}")?;
        if self.with_digests && !recording.digests.is_empty() {
            let digests = &recording.digests;
            let digests = digests.to_text(Digest::of_bytes(text.as_bytes()));
            write!(terminal.data(), "{digests}")?;
        }
        let tools = recording.recording.tools.len();
        terminal.say(format_args!(
            "recorded: {} of {}",
            counted(calls, "call", "calls"),
            counted(tools, "tool", "tools")
        ))?;
        if !self.clear {
            terminal.say(masked(&recording.masked))?;
            say_arguments(terminal, &recording.masked_arguments, self.with_digests)?;
        }
        for access in &recording.access {
            terminal.say(format_args!("access recorded: {access}"))?;
        }
        Ok(Exit::Ok)
    }
}

impl Wanted {
    /// The records of the calls, oldest first.
    fn ids(&self, place: &Place) -> Result<Vec<SnapshotId>, Failure> {
        let store = place.store();
        // A record of a plain read may still wait for its batch.
        place
            .runtime
            .block_on(store.flush())
            .map_err(store_failed)?;
        let mut ids = Vec::new();
        if self.request.is_empty() {
            let now = place.clock.now();
            let mut query = LogQuery {
                user_id: self.user.clone(),
                since: self.since.map(|since| since.before(now)),
                until: self.until.map(|until| until.before(now)),
                limit: PAGE,
                ..LogQuery::default()
            };
            while ids.len() < self.limit {
                let page = place.wait(store.records(&query))?.map_err(store_failed)?;
                let Some(last) = page.last() else { break };
                query.before = Some((last.at, last.id.clone()));
                let calls = page.into_iter().filter(|row| {
                    let tool = row.tool.as_ref().filter(|_| row.request_id.is_some());
                    tool.is_some_and(|tool| self.tool.is_empty() || self.tool.contains(tool))
                });
                ids.extend(calls.map(|row| row.id));
            }
            ids.truncate(self.limit);
        }
        for name in &self.request {
            ids.extend(name.all(place, self.user.as_deref())?);
        }
        ids.reverse();
        Ok(ids)
    }
}

/// Tells how many values were masked, by their kind.
fn masked(by_kind: &BTreeMap<String, usize>) -> String {
    let all = counted(by_kind.values().sum(), "value", "values");
    let kinds = by_kind
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    if kinds.is_empty() {
        return "masked: no value; read the file before you give it away".to_owned();
    }
    format!("masked: {all} ({kinds}); read the file before you give it away")
}

/// Says which arguments were masked, and what matches them.
fn say_arguments(
    terminal: &mut Terminal,
    by_tool: &BTreeMap<String, BTreeSet<String>>,
    with_digests: bool,
) -> Result<(), Failure> {
    let what = if with_digests {
        "only the recorded value matches"
    } else {
        "any value of its kind matches"
    };
    for (tool, places) in by_tool {
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        let places = visible(&places.join(" "));
        terminal.say(format_args!("masked argument of {tool}: {places}: {what}"))?;
    }
    Ok(())
}

/// Says what is not in the file, and why.
fn say_left_out(terminal: &mut Terminal, left_out: &LeftOut) -> Result<(), Failure> {
    let LeftOut {
        unbound,
        repeats,
        gone,
        unanswered,
        other_session: _,
        redeclared,
    } = left_out;
    let reasons = [
        (
            *unbound,
            "refused before its arguments were bound; the same text is refused again",
        ),
        (
            *repeats,
            "a repeat under its key; the first answer is recorded",
        ),
        (
            *gone,
            "its content is no longer kept, or its user was erased",
        ),
        (
            *unanswered,
            "its answer was not kept: it has no canonical form",
        ),
    ];
    for (count, why) in reasons {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > 0 {
            terminal.say(format_args!(
                "left out: {}: {why}",
                counted(count, "call", "calls")
            ))?;
        }
    }
    for (tool, count) in redeclared {
        let count = usize::try_from(*count).unwrap_or(usize::MAX);
        terminal.say(format_args!(
            "left out: {} of {tool}: it is declared otherwise now",
            counted(count, "call", "calls")
        ))?;
    }
    Ok(())
}
