//! Texts for keywords that a provider's schema cannot express; and examples put together.

use serde_json::{Map, Value};

use super::description;

/// Moves keywords into the node's description, in one parenthesis.
pub(super) fn fold(node: &mut Map<String, Value>, unsupported: impl Fn(&str, &Value) -> bool) {
    let moved: Vec<String> = node
        .iter()
        .filter(|(keyword, value)| unsupported(keyword, value))
        .map(|(keyword, _)| keyword.clone())
        .collect();
    let phrases: Vec<String> = moved
        .iter()
        .filter_map(|keyword| phrase(keyword, &node.remove(keyword)?))
        .collect();
    append(node, &phrases.join("; "));
}

/// Adds a parenthesis to the node's description.
pub(super) fn append(node: &mut Map<String, Value>, phrase: &str) {
    if phrase.is_empty() {
        return;
    }
    let text = match description(node) {
        "" => format!("({phrase})"),
        text => format!("{text} ({phrase})"),
    };
    node.insert("description".into(), text.into());
}

/// A keyword in words; `None` if nothing is lost without it.
fn phrase(keyword: &str, value: &Value) -> Option<String> {
    let shown = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(match keyword {
        "minLength" => format!("at least {shown} characters"),
        "maxLength" => format!("at most {shown} characters"),
        "pattern" => format!("matches /{shown}/"),
        "format" => format!("format {shown}"),
        "default" if value.is_null() => return None,
        "default" => format!("default {value}"),
        "examples" => format!("for example {}", value.get(0)?),
        "example" => format!("for example {value}"),
        "minimum" => format!("at least {shown}"),
        "maximum" => format!("at most {shown}"),
        "exclusiveMinimum" => format!("more than {shown}"),
        "exclusiveMaximum" => format!("less than {shown}"),
        "multipleOf" => format!("a multiple of {shown}"),
        "minItems" => format!("at least {shown} items"),
        "maxItems" => format!("at most {shown} items"),
        "minProperties" => format!("at least {shown} members"),
        "maxProperties" => format!("at most {shown} members"),
        "uniqueItems" if value == &Value::Bool(true) => "no item twice".to_owned(),
        "deprecated" if value == &Value::Bool(true) => "deprecated".to_owned(),
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => return None,
        "enum" => format!("one of {value}"),
        "const" => format!("always {value}"),
        other => format!("{other} {value}"),
    })
}

/// An object made of the examples of its properties.
///
/// `None` if no property has an example, or if a required one has nothing to show: an example that the schema itself
/// refuses is refused by the provider too.
pub(super) fn example_object(node: &Map<String, Value>) -> Option<Value> {
    let properties = node.get("properties")?.as_object()?;
    let required = node.get("required").and_then(Value::as_array);
    let mut object = Map::new();
    let mut shown = false;
    for (name, schema) in properties {
        let is_required = required.is_some_and(|names| names.iter().any(|known| known == name));
        let schema = schema.as_object()?;
        match example_of(schema) {
            Some(example) => {
                object.insert(name.clone(), example);
                shown = true;
            }
            None if is_required => {
                object.insert(name.clone(), stand_in(schema)?);
            }
            None => {}
        }
    }
    shown.then_some(Value::Object(object))
}

/// The declared example of a node, or one put together from its parts.
fn example_of(schema: &Map<String, Value>) -> Option<Value> {
    if let Some(first) = schema.get("examples").and_then(|examples| examples.get(0)) {
        return Some(first.clone());
    }
    if let Some(Value::Object(items)) = schema.get("items") {
        return Some(Value::Array(vec![example_of(items)?]));
    }
    example_object(schema)
}

/// A value that certainly fits a node without an example: its constant, default or first enum member.
fn stand_in(schema: &Map<String, Value>) -> Option<Value> {
    let first = || schema.get("enum").and_then(|members| members.get(0));
    schema
        .get("const")
        .or_else(|| schema.get("default"))
        .or_else(first)
        .cloned()
}
