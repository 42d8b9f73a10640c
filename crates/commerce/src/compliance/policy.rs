//! The rules as they are used: every reference is resolved when they are read, so that nothing can be left
//! open while something is decided. A file that cannot be resolved is no policy.

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

/// What may go where, as data.
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
    /// It speaks about these and everything below them; about everything where there are none.
    categories: Vec<String>,
    destinations: Countries,
    /// Where this holds it has something to say.
    when: Option<Condition>,
    /// And it says it unless this is given.
    requires: Option<Condition>,
    /// Where one of these holds it is silent.
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

    /// Whether the rules were written with this category in mind: exactly this one, because what they would
    /// have to say about another one below it is not known.
    pub fn knows_category(&self, category: &str) -> bool {
        self.categories.contains(category)
    }

    /// Whether this is a country, two capital letters.
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
    /// Whether it speaks about such things in that country at all.
    pub(super) fn is_about(&self, facts: &Facts<'_>) -> bool {
        let is_of_category = self.categories.is_empty()
            || self
                .categories
                .iter()
                .any(|own| is_at_or_below(facts.category(), own));
        is_of_category && self.destinations.contains(facts.country())
    }

    /// Whether it has something to say: its condition holds, what it requires is not given, and there is no
    /// exception. One that depends on what nobody has said is none.
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
    /// The certificates that it asks about in its condition: with one of them it may speak where it was silent.
    pub(super) fn claims(&self) -> Vec<String> {
        let mut claims = Vec::new();
        if let Some(when) = &self.when {
            when.claims(true, &mut claims);
        }
        claims
    }
}

/// Whether a category is this one or one below it.
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
