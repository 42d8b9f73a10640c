//! Checks a rule file before anything rests on it, and reports a problem in one sentence.

use std::ops::Range;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::RuleData;

/// Parses a file as rules of this area; the error names the line.
///
/// A call reads rules from JSON, whatever their source, so they are parsed that way here as well: otherwise a file
/// could be accepted here and fail every call.
pub(super) fn check<T: RuleData>(text: &str) -> Result<(), String> {
    let sentence = |error: toml::de::Error| at(text, error.span(), error.message());
    let table = DeTable::parse(text).map_err(sentence)?;
    if let Some(number) = table.get_ref().values().find_map(decimal) {
        let written = text.get(number.clone()).unwrap_or_default().trim();
        let problem = format!("write decimals as text: \"{written}\"");
        return Err(at(text, Some(number), &problem));
    }
    // Once from the file, which knows its lines, and once as a call does it.
    toml::from_str::<T>(text).map_err(sentence)?;
    let data: Value = toml::from_str(text).map_err(sentence)?;
    let rules = T::deserialize(&data).map_err(|error| one_line(&error.to_string()))?;
    rules.check()
}

/// The position of the first floating-point number: it is not exactly the number that was written.
fn decimal(value: &Spanned<DeValue<'_>>) -> Option<Range<usize>> {
    match value.get_ref() {
        DeValue::Float(_) => Some(value.span()),
        DeValue::Array(items) => items.iter().find_map(decimal),
        DeValue::Table(table) => table.values().find_map(decimal),
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {
            None
        }
    }
}

fn at(text: &str, span: Option<Range<usize>>, problem: &str) -> String {
    let problem = one_line(problem);
    let before = span.and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("line {}: {problem}", before.matches('\n').count() + 1),
        None => problem,
    }
}

/// Joins the lines of a message of another library.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(", ")
}
