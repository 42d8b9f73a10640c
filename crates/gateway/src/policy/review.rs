//! A review of a policy: the tools that each caller may call under it, and probable mistakes.
//!
//! It uses the same decision as a call, for a person and for an agent of each pattern, with every scope that
//! the policy names. So it always agrees with what a server would do.

use std::sync::Arc;

use countersign::authorize::{Facts, Outcome};
use countersign::contract::tool::Confirmation;
use countersign::contract::{Actor, ActorType, Language, ToolSpec};
use countersign::{Catalog, Effects, Principal};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{Glob, Mode, Policy, Then, is_built_in};

mod counted;
mod warning;

pub use counted::{ReviewedBreaker, ReviewedBudget, ReviewedLimit, ReviewedSpender};
pub use warning::{PolicyWarning, Suspect};

/// Result of a review.
#[derive(Debug, Clone, Serialize)]
pub struct Review {
    /// Policy name in records.
    pub policy: Arc<str>,
    /// Tools, in the given order.
    pub tools: Vec<ReviewedTool>,
    /// The `[[tools]]` entries, in the order of the file.
    pub rules: Vec<ReviewedRule>,
    /// The `[[rules]]` entries, in the order of the file.
    pub conditions: Vec<ReviewedCondition>,
    /// Patterns of `[[agents]]` entries, each once, and last all other agents.
    pub agents: Vec<ReviewedAgent>,
    /// Scopes that `[[tools]]` entries name.
    pub scopes: Vec<ReviewedScope>,
    /// Limits on calls: those over all tools first.
    pub limits: Vec<ReviewedLimit>,
    /// Limit on identical calls of one session; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<ReviewedBreaker>,
    /// The `[[budgets]]` entries, in the order of the file.
    pub budgets: Vec<ReviewedBudget>,
    /// Probable mistakes, the gravest first.
    pub warnings: Vec<PolicyWarning>,
}

/// Rights to call a tool.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewedTool {
    /// Name of the tool.
    pub name: String,
    /// Effect: read, write or external.
    pub effect: &'static str,
    /// True if a person with every scope may call it; otherwise no caller may.
    pub callable: bool,
    /// Lists of scopes; one scope of each list is needed.
    pub needs: Vec<Vec<String>>,
    /// True if the user confirms each call, because the tool or the policy says so.
    pub confirmed: bool,
    /// True if two different people confirm what is confirmed, because a `[[tools]]` entry says so.
    pub four_eyes: bool,
    /// Patterns of the agents that may call it with every scope.
    pub agents: Vec<String>,
}

/// A `[[tools]]` entry with the tools that it matches.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewedRule {
    /// Pattern of the entry.
    #[serde(rename = "match")]
    pub pattern: String,
    /// Scopes of which one is needed.
    pub scopes: Vec<String>,
    /// Tools that it matches.
    pub tools: Vec<String>,
}

/// A `[[rules]]` entry with the tools that it matches.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewedCondition {
    /// Name of the rule.
    pub name: String,
    /// Line of the entry.
    pub line: usize,
    /// Pattern of the entry.
    #[serde(rename = "match")]
    pub pattern: String,
    /// Its condition; `None` if it holds for every call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What becomes of a call for which it holds.
    pub then: &'static str,
    /// False if it is only observed.
    pub enforced: bool,
    /// Tools that it matches.
    pub tools: Vec<String>,
}

/// Rights of the agents of a pattern.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewedAgent {
    /// Pattern; [`OTHERS`] for agents that no pattern matches.
    pub id: String,
    /// Effects that its entry allows; `None` if it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    /// Tools that they may call with every scope.
    pub tools: Vec<String>,
}

/// Tools that a scope gives access to.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewedScope {
    /// Name of the scope.
    pub scope: String,
    /// Tools with an entry that names it.
    pub named_for: Vec<String>,
    /// Tools that a person may call with this scope alone.
    pub enough_for: Vec<String>,
}

/// Agents that no entry names. No pattern can be spelt like this, except those that match every agent.
pub const OTHERS: &str = "(others)";

/// User for whom the sample callers act.
const SAMPLE_USER: &str = "sample";

impl Review {
    /// The same review with its warnings in a language.
    #[must_use]
    pub fn told_in(mut self, language: Language) -> Self {
        for warning in &mut self.warnings {
            warning.message = warning.suspect.text(language);
        }
        self
    }
}

impl Policy {
    /// Reviews the rights to call these tools.
    pub fn review(&self, tools: &[&ToolSpec]) -> Review {
        self.review_with(tools, None)
    }

    /// Reviews the rights to call the tools of a catalog, and looks for names of upstreams that are none.
    pub fn review_catalog(&self, catalog: &Catalog) -> Review {
        let entries = catalog.list();
        let specs: Vec<&ToolSpec> = entries.iter().map(|entry| entry.spec()).collect();
        let upstreams = entries.iter().filter_map(|entry| entry.tool().upstream());
        let upstreams: Vec<&str> = upstreams.collect();
        self.review_with(&specs, Some(&upstreams))
    }

    fn review_with(&self, tools: &[&ToolSpec], upstreams: Option<&[&str]>) -> Review {
        let agents = self.reviewed_agents(tools);
        let person = self.with_every_scope(Principal::user(SAMPLE_USER));
        let reviewed = tools.iter().map(|tool| {
            let rules = self.rules_of(tool.name.as_str());
            let needs = rules.filter(|rule| !rule.scopes.is_empty());
            let may = |agent: &&ReviewedAgent| {
                agent.tools.iter().any(|name| **name == *tool.name.as_str())
            };
            ReviewedTool {
                name: tool.name.to_string(),
                effect: tool.behaviour.effect.as_str(),
                callable: self.allows(&person, tool),
                needs: needs.map(|rule| texts(&rule.scopes)).collect(),
                confirmed: tool.behaviour.confirmation != Confirmation::Never
                    || self.demands_confirmation(tool.name.as_str()),
                four_eyes: self.rules_of(tool.name.as_str()).any(|rule| rule.four_eyes),
                agents: agents
                    .iter()
                    .filter(may)
                    .map(|agent| agent.id.clone())
                    .collect(),
            }
        });
        let mut review = Review {
            policy: self.revision.clone(),
            tools: reviewed.collect(),
            rules: self.reviewed_rules(tools),
            conditions: self.reviewed_conditions(tools),
            scopes: self.reviewed_scopes(tools),
            limits: self.reviewed_limits(tools),
            breaker: self.reviewed_breaker(tools),
            budgets: self.reviewed_budgets(tools),
            agents,
            warnings: Vec::new(),
        };
        review.warnings = self.suspects(tools, upstreams, &review);
        review
    }

    fn reviewed_rules(&self, tools: &[&ToolSpec]) -> Vec<ReviewedRule> {
        let rules = self.file.tools.iter().map(|rule| ReviewedRule {
            pattern: rule.tool.as_str().to_owned(),
            scopes: texts(&rule.scopes),
            tools: matched(&rule.tool, tools),
        });
        rules.collect()
    }

    fn reviewed_conditions(&self, tools: &[&ToolSpec]) -> Vec<ReviewedCondition> {
        let rules = self.rules.iter().map(|rule| ReviewedCondition {
            name: rule.name.to_string(),
            line: rule.place.line,
            pattern: rule.tool.as_str().to_owned(),
            when: rule.condition.as_ref().map(|it| it.source().to_owned()),
            then: rule.then.as_str(),
            enforced: rule.mode == Mode::Enforce,
            tools: matched(&rule.tool, tools),
        });
        rules.collect()
    }

    /// Reviews the agents. An agent with the name of a pattern stands for all agents that the pattern matches:
    /// a pattern that covers all of them matches its text, and one that covers some of them does not.
    fn reviewed_agents(&self, tools: &[&ToolSpec]) -> Vec<ReviewedAgent> {
        let mut ids: Vec<&str> = Vec::new();
        for rule in &self.file.agents {
            if !ids.contains(&rule.id.as_str()) {
                ids.push(rule.id.as_str());
            }
        }
        let covers_all = self.file.agents.iter().any(|rule| rule.id.matches(OTHERS));
        if !covers_all {
            ids.push(OTHERS);
        }
        let reviewed = ids.into_iter().map(|id| {
            let actor = Actor {
                kind: ActorType::Agent,
                id: id.to_owned(),
            };
            let agent = self.with_every_scope(Principal::new(actor, SAMPLE_USER));
            let mut rules = self.file.agents.iter();
            ReviewedAgent {
                id: id.to_owned(),
                effects: rules
                    .find(|rule| rule.id.as_str() == id)
                    .and_then(|rule| rule.effects),
                tools: self.allowed(&agent, tools),
            }
        });
        reviewed.collect()
    }

    fn reviewed_scopes(&self, tools: &[&ToolSpec]) -> Vec<ReviewedScope> {
        let scopes = self.scopes().into_iter().map(|scope| {
            let names = |tool: &&&ToolSpec| {
                let mut rules = self.rules_of(tool.name.as_str());
                rules.any(|rule| rule.scopes.iter().any(|named| **named == *scope))
            };
            let alone = Principal::user(SAMPLE_USER).scope(scope);
            ReviewedScope {
                scope: scope.to_owned(),
                named_for: tools
                    .iter()
                    .filter(names)
                    .map(|tool| tool.name.to_string())
                    .collect(),
                enough_for: self.allowed(&alone, tools),
            }
        });
        scopes.collect()
    }

    fn allowed(&self, principal: &Principal, tools: &[&ToolSpec]) -> Vec<String> {
        let allowed = tools.iter().filter(|tool| self.allows(principal, tool));
        allowed.map(|tool| tool.name.to_string()).collect()
    }

    fn allows(&self, principal: &Principal, tool: &ToolSpec) -> bool {
        self.refusal(principal, tool).is_none()
            && !self.is_always_denied(tool)
            && !self.is_ruled_out(principal, tool)
    }

    /// True if a rule denies every call of a tool to this caller for what the caller is: for the type, or for an actor that has the
    /// name and is no pattern. A rule about anything else may let some call through.
    fn is_ruled_out(&self, principal: &Principal, tool: &ToolSpec) -> bool {
        let id = principal.actor.id.as_str();
        let knows_actor = id != SAMPLE_USER && id != OTHERS && !id.contains('*');
        let facts = Facts {
            principal,
            proved: None,
            user_id: None,
            tool,
            upstream: None,
            // Nothing looks at it.
            now: Timestamp::UNIX_EPOCH,
            session_id: None,
            currency: None,
            dry_run: false,
            arguments: &Value::Null,
            is_exact: true,
        };
        let mut rules = self.rules.of_tool(tool.name.as_str());
        rules.any(|rule| {
            let condition = rule.condition.as_ref();
            condition.is_some_and(|it| it.looks_at_kind_only(knows_actor))
                && rule.mode == Mode::Enforce
                && rule.decide(&facts) == Ok(Some(Outcome::Deny))
        })
    }

    /// True if a rule without a condition denies every call of a tool.
    fn is_always_denied(&self, tool: &ToolSpec) -> bool {
        let mut rules = self.rules.of_tool(tool.name.as_str());
        rules.any(|rule| {
            rule.condition.is_none() && rule.then == Then::Deny && rule.mode == Mode::Enforce
        })
    }

    fn with_every_scope(&self, principal: Principal) -> Principal {
        self.scopes().into_iter().fold(principal, Principal::scope)
    }

    /// Returns probable mistakes, the gravest first.
    fn suspects(
        &self,
        tools: &[&ToolSpec],
        upstreams: Option<&[&str]>,
        review: &Review,
    ) -> Vec<PolicyWarning> {
        let mut found = Vec::new();
        if self.file.mode == Mode::Observe {
            found.push(Suspect::OnlyObserved);
        }
        let always = tools.iter().filter(|tool| self.is_always_denied(tool));
        let always: Vec<String> = always.map(|tool| tool.name.to_string()).collect();
        let nobody = review.tools.iter().filter(|tool| !tool.callable);
        let for_nobody: Vec<String> = names(nobody.filter(|tool| !always.contains(&tool.name)));
        if for_nobody.len() + always.len() == tools.len() {
            found.push(Suspect::EveryToolDenied);
        } else if !for_nobody.is_empty() {
            found.push(Suspect::ToolsForNobody { tools: for_nobody });
        }
        if !always.is_empty() {
            found.push(Suspect::ToolsAlwaysDenied { tools: always });
        }
        let has_agents = review.agents.iter().any(|agent| !agent.tools.is_empty());
        if !has_agents && !tools.is_empty() {
            found.push(Suspect::EveryAgentDenied);
        } else {
            let idle = review
                .agents
                .iter()
                .filter(|agent| agent.id != OTHERS && agent.tools.is_empty());
            found.extend(idle.map(|agent| Suspect::AgentForNothing {
                agent: agent.id.clone(),
            }));
        }
        let idle = review.rules.iter().filter(|rule| rule.tools.is_empty());
        found.extend(idle.map(|rule| Suspect::RuleWithoutTool {
            rule: rule.pattern.clone(),
        }));
        found.extend(self.doubtful_conditions(tools, upstreams));
        found.extend(self.idle_scopes(review));
        found.extend(self.idle_patterns(tools));
        found.into_iter().map(PolicyWarning::from).collect()
    }

    /// Returns conditions that hold for no call, and those that let other currencies through.
    fn doubtful_conditions(&self, tools: &[&ToolSpec], upstreams: Option<&[&str]>) -> Vec<Suspect> {
        let of_rules = self.rules.iter().filter_map(|rule| {
            let condition = rule.condition.as_ref()?;
            let entry = format!("[[rules]] {}", rule.name);
            Some((entry, Some(&rule.tool), condition, &rule.place))
        });
        let of_counted = self.counted.iter().map(|counted| {
            let tools = counted.tools.as_ref();
            (
                counted.entry.clone(),
                tools,
                &counted.condition,
                &counted.place,
            )
        });
        let all: Vec<_> = of_rules.chain(of_counted).collect();
        let mut found = Vec::new();
        for (index, (entry, pattern, condition, place)) in all.iter().enumerate() {
            let is_for = |tool: &&ToolSpec| {
                pattern.is_none_or(|pattern| pattern.matches(tool.name.as_str()))
            };
            let matched: Vec<&ToolSpec> = tools.iter().copied().filter(is_for).collect();
            let place_of = |offset| place.mistake(condition.source(), offset, String::new());
            if let Some(offset) = condition.never_holds(&matched, upstreams) {
                let place = place_of(offset);
                found.push(Suspect::NeverHolds {
                    entry: entry.clone(),
                    line: place.line,
                    column: place.column,
                });
                continue;
            }
            let others = all.iter().enumerate().filter(|(other, _)| *other != index);
            let others = others.map(|(_, (_, _, other, _))| *other);
            if let Some((currency, offset)) = condition.one_currency(others) {
                let place = place_of(offset);
                found.push(Suspect::OtherCurrencies {
                    entry: entry.clone(),
                    currency: currency.to_owned(),
                    line: place.line,
                    column: place.column,
                });
            }
        }
        found
    }

    /// Returns scopes that are named only by entries that match no tool, and scopes that an issuer may grant but
    /// no entry names.
    fn idle_scopes(&self, review: &Review) -> Vec<Suspect> {
        let idle = review
            .scopes
            .iter()
            .filter(|scope| scope.named_for.is_empty());
        let mut scopes: Vec<String> = idle.map(|scope| scope.scope.clone()).collect();
        let granted = self.file.issuers.iter().flat_map(|issuer| &issuer.grants);
        let known = self.scopes();
        for scope in granted.filter(|scope| !is_built_in(scope) && !known.contains(&&***scope)) {
            scopes.push(scope.to_string());
        }
        scopes.dedup();
        scopes
            .into_iter()
            .map(|scope| Suspect::ScopeForNothing { scope })
            .collect()
    }

    /// Returns patterns outside of `[[tools]]` that match no tool.
    fn idle_patterns(&self, tools: &[&ToolSpec]) -> Vec<Suspect> {
        let mut found = Vec::new();
        let mut look = |section: &str, pattern: &Glob| {
            if matched(pattern, tools).is_empty() {
                let (section, pattern) = (section.to_owned(), pattern.as_str().to_owned());
                found.push(Suspect::PatternWithoutTool { section, pattern });
            }
        };
        for rule in &self.file.agents {
            let entry = format!("[[agents]] {}", rule.id.as_str());
            for pattern in rule.allow.iter().flatten().chain(&rule.deny) {
                look(&entry, pattern);
            }
        }
        for rule in self.rules.iter() {
            look(&format!("[[rules]] {}", rule.name), &rule.tool);
        }
        for pattern in self.file.limits.tools.keys() {
            look("[limits.tools]", pattern);
        }
        for pattern in self.file.breaker.iter().flat_map(|breaker| &breaker.except) {
            look("[breaker] except", pattern);
        }
        for budget in self.file.budgets.iter() {
            let entry = format!("[[budgets]] {}", &*budget.name);
            for spender in &budget.tools {
                look(&entry, &spender.tool);
            }
        }
        found
    }
}

impl Review {
    /// Returns the number of tools that some caller may call.
    pub fn callable(&self) -> usize {
        self.tools.iter().filter(|tool| tool.callable).count()
    }
}

fn matched(pattern: &Glob, tools: &[&ToolSpec]) -> Vec<String> {
    let matched = tools
        .iter()
        .filter(|tool| pattern.matches(tool.name.as_str()));
    matched.map(|tool| tool.name.to_string()).collect()
}

fn names<'a>(tools: impl Iterator<Item = &'a ReviewedTool>) -> Vec<String> {
    tools.map(|tool| tool.name.clone()).collect()
}

fn texts<T: std::ops::Deref<Target = str>>(scopes: &[T]) -> Vec<String> {
    scopes.iter().map(|scope| scope.to_string()).collect()
}
