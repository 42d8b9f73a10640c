//! Conditions of limits and budgets: only calls for which they hold are counted. And the pointers of budgets to the amounts.

use std::borrow::Cow;
use std::sync::Arc;

use countersign::authorize::When;
use countersign::contract::ToolSpec;
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::condition::{Condition, Wrong, check_pointer};
use super::error::Guide;
use super::file::PolicyFile;
use super::fitted::{Changed, Misfit};
use super::place::{RulePlace, budget_entry, of_tools_entry};
use super::rules::matched;
use super::{Glob, PolicyError};

/// Maximum number of conditions of limits and budgets in a file.
const CONDITIONS_MAX: usize = 1000;

/// A condition as it stands in the file. One that cannot be read is reported with its place when the policy is checked.
#[derive(Debug, Clone)]
pub struct Written {
    text: Spanned<String>,
    condition: Result<Condition, Wrong>,
}

impl JsonSchema for Written {
    fn schema_name() -> Cow<'static, str> {
        "Condition".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-form": "a condition in CEL" })
    }
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
pub(super) struct CountedConditions {
    conditions: Vec<CountedCondition>,
    pointers: Vec<CountedPointer>,
}

/// A pointer of a budget into the arguments.
#[derive(Debug)]
struct CountedPointer {
    entry: String,
    tools: Glob,
    /// Tools whose calls an entry before this one has counted already.
    taken: Vec<Glob>,
    /// True if the entry has a condition, so that it need not count every call of its tools.
    is_for_some: bool,
    text: String,
    place: RulePlace,
}

impl CountedPointer {
    /// True if its entry counts the calls of a tool.
    fn counts(&self, tool: &ToolSpec) -> bool {
        let name = tool.name.as_str();
        self.tools.matches(name) && !self.taken.iter().any(|glob| glob.matches(name))
    }

    /// Checks the pointer against the tools. An entry for some calls has to fit one of them, another one all.
    fn fit(&self, tools: &[&ToolSpec]) -> Result<(), PolicyError> {
        let mut first = None;
        for tool in tools.iter().filter(|tool| self.counts(tool)) {
            match check_pointer(tool, &self.text) {
                Ok(()) if self.is_for_some => return Ok(()),
                Ok(()) => {}
                Err(wrong) => {
                    first.get_or_insert(wrong);
                }
            }
        }
        let Some(wrong) = first else { return Ok(()) };
        let message = format!("{}: {wrong}", self.entry);
        Err(self
            .place
            .mistake(&self.text, 0, message)
            .see(Guide::Limits))
    }
}

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
            let entry = of_tools_entry(tools.as_str());
            let written: Vec<_> = rates.iter().map(|rate| rate.when.as_ref()).collect();
            gather(&mut found, &entry, Some(tools), &written, source)?;
        }
        let mut pointers = Vec::new();
        for budget in file.budgets.iter() {
            let entry = budget_entry(&budget.name);
            for (index, spender) in budget.tools.iter().enumerate() {
                let before = budget.tools.iter().take(index);
                let taken = before.filter(|other| other.when.is_none());
                let taken: Vec<Glob> = taken.map(|other| other.tool.clone()).collect();
                for pointer in std::iter::once(&spender.amount).chain(&spender.currency) {
                    pointers.push(CountedPointer {
                        entry: entry.clone(),
                        tools: spender.tool.clone(),
                        taken: taken.clone(),
                        is_for_some: spender.when.is_some(),
                        text: pointer.to_string(),
                        place: RulePlace::of(source, pointer.written()),
                    });
                }
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
        Ok(Self {
            conditions: found,
            pointers,
        })
    }

    /// Checks every condition and every pointer against the tools that its limit or budget counts.
    pub(super) fn fit(&self, tools: &[&ToolSpec]) -> Result<(), PolicyError> {
        for pointer in &self.pointers {
            pointer.fit(tools)?;
        }
        for counted in &self.conditions {
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

impl CountedConditions {
    /// All conditions, in the order of the file.
    pub(super) fn iter(&self) -> impl Iterator<Item = &CountedCondition> {
        self.conditions.iter()
    }

    /// The limits and budgets that a tool does not fit any more. They stay in force also where the rest is only observed.
    pub(super) fn misfits(&self, changed: Changed<'_>) -> Vec<Misfit> {
        let Changed { tool, before, .. } = changed;
        let every =
            |pattern: Option<&Glob>| pattern.is_none_or(|it| it.matches(tool.name.as_str()));
        let conditions = self.conditions.iter().filter(|it| every(it.tools.as_ref()));
        let conditions = conditions.filter_map(|counted| {
            let matched = || matched(counted.tools.as_ref(), changed);
            let condition = &counted.condition;
            let wrong = condition.check_later(tool, before, &matched).err()?;
            let (entry, place) = (&counted.entry, &counted.place);
            Some(Misfit::new(
                entry,
                tool,
                place,
                condition.source(),
                wrong,
                true,
            ))
        });
        let pointers = self
            .pointers
            .iter()
            .filter(|it| !it.is_for_some && it.counts(tool));
        let pointers = pointers.filter_map(|pointer| {
            let message = check_pointer(tool, &pointer.text).err()?;
            let wrong = Wrong { offset: 0, message };
            let (entry, place) = (&pointer.entry, &pointer.place);
            Some(Misfit::new(entry, tool, place, &pointer.text, wrong, true))
        });
        conditions.chain(pointers).collect()
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
                Some(place) => PolicyError::at(place.line, 1, message).see(Guide::Limits),
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
