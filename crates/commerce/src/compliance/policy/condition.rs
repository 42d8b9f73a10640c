//! Conditions and their evaluation, with three results: a fact that is not given is neither true nor false, and a rule
//! that needs it cannot be decided.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::country::Countries;
use super::fact::{Fact, Facts, Known};

/// A condition of a rule.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Certificate(String),
    Test { fact: Fact, test: Test },
}

#[cfg(test)]
impl Condition {
    /// The certificates with which it holds and without which it does not.
    pub(super) fn claims(&self, is_asked: bool, claims: &mut Vec<String>) {
        match self {
            Self::All(parts) | Self::Any(parts) => {
                for part in parts {
                    part.claims(is_asked, claims);
                }
            }
            Self::Not(part) => part.claims(!is_asked, claims),
            Self::Certificate(name) if is_asked => claims.push(name.clone()),
            Self::Certificate(_) | Self::Test { .. } => {}
        }
    }
}

/// A test of a fact.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    Eq(Scalar),
    Ne(Scalar),
    In(Vec<Scalar>),
    NotIn(Vec<Scalar>),
    Exists,
    Missing,
    Gt(Decimal),
    Gte(Decimal),
    Lt(Decimal),
    Lte(Decimal),
    Contains(String),
    StartsWith(String),
    InGroup(Countries),
}

/// A value that a fact is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scalar {
    Text(String),
    Number(Decimal),
    Flag(bool),
}

/// The result of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::compliance) enum Truth {
    Holds,
    Fails,
    /// The result depends on these facts, which are not given.
    Unknown(BTreeSet<String>),
}

impl Truth {
    /// Both: if one of them fails, the result is `Fails`, whatever the other one is.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fails, _) | (_, Self::Fails) => Self::Fails,
            (Self::Holds, truth) | (truth, Self::Holds) => truth,
            (Self::Unknown(mut left), Self::Unknown(right)) => {
                left.extend(right);
                Self::Unknown(left)
            }
        }
    }

    /// The opposite; unknown stays unknown.
    pub(super) fn negated(self) -> Self {
        match self {
            Self::Holds => Self::Fails,
            Self::Fails => Self::Holds,
            Self::Unknown(missing) => Self::Unknown(missing),
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Fails }
    }
}

impl Facts<'_> {
    /// Evaluates a condition.
    pub(super) fn truth(&self, condition: &Condition) -> Truth {
        match condition {
            Condition::All(parts) => {
                let truths = parts.iter().map(|part| self.truth(part));
                truths.fold(Truth::Holds, Truth::and)
            }
            // Any holds if not all of them fail.
            Condition::Any(parts) => {
                let failures = parts.iter().map(|part| self.truth(part).negated());
                failures.fold(Truth::Holds, Truth::and).negated()
            }
            Condition::Not(part) => self.truth(part).negated(),
            Condition::Certificate(name) => self.has_certificate(name).into(),
            Condition::Test { fact, test } => self.tested(fact, test),
        }
    }

    fn tested(&self, fact: &Fact, test: &Test) -> Truth {
        let known = self.known(fact);
        match test {
            Test::Exists => known.is_some().into(),
            Test::Missing => known.is_none().into(),
            Test::Eq(_)
            | Test::Ne(_)
            | Test::In(_)
            | Test::NotIn(_)
            | Test::Gt(_)
            | Test::Gte(_)
            | Test::Lt(_)
            | Test::Lte(_)
            | Test::Contains(_)
            | Test::StartsWith(_)
            | Test::InGroup(_) => known.and_then(|known| test.holds(&known)).map_or_else(
                || Truth::Unknown(BTreeSet::from([fact.name()])),
                Truth::from,
            ),
        }
    }
}

impl Test {
    /// True if the test holds for a value; `None` if the value is of the wrong type for it.
    pub(super) fn holds(&self, known: &Known<'_>) -> Option<bool> {
        match self {
            Self::Exists => Some(true),
            Self::Missing => Some(false),
            Self::Eq(value) => value.is(known),
            Self::Ne(value) => value.is(known).map(|is| !is),
            Self::In(values) => one_of(values, known),
            Self::NotIn(values) => one_of(values, known).map(|is| !is),
            Self::Gt(bound) => number(known).map(|number| number > *bound),
            Self::Gte(bound) => number(known).map(|number| number >= *bound),
            Self::Lt(bound) => number(known).map(|number| number < *bound),
            Self::Lte(bound) => number(known).map(|number| number <= *bound),
            Self::Contains(part) => text(known).map(|text| text.contains(part.as_str())),
            Self::StartsWith(start) => text(known).map(|text| text.starts_with(start.as_str())),
            Self::InGroup(countries) => text(known).map(|country| countries.contains(country)),
        }
    }
}

impl Scalar {
    fn is(&self, known: &Known<'_>) -> Option<bool> {
        match (self, known) {
            (Self::Text(own), Known::Text(text)) => Some(own == text),
            (Self::Number(own), Known::Number(number)) => Some(own == number),
            (Self::Flag(own), Known::Flag(flag)) => Some(own == flag),
            (Self::Text(_) | Self::Number(_) | Self::Flag(_), _) => None,
        }
    }
}

fn one_of(values: &[Scalar], known: &Known<'_>) -> Option<bool> {
    let mut is_any = false;
    for value in values {
        is_any |= value.is(known)?;
    }
    Some(is_any)
}

fn number(known: &Known<'_>) -> Option<Decimal> {
    match known {
        Known::Number(number) => Some(*number),
        Known::Text(_) | Known::Flag(_) => None,
    }
}

fn text<'a>(known: &'a Known<'_>) -> Option<&'a str> {
    match known {
        Known::Text(text) => Some(text),
        Known::Number(_) | Known::Flag(_) => None,
    }
}
