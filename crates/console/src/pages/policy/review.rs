//! The policy in force, tool by tool: who may call it, and what applies to its calls.

use countersign_gateway::policy::OTHERS;
use serde::{Deserialize, Serialize};

use crate::shown;
use crate::words::Words;

/// The policy as the API shows it.
#[derive(Deserialize, Serialize)]
pub(super) struct Review {
    pub(super) policy: String,
    tools: Vec<Tool>,
    conditions: Vec<Condition>,
    agents: Vec<Agent>,
    scopes: Vec<Scope>,
    limits: Vec<Limit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    breaker: Option<Breaker>,
    budgets: Vec<Budget>,
    pub(super) warnings: Vec<Warning>,
    #[serde(flatten)]
    more: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Warning {
    pub(super) message: String,
    #[serde(flatten)]
    more: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize, Serialize)]
struct Tool {
    name: String,
    effect: String,
    callable: bool,
    needs: Vec<Vec<String>>,
    confirmed: bool,
    four_eyes: bool,
    agents: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct Condition {
    name: String,
    line: usize,
    #[serde(rename = "match")]
    pattern: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    when: Option<String>,
    then: String,
    enforced: bool,
    tools: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct Agent {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effects: Option<Vec<String>>,
    tools: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct Scope {
    #[serde(rename = "scope")]
    name: String,
    named_for: Vec<String>,
    enough_for: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct Limit {
    of: String,
    #[serde(rename = "match", default, skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    calls: u64,
    per: String,
    shared: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    when: Option<String>,
    tools: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct Breaker {
    identical: u64,
    per: String,
    except: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct Budget {
    name: String,
    scope: String,
    limit: String,
    currency: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    per: Option<String>,
    spenders: Vec<Spender>,
}

#[derive(Deserialize, Serialize)]
struct Spender {
    #[serde(rename = "match")]
    pattern: String,
    refund: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    when: Option<String>,
    tools: Vec<String>,
}

/// A tool for people.
pub(super) struct ToolRow {
    pub(super) name: String,
    pub(super) effect: String,
    pub(super) callable: bool,
    pub(super) needs: String,
    pub(super) agents: Option<String>,
    pub(super) applies: Vec<Applied>,
}

/// Something that applies to calls: what it does, its name or figures, and its condition.
pub(super) struct Applied {
    pub(super) tone: &'static str,
    pub(super) does: &'static str,
    pub(super) text: String,
    pub(super) when: Option<String>,
    pub(super) is_observed: bool,
}

/// A rule that looks at calls.
pub(super) struct RuleRow {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) applied: Applied,
    pub(super) tools: String,
}

/// A table of names, and of the tools that belong to each.
pub(super) struct NamedRow {
    pub(super) name: String,
    pub(super) first: String,
    pub(super) second: String,
}

/// Maximum number of tools that a row names.
const NAMED_MAX: usize = 6;

/// The first of some names, and how many more there are; empty if there are none.
fn some(names: &[String]) -> String {
    let first: Vec<&str> = names.iter().take(NAMED_MAX).map(String::as_str).collect();
    match names.len().saturating_sub(NAMED_MAX) {
        0 => first.join(", "),
        more => format!("{}, +{more}", first.join(", ")),
    }
}

impl Review {
    /// The tools, each with what applies to its calls.
    pub(super) fn tools(&self, w: &'static Words) -> Vec<ToolRow> {
        let rows = self.tools.iter().map(|tool| ToolRow {
            name: tool.name.clone(),
            effect: tool.effect.clone(),
            callable: tool.callable,
            needs: any_of(&tool.needs),
            agents: self.agents_of(tool, w),
            applies: self.applied_to(tool, w),
        });
        rows.collect()
    }

    /// The agents that may call a tool, in words; `None` if that is what most agents may: the table of agents says who may not.
    fn agents_of(&self, tool: &Tool, w: &'static Words) -> Option<String> {
        if tool.agents.iter().any(|id| id == OTHERS) {
            return None;
        }
        if tool.agents.len() == self.agents.len() {
            return Some(w.any.to_owned());
        }
        let named = tool.agents.iter().map(|id| name_of(id, w));
        Some(some(&named.collect::<Vec<_>>()))
    }

    fn applied_to(&self, tool: &Tool, w: &'static Words) -> Vec<Applied> {
        let plain = |does| Applied {
            tone: "warn",
            does,
            text: String::new(),
            when: None,
            is_observed: false,
        };
        let confirmed = tool.confirmed.then(|| plain(w.confirm));
        let by_two = tool.four_eyes.then(|| plain(w.four_eyes));
        let has = |tools: &[String]| tools.contains(&tool.name);
        let rules = self.conditions.iter().filter(|rule| has(&rule.tools));
        let limits = self.limits.iter().filter(|limit| has(&limit.tools));
        let budgets = self.budgets.iter().flat_map(|budget| {
            let spenders = budget.spenders.iter();
            let spenders = spenders.filter(|spender| has(&spender.tools));
            spenders.map(|spender| budget.applied(spender, w))
        });
        let plain = confirmed.into_iter().chain(by_two);
        let rules = rules.map(|rule| rule.applied(w));
        let limits = limits.map(|limit| limit.applied(w));
        plain.chain(rules).chain(limits).chain(budgets).collect()
    }

    /// Limits that count the calls of all tools.
    pub(super) fn over_all(&self, w: &'static Words) -> Vec<Applied> {
        let limits = self.limits.iter().filter(|limit| limit.pattern.is_none());
        let limits = limits.map(|limit| limit.applied(w));
        let breaker = self.breaker.as_ref().map(|breaker| {
            let calls = shown::number(breaker.identical);
            let told = w.breaker_of.replace("{calls}", &calls);
            Applied {
                tone: "info",
                does: w.limit,
                text: told.replace("{per}", &breaker.per),
                when: None,
                is_observed: false,
            }
        });
        limits.chain(breaker).collect()
    }

    /// The rules that look at calls.
    pub(super) fn rules(&self, w: &'static Words) -> Vec<RuleRow> {
        let rows = self.conditions.iter().map(|rule| RuleRow {
            name: rule.name.clone(),
            line: rule.line,
            tools: format!("{} · {}", rule.pattern, some(&rule.tools)),
            applied: rule.applied(w),
        });
        rows.collect()
    }

    /// The agents, with the effects that they may have and the tools that they may call.
    pub(super) fn agents(&self, w: &'static Words) -> Vec<NamedRow> {
        let rows = self.agents.iter().map(|agent| NamedRow {
            name: name_of(&agent.id, w),
            first: match &agent.effects {
                Some(effects) => effects.join(", "),
                None => w.any.to_owned(),
            },
            second: some(&agent.tools),
        });
        rows.collect()
    }

    /// The scopes, with the tools that name them and those for which each is enough.
    pub(super) fn scopes(&self) -> Vec<NamedRow> {
        let rows = self.scopes.iter().map(|scope| NamedRow {
            name: scope.name.clone(),
            first: some(&scope.named_for),
            second: some(&scope.enough_for),
        });
        rows.collect()
    }
}

/// A pattern of agents, or those that no pattern matches, in words.
fn name_of(id: &str, w: &Words) -> String {
    match id {
        OTHERS => w.other_agents.to_owned(),
        id => id.to_owned(),
    }
}

/// One scope of each list is needed.
fn any_of(needs: &[Vec<String>]) -> String {
    let each = needs.iter().map(|one_of| one_of.join(" | "));
    each.collect::<Vec<_>>().join(", ")
}

impl Condition {
    fn applied(&self, w: &'static Words) -> Applied {
        let (does, tone) = match self.then.as_str() {
            "confirm" => (w.confirm, "warn"),
            "four_eyes" => (w.four_eyes, "warn"),
            _ => (w.refuses, "bad"),
        };
        Applied {
            tone,
            does,
            text: self.name.clone(),
            when: self.when.clone(),
            is_observed: !self.enforced,
        }
    }
}

impl Limit {
    fn applied(&self, w: &'static Words) -> Applied {
        let told = w.limit_of.replace("{calls}", &shown::number(self.calls));
        let told = told.replace("{per}", &self.per);
        Applied {
            tone: "info",
            does: w.limit,
            text: told.replace("{of}", shared_by(&self.of, w)),
            when: self.when.clone(),
            is_observed: false,
        }
    }
}

impl Budget {
    fn applied(&self, spender: &Spender, w: &'static Words) -> Applied {
        let told = match &self.per {
            Some(per) => w.budget_of.replace("{per}", per),
            None => w.budget_once.to_owned(),
        };
        let amount = format!("{} {}", self.limit, self.currency);
        let told = told.replace("{name}", &self.name);
        let told = told.replace("{amount}", &amount);
        Applied {
            tone: "info",
            does: if spender.refund { w.refund } else { w.budget },
            text: told.replace("{of}", shared_by(&self.scope, w)),
            when: spender.when.clone(),
            is_observed: false,
        }
    }
}

/// The callers that share a limit or a budget, in words.
fn shared_by(of: &str, w: &'static Words) -> &'static str {
    match of {
        "user" | "each_user" => w.of_user,
        "agent" => w.of_agent,
        "session" => w.of_session,
        _ => w.of_all,
    }
}

#[cfg(test)]
mod tests {
    use countersign::contract::Language;

    use super::*;

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..8).map(|at| format!("t{at}")).collect();
        assert_eq!(some(&names), "t0, t1, t2, t3, t4, t5, +2");
        assert_eq!((some(&names[..1]), some(&[])), ("t0".into(), String::new()));
    }

    /// Every way in which callers share a limit or a budget has words of its own.
    #[test]
    fn everyone_is_named() {
        let w = crate::words::of(Language::English);
        let named = ["user", "agent", "session", "together", "global"].map(|of| shared_by(of, w));
        let expected = [w.of_user, w.of_agent, w.of_session, w.of_all, w.of_all];
        assert_eq!(named, expected);
    }
}
