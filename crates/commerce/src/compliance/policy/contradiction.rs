//! Conditions that can never hold. A rule with one would look like protection and be none, so its file is refused. This
//! finds the typical mistakes of a person who edits a file, not every contradiction.

use std::borrow::Cow;

use rust_decimal::Decimal;

use super::condition::{Condition, Scalar, Test};
use super::fact::{Fact, Known};

/// The reason why a condition can never hold; `None` if no contradiction is found.
pub(super) fn contradiction(condition: &Condition) -> Option<String> {
    let mut parts = Vec::new();
    flatten(condition, &mut parts);
    let within = parts.iter().find_map(|part| match part {
        Condition::Any(branches) => {
            let reasons: Option<Vec<String>> = branches.iter().map(contradiction).collect();
            reasons.map(|reasons| reasons.join("; "))
        }
        Condition::All(_)
        | Condition::Not(_)
        | Condition::Certificate(_)
        | Condition::Test { .. } => None,
    });
    within
        .or_else(|| denied(&parts))
        .or_else(|| about_one_fact(&parts))
}

/// Collects everything that has to hold together.
fn flatten<'a>(condition: &'a Condition, parts: &mut Vec<&'a Condition>) {
    match condition {
        Condition::All(inner) => inner.iter().for_each(|part| flatten(part, parts)),
        Condition::Not(inner) => match &**inner {
            Condition::Not(twice) => flatten(twice, parts),
            Condition::All(_)
            | Condition::Any(_)
            | Condition::Certificate(_)
            | Condition::Test { .. } => parts.push(condition),
        },
        Condition::Any(_) | Condition::Certificate(_) | Condition::Test { .. } => {
            parts.push(condition);
        }
    }
}

/// Finds a condition together with its opposite.
fn denied(parts: &[&Condition]) -> Option<String> {
    let is_denied = parts.iter().any(|part| match part {
        Condition::Not(denied) => parts.contains(&&**denied),
        Condition::All(_)
        | Condition::Any(_)
        | Condition::Certificate(_)
        | Condition::Test { .. } => false,
    });
    is_denied.then(|| "it asks for something and for its opposite".to_owned())
}

/// Finds tests of one fact that exclude each other.
fn about_one_fact(parts: &[&Condition]) -> Option<String> {
    parts.iter().find_map(|part| {
        let Condition::Test { fact, .. } = part else {
            return None;
        };
        let tests: Vec<&Test> = parts
            .iter()
            .filter_map(|part| test_of(part, fact))
            .collect();
        (is_missing(&tests) || has_no_candidate(&tests) || is_empty_range(&tests))
            .then(|| format!("nothing can be all that it asks of {}", fact.name()))
    })
}

fn test_of<'a>(part: &'a Condition, wanted: &Fact) -> Option<&'a Test> {
    match part {
        Condition::Test { fact, test } if fact == wanted => Some(test),
        Condition::Test { .. }
        | Condition::All(_)
        | Condition::Any(_)
        | Condition::Not(_)
        | Condition::Certificate(_) => None,
    }
}

/// True if a fact has to be missing and is also tested for something else.
fn is_missing(tests: &[&Test]) -> bool {
    let is_missing = |test: &&Test| matches!(test, Test::Missing);
    tests.iter().any(is_missing) && !tests.iter().all(is_missing)
}

/// True if a fact has to be one of a few values, and none of them passes the other tests.
fn has_no_candidate(tests: &[&Test]) -> bool {
    tests.iter().any(|test| {
        let candidates = match test {
            Test::Eq(value) => std::slice::from_ref(value),
            Test::In(values) => values.as_slice(),
            Test::Ne(_)
            | Test::NotIn(_)
            | Test::Exists
            | Test::Missing
            | Test::Gt(_)
            | Test::Gte(_)
            | Test::Lt(_)
            | Test::Lte(_)
            | Test::Contains(_)
            | Test::StartsWith(_)
            | Test::InGroup(_) => return false,
        };
        !candidates.iter().any(|value| {
            let known = value.known();
            tests.iter().all(|test| test.holds(&known) != Some(false))
        })
    })
}

/// True if no number satisfies all lower and upper bounds.
fn is_empty_range(tests: &[&Test]) -> bool {
    // Of two equal bounds the strict one counts. The flag is true for a strict lower bound and false for a strict upper
    // bound, so that `max` and `min` find it.
    let mut above: Vec<(Decimal, bool)> = Vec::new();
    let mut below: Vec<(Decimal, bool)> = Vec::new();
    for test in tests {
        match test {
            Test::Gt(bound) => above.push((*bound, true)),
            Test::Gte(bound) => above.push((*bound, false)),
            Test::Lt(bound) => below.push((*bound, false)),
            Test::Lte(bound) => below.push((*bound, true)),
            Test::Eq(_)
            | Test::Ne(_)
            | Test::In(_)
            | Test::NotIn(_)
            | Test::Exists
            | Test::Missing
            | Test::Contains(_)
            | Test::StartsWith(_)
            | Test::InGroup(_) => {}
        }
    }
    let bounds = above.into_iter().max().zip(below.into_iter().min());
    bounds.is_some_and(|((low, is_above), (high, is_included))| {
        low > high || (low == high && (is_above || !is_included))
    })
}

impl Scalar {
    fn known(&self) -> Known<'_> {
        match self {
            Self::Text(text) => Known::Text(Cow::Borrowed(text)),
            Self::Number(number) => Known::Number(*number),
            Self::Flag(flag) => Known::Flag(*flag),
        }
    }
}
