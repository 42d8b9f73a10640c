//! The entries `[[rules]]`: decided for each call by their conditions.

use std::sync::Arc;
use std::time::Duration;

use countersign::authorize::{Conditions, Denial, Facts, Judgement, Outcome, Ruled, Stage};
use countersign::contract::ToolSpec;

use super::condition::{Condition, Failed, Steps};
use super::error::Guide;
use super::file::{CallRule, Mode, Then};
use super::fitted::{Changed, Misfit};
use super::place::{Places, RulePlace};
use super::{Glob, Period, PolicyError};
use crate::words::Say;

/// Maximum number of rules in a file.
const RULES_MAX: usize = 1000;

/// The rules of a policy, ready to be decided.
#[derive(Debug, Default)]
pub(super) struct CallRules(Vec<ReadyRule>);

/// A rule that is ready to be decided.
#[derive(Debug)]
pub(super) struct ReadyRule {
    pub(super) name: Arc<str>,
    pub(super) tool: Glob,
    pub(super) condition: Option<Condition>,
    pub(super) then: Then,
    pub(super) mode: Mode,
    valid_for: Option<Duration>,
    pub(super) place: RulePlace,
}

impl CallRules {
    /// Reads the conditions of the rules.
    pub(super) fn of(rules: &[CallRule], places: &Places) -> Result<Self, PolicyError> {
        if rules.len() > RULES_MAX {
            return Err(PolicyError::of_file(
                format!("there are more than {RULES_MAX} rules"),
                "join rules that say the same with || in one condition",
            ));
        }
        let mut ready: Vec<ReadyRule> = Vec::with_capacity(rules.len());
        for (index, rule) in rules.iter().enumerate() {
            let place = places.rules.get(index).cloned().unwrap_or_default();
            if ready.iter().any(|other| *other.name == *rule.name) {
                let message = format!("there are two rules {:?}", &*rule.name);
                return Err(PolicyError::at(place.line, 1, message).see(Guide::Conditions));
            }
            if rule.then == Then::Deny && rule.valid_for.is_some() {
                let message = format!("the rule {:?} denies, and has valid_for", &*rule.name);
                return Err(PolicyError::at(place.line, 1, message).see(Guide::Conditions));
            }
            let condition = match &rule.when {
                None => None,
                Some(when) => Some(
                    Condition::parse(when)
                        .map_err(|wrong| place.mistake(when, wrong.offset, wrong.message))?,
                ),
            };
            ready.push(ReadyRule {
                name: Arc::from(&*rule.name),
                tool: rule.tool.clone(),
                condition,
                then: rule.then,
                mode: rule.mode,
                valid_for: rule.valid_for.map(Period::duration),
                place,
            });
        }
        Ok(Self(ready))
    }

    /// Checks every condition against the tools that its rule matches.
    pub(super) fn fit(&self, tools: &[&ToolSpec]) -> Result<(), PolicyError> {
        for rule in &self.0 {
            let Some(condition) = &rule.condition else {
                continue;
            };
            let matched = tools.iter().copied();
            let matched: Vec<&ToolSpec> = matched
                .filter(|tool| rule.tool.matches(tool.name.as_str()))
                .collect();
            condition.check(&matched).map_err(|wrong| {
                let message = format!("the rule {:?}: {}", &*rule.name, wrong.message);
                rule.place
                    .mistake(condition.source(), wrong.offset, message)
            })?;
        }
        Ok(())
    }

    /// The rules that a tool does not fit any more.
    pub(super) fn misfits(&self, changed: Changed<'_>, is_enforced: bool) -> Vec<Misfit> {
        let Changed { tool, before, .. } = changed;
        let rules = self.of_tool(tool.name.as_str());
        let misfits = rules.filter_map(|rule| {
            let condition = rule.condition.as_ref()?;
            let matched = || matched(Some(&rule.tool), changed);
            let wrong = condition.check_later(tool, before, &matched).err()?;
            let is_enforced = is_enforced && rule.mode == Mode::Enforce;
            let (place, source) = (&rule.place, condition.source());
            Some(Misfit::new(
                &rule.name,
                tool,
                place,
                source,
                wrong,
                is_enforced,
            ))
        });
        misfits.collect()
    }

    /// The rules, if one of them matches the tool.
    pub(super) fn for_tool(self: &Arc<Self>, tool: &str) -> Option<Arc<dyn Conditions>> {
        let is_ruled = self.0.iter().any(|rule| rule.tool.matches(tool));
        is_ruled.then(|| self.clone() as Arc<dyn Conditions>)
    }

    /// The rules, none of them enforced, together with what was found already.
    pub(super) fn observed(
        self: &Arc<Self>,
        found: impl Iterator<Item = Ruled>,
    ) -> Arc<dyn Conditions> {
        Arc::new(Observed {
            rules: self.clone(),
            found: found.collect(),
        })
    }

    /// The rules that match a tool.
    pub(super) fn of_tool<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a ReadyRule> {
        self.0.iter().filter(move |rule| rule.tool.matches(tool))
    }

    /// All rules, in the order of the file.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ReadyRule> {
        self.0.iter()
    }
}

impl ReadyRule {
    /// True if the rule is decided at a stage.
    pub(super) fn is_due(&self, stage: Stage) -> bool {
        let condition = self.condition.as_ref();
        match stage {
            Stage::Listing => condition.is_none_or(Condition::needs_no_call),
            Stage::Call => !condition.is_some_and(Condition::needs_arguments),
            Stage::Arguments => condition.is_some_and(Condition::needs_arguments),
        }
    }

    /// Decides the rule; `None` if it does not hold.
    pub(super) fn decide(&self, facts: &Facts<'_>) -> Result<Option<Outcome>, Failed> {
        self.decide_within(facts, &Steps::default())
    }

    /// Decides the rule as one of those of a call; `None` if it does not hold.
    fn decide_within(&self, facts: &Facts<'_>, steps: &Steps) -> Result<Option<Outcome>, Failed> {
        let holds = self.holds(facts, |condition, view| condition.holds_within(view, steps))?;
        Ok(holds.then_some(self.outcome()))
    }

    /// True if the condition holds for one of the actors of a call; an error if it cannot be decided for one of them.
    fn holds(
        &self,
        facts: &Facts<'_>,
        decide: impl Fn(&Condition, &Facts<'_>) -> Result<bool, Failed>,
    ) -> Result<bool, Failed> {
        let Some(condition) = &self.condition else {
            return Ok(true);
        };
        let views = facts.views().map(|view| decide(condition, &view));
        views
            .reduce(|one, other| Ok(one? | other?))
            .unwrap_or(Ok(true))
    }

    /// Decides the rule for a call whose scopes are not known; `None` if it does not hold.
    pub(super) fn decide_without_scopes(
        &self,
        facts: &Facts<'_>,
    ) -> Result<Option<Outcome>, Failed> {
        let holds = self.holds(facts, Condition::holds_without_scopes)?;
        Ok(holds.then_some(self.outcome()))
    }

    /// Outcome of a call for which it holds.
    pub(super) fn outcome(&self) -> Outcome {
        match self.then {
            Then::Deny => Outcome::Deny,
            Then::Confirm => Outcome::Confirm,
            Then::FourEyes => Outcome::FourEyes,
        }
    }
}

/// The rules of a policy that is only observed as a whole, and what its other entries say.
#[derive(Debug)]
struct Observed {
    rules: Arc<CallRules>,
    found: Vec<Ruled>,
}

impl Conditions for Observed {
    fn judge(&self, stage: Stage, facts: &Facts<'_>) -> Judgement {
        let mut ruled = match stage {
            Stage::Call => self.found.clone(),
            Stage::Listing | Stage::Arguments => Vec::new(),
        };
        for rule in self.rules.judge(stage, facts).ruled {
            ruled.push(Ruled {
                is_enforced: false,
                ..rule
            });
        }
        Judgement {
            ruled,
            ..Judgement::default()
        }
    }
}

impl Conditions for CallRules {
    fn judge(&self, stage: Stage, facts: &Facts<'_>) -> Judgement {
        let mut judgement = Judgement::default();
        // A rule that is only observed takes no steps from those that are enforced.
        let (enforced, observed) = (Steps::default(), Steps::default());
        let rules = self.of_tool(facts.tool.name.as_str());
        for rule in rules.filter(|rule| rule.is_due(stage)) {
            let is_enforced = match rule.mode {
                Mode::Enforce => true,
                Mode::Observe => false,
            };
            let steps = if is_enforced { &enforced } else { &observed };
            let decided = rule.decide_within(facts, steps);
            let is_last = is_enforced && decided == Err(Failed::CallSteps);
            let outcome = match decided {
                Ok(None) => continue,
                Ok(Some(outcome)) => outcome,
                // A call may still have what is missing here.
                Err(_) if stage == Stage::Listing => continue,
                Err(failed) => {
                    tracing::debug!(rule = &*rule.name, %failed, "a rule cannot be decided");
                    Outcome::Failed
                }
            };
            judgement.ruled.push(Ruled {
                rule: rule.name.clone(),
                outcome,
                is_enforced,
            });
            if is_enforced {
                apply(&mut judgement, rule, outcome);
            }
            // Those that follow could not be decided either, and the call is refused.
            if is_last {
                break;
            }
        }
        judgement
    }
}

/// The tools that an entry matches; every tool if it has no pattern.
pub(super) fn matched<'a>(pattern: Option<&Glob>, changed: Changed<'a>) -> Vec<&'a ToolSpec> {
    let is_matched =
        |tool: &&ToolSpec| pattern.is_none_or(|pattern| pattern.matches(tool.name.as_str()));
    changed.tools.iter().copied().filter(is_matched).collect()
}

fn apply(judgement: &mut Judgement, rule: &ReadyRule, outcome: Outcome) {
    let name = rule.name.to_string();
    let hint = match outcome {
        Outcome::Deny => Say::RuleDenies { rule: name },
        Outcome::Failed => Say::RuleFailed { rule: name },
        Outcome::Confirm | Outcome::FourEyes => {
            judgement.must_confirm = true;
            judgement.four_eyes |= outcome == Outcome::FourEyes;
            let shortest = rule
                .valid_for
                .into_iter()
                .chain(judgement.approval_valid_for);
            judgement.approval_valid_for = shortest.min();
            return;
        }
    };
    // The first one is named.
    judgement.denial.get_or_insert_with(|| Denial {
        rule: rule.name.clone(),
        hint: hint.into(),
    });
}
