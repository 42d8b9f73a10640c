//! `countersign policy replay`: recorded calls decided again under a draft, and what would change.

use std::collections::BTreeMap;
use std::path::PathBuf;

use countersign::archive::OpenedCall;
use countersign::authorize::Facts;
use countersign::contract::{Actor, ErrorCode, SnapshotId};
use countersign::ledger::LogQuery;
use countersign::{Catalog, Principal};
use countersign_gateway::policy::{Explanation, Policy, RecordedRule};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::explain::line;
use crate::answer::{write_json, write_table};
use crate::commands::{counted, reason};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::moment::Moment;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, archive_failed, store_failed};
use crate::table::Table;
use crate::terminal::Terminal;
use crate::{catalog, policy};

/// Decide recorded calls again under a draft of a policy, and list what would change
///
/// Each call is decided twice, under the policy in force and under the draft, with its arguments, caller, session and time.
/// Scopes are not recorded: a caller counts as holding every scope that the policy in force names. Nothing is called; that
/// the calls were opened is recorded in the log. Exit code 1 where something would change.
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
    now: &'static str,
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
        let decider = Decider {
            catalog,
            current,
            draft,
            path: self.path.clone(),
        };
        let mut journal = Journal::start(place)?;
        let outcome = self.decide(place, &decider);
        journal.sign(place)?;
        write(terminal, &outcome?)
    }
}

impl Asked {
    fn decide(&self, place: &Place, decider: &Decider) -> Result<Outcome, Failure> {
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

struct Decider {
    catalog: Catalog,
    current: Policy,
    draft: Policy,
    path: PathBuf,
}

impl Decider {
    fn decide(&self, call: &OpenedCall, outcome: &mut Outcome) {
        match self.both(call) {
            Ok((now, draft)) => {
                outcome.decided += 1;
                if now.decision != draft.decision {
                    outcome.changed += 1;
                    if outcome.changes.len() < LISTED_MAX {
                        outcome.changes.push(self.change(call, &now, &draft));
                    }
                }
            }
            Err(Some(why)) => *outcome.left_out.entry(why).or_default() += 1,
            // A record of a call that has no decision of its own.
            Err(None) => {}
        }
    }

    /// The decisions under both policies, or why there are none.
    fn both(&self, call: &OpenedCall) -> Result<(Explanation, Explanation), Option<&'static str>> {
        let record = &call.record;
        let (Some(reply), Some(tool)) = (&record.reply, &record.tool) else {
            return Err(None);
        };
        let payload = call.payload.as_deref().ok_or(Some("not_kept"))?;
        let entry = self.catalog.get(&tool.name).ok_or(Some("no_such_tool"))?;
        let is_refused = matches!(
            reply.code,
            Some(ErrorCode::Forbidden | ErrorCode::Unauthorized)
        );
        // Whether a scope was missing is not recorded.
        if is_refused && RecordedRule::all(record).is_empty() {
            return Err(Some("refused_for_the_caller"));
        }
        let arguments = payload.arguments.as_ref();
        let arguments = arguments.and_then(|arguments| arguments.value().ok());
        let actor = payload.actor.clone().or_else(|| {
            let actor = record.actor.as_ref()?;
            Some(Actor {
                kind: actor.kind,
                id: actor.id.clone(),
            })
        });
        let actor = actor.ok_or(Some("not_kept"))?;
        let principal = self.principal(actor, &payload.user_id);
        let at: Timestamp = record.at.parse().map_err(|_| Some("not_kept"))?;
        let facts = Facts {
            principal: &principal,
            user_id: Some(&principal.user_id),
            tool: entry.spec(),
            upstream: entry.tool().upstream(),
            now: at,
            session_id: payload.session_id.as_deref(),
            currency: payload.currency.as_deref(),
            dry_run: record.dry_run,
            arguments: arguments.as_ref().unwrap_or(&Value::Null),
            is_exact: true,
        };
        let has_arguments = arguments.is_some();
        Ok((
            self.current.explain(&facts, has_arguments),
            self.draft.explain(&facts, has_arguments),
        ))
    }

    fn principal(&self, actor: Actor, user_id: &str) -> Principal {
        let nobody = Principal::without_user(actor.clone());
        let principal = if nobody.user_id == user_id {
            nobody
        } else {
            Principal::new(actor, user_id)
        };
        let scopes = self.current.scopes().into_iter();
        scopes.fold(principal, Principal::scope)
    }

    fn change(&self, call: &OpenedCall, now: &Explanation, draft: &Explanation) -> Change {
        let because = draft.because.first();
        let because = because.map(|entry| line(entry, Some(&self.path)));
        Change {
            evidence: call.record.id.clone(),
            at: call.record.at.clone(),
            tool: draft.tool.clone(),
            now: now.decision.as_str(),
            draft: draft.decision.as_str(),
            because: because.unwrap_or_default(),
        }
    }
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
    let mut table = Table::new(["AT", "TOOL", "NOW", "DRAFT", "BECAUSE", "EVIDENCE"]);
    for change in &outcome.changes {
        table.row([
            &change.at,
            &change.tool,
            change.now,
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
            "no_such_tool" => "its tool does not exist any more",
            _ => "its content is no longer kept",
        };
        let count = counted(*count, "call", "calls");
        terminal.say(format_args!("left out: {count}: {what}"))?;
    }
    Ok(exit)
}
