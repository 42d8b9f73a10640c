//! Conditions of limits and budgets: only calls for which they hold are counted.

use std::sync::Arc;

use countersign::authorize::When;
use countersign::contract::ToolSpec;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::condition::{Condition, Wrong};
use super::file::PolicyFile;
use super::place::RulePlace;
use super::{Glob, PolicyError};

/// Maximum number of conditions of limits and budgets in a file.
const CONDITIONS_MAX: usize = 1000;

/// A condition as it stands in the file. One that cannot be read is reported with its place when the policy is checked.
#[derive(Debug, Clone)]
pub struct Written {
    text: Spanned<String>,
    condition: Result<Condition, Wrong>,
}

impl Written {
    /// The condition, for counting; `None` if it cannot be read, which no checked policy has.
    pub(crate) fn when(&self) -> Option<When> {
        let condition = self.condition.as_ref().ok()?.clone();
        let needs_arguments = condition.needs_arguments();
        let source = condition.source().to_owned();
        Some(When::new(source, needs_arguments, Arc::new(condition)))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        self.text.get_ref()
    }
}

impl PartialEq for Written {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Written {}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Spanned::<String>::deserialize(deserializer)?;
        let condition = Condition::parse(text.get_ref());
        Ok(Self { text, condition })
    }
}

/// The conditions of the limits and budgets of a policy.
#[derive(Debug, Default)]
pub(super) struct CountedConditions(Vec<CountedCondition>);

#[derive(Debug)]
pub(super) struct CountedCondition {
    /// The entry, as in `[limits.user]`.
    pub(super) entry: String,
    /// The tools; `None` for all.
    pub(super) tools: Option<Glob>,
    pub(super) condition: Condition,
    pub(super) place: RulePlace,
}

impl CountedConditions {
    /// Gathers the conditions of a file; `source` is the text that it was read from.
    pub(super) fn of(file: &PolicyFile, source: &str) -> Result<Self, PolicyError> {
        let mut found = Vec::new();
        let limits = &file.limits;
        let all = [
            ("[limits.user]", &limits.user),
            ("[limits.agent]", &limits.agent),
            ("[limits.session]", &limits.session),
        ];
        for (entry, rates) in all {
            let written: Vec<_> = rates.iter().map(|rate| rate.when.as_ref()).collect();
            gather(&mut found, entry, None, &written, source)?;
        }
        for (tools, rates) in &limits.tools {
            let entry = format!("[limits.tools.{:?}]", tools.as_str());
            let written: Vec<_> = rates.iter().map(|rate| rate.when.as_ref()).collect();
            gather(&mut found, &entry, Some(tools), &written, source)?;
        }
        for budget in file.budgets.iter() {
            let entry = format!("[[budgets]] {}", &*budget.name);
            for spender in &budget.tools {
                let written = spender.when.as_ref();
                if let Some(written) = written {
                    found.push(counted(&entry, Some(&spender.tool), written, source)?);
                }
            }
        }
        if found.len() > CONDITIONS_MAX {
            return Err(PolicyError::of_file(
                format!("limits and budgets have more than {CONDITIONS_MAX} conditions"),
                "join conditions that say the same with ||",
            ));
        }
        Ok(Self(found))
    }

    /// Checks every condition against the tools that its limit or budget counts.
    pub(super) fn fit(&self, tools: &[&ToolSpec]) -> Result<(), PolicyError> {
        for counted in &self.0 {
            let matched = tools.iter().copied().filter(|tool| {
                let pattern = counted.tools.as_ref();
                pattern.is_none_or(|pattern| pattern.matches(tool.name.as_str()))
            });
            let matched: Vec<&ToolSpec> = matched.collect();
            let source = counted.condition.source();
            counted.condition.check(&matched).map_err(|wrong| {
                let message = format!("{}: {}", counted.entry, wrong.message);
                counted.place.mistake(source, wrong.offset, message)
            })?;
        }
        Ok(())
    }
}

/// Adds the conditions of one list of limits. Two limits with the same condition would share a count.
fn gather(
    found: &mut Vec<CountedCondition>,
    entry: &str,
    tools: Option<&Glob>,
    list: &[Option<&Written>],
    source: &str,
) -> Result<(), PolicyError> {
    for (index, written) in list.iter().enumerate() {
        if list.iter().take(index).any(|other| other == written) {
            let place = written.map(|written| RulePlace::of(source, &written.text));
            let message = format!("{entry} has two limits with the same condition");
            return Err(match place {
                Some(place) => PolicyError::at(place.line, 1, message),
                None => PolicyError::of_file(
                    message,
                    "give each but one of them a condition: when = \"…\"",
                ),
            });
        }
        if let Some(written) = written {
            found.push(counted(entry, tools, written, source)?);
        }
    }
    Ok(())
}

fn counted(
    entry: &str,
    tools: Option<&Glob>,
    written: &Written,
    source: &str,
) -> Result<CountedCondition, PolicyError> {
    let place = RulePlace::of(source, &written.text);
    let condition = written.condition.clone().map_err(|wrong| {
        let message = format!("{entry}: {}", wrong.message);
        place.mistake(written.as_str(), wrong.offset, message)
    })?;
    Ok(CountedCondition {
        entry: entry.to_owned(),
        tools: tools.cloned(),
        condition,
        place,
    })
}
