//! `countersign replay`: recorded calls, verified or computed again and compared.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use countersign::Catalog;
use countersign::contract::{RecordKind, SnapshotId};
use countersign::ledger::{LogQuery, LogRow};
use countersign::replay::{self, Options, Replayed, Replayer, RulesAt};
use countersign::rules::Rules;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::calls::Wanted;
use super::lookup::Name;
use crate::answer::write_table;
use crate::catalog;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, store_failed};
use crate::rules::RuleOptions;
use crate::rules::brought::Brought;
use crate::table::Table;
use crate::terminal::Terminal;

/// Replay recorded calls and show differences
///
/// A replay changes nothing and takes no idempotency key. The log records that payloads were opened. Exit code 3 if a
/// record is damaged or its answer cannot be reproduced, 1 if other rules give another answer.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign replay ev_01a1e209-3e99-736c-842c-57d140cc68f6
  countersign replay order-4711 --user u_7 --mode verify
  countersign replay --since 7d --tool sample.vat --mode recompute
  countersign replay --since 7d --mode against --rules new-rules
  countersign replay --since 7d --mode against --rules new-rules.json

A folder of rules has one file for each version: NAME/YYYY-MM-DD.toml.
`countersign rules show NAME` writes a version to start from.
A file of rules is one JSON object: {\"vat\": {\"DE\": 2000}}.")]
pub(crate) struct Replay {
    /// Record id, or request id of the call
    #[arg(value_name = "ID")]
    name: Option<Name>,

    #[command(flatten)]
    wanted: Wanted,

    /// Kind of replay
    #[arg(long, value_enum, default_value_t = Mode::Recompute)]
    mode: Mode,

    /// Rules to use instead: a folder with NAME/YYYY-MM-DD.toml, or a JSON file
    #[arg(long, value_name = "DIR|FILE", required_if_eq("mode", "against"))]
    rules: Option<PathBuf>,
}

/// Ways to replay recorded calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
enum Mode {
    /// Compare the stored record with its digests
    Verify,
    /// Compute the answer again, with the rules of the record
    Recompute,
    /// Compute the answer with other rules
    Against,
}

/// Outcome of the replay of one record.
struct Outcome {
    id: SnapshotId,
    tool: String,
    verdict: &'static str,
    differences: Vec<Difference>,
}

struct Difference {
    path: String,
    recorded: String,
    computed: String,
}

impl Replay {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let folder = self.rules.clone().filter(|path| path.is_dir());
        let file = self.rules.as_ref().filter(|_| folder.is_none());
        let asked = Asked {
            name: self.name.clone(),
            wanted: self.wanted.clone(),
            mode: self.mode,
            brought: RuleOptions::of(folder).brought()?,
            sets: match file {
                Some(path) => read_sets(path)?,
                None => Map::new(),
            },
            path: file.map(|path| path.display().to_string()),
        };
        options.perform(&asked, terminal)
    }
}

/// The replay that is asked for: its records, its mode and its rules.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    name: Option<Name>,
    wanted: Wanted,
    mode: Mode,
    /// The rules of a folder.
    brought: Brought,
    /// The rules of a JSON file.
    sets: Map<String, Value>,
    /// Path of that JSON file; `None` if the rules came from no file.
    path: Option<String>,
}

impl Operation for Asked {
    const NAME: &'static str = "replay";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let rules = self.rules(place, terminal)?;
        let mut journal = Journal::start(place)?;
        let named = self.name.as_ref();
        let named = named.map(|name| name.all(place, self.wanted.user.as_deref()));
        let named = named.transpose()?;
        let replayer = Replayer::new(place.store(), place.vault(), place.by.clone());
        let replayer = replayer.map_err(failed)?;
        let replayer = replayer.with(place.clock.clone(), place.ids.clone());
        let outcomes = if self.mode == Mode::Verify {
            verify(place, &replayer, &self.meant(place, named)?, terminal)?
        } else {
            let at = match self.mode {
                Mode::Against => RulesAt::InForce,
                Mode::Verify | Mode::Recompute => RulesAt::Recorded,
            };
            let target = Arc::new(replayer.local(tools(place)?, rules, at));
            match named {
                Some(ids) => {
                    let mut outcomes = Vec::new();
                    for id in &ids {
                        let done = place.wait(replayer.replay(id, &*target))?;
                        outcomes.push(Outcome::of(&done.map_err(failed)?));
                    }
                    outcomes
                }
                None => self.compute(place, &replayer, target, terminal)?,
            }
        };
        journal.sign(place)?;
        show(terminal, &outcomes)?;
        Ok(self.exit(&outcomes))
    }
}

impl Asked {
    fn compute(
        &self,
        place: &Place,
        replayer: &Replayer,
        target: Arc<dyn replay::Target>,
        terminal: &Terminal,
    ) -> Result<Vec<Outcome>, Failure> {
        let bar = terminal.bar(self.wanted.limit as u64, "calls");
        let mut outcomes = Vec::new();
        let query = self.wanted.query(place);
        let all = replayer.replay_all(query, target, Options::default(), |one| {
            bar.inc(1);
            outcomes.push(Outcome::of(one));
        });
        place.wait(all)?.map_err(failed)?;
        bar.finish_and_clear();
        outcomes.sort_by(|a, b| b.id.as_str().cmp(a.id.as_str()));
        Ok(outcomes)
    }

    /// The records that are meant with their tools, for a verification.
    fn meant(
        &self,
        place: &Place,
        named: Option<Vec<SnapshotId>>,
    ) -> Result<Vec<(SnapshotId, String)>, Failure> {
        if let Some(ids) = named {
            return Ok(ids.into_iter().map(|id| (id, String::new())).collect());
        }
        let query = LogQuery {
            kind: Some(RecordKind::Call),
            ..self.wanted.query(place)
        };
        let rows = place
            .wait(place.store().records(&query))?
            .map_err(store_failed)?;
        let named = |row: LogRow| (row.id, row.tool.unwrap_or_default());
        Ok(rows.into_iter().map(named).collect())
    }

    /// Returns every known version of the rules, with those of the folder or the file in force.
    fn rules(&self, place: &Place, terminal: &mut Terminal) -> Result<Rules, Failure> {
        let known = self.brought.known(place)?;
        for problem in &known.problems {
            terminal.say(format_args!("warning: {problem}"))?;
        }
        let Some(path) = &self.path else {
            return Ok(known.rules);
        };
        let names: Vec<&str> = known.rules.names().collect();
        let expected = format!("known rule sets: {}", names.join(", "));
        if self.sets.is_empty() {
            return Err(Failure::new(format!("{path} has no rules")).hint(expected));
        }
        let mut rules = Rules::builder().also(&known.rules);
        for (name, data) in &self.sets {
            // Nothing would ask for it, and everything would seem to stay as it is.
            if !names.contains(&name.as_str()) {
                let message = format!("{path}: rule set {name:?} does not exist");
                return Err(Failure::new(message).hint(expected));
            }
            rules = rules.version(name.as_str(), data.clone())?;
        }
        Ok(rules.build())
    }

    fn exit(&self, outcomes: &[Outcome]) -> Exit {
        let has = |names: &[&str]| outcomes.iter().any(|one| names.contains(&one.verdict));
        match self.mode {
            Mode::Verify | Mode::Recompute if has(&["broken", "drift", "other_code"]) => {
                Exit::NotVerified
            }
            Mode::Against if has(&["broken"]) => Exit::NotVerified,
            Mode::Against if has(&["drift", "other_code"]) => Exit::Refused,
            Mode::Verify | Mode::Recompute | Mode::Against => Exit::Ok,
        }
    }
}

/// The tools that calls are computed again with: those of the server, where one carries it out.
fn tools(place: &Place) -> Result<Catalog, Failure> {
    match &place.served {
        Some(served) => Ok(served.gateway.executor().catalog().clone()),
        // Without its secrets a tool of an upstream cannot be asked again; the record of it can still be checked.
        None => catalog::ready(place.loaded()).or_else(|_| catalog::declared(place.loaded())),
    }
}

/// The rule sets of a JSON file.
fn read_sets(path: &Path) -> Result<Map<String, Value>, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::unreadable(path.display(), error))?;
    serde_json::from_str(&text).map_err(|error| {
        let context = format!("{} has no rules", path.display());
        Failure::from(anyhow::Error::new(error).context(context))
            .hint("a file is one JSON object: the name of each rule set with its data; a folder has NAME/YYYY-MM-DD.toml")
    })
}

fn verify(
    place: &Place,
    replayer: &Replayer,
    ids: &[(SnapshotId, String)],
    terminal: &Terminal,
) -> Result<Vec<Outcome>, Failure> {
    let bar = terminal.bar(ids.len() as u64, "records");
    let mut outcomes = Vec::new();
    for (id, tool) in ids {
        let verified = place.wait(replayer.verify(id))?.map_err(failed)?;
        bar.inc(1);
        let is_intact = verified.is_intact();
        outcomes.push(Outcome {
            id: id.clone(),
            tool: tool.clone(),
            verdict: if is_intact { "intact" } else { "broken" },
            differences: verified
                .breaches
                .into_iter()
                .map(|breach| replay::Difference::from(breach).into())
                .collect(),
        });
    }
    bar.finish_and_clear();
    Ok(outcomes)
}

impl Outcome {
    fn of(replayed: &Replayed) -> Self {
        let verdict = &replayed.verdict;
        let differences = verdict.clone().into_differences().into_iter();
        Self {
            id: replayed.id.clone(),
            tool: replayed.tool.clone().unwrap_or_default(),
            verdict: verdict.as_str(),
            differences: differences.map(Difference::from).collect(),
        }
    }
}

impl From<replay::Difference> for Difference {
    fn from(one: replay::Difference) -> Self {
        // In an answer a text has its quotes; a code or a version is a word.
        let is_pointer = one.path.is_empty() || one.path.starts_with('/');
        let shown = |value: Option<Value>| match value {
            Some(Value::String(word)) if !is_pointer => word,
            Some(value) => value.to_string(),
            None => String::new(),
        };
        Self {
            path: one.path,
            recorded: shown(one.recorded),
            computed: shown(one.computed),
        }
    }
}

fn show(terminal: &mut Terminal, outcomes: &[Outcome]) -> Result<(), Failure> {
    let mut table = Table::new([
        "RESULT", "TOOL", "WHERE", "RECORDED", "COMPUTED", "EVIDENCE",
    ]);
    let mut values = Vec::new();
    for outcome in outcomes {
        let (id, tool) = (outcome.id.as_str(), outcome.tool.as_str());
        if outcome.differences.is_empty() {
            table.row([outcome.verdict, tool, "", "", "", id]);
        }
        let mut differences = Vec::new();
        for one in &outcome.differences {
            table.row([
                outcome.verdict,
                tool,
                &one.path,
                &one.recorded,
                &one.computed,
                id,
            ]);
            differences.push(json!({
                "path": one.path,
                "recorded": one.recorded,
                "computed": one.computed,
            }));
        }
        values.push(json!({
            "evidence": id,
            "tool": tool,
            "result": outcome.verdict,
            "differences": differences,
        }));
    }
    write_table(terminal, &values, table, "no calls match")
}

fn failed(error: replay::Error) -> Failure {
    match error {
        replay::Error::Store(error) => store_failed(error),
        replay::Error::NoSuchRecord { .. } => {
            Failure::from(error).hint("`countersign evidence list` lists the newest records")
        }
        replay::Error::NotAllowed | replay::Error::Aborted(_) => Failure::from(error),
    }
}
