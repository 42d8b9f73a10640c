//! The rules as they are used: every reference is resolved when a file is read, so that no decision meets an open one.
//! A file with an unresolved reference is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign::{CallContext, ToolError};
use serde::Deserialize;

use super::answer::Severity;
use crate::rulebook::{Book, RuleData};
use crate::shop::Text;

mod condition;
mod contradiction;
mod country;
mod fact;
mod read;
mod written;

pub(super) use condition::Truth;
pub(super) use fact::Facts;
pub(super) use written::Mitigation;

use condition::Condition;
use country::Countries;
use written::Written;

/// The name of the rule set.
pub(super) const NAME: &str = "compliance";

static BOOK: Book<Policy> = Book::new();

/// The compliance rules.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Written")]
pub struct Policy {
    pub(super) label: String,
    pub(super) date: String,
    pub(super) title: Text,
    pub(super) notice: Text,
    pub(super) groups: usize,
    countries: BTreeSet<String>,
    categories: BTreeSet<String>,
    rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) id: String,
    /// The categories that it applies to, with everything below them; every category if empty.
    categories: Vec<String>,
    destinations: Countries,
    /// The condition under which it has a finding; always if `None`.
    when: Option<Condition>,
    /// The requirement that, if it is met, leaves no finding.
    requires: Option<Condition>,
    /// The exceptions: if one of them holds, there is no finding.
    exceptions: Vec<Condition>,
    pub(super) severity: Severity,
    pub(super) message: Text,
    pub(super) mitigations: Vec<Mitigation>,
    pub(super) source: String,
    pub(super) date: String,
}

impl RuleData for Policy {
    const NAME: &'static str = NAME;
}

impl Policy {
    /// The rules in force; in a replay those of the record.
    pub fn of(ctx: &CallContext) -> Result<Arc<Self>, ToolError> {
        BOOK.get(ctx)
    }

    /// True if the rules were written for exactly this category. A category below a known one is unknown: the rules
    /// might need to say more about it.
    pub fn knows_category(&self, category: &str) -> bool {
        self.categories.contains(category)
    }

    /// True if this is a known country, two capital letters.
    pub fn knows_country(&self, country: &str) -> bool {
        self.countries.contains(country)
    }

    /// The categories that the rules know.
    pub fn categories(&self) -> impl Iterator<Item = &str> {
        self.categories.iter().map(String::as_str)
    }

    pub(super) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub(super) fn countries(&self) -> usize {
        self.countries.len()
    }
}

impl Rule {
    /// True if it applies to this category and destination.
    pub(super) fn is_about(&self, facts: &Facts<'_>) -> bool {
        let is_of_category = self.categories.is_empty()
            || self
                .categories
                .iter()
                .any(|own| is_at_or_below(facts.category(), own));
        is_of_category && self.destinations.contains(facts.country())
    }

    /// Evaluates the rule: it has a finding if its condition holds, its requirement is not met, and no exception holds.
    /// An exception that depends on an unknown fact does not count.
    pub(super) fn finds(&self, facts: &Facts<'_>) -> Truth {
        let is_exception = |exception: &Condition| facts.truth(exception) == Truth::Holds;
        if self.exceptions.iter().any(is_exception) {
            return Truth::Fails;
        }
        let when = self
            .when
            .as_ref()
            .map_or(Truth::Holds, |when| facts.truth(when));
        let requires = self.requires.as_ref();
        let is_open = requires.map_or(Truth::Holds, |needed| facts.truth(needed).negated());
        when.and(is_open)
    }
}

/// The names of all facts but the attributes.
#[cfg(test)]
pub(super) fn fact_names() -> Vec<&'static str> {
    fact::Fact::names()
}

#[cfg(test)]
impl Rule {
    /// The certificates that its condition asks for: with one of them the rule may have a finding that it did not have
    /// without.
    pub(super) fn claims(&self) -> Vec<String> {
        let mut claims = Vec::new();
        if let Some(when) = &self.when {
            when.claims(true, &mut claims);
        }
        claims
    }
}

/// True if a category is `ancestor` or below it.
pub(super) fn is_at_or_below(category: &str, ancestor: &str) -> bool {
    category
        .strip_prefix(ancestor)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Text {
    pub(super) fn in_language(&self, is_chinese: bool) -> &str {
        if is_chinese { &self.zh } else { &self.en }
    }
}
