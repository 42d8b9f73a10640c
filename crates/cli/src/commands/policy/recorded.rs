//! `countersign policy explain ID`: which line of which policy decided a recorded call.

use std::path::PathBuf;

use countersign::Principal;
use countersign::archive::Shown;
use countersign::contract::{Actor, ErrorCode};
use countersign_gateway::policy::{Explained, Explanation, Policy, Ruling};
use serde::{Deserialize, Serialize};

use super::explain::write;
use super::report::RecordedRule;
use crate::commands::calls;
use crate::commands::lookup::{Name, Whose};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operations::Operation;
use crate::place::Place;
use crate::terminal::Terminal;
use crate::{catalog, policy};

/// The recorded call that is asked about.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(super) name: Name,
    pub(super) whose: Whose,
}

impl Operation for Recorded {
    const NAME: &'static str = "policy explain";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        for id in self.name.all(place, self.whose.user.as_deref())? {
            let known = calls::record(place, &id)?;
            // Intents and approvals of a call have its id, and no answer.
            if known.record.reply.is_none() {
                continue;
            }
            let (explanation, file) = explain(place, &known)?;
            write(terminal, &explanation, file.as_deref())?;
        }
        Ok(Exit::Ok)
    }
}

fn explain(place: &Place, known: &Shown) -> Result<(Explanation, Option<PathBuf>), Failure> {
    let record = &known.record;
    let revision = record.policy_revision.clone().unwrap_or_default();
    let kept = match policy::kept(&place.folder, &revision)? {
        Some(kept) => Some(kept),
        // A policy that no server has used is kept nowhere else.
        None => configured(place, &revision),
    };
    let (decider, file) = match &kept {
        Some((policy, path)) => (Some(policy), Some(path.clone())),
        None => (None, None),
    };
    let rules = RecordedRule::all(record);
    let mut because: Vec<Explained> = rules.iter().map(|rule| told(rule, decider)).collect();
    let code = record.reply.as_ref().and_then(|reply| reply.code);
    let is_ruled = because.iter().any(|entry| entry.ruling.is_some());
    if code == Some(ErrorCode::Forbidden)
        && !is_ruled
        && let Some(policy) = decider
    {
        because.extend(refused(place, known, policy)?);
    }
    let ruling = because.iter().filter_map(|entry| entry.ruling).max();
    let decision = match (ruling, code) {
        (Some(ruling), _) => ruling,
        (None, Some(ErrorCode::NeedsUserConfirmation)) => Ruling::Confirm,
        (None, Some(ErrorCode::Forbidden | ErrorCode::Unauthorized)) => Ruling::Deny,
        (None, _) => Ruling::Allow,
    };
    because.sort_by_key(|entry| entry.ruling != Some(decision));
    let tool = record.tool.as_ref().map(|tool| tool.name.clone());
    let explanation = Explanation {
        policy: revision.into(),
        tool: tool.unwrap_or_default(),
        decision,
        because,
    };
    Ok((explanation, file))
}

/// The policy of the configuration, if it is the one that a record names.
fn configured(place: &Place, revision: &str) -> Option<(Policy, PathBuf)> {
    let policy = policy::read(place.loaded()).ok()?;
    let path = policy::file_of(place.loaded())?;
    (**policy.revision() == *revision).then_some((policy, path))
}

/// What the record says of a rule.
fn told(rule: &RecordedRule, policy: Option<&Policy>) -> Explained {
    let (ruling, says) = match rule.then.as_str() {
        "deny" => (Ruling::Deny, "it held: the call is refused"),
        "confirm" => (Ruling::Confirm, "it held: the user confirms the call"),
        "four_eyes" => (Ruling::FourEyes, "it held: two approvers confirm the call"),
        _ => (
            Ruling::Deny,
            "it could not be decided, so the call is refused",
        ),
    };
    let is_observed = rule.is_observed();
    let observed = if is_observed {
        "; it was only observed"
    } else {
        ""
    };
    let entry = if rule.rule.starts_with('[') {
        rule.rule.clone()
    } else {
        format!("[[rules]] {}", rule.rule)
    };
    Explained {
        line: policy.and_then(|policy| policy.line_of(&rule.rule)),
        entry,
        says: format!("{says}{observed}"),
        ruling: (!is_observed).then_some(ruling),
    }
}

/// The entries that can have refused a call without a rule.
fn refused(place: &Place, known: &Shown, policy: &Policy) -> Result<Vec<Explained>, Failure> {
    let record = &known.record;
    let catalog = catalog::declared(place.loaded())?;
    let entry = record
        .tool
        .as_ref()
        .and_then(|tool| catalog.get(&tool.name));
    let (Some(entry), Some(actor)) = (entry, &record.actor) else {
        return Ok(Vec::new());
    };
    let actor = Actor {
        kind: actor.kind,
        id: actor.id.clone(),
    };
    let principal = Principal::new(actor, known.row.user_id.clone());
    Ok(policy.explain_refusal(&principal, entry.spec()))
}
