//! Well-formed calls to thousands of declarations, from corpora that are named on the command line: with them in turn, no declaration
//! stays in the processor's cache.

use std::collections::HashSet;
use std::fs;
use std::io::Result;
use std::path::Path;

use countersign::contract::BindStatus;
use serde_json::Value;

use crate::calls::Call;
use crate::work;

/// Returns one call for each distinct declaration of a corpus that has one, with the declarations. A line of a corpus is
/// `{"schema": …, "raw": …, "expected": …}`; the call is the text, or the expected value if the text is damaged.
///
/// # Errors
///
/// A file cannot be read, or is not lines of JSON.
pub fn read(files: &[&Path]) -> Result<(Vec<Value>, Vec<Call>)> {
    let (mut seen, mut schemas, mut calls) = (HashSet::new(), Vec::new(), Vec::new());
    for file in files {
        for line in fs::read_to_string(file)?.lines() {
            let case: Value = serde_json::from_str(line)?;
            let Some(schema) = case.get("schema").filter(|schema| schema.is_object()) else {
                continue;
            };
            if seen.contains(&schema.to_string()) {
                continue;
            }
            if let Some((value, text)) = well_formed(schema, &case) {
                seen.insert(schema.to_string());
                let tool = schemas.len();
                calls.push(Call { tool, value, text });
                schemas.push(schema.clone());
            }
        }
    }
    Ok((schemas, calls))
}

/// Returns the call of a case, if both sides can use its declaration and accept the call as it is.
fn well_formed(schema: &Value, case: &Value) -> Option<(Value, String)> {
    let binder = work::lenient(schema)?;
    let validator = jsonschema::validator_for(schema).ok()?;
    let expected = case
        .get("expected")
        .or_else(|| case.pointer("/expect/value"));
    let expected = expected.map(Value::to_string);
    let raw = case.get("raw").and_then(Value::as_str).map(str::to_owned);
    raw.into_iter().chain(expected).find_map(|text| {
        let value = serde_json::from_str::<Value>(&text).ok()?;
        let exact = binder.bind(&text).status == BindStatus::Exact;
        (exact && value.is_object() && validator.is_valid(&value)).then_some((value, text))
    })
}
