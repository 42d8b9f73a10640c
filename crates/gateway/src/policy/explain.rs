//! Which line of a policy decides a call.
//!
//! The decision is the one that a call gets: the same entries, in the same order. What a call still meets behind the
//! policy (limits, budgets, the tool itself) is not looked at.

use std::sync::Arc;

use countersign::Principal;
use countersign::authorize::{Facts, Outcome, Stage};
use countersign::contract::ToolSpec;
use countersign::contract::tool::Confirmation;
use serde::Serialize;

use super::condition::Failed;
use super::place::of_tools_entry;
use super::{Ground, Mode, Policy};

/// What a policy decides about a call, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Policy name in records.
    pub policy: Arc<str>,
    /// Name of the tool.
    pub tool: String,
    /// The decision.
    pub decision: Ruling,
    /// The entries that look at the call: first the one that decides, then the others in the order of the file.
    pub because: Vec<Explained>,
}

/// A decision about a call. The enum is exhaustive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// The call is allowed.
    Allow,
    /// The user confirms it first.
    Confirm,
    /// Two different approvers confirm it first.
    FourEyes,
    /// The call is refused.
    Deny,
}

impl Ruling {
    /// The word in reports and cases.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Confirm => "confirm",
            Self::FourEyes => "four_eyes",
            Self::Deny => "deny",
        }
    }
}

/// An entry that looks at a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// Line of the entry in the file; `None` if it is a default, or what the tool declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The entry.
    pub entry: String,
    /// What it says about the call.
    pub says: String,
    /// What it decides; `None` if it decides nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Ruling>,
}

impl Explained {
    /// The declaration of a tool that wants a confirmation.
    pub(super) fn of_tool() -> Self {
        Self {
            line: None,
            entry: THE_TOOL.to_owned(),
            says: "the tool itself wants a confirmation".to_owned(),
            ruling: Some(Ruling::Confirm),
        }
    }
}

/// Name of the tool's own declaration among the entries.
const THE_TOOL: &str = "the tool";

impl Policy {
    /// Explains the decision about a call. Without arguments, rules that need them are named and left open.
    pub fn explain(&self, facts: &Facts<'_>, has_arguments: bool) -> Explanation {
        let mut because = Vec::new();
        let refusal = self.refusal(facts.principal, facts.tool);
        // A refusal that is only observed ends nothing.
        let goes_on = refusal.is_none() || self.file.mode == Mode::Observe;
        if let Some((hint, ground)) = refusal {
            let (line, entry) = self.entry_of(ground);
            because.push(Explained {
                line,
                entry,
                says: hint.to_string(),
                ruling: Some(Ruling::Deny),
            });
        }
        if goes_on {
            because.extend(self.static_entries(facts.tool));
            because.extend(self.rule_entries(facts, has_arguments));
        }
        if self.file.mode == Mode::Observe {
            for entry in because.iter_mut().filter(|entry| entry.entry != THE_TOOL) {
                if entry.ruling.take().is_some() {
                    entry.says.push_str("; the whole policy is only observed");
                }
            }
        }
        let ruling = because.iter().filter_map(|entry| entry.ruling).max();
        let decision = ruling.unwrap_or(Ruling::Allow);
        // The one that decides comes first; the sort keeps the order of the others.
        because.sort_by_key(|entry| entry.ruling != Some(decision));
        Explanation {
            policy: self.revision.clone(),
            tool: facts.tool.name.to_string(),
            decision,
            because,
        }
    }

    /// Decides a call as [`explain`](Self::explain) does, without saying why and without its scopes in conditions, which a record
    /// does not have. `None` if they could make a difference.
    pub fn ruling_without_scopes(&self, facts: &Facts<'_>, has_arguments: bool) -> Option<Ruling> {
        let of_tool = match facts.tool.behaviour.confirmation {
            Confirmation::Never => Ruling::Allow,
            Confirmation::Always | Confirmation::Terms(_) => Ruling::Confirm,
        };
        if self.file.mode == Mode::Observe {
            return Some(of_tool);
        }
        if self.refusal(facts.principal, facts.tool).is_some() {
            return Some(Ruling::Deny);
        }
        let name = facts.tool.name.as_str();
        let entries = self.rules_of(name).filter(|rule| rule.confirm.is_some());
        let entries = entries.map(|rule| {
            if rule.four_eyes {
                Ruling::FourEyes
            } else {
                Ruling::Confirm
            }
        });
        let rules = self.rules.of_tool(name).filter(|rule| {
            let is_open = !has_arguments && rule.is_due(Stage::Arguments);
            rule.mode == Mode::Enforce && !is_open
        });
        let (mut sure, mut perhaps) = (entries.fold(of_tool, Ruling::max), Ruling::Allow);
        for rule in rules {
            match rule.decide_without_scopes(facts) {
                Ok(None) => {}
                Ok(Some(outcome)) => sure = sure.max(ruling(outcome)),
                Err(Failed::Scopes) => perhaps = perhaps.max(ruling(rule.outcome())),
                Err(_) => sure = Ruling::Deny,
            }
        }
        (perhaps <= sure).then_some(sure)
    }

    /// Line of the entry of a name: `[[rules]] large`, or only the name of a rule, as records have it.
    pub fn line_of(&self, entry: &str) -> Option<usize> {
        let name = entry.strip_prefix("[[rules]] ").unwrap_or(entry);
        let rule = self.rules.iter().find(|rule| *rule.name == *name);
        let tool = || {
            let mut tools = (0..self.file.tools.len()).zip(&self.places.tools);
            tools.find_map(|(index, line)| (self.tool_entry(index) == entry).then_some(*line))
        };
        let agent = || {
            let mut agents = self.file.agents.iter().zip(&self.places.agents);
            agents.find_map(|(rule, line)| {
                (format!("[[agents]] {}", rule.id.as_str()) == entry).then_some(*line)
            })
        };
        let counted = || {
            let mut counted = self.places.counted.iter();
            counted.find_map(|(name, line)| (name == entry).then_some(*line))
        };
        rule.map(|rule| rule.place.line)
            .or_else(tool)
            .or_else(agent)
            .or_else(counted)
    }

    /// The limits for a tool.
    pub(super) fn tool_limits(&self, tool: &str) -> Vec<String> {
        let patterns = self.file.limits.tools.keys();
        let patterns = patterns.filter(|pattern| pattern.matches(tool));
        patterns.map(|it| of_tools_entry(it.as_str())).collect()
    }

    /// Explains a call that was refused without a rule, as far as the record says who called: the scopes of the
    /// credential are not in it.
    pub fn explain_refusal(&self, principal: &Principal, tool: &ToolSpec) -> Vec<Explained> {
        let holder = self
            .scopes()
            .into_iter()
            .fold(principal.clone(), Principal::scope);
        if let Some((hint, ground)) = self.refusal(&holder, tool) {
            let (line, entry) = self.entry_of(ground);
            return vec![Explained {
                line,
                entry,
                says: hint.to_string(),
                ruling: Some(Ruling::Deny),
            }];
        }
        let rules = self.file.tools.iter().enumerate();
        let rules = rules
            .filter(|(_, rule)| !rule.scopes.is_empty() && rule.tool.matches(tool.name.as_str()));
        let entries = rules.map(|(index, rule)| {
            let scopes: Vec<&str> = rule.scopes.iter().map(|scope| &**scope).collect();
            Explained {
                line: self.places.tools.get(index).copied(),
                entry: self.tool_entry(index),
                says: format!(
                    "needs a scope, which may have been missing: {}",
                    scopes.join(", ")
                ),
                ruling: Some(Ruling::Deny),
            }
        });
        entries.collect()
    }

    /// Line and name of the entry that denies a tool.
    pub(super) fn entry_of(&self, ground: Ground) -> (Option<usize>, String) {
        let default = |what: &str| (self.places.defaults, format!("[defaults] {what}"));
        match ground {
            Ground::Unlisted => default("unlisted"),
            Ground::UnlistedAgent => default("unlisted_agents"),
            Ground::NoUser => default("writes_need_user"),
            Ground::Agent(index) => {
                let id = self.file.agents.get(index).map(|rule| rule.id.as_str());
                let line = self.places.agents.get(index).copied();
                (line, format!("[[agents]] {}", id.unwrap_or_default()))
            }
            Ground::Scopes(index) => {
                let line = self.places.tools.get(index).copied();
                (line, self.tool_entry(index))
            }
        }
    }

    /// Name of a `[[tools]]` entry.
    pub(super) fn tool_entry(&self, index: usize) -> String {
        let pattern = self.file.tools.get(index).map(|rule| rule.tool.as_str());
        format!("[[tools]] {}", pattern.unwrap_or_default())
    }

    /// The `[[tools]]` entries that match, and what the tool itself declares.
    fn static_entries(&self, tool: &ToolSpec) -> Vec<Explained> {
        let mut entries = Vec::new();
        if tool.behaviour.confirmation != Confirmation::Never {
            entries.push(Explained::of_tool());
        }
        for (index, rule) in self.file.tools.iter().enumerate() {
            if !rule.tool.matches(tool.name.as_str()) {
                continue;
            }
            let (says, ruling) = match (rule.confirm, rule.four_eyes) {
                (None, _) => ("lets the call through", None),
                (Some(_), false) => ("the user confirms each call", Some(Ruling::Confirm)),
                (Some(_), true) => ("two approvers confirm each call", Some(Ruling::FourEyes)),
            };
            entries.push(Explained {
                line: self.places.tools.get(index).copied(),
                entry: self.tool_entry(index),
                says: says.to_owned(),
                ruling,
            });
        }
        entries
    }

    /// The entries that want a confirmation of every call of a tool.
    pub(super) fn confirmations(&self, tool: &ToolSpec) -> Vec<Explained> {
        let is_observed = self.file.mode == Mode::Observe;
        let mut entries = self.static_entries(tool);
        entries.retain(|entry| entry.ruling.is_some() && (!is_observed || entry.entry == THE_TOOL));
        entries
    }

    /// The `[[rules]]` entries that match.
    fn rule_entries(&self, facts: &Facts<'_>, has_arguments: bool) -> Vec<Explained> {
        let rules = self.rules.of_tool(facts.tool.name.as_str());
        let entries = rules.map(|rule| {
            let is_open = !has_arguments && rule.is_due(Stage::Arguments);
            let (says, outcome) = if is_open {
                ("depends on the arguments".to_owned(), None)
            } else {
                match rule.decide(facts) {
                    Ok(None) => ("its condition does not hold".to_owned(), None),
                    Ok(Some(outcome)) => (holds(outcome).to_owned(), Some(outcome)),
                    Err(failed) => (
                        format!("it cannot be decided, so the call is refused: {failed}"),
                        Some(Outcome::Failed),
                    ),
                }
            };
            let ruling = outcome.map(ruling);
            let (says, ruling) = match (rule.mode, ruling) {
                (Mode::Observe, Some(_)) => (format!("{says}; it is only observed"), None),
                (Mode::Observe | Mode::Enforce, ruling) => (says, ruling),
            };
            Explained {
                line: Some(rule.place.line),
                entry: format!("[[rules]] {}", rule.name),
                says,
                ruling,
            }
        });
        entries.collect()
    }
}

fn ruling(outcome: Outcome) -> Ruling {
    match outcome {
        Outcome::Deny | Outcome::Failed => Ruling::Deny,
        Outcome::Confirm => Ruling::Confirm,
        Outcome::FourEyes => Ruling::FourEyes,
    }
}

fn holds(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Deny | Outcome::Failed => "its condition holds: the call is refused",
        Outcome::Confirm => "its condition holds: the user confirms the call",
        Outcome::FourEyes => "its condition holds: two approvers confirm the call",
    }
}
