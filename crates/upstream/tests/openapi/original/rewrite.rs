//! Schemas of OpenAPI as JSON Schema 2020-12, for a validator that is not ours.

use serde_json::{Map, Value, json};

/// Keywords whose members are schemas by name, not keywords.
const MAPS: [&str; 12] = [
    "properties",
    "patternProperties",
    "definitions",
    "schemas",
    "parameters",
    "responses",
    "requestBodies",
    "headers",
    "paths",
    "content",
    "encoding",
    "examples",
];

/// The parts of a document that references lead to.
pub(super) fn schemas(document: &Value) -> Value {
    let mut kept = Map::new();
    for name in [
        "components",
        "definitions",
        "parameters",
        "paths",
        "responses",
    ] {
        if let Some(part) = document.get(name) {
            kept.insert(
                name.to_owned(),
                rewritten(part, document, name != "components", 0),
            );
        }
    }
    Value::Object(kept)
}

/// One schema.
pub(super) fn of(schema: &Value, document: &Value) -> Value {
    rewritten(schema, document, false, 0)
}

/// Returns the schema without patterns, which the validator's engine may not know.
pub(super) fn without_patterns(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let is_kept = |(name, it): &(&String, &Value)| !(*name == "pattern" && it.is_string());
            let kept = members.iter().filter(is_kept);
            Value::Object(
                kept.map(|(name, it)| (name.clone(), without_patterns(it)))
                    .collect(),
            )
        }
        Value::Array(items) => items.iter().map(without_patterns).collect(),
        other => other.clone(),
    }
}

fn rewritten(value: &Value, document: &Value, is_map: bool, depth: usize) -> Value {
    if depth > 110 {
        return json!(true);
    }
    match value {
        Value::Array(items) => items
            .iter()
            .map(|it| rewritten(it, document, false, depth + 1))
            .collect(),
        Value::Object(members) if is_map => {
            let own = |(name, it): (&String, &Value)| {
                (name.clone(), rewritten(it, document, false, depth + 1))
            };
            Value::Object(members.iter().map(own).collect())
        }
        Value::Object(members) => {
            let mut made = Map::new();
            for (name, it) in members {
                if [
                    "example",
                    "examples",
                    "default",
                    "format",
                    "discriminator",
                    "xml",
                    "id",
                    "$id",
                    "$schema",
                    "externalDocs",
                    "tags",
                ]
                .contains(&name.as_str())
                {
                    continue;
                }
                let child = MAPS.contains(&name.as_str());
                let keeps = matches!(name.as_str(), "enum" | "const" | "required");
                made.insert(
                    name.clone(),
                    if keeps {
                        it.clone()
                    } else {
                        rewritten(it, document, child, depth + 1)
                    },
                );
            }
            keywords(&mut made, document);
            Value::Object(made)
        }
        other => other.clone(),
    }
}

fn keywords(schema: &mut Map<String, Value>, document: &Value) {
    const TYPES: [&str; 7] = [
        "null", "boolean", "integer", "number", "string", "array", "object",
    ];
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let reference = reference.to_owned();
        schema.clear();
        schema.insert("$ref".to_owned(), reference.into());
        return;
    }
    let is_type = |it: &Value| it.as_str().is_some_and(|it| TYPES.contains(&it));
    match schema.get("type") {
        Some(Value::Array(types)) if types.iter().all(is_type) => {}
        Some(one) if is_type(one) => {}
        Some(one) if one == "file" => drop(schema.insert("type".to_owned(), json!("string"))),
        Some(_) => drop(schema.remove("type")),
        None => {}
    }
    choices(schema);
    let is_nullable = schema.get("nullable") == Some(&json!(true))
        || schema.get("x-nullable") == Some(&json!(true));
    if is_nullable {
        if let Some(Value::String(one)) = schema.get("type") {
            let both = json!([one, "null"]);
            schema.insert("type".to_owned(), both);
        }
        if let Some(Value::Array(choices)) = schema.get_mut("enum") {
            choices.push(Value::Null);
        }
        for union in ["oneOf", "anyOf"] {
            if let Some(Value::Array(branches)) = schema.get_mut(union) {
                branches.push(json!({ "type": "null" }));
            }
        }
    }
    bounds(schema);
    for count in [
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ] {
        if schema.get(count).is_some_and(|it| it.as_u64().is_none()) {
            schema.remove(count);
        }
    }
    for (name, fits) in [
        ("properties", Value::is_object as fn(&Value) -> bool),
        ("allOf", is_full),
        ("anyOf", is_full),
        ("oneOf", is_full),
        ("uniqueItems", Value::is_boolean),
        ("pattern", Value::is_string),
        ("multipleOf", is_positive),
    ] {
        if schema.get(name).is_some_and(|it| !fits(it)) {
            schema.remove(name);
        }
    }
    required(schema, document);
    for schema_of in ["items", "additionalProperties", "not"] {
        if schema
            .get(schema_of)
            .is_some_and(|it| !it.is_object() && !it.is_boolean())
        {
            schema.remove(schema_of);
        }
    }
}

/// Bounds of which OpenAPI 3.0 says by a boolean that they are exclusive.
fn bounds(schema: &mut Map<String, Value>) {
    for (bound, exclusive) in [
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ] {
        match schema.get(exclusive) {
            Some(Value::Bool(is_exclusive)) => {
                let is_exclusive = *is_exclusive;
                schema.remove(exclusive);
                if is_exclusive && let Some(number) = schema.remove(bound) {
                    schema.insert(exclusive.to_owned(), number);
                }
            }
            Some(Value::Number(_)) | None => {}
            Some(_) => drop(schema.remove(exclusive)),
        }
        if schema.get(bound).is_some_and(|it| !it.is_number()) {
            schema.remove(bound);
        }
    }
}

fn is_full(value: &Value) -> bool {
    value.as_array().is_some_and(|it| !it.is_empty())
}

fn is_positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|it| it > 0.0)
}

/// A choice that is written in another type than the schema has: authors mean the type.
fn choices(schema: &mut Map<String, Value>) {
    let kind = schema
        .get("type")
        .and_then(Value::as_str)
        .map(str::to_owned);
    match schema.get_mut("enum") {
        Some(Value::Array(choices)) if choices.is_empty() => drop(schema.remove("enum")),
        // The choices of the items, written at the wrong place.
        Some(Value::Array(choices))
            if kind.as_deref() == Some("array") && !choices.iter().any(Value::is_array) =>
        {
            drop(schema.remove("enum"));
        }
        Some(Value::Array(choices)) => {
            for choice in choices {
                match (kind.as_deref(), &*choice) {
                    (Some("string"), Value::Number(_) | Value::Bool(_)) => {
                        *choice = json!(choice.to_string());
                    }
                    (Some("integer" | "number" | "boolean"), Value::String(text)) => {
                        if let Ok(read) = serde_json::from_str::<Value>(text) {
                            *choice = read;
                        }
                    }
                    _ => {}
                }
            }
        }
        Some(_) => drop(schema.remove("enum")),
        None => {}
    }
}

/// A request leaves out what only answers have.
fn required(schema: &mut Map<String, Value>, document: &Value) {
    let properties = schema.get("properties").cloned();
    let is_read_only = |name: &str| {
        let own = properties.as_ref().and_then(|it| it.get(name));
        let target = own.and_then(|it| it.get("$ref")).and_then(Value::as_str);
        let target = target.and_then(|it| document.pointer(it.trim_start_matches('#')));
        [own, target]
            .into_iter()
            .flatten()
            .any(|it| it.get("readOnly") == Some(&json!(true)))
    };
    match schema.get_mut("required") {
        Some(Value::Array(names)) => {
            names.retain(|name| name.as_str().is_some_and(|name| !is_read_only(name)));
            let mut known = Vec::new();
            names.retain(|name| {
                let is_new = !known.contains(name);
                known.push(name.clone());
                is_new
            });
        }
        Some(_) => drop(schema.remove("required")),
        None => {}
    }
}
