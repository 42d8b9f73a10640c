//! Two schemas about the same value, joined into one.

use serde_json::{Map, Value, json};

/// Joins a later schema into an earlier one. What cannot be said in one schema is said as the later one has it.
pub(super) fn into(all: &mut Map<String, Value>, later: Map<String, Value>) {
    for (keyword, value) in later {
        let Some(own) = all.get_mut(&keyword) else {
            all.insert(keyword, value);
            continue;
        };
        match keyword.as_str() {
            "properties" | "patternProperties" => properties(own, value),
            "required" => required(own, value),
            "type" => types(own, value),
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
                if value.as_f64() > own.as_f64() {
                    *own = value;
                }
            }
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
                if value.as_f64() < own.as_f64() {
                    *own = value;
                }
            }
            "enum" => choices(own, value),
            // A closed part would forbid the members of the others.
            "additionalProperties" if value == json!(false) => *own = value,
            "additionalProperties" => {}
            "anyOf" => {
                let both = json!([{ "anyOf": own.take() }, { "anyOf": value }]);
                all.remove("anyOf");
                all.insert("allOf".to_owned(), both);
            }
            "allOf" => {
                if let (Value::Array(own), Value::Array(more)) = (own, value) {
                    own.extend(more);
                }
            }
            _ => *own = value,
        }
    }
}

fn properties(own: &mut Value, later: Value) {
    let (Value::Object(own), Value::Object(later)) = (own, later) else {
        return;
    };
    for (name, schema) in later {
        let before = own.remove(&name);
        let joined = match (before, schema) {
            (Some(Value::Object(mut before)), Value::Object(schema)) => {
                let is_simple = |it: &Map<String, Value>| !it.contains_key("$ref");
                if is_simple(&before) && is_simple(&schema) {
                    into(&mut before, schema);
                    Value::Object(before)
                } else if schema.keys().all(|key| key == "description") {
                    before.extend(schema);
                    Value::Object(before)
                } else {
                    Value::Object(schema)
                }
            }
            (_, schema) => schema,
        };
        own.insert(name, joined);
    }
}

fn required(own: &mut Value, later: Value) {
    if let (Value::Array(own), Value::Array(later)) = (own, later) {
        for name in later {
            if !own.contains(&name) {
                own.push(name);
            }
        }
    }
}

/// The types that both allow; those of the later one if there are none.
fn types(own: &mut Value, later: Value) {
    let list = |value: &Value| match value {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    let (before, after) = (list(own), list(&later));
    let allows = |types: &[Value], one: &Value| {
        types.contains(one) || (*one == json!("integer") && types.contains(&json!("number")))
    };
    let both: Vec<Value> = after
        .iter()
        .filter(|one| allows(&before, one))
        .cloned()
        .collect();
    let both = if both.is_empty() {
        before
            .iter()
            .filter(|one| allows(&after, one))
            .cloned()
            .collect()
    } else {
        both
    };
    *own = match both.as_slice() {
        [] => later,
        [one] => one.clone(),
        _ => Value::Array(both),
    };
}

fn choices(own: &mut Value, later: Value) {
    if let (Value::Array(before), Value::Array(after)) = (&*own, &later) {
        let both: Vec<Value> = before
            .iter()
            .filter(|it| after.contains(it))
            .cloned()
            .collect();
        *own = if both.is_empty() {
            later
        } else {
            Value::Array(both)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_schemas_become_one() {
        let check = |first: Value, second: Value, expected: Value| {
            let (Value::Object(mut first), Value::Object(second)) = (first, second) else {
                panic!("they are objects");
            };
            into(&mut first, second);
            assert_eq!(Value::Object(first), expected);
        };
        check(
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            json!({"properties": {"b": {}, "a": {"maxLength": 3}}, "required": ["b", "a"]}),
            json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}, "b": {}}, "required": ["a", "b"]}),
        );
        check(
            json!({"type": "number", "minimum": 1}),
            json!({"type": "integer", "minimum": 0}),
            json!({"type": "integer", "minimum": 1}),
        );
        check(
            json!({"type": ["string", "null"]}),
            json!({"type": "string"}),
            json!({"type": "string"}),
        );
        check(
            json!({"anyOf": [{"type": "string"}]}),
            json!({"anyOf": [{"type": "null"}]}),
            json!({"allOf": [{"anyOf": [{"type": "string"}]}, {"anyOf": [{"type": "null"}]}]}),
        );
    }
}
