//! Which line of which policy decided a recorded call, as far as its record says.

use countersign::Principal;
use countersign::contract::tool::Confirmation;
use countersign::contract::{Actor, ErrorCode, EvidenceRecord, ToolSpec};
use serde::Deserialize;
use serde_json::Value;

use super::place::budget_entry;
use super::{Explained, Explanation, Policy, Ruling};

/// A rule that was recorded with a call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct RecordedRule {
    /// Name of the rule, or of the entry that decided.
    pub rule: String,
    /// What became of the call: `deny`, `confirm`, `four_eyes`, or a failure.
    pub then: String,
    /// `observe` if the rule was only observed.
    #[serde(default)]
    pub mode: Option<String>,
}

impl RecordedRule {
    /// The rules of a record.
    pub fn all(record: &EvidenceRecord) -> Vec<Self> {
        let rules = record.act.get("rules").cloned();
        rules
            .and_then(|rules| serde_json::from_value(rules).ok())
            .unwrap_or_default()
    }

    /// What the rule did to the call; `None` if it was only observed.
    pub fn ruling(&self) -> Option<Ruling> {
        let ruling = match self.then.as_str() {
            "confirm" => Ruling::Confirm,
            "four_eyes" => Ruling::FourEyes,
            // Also a rule that could not be decided.
            _ => Ruling::Deny,
        };
        (!self.is_observed()).then_some(ruling)
    }

    /// True if the rule was only observed.
    pub fn is_observed(&self) -> bool {
        self.mode.as_deref() == Some("observe")
    }
}

impl Explanation {
    /// True if the explanation of a record needs the declaration of its tool: no rule of the record decided it.
    pub fn needs_tool(record: &EvidenceRecord) -> bool {
        let rules = RecordedRule::all(record);
        let is_ruled = rules.iter().any(|rule| !rule.is_observed());
        let is_decided = matches!(
            code(record),
            Some(ErrorCode::Forbidden | ErrorCode::NeedsUserConfirmation)
        );
        is_decided && !is_ruled && record.act.get("limit").is_none()
    }

    /// Explains a record of a user. `policy` is the one that the record names and `tool` the declaration of its tool, where
    /// they are known; without them the lines of the file are missing.
    pub fn of_record(
        record: &EvidenceRecord,
        user_id: &str,
        policy: Option<&Policy>,
        tool: Option<&ToolSpec>,
    ) -> Self {
        let rules = RecordedRule::all(record);
        let mut because: Vec<Explained> = rules.iter().map(|rule| told(rule, policy)).collect();
        because.extend(limits(record, policy));
        let grant = record.act.get("grant_id").and_then(Value::as_str);
        because.extend(grant.map(granted));
        let without_rule = Self::needs_tool(record).then(|| code(record)).flatten();
        if without_rule == Some(ErrorCode::NeedsUserConfirmation)
            && let Some(tool) = tool
        {
            match policy {
                Some(policy) => because.extend(policy.confirmations(tool)),
                None if tool.behaviour.confirmation != Confirmation::Never => {
                    because.push(Explained::of_tool());
                }
                None => {}
            }
        }
        if without_rule == Some(ErrorCode::Forbidden)
            && let (Some(policy), Some(tool), Some(actor)) = (policy, tool, &record.actor)
        {
            let actor = Actor {
                kind: actor.kind,
                id: actor.id.clone(),
            };
            let principal = Principal::new(actor, user_id.to_owned());
            because.extend(policy.explain_refusal(&principal, tool));
        }
        let ruling = because.iter().filter_map(|entry| entry.ruling).max();
        let decision = match (ruling, code(record)) {
            (Some(Ruling::Confirm), code) if grant.is_some() => match code {
                Some(ErrorCode::NeedsUserConfirmation) => Ruling::Confirm,
                Some(_) | None => Ruling::Allow,
            },
            (Some(ruling), _) => ruling,
            (None, Some(ErrorCode::NeedsUserConfirmation)) => Ruling::Confirm,
            (None, Some(ErrorCode::Forbidden | ErrorCode::Unauthorized)) => Ruling::Deny,
            (None, _) => Ruling::Allow,
        };
        because.sort_by_key(|entry| entry.ruling != Some(decision));
        let tool = record.tool.as_ref().map(|tool| tool.name.clone());
        Self {
            policy: record.policy_revision.clone().unwrap_or_default().into(),
            tool: tool.unwrap_or_default(),
            decision,
            because,
        }
    }
}

fn code(record: &EvidenceRecord) -> Option<ErrorCode> {
    record.reply.as_ref().and_then(|reply| reply.code)
}

/// The limit or the budget that refused the call.
fn limits(record: &EvidenceRecord, policy: Option<&Policy>) -> Vec<Explained> {
    let named = |name: &str| record.act.get(name).and_then(Value::as_str);
    let tool = record.tool.as_ref().map(|tool| tool.name.as_str());
    let entries = match (named("limit"), named("budget")) {
        (Some("budget"), Some(name)) => vec![budget_entry(name)],
        (Some("tool"), _) => {
            let own = policy.map(|policy| policy.tool_limits(tool.unwrap_or_default()));
            let own = own.filter(|own| !own.is_empty());
            own.unwrap_or_else(|| vec!["[limits.tools]".to_owned()])
        }
        (Some("identical_calls"), _) => vec!["[breaker]".to_owned()],
        (Some(limit), _) => vec![format!("[limits.{limit}]")],
        (None, _) => Vec::new(),
    };
    let says = match code(record) {
        Some(ErrorCode::RateLimited) => "it is used up for now: the call is refused",
        Some(ErrorCode::Forbidden) => {
            "it has not enough left, or cannot be decided: the call is refused"
        }
        _ => "it cannot count the call as it is: the call is refused",
    };
    let entries = entries.into_iter().map(|entry| Explained {
        line: policy.and_then(|policy| policy.line_of(&entry)),
        entry,
        says: says.to_owned(),
        ruling: Some(Ruling::Deny),
    });
    entries.collect()
}

/// The grant that answered for the call.
fn granted(id: &str) -> Explained {
    Explained {
        line: None,
        entry: format!("the grant {id}"),
        says: "it answers in the user's place: the user is not asked".to_owned(),
        ruling: Some(Ruling::Allow),
    }
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
