//! Arguments that a tool accepts, made from its declaration.

use countersign::catalog::Entry;
use countersign::contract::Input;
use countersign::contract::markdown::example_members;
use serde_json::{Map, Value, json};

/// Depth up to which a schema is followed.
const DEPTH_MAX: usize = 8;

/// Returns arguments that the tool accepts; `None` if none could be made.
pub(super) fn arguments(entry: &Entry) -> Option<Map<String, Value>> {
    let made = match &entry.spec().input {
        Input::Parameters(parameters) => example_members(parameters),
        Input::Schema(schema) => match of_schema(schema, schema, 0) {
            Value::Object(members) => members,
            _ => Map::new(),
        },
        Input::Undeclared => Map::new(),
    };
    let text = Value::Object(made.clone()).to_string();
    entry.arguments(&text).is_ok().then_some(made)
}

/// Returns other arguments that the tool accepts too; `None` if none could be made.
pub(super) fn others(entry: &Entry, arguments: &Map<String, Value>) -> Option<Map<String, Value>> {
    for (name, value) in arguments {
        let changed = match value {
            Value::String(text) => vec![json!(format!("{text}2")), json!("other")],
            Value::Number(number) => number
                .as_i64()
                .map(|number| vec![json!(number + 1), json!(number.saturating_sub(1))])
                .unwrap_or_default(),
            Value::Bool(truth) => vec![json!(!truth)],
            Value::Null | Value::Array(_) | Value::Object(_) => Vec::new(),
        };
        for value in changed {
            let mut other = arguments.clone();
            other.insert(name.clone(), value);
            let text = Value::Object(other.clone()).to_string();
            if entry.arguments(&text).is_ok() {
                return Some(other);
            }
        }
    }
    None
}

/// Makes a value of a schema: its own example where it has one, else the required parts.
fn of_schema(schema: &Value, root: &Value, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return Value::Null;
    }
    let member = |name: &str| schema.get(name);
    if let Some(reference) = member("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').and_then(|at| root.pointer(at));
        return target.map_or(Value::Null, |target| of_schema(target, root, depth + 1));
    }
    let first = |name: &str| member(name).and_then(Value::as_array)?.first();
    let given = member("const").or(member("default")).or(member("example"));
    if let Some(given) = given
        .or_else(|| first("examples"))
        .or_else(|| first("enum"))
    {
        return given.clone();
    }
    if let Some(branch) = first("anyOf").or_else(|| first("oneOf")) {
        return of_schema(branch, root, depth + 1);
    }
    let kind = match member("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or("object"),
        _ if member("properties").is_some() => "object",
        _ => "string",
    };
    match kind {
        "object" => {
            let required = member("required").and_then(Value::as_array);
            let names = required.into_iter().flatten().filter_map(Value::as_str);
            let made = names.map(|name| {
                let inner = member("properties").and_then(|all| all.get(name));
                let value = inner.map_or(json!("text"), |it| of_schema(it, root, depth + 1));
                (name.to_owned(), value)
            });
            Value::Object(made.collect())
        }
        "array" => {
            let is_needed = member("minItems").and_then(Value::as_u64).unwrap_or(0) > 0;
            let item = member("items").filter(|_| is_needed);
            json!(
                item.map(|item| of_schema(item, root, depth + 1))
                    .into_iter()
                    .collect::<Vec<_>>()
            )
        }
        "integer" | "number" => member("minimum").cloned().unwrap_or(json!(1)),
        "boolean" => json!(true),
        "null" => Value::Null,
        _ => match member("format").and_then(Value::as_str) {
            Some("date-time") => json!("2026-01-31T12:00:00Z"),
            Some("date") => json!("2026-01-31"),
            Some("uri") => json!("https://example.com/"),
            Some("email") => json!("drill@example.com"),
            Some("uuid") => json!("01890a5d-ac96-774b-bcce-b302099a8057"),
            Some(_) | None => {
                let least = member("minLength").and_then(Value::as_u64).unwrap_or(0);
                json!("text".repeat(1 + usize::try_from(least / 4).unwrap_or(0)))
            }
        },
    }
}
