//! The subset of `OpenAPI` 3.0 in which Gemini's `parameters` is written.

use serde_json::{Map, Value, json};

use super::walk::children_mut;
use super::{describe, types};

/// Rewrites a portable schema without references.
pub(super) fn rewrite(schema: &mut Value) {
    let Value::Object(node) = schema else {
        // A boolean schema accepts anything; the subset has no better word for it than a text.
        *schema = json!({ "type": "STRING" });
        return;
    };
    if let Some(choices) = node.remove("oneOf") {
        node.insert("anyOf".into(), choices);
    }
    nullable(node);
    enumerated(node);
    map_in_words(node);
    node.retain(|keyword, _| {
        !matches!(&**keyword, "$defs" | "definitions" | "additionalProperties")
    });
    describe::fold(node, |keyword, value| !is_supported(keyword, value));
    if let Some(Value::Array(examples)) = node.remove("examples")
        && let Some(first) = examples.into_iter().next()
    {
        node.insert("example".into(), first);
    }
    if let Some(Value::String(name)) = node.get_mut("type") {
        name.make_ascii_uppercase();
    } else if !node.contains_key("anyOf") {
        node.insert("type".into(), "STRING".into());
    }
    if node.get("type") == Some(&json!("ARRAY")) {
        node.entry("items")
            .or_insert_with(|| json!({ "type": "string" }));
    }
    for (_, child) in children_mut(node) {
        rewrite(child);
    }
}

/// Replaces `null` among the alternatives by the flag `nullable`.
fn nullable(node: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = node.get_mut("anyOf") else {
        return;
    };
    let before = choices.len();
    choices.retain(|choice| choice.get("type") != Some(&json!("null")));
    let is_nullable = choices.len() < before;
    if let [Value::Object(only)] = choices.as_mut_slice() {
        let mut only = std::mem::take(only);
        node.remove("anyOf");
        for (keyword, value) in std::mem::take(&mut only) {
            node.entry(keyword).or_insert(value);
        }
    }
    if is_nullable {
        node.insert("nullable".into(), json!(true));
    }
}

/// Keeps enums of texts; describes others in words.
fn enumerated(node: &mut Map<String, Value>) {
    if let Some(only) = node.remove("const") {
        node.insert("enum".into(), json!([only]));
    }
    let Some(Value::Array(members)) = node.get("enum") else {
        return;
    };
    if members.iter().all(Value::is_string) {
        node.entry("type").or_insert_with(|| "string".into());
        return;
    }
    let of_type = |name: &str| members.iter().all(|member| types::is_of_type(member, name));
    if let Some(name) = ["integer", "number", "boolean"]
        .into_iter()
        .find(|name| of_type(name))
    {
        node.entry("type").or_insert_with(|| name.into());
    }
    describe::fold(node, |keyword, _| keyword == "enum");
}

/// Describes a map's values in words: this format has no schema for them.
fn map_in_words(node: &mut Map<String, Value>) {
    let Some(Value::Object(values)) = node.get("additionalProperties") else {
        return;
    };
    let kind = values
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("any")
        .to_owned();
    describe::append(node, &format!("members of any name, each of type {kind}"));
}

fn is_supported(keyword: &str, value: &Value) -> bool {
    match keyword {
        "type" | "title" | "description" | "nullable" | "enum" | "properties" | "required"
        | "items" | "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minLength"
        | "maxLength" | "pattern" | "minimum" | "maximum" | "anyOf" | "default" | "examples" => {
            true
        }
        "format" => matches!(
            value.as_str(),
            Some("date-time" | "int32" | "int64" | "float" | "double")
        ),
        _ => false,
    }
}
