//! `enum` and `const`: the values that are allowed, in the type that the schema has.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::super::source::Node;

/// Most choices that a model is shown.
pub(super) const CHOICES_MAX: usize = 5_000;

/// A rule about choices that the schema does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// None.
    Nothing,
    /// The type: no choice is of it.
    Type,
    /// The choices: there are too many.
    Choices,
}

/// `enum` and `const`, without null: TOML has none.
pub(super) fn choices(
    node: &Node<'_>,
    types: &mut Vec<&'static str>,
    is_nullable: bool,
    made: &mut Map<String, Value>,
) -> Left {
    let listed: Vec<&Node<'_>> = match (node.get("const"), node.get("enum")) {
        (Some(value), _) => vec![value],
        (None, Some(values)) => values.items().iter().collect(),
        (None, None) => return Left::Nothing,
    };
    if listed.is_empty() {
        return Left::Nothing;
    }
    if listed.len() > CHOICES_MAX {
        return Left::Choices;
    }
    let has_null = listed.contains(&&Node::Null);
    let mut values: Vec<Value> = Vec::new();
    let mut known = BTreeSet::new();
    for value in listed.into_iter().filter(|it| **it != Node::Null) {
        let value = as_type(value.value(), types);
        // What TOML cannot hold is no choice that a model makes.
        if !is_unwritable(&value) && known.insert(value.to_string()) {
            values.push(value);
        }
    }
    if values.is_empty() {
        if has_null {
            *types = vec!["null"];
        }
        return Left::Nothing;
    }
    // The choices of a list that are no lists are those of its items, written at the wrong place: nothing would fit them.
    if types.as_slice() == ["array"] && !values.iter().any(Value::is_array) {
        return Left::Nothing;
    }
    let fits = |value: &Value| types.is_empty() || types.iter().any(|name| is_of(value, name));
    let is_typed = values.iter().any(fits);
    if is_typed {
        values.retain(fits);
    } else {
        types.clear();
    }
    if has_null || is_nullable {
        let choice = match types.iter().find(|it| **it != "null") {
            Some(name) => json!({ "type": name, "enum": values }),
            None => json!({ "enum": values }),
        };
        types.clear();
        made.insert("anyOf".to_owned(), json!([choice, { "type": "null" }]));
    } else {
        made.insert("enum".to_owned(), values.into());
    }
    if is_typed { Left::Nothing } else { Left::Type }
}

/// A choice that is written in another type than the schema has: `enum: [1, 2]` of a text, or `"1"` of a number.
fn as_type(value: Value, types: &[&'static str]) -> Value {
    if types.is_empty() || types.iter().any(|name| is_of(&value, name)) {
        return value;
    }
    let is_scalar = value.is_number() || value.is_boolean();
    if types.contains(&"string") && is_scalar {
        return value.to_string().into();
    }
    let read = value
        .as_str()
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    match read {
        Some(read) if types.iter().any(|name| is_of(&read, name)) => read,
        Some(_) | None => value,
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => {
            let is_whole = !number.is_f64() || number.as_f64().is_some_and(|it| it.fract() == 0.0);
            name == "number" || (name == "integer" && is_whole)
        }
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

/// True for null, which TOML has not, and for numbers that are another one for another reader.
fn is_unwritable(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::String(_) => false,
        Value::Number(number) => !is_exact(number),
        Value::Array(items) => items.iter().any(is_unwritable),
        Value::Object(members) => members.values().any(is_unwritable),
    }
}

/// True if every reader of JSON takes a number for the same one.
pub(super) fn is_exact(number: &serde_json::Number) -> bool {
    const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
    number.as_f64().is_some_and(|it| it.abs() <= EXACT_MAX)
}
