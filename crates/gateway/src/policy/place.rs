//! Places of the entries of a policy in its file, for messages and for `policy explain`.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::PolicyError;
use super::error::Guide;

/// Lines of the entries of a policy, from 1; empty if there is no file.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    pub(super) tools: Vec<usize>,
    pub(super) agents: Vec<usize>,
    pub(super) rules: Vec<RulePlace>,
    pub(super) defaults: Option<usize>,
    /// Entries of limits and budgets, by their names.
    pub(super) counted: Vec<(String, usize)>,
}

/// Place of a rule.
#[derive(Debug, Clone, Default)]
pub(super) struct RulePlace {
    pub(super) line: usize,
    /// Place of the first character of its condition, and whether the file has its text as it is, without escapes.
    when: Option<(usize, usize, bool)>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Sections {
    tools: Vec<Spanned<IgnoredAny>>,
    agents: Vec<Spanned<IgnoredAny>>,
    rules: Vec<Spanned<RuleSection>>,
    defaults: Option<Spanned<IgnoredAny>>,
    limits: LimitSections,
    breaker: Option<Spanned<IgnoredAny>>,
    budgets: Vec<Spanned<BudgetSection>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct LimitSections {
    user: Option<Spanned<IgnoredAny>>,
    agent: Option<Spanned<IgnoredAny>>,
    session: Option<Spanned<IgnoredAny>>,
    tools: BTreeMap<String, Spanned<IgnoredAny>>,
}

#[derive(Deserialize)]
struct BudgetSection {
    name: String,
}

#[derive(Deserialize)]
struct RuleSection {
    when: Option<Spanned<String>>,
}

impl Places {
    /// Finds the places in the text of a policy file.
    pub(super) fn of(text: &str) -> Self {
        let sections: Sections = toml::from_str(text).unwrap_or_default();
        Self::made(text, &sections)
    }

    /// Finds the places in a file that has the policy as a table.
    pub(super) fn within(text: &str) -> Self {
        #[derive(Deserialize, Default)]
        struct Around {
            policy: Sections,
        }
        let around: Around = toml::from_str(text).unwrap_or_default();
        Self::made(text, &around.policy)
    }

    fn made(text: &str, sections: &Sections) -> Self {
        let line = |span: Range<usize>| line_of(text, span.start);
        let rules = sections.rules.iter().map(|rule| RulePlace {
            line: line(rule.span()),
            when: rule.get_ref().when.as_ref().map(|when| begin(text, when)),
        });
        let limits = &sections.limits;
        let counted = [
            ("[limits.user]", &limits.user),
            ("[limits.agent]", &limits.agent),
            ("[limits.session]", &limits.session),
            ("[breaker]", &sections.breaker),
        ];
        let counted = counted.into_iter().filter_map(|(entry, section)| {
            let section = section.as_ref()?;
            Some((entry.to_owned(), line(section.span())))
        });
        let of_tools = limits.tools.iter();
        let of_tools =
            of_tools.map(|(tools, section)| (of_tools_entry(tools), line(section.span())));
        let budgets = sections.budgets.iter().map(|budget| {
            let entry = budget_entry(&budget.get_ref().name);
            (entry, line(budget.span()))
        });
        Self {
            counted: counted.chain(of_tools).chain(budgets).collect(),
            tools: sections.tools.iter().map(|it| line(it.span())).collect(),
            agents: sections.agents.iter().map(|it| line(it.span())).collect(),
            rules: rules.collect(),
            defaults: sections.defaults.as_ref().map(|it| line(it.span())),
        }
    }
}

impl RulePlace {
    /// The place of a condition that has no entry of its own.
    pub(super) fn of(text: &str, when: &Spanned<String>) -> Self {
        Self {
            line: line_of(text, when.span().start),
            when: Some(begin(text, when)),
        }
    }

    /// The mistake at a place of the condition.
    pub(super) fn mistake(&self, source: &str, offset: usize, message: String) -> PolicyError {
        let (line, column) = match self.when {
            Some((line, column, true)) => {
                let before = source.get(..offset).unwrap_or(source);
                let after = before.rsplit('\n').next().unwrap_or_default();
                let lines = before.matches('\n').count();
                let first = if lines == 0 { column } else { 1 };
                (line + lines, first + after.chars().count())
            }
            Some((line, column, false)) => (line, column),
            None => (self.line, 1),
        };
        PolicyError::at(line, column, message).see(Guide::Conditions)
    }
}

/// Name of the limits of a pattern of tools.
pub(super) fn of_tools_entry(tools: &str) -> String {
    format!("[limits.tools.{tools:?}]")
}

/// Name of the entry of a budget.
pub(super) fn budget_entry(name: &str) -> String {
    format!("[[budgets]] {name}")
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    before.matches('\n').count() + 1
}

/// Line and column of the first character of a text, behind its quotes; and whether it is written as it is.
fn begin(text: &str, value: &Spanned<String>) -> (usize, usize, bool) {
    let span = value.span();
    let raw = text.get(span.clone()).unwrap_or_default();
    let found = raw.find(value.get_ref().as_str());
    let at = span.start + found.unwrap_or(0);
    let before = text.get(..at).unwrap_or_default();
    let in_line = before.rsplit('\n').next().unwrap_or_default();
    (
        line_of(text, at),
        in_line.chars().count() + 1,
        found.is_some(),
    )
}
