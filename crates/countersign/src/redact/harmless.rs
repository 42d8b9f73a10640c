//! Harmless arguments: the part of a call's arguments that may be in the permanent record, limited by the declaration.
//!
//! Default deny. A string is kept only if it is one of a declared enum, a number only if the declaration marks it as
//! harmless, a name only if it is a declared property. References and combinators are not followed: their values are
//! left out.

use countersign_contract::schema::ext;
use serde_json::{Map, Value};

/// True if the schema declares anything that may be kept.
pub(super) fn has_any(schema: &Value) -> bool {
    is_kept_kind(schema) || children(schema).any(has_any)
}

fn children(schema: &Value) -> impl Iterator<Item = &Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let items = schema.get("items");
    properties.into_iter().flat_map(Map::values).chain(items)
}

/// The harmless part of a value; null if there is none.
pub(super) fn of(schema: &Value, value: &Value) -> Value {
    if schema
        .get(ext::SENSITIVITY)
        .is_some_and(|label| label != "public")
    {
        return Value::Null;
    }
    match value {
        Value::Object(members) => {
            let declared = schema.get("properties").and_then(Value::as_object);
            let kept = members.iter().filter_map(|(name, member)| {
                let kept = of(declared?.get(name)?, member);
                (!kept.is_null()).then(|| (name.clone(), kept))
            });
            let kept: Map<String, Value> = kept.collect();
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Object(kept)
            }
        }
        Value::Array(items) => {
            let Some(declared) = schema.get("items") else {
                return Value::Null;
            };
            let kept: Vec<Value> = items.iter().map(|item| of(declared, item)).collect();
            if kept.iter().all(Value::is_null) {
                Value::Null
            } else {
                Value::Array(kept)
            }
        }
        scalar if is_choice(schema, scalar) => scalar.clone(),
        Value::Bool(_) if has_type(schema, "boolean") => value.clone(),
        Value::Number(_) if is_harmless(schema) => value.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Value::Null,
    }
}

fn is_kept_kind(schema: &Value) -> bool {
    schema.get("enum").is_some() || has_type(schema, "boolean") || is_harmless(schema)
}

fn is_choice(schema: &Value, value: &Value) -> bool {
    let choices = schema.get("enum").and_then(Value::as_array);
    choices.is_some_and(|choices| choices.contains(value))
}

fn has_type(schema: &Value, name: &str) -> bool {
    schema.get("type").is_some_and(|found| found == name)
}

fn is_harmless(schema: &Value) -> bool {
    schema.get(ext::HARMLESS) == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// No text that a caller can choose freely gets into a record that is kept for ever (A21, A15).
    #[test]
    fn only_what_is_declared_harmless_is_kept() {
        let schema = json!({"properties": {
            "speed": {"type": "string", "enum": ["express", "standard"]},
            "gift": {"type": "boolean"},
            "quantity": {"type": "integer", "x-harmless": true},
            "sku": {"type": "string"},
            "amount": {"type": "integer"},
            "lines": {"type": "array", "items": {"properties": {"quantity": {"x-harmless": true}}}},
            "free": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "secret": {"type": "boolean", "x-sensitivity": "personal"},
        }});
        let check =
            |given: Value, expected: Value| assert_eq!(of(&schema, &given), expected, "{given}");
        check(
            json!({"speed": "express", "gift": true, "quantity": 2}),
            json!({"speed": "express", "gift": true, "quantity": 2}),
        );
        check(
            json!({"speed": "Erika", "sku": "hunter2", "amount": 78_051_120}),
            Value::Null,
        );
        check(
            json!({"lines": [{"quantity": 3, "sku": "Erika"}]}),
            json!({"lines": [{"quantity": 3}]}),
        );
        check(json!({"free": {"Erika": true}}), Value::Null);
        check(
            json!({"secret": true, "unknown": true, "gift": "078051120"}),
            Value::Null,
        );
    }
}
