//! `countersign policy replay`: recorded calls decided again under a draft, and what would change.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use countersign::Catalog;
use countersign::archive::OpenedCall;
use countersign::contract::SnapshotId;
use countersign::ledger::LogQuery;
use countersign_gateway::moment::Moment;
use countersign_gateway::policy::{Explanation, Omitted, PastCall, Policy, Ruling};
use serde::{Deserialize, Serialize};

use super::explain::line;
use crate::answer::{write_json, write_table};
use crate::commands::{counted, reason};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, archive_failed, store_failed};
use crate::table::Table;
use crate::terminal::Terminal;
use crate::{catalog, policy};

/// Decide recorded calls again under a draft of a policy, and list what would change
///
/// Each call is decided under the draft, with its arguments, caller, session and time, and compared with what the record says
/// was decided. Scopes are not recorded: a caller counts as holding every scope that `[[tools]]` entries of that time name, and a call that a
/// condition decides by scopes is left out. Nothing is called; that the calls were opened is recorded in the log. Exit code 1 where something would change.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign policy replay --policy draft.toml
  countersign policy replay --policy draft.toml --since 30d --json")]
pub(crate) struct Replay {
    /// The draft
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,

    /// Only calls since then: a time, a date, or 2h for two hours ago
    #[arg(long, value_name = "TIME", default_value = "7d")]
    since: Moment,

    /// Reason for opening the calls; it is sealed in the record of the access
    #[arg(long, value_name = "TEXT", value_parser = reason, default_value = "a policy is tried")]
    reason: String,
}

/// The replay that is asked for.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Text of the draft.
    draft: String,
    /// Its file, for messages.
    path: PathBuf,
    since: Moment,
    reason: String,
}

/// What came out.
#[derive(Default, Serialize)]
struct Outcome {
    /// Calls that were decided.
    decided: usize,
    /// Calls that would be decided otherwise.
    changed: usize,
    /// Calls that were not decided, by the reason.
    left_out: BTreeMap<&'static str, usize>,
    /// The first calls that would be decided otherwise, newest first.
    changes: Vec<Change>,
}

/// A call that would be decided otherwise.
#[derive(Serialize)]
struct Change {
    evidence: SnapshotId,
    at: String,
    tool: String,
    recorded: &'static str,
    draft: &'static str,
    because: String,
}

/// Maximum number of calls that are listed.
const LISTED_MAX: usize = 1000;

/// Number of calls that are opened at once, and named by one record of the access.
const PAGE: usize = 1000;

impl Replay {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let draft = Policy::read(&self.policy).map_err(|error| {
            let file = self.policy.display();
            let message = if error.line == 0 {
                error.message.clone()
            } else {
                format!("{file}: {error}")
            };
            Failure::new(message).hint(error.hint)
        })?;
        let asked = Asked {
            draft: draft.text().to_owned(),
            path: self.policy.clone(),
            since: self.since,
            reason: self.reason.clone(),
        };
        options.perform(&asked, terminal)
    }
}

impl Operation for Asked {
    const NAME: &'static str = "policy replay";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let wrong = |error: countersign_gateway::policy::PolicyError| {
            let message = format!("{}: {error}", self.path.display());
            Failure::new(message).hint(error.hint)
        };
        let draft = Policy::parse(&self.draft).map_err(wrong)?;
        let (catalog, current) = if let Some(served) = &place.served {
            let current = served.gateway.identity().policy().current();
            let catalog = served.gateway.executor().catalog().clone();
            (catalog, Policy::clone(&current))
        } else {
            let current = policy::read(place.loaded());
            let current = current.map_err(|error| policy::refused(place.loaded(), error))?;
            (catalog::declared(place.loaded())?, current)
        };
        policy::fits(&draft, &catalog).map_err(wrong)?;
        let mut decider = Decider {
            place,
            catalog,
            current,
            draft,
            path: self.path.clone(),
            kept: HashMap::new(),
        };
        let mut journal = Journal::start(place)?;
        let outcome = self.decide(place, &mut decider);
        journal.sign(place)?;
        write(terminal, &outcome?)
    }
}

impl Asked {
    fn decide(&self, place: &Place, decider: &mut Decider<'_>) -> Result<Outcome, Failure> {
        let store = place.store();
        // A record of a plain read may still wait for its batch.
        place
            .runtime
            .block_on(store.flush())
            .map_err(store_failed)?;
        let mut outcome = Outcome::default();
        let mut query = LogQuery {
            since: Some(self.since.before(place.clock.now())),
            until: Some(place.clock.now()),
            limit: PAGE,
            ..LogQuery::default()
        };
        loop {
            let page = place.wait(store.records(&query))?.map_err(store_failed)?;
            let Some(last) = page.last() else { break };
            query.before = Some((last.at, last.id.clone()));
            let calls = page.into_iter().filter(|row| row.request_id.is_some());
            let ids: Vec<SnapshotId> = calls.map(|row| row.id).collect();
            if ids.is_empty() {
                continue;
            }
            let archive = place.archive();
            let opened = archive.open_many(&ids, &place.by, &self.reason, "policy_replay");
            let opened = place.runtime.block_on(opened).map_err(archive_failed)?;
            for call in &opened {
                decider.decide(call, &mut outcome);
            }
        }
        Ok(outcome)
    }
}

struct Decider<'a> {
    place: &'a Place,
    catalog: Catalog,
    current: Policy,
    draft: Policy,
    path: PathBuf,
    /// Policies of records, by their names.
    kept: HashMap<String, Option<Policy>>,
}

impl Decider<'_> {
    fn decide(&mut self, call: &OpenedCall, outcome: &mut Outcome) {
        let Some(tool) = &call.record.tool else {
            return;
        };
        let Some(entry) = self.catalog.get(&tool.name) else {
            *outcome.left_out.entry("no_such_tool").or_default() += 1;
            return;
        };
        self.look_up(call);
        let policy = self.policy_of(call);
        let past = match PastCall::of(call, &entry, policy) {
            Ok(past) => past,
            Err(why) => return leave_out(why, outcome),
        };
        let decided = past.recorded(policy);
        let decided = decided.and_then(|recorded| Ok((recorded, past.under(&self.draft)?)));
        let (recorded, draft) = match decided {
            Ok(decided) => decided,
            Err(why) => return leave_out(why, outcome),
        };
        outcome.decided += 1;
        if recorded != draft {
            outcome.changed += 1;
            if outcome.changes.len() < LISTED_MAX {
                let draft = past.explain(&self.draft);
                outcome.changes.push(self.change(call, recorded, &draft));
            }
        }
    }

    /// Finds the policy that decided a call, once for all calls that name it.
    fn look_up(&mut self, call: &OpenedCall) {
        let Some(revision) = &call.record.policy_revision else {
            return;
        };
        if !self.kept.contains_key(revision) {
            let free = Policy::allow_all();
            let kept = if **free.revision() == **revision {
                Some(free)
            } else {
                // One that this program does not read any more is as good as lost.
                let kept = policy::kept(&self.place.folder, revision).ok().flatten();
                kept.map(|(policy, _)| policy)
            };
            self.kept.insert(revision.clone(), kept);
        }
    }

    /// The policy that decided a call; the one in force if that one is not kept.
    fn policy_of(&self, call: &OpenedCall) -> &Policy {
        let revision = call.record.policy_revision.as_ref();
        let kept = revision.and_then(|revision| self.kept.get(revision)?.as_ref());
        kept.unwrap_or(&self.current)
    }

    fn change(&self, call: &OpenedCall, recorded: Ruling, draft: &Explanation) -> Change {
        let because = draft.because.first();
        let because = because.map(|entry| line(entry, Some(&self.path)));
        Change {
            evidence: call.record.id.clone(),
            at: call.record.at.clone(),
            tool: draft.tool.clone(),
            recorded: recorded.as_str(),
            draft: draft.decision.as_str(),
            because: because.unwrap_or_default(),
        }
    }
}

fn leave_out(why: Omitted, outcome: &mut Outcome) {
    let why = match why {
        Omitted::NoCall => return,
        Omitted::NotKept => "not_kept",
        Omitted::RefusedForTheCaller => "refused_for_the_caller",
        Omitted::ByScopes => "by_scopes",
    };
    *outcome.left_out.entry(why).or_default() += 1;
}

fn write(terminal: &mut Terminal, outcome: &Outcome) -> Result<Exit, Failure> {
    let exit = if outcome.changed == 0 {
        Exit::Ok
    } else {
        Exit::Refused
    };
    if terminal.is_for_programs() {
        write_json(terminal, outcome)?;
        return Ok(exit);
    }
    let mut table = Table::new(["AT", "TOOL", "RECORDED", "DRAFT", "BECAUSE", "EVIDENCE"]);
    for change in &outcome.changes {
        table.row([
            &change.at,
            &change.tool,
            change.recorded,
            change.draft,
            &change.because,
            change.evidence.as_str(),
        ]);
    }
    let decided = counted(outcome.decided, "call", "calls");
    let nothing = format!("nothing would change: {decided} decided again");
    write_table(terminal, &outcome.changes, table, &nothing)?;
    if outcome.changed > 0 {
        let changed = outcome.changed;
        terminal.say(format_args!(
            "{changed} of {decided} would be decided otherwise"
        ))?;
    }
    for (why, count) in &outcome.left_out {
        let what = match *why {
            "refused_for_the_caller" => "refused for who called; scopes are not recorded",
            "by_scopes" => {
                "a condition decides it by the scopes of the caller, which are not recorded"
            }
            "no_such_tool" => "its tool does not exist any more",
            _ => "its content is no longer kept",
        };
        let count = counted(*count, "call", "calls");
        terminal.say(format_args!("left out: {count}: {what}"))?;
    }
    Ok(exit)
}
