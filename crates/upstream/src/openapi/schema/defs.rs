//! Definitions: those that are used once, or are short, stand in place of their references.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// A definition this short costs no more in place than a reference.
const SHORT_BYTES: usize = 120;

/// Inlines definitions, except those that are cyclic, or long and used more than once. The others stay under `$defs` at the root.
pub(crate) fn inlined(root: &mut Map<String, Value>, definitions: &Map<String, Value>) {
    if definitions.is_empty() {
        return;
    }
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    let mut edges: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for value in root.values() {
        count(value, &mut |name| {
            *uses.entry(name.to_owned()).or_default() += 1;
        });
    }
    for (name, schema) in definitions {
        let mut targets = Vec::new();
        count(schema, &mut |target| targets.push(target.to_owned()));
        for target in &targets {
            *uses.entry(target.clone()).or_default() += 1;
        }
        edges.insert(name, targets);
    }
    let stays: BTreeSet<String> = definitions
        .iter()
        .filter(|(name, schema)| {
            let is_shared = uses.get(*name).copied().unwrap_or(0) > 1;
            is_cyclic(name, &edges) || (is_shared && schema.to_string().len() > SHORT_BYTES)
        })
        .map(|(name, _)| name.clone())
        .collect();
    for value in root.values_mut() {
        expand(value, definitions, &stays);
    }
    let mut kept: BTreeMap<String, Value> = BTreeMap::new();
    let mut waiting = Vec::new();
    root.values()
        .for_each(|value| count(value, &mut |name| waiting.push(name.to_owned())));
    while let Some(name) = waiting.pop() {
        if kept.contains_key(&name) {
            continue;
        }
        let Some(schema) = definitions.get(&name) else {
            continue;
        };
        let mut schema = schema.clone();
        expand(&mut schema, definitions, &stays);
        count(&schema, &mut |name| waiting.push(name.to_owned()));
        kept.insert(name, schema);
    }
    if !kept.is_empty() {
        root.insert("$defs".to_owned(), kept.into_iter().collect());
    }
}

/// True if a definition leads to itself.
fn is_cyclic(name: &str, edges: &BTreeMap<&str, Vec<String>>) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<&str> = edges
        .get(name)
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    while let Some(next) = waiting.pop() {
        if next == name {
            return true;
        }
        if seen.insert(next) {
            waiting.extend(edges.get(next).into_iter().flatten().map(String::as_str));
        }
    }
    false
}

/// Tells every definition that is referred to.
fn count(value: &Value, tell: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(members) => {
            if let Some(name) = target(members) {
                tell(name);
            }
            members.values().for_each(|value| count(value, tell));
        }
        Value::Array(items) => items.iter().for_each(|item| count(item, tell)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn target(members: &Map<String, Value>) -> Option<&str> {
    members.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

fn expand(value: &mut Value, definitions: &Map<String, Value>, stays: &BTreeSet<String>) {
    if let Value::Object(members) = value
        && let Some(name) = target(members)
        && !stays.contains(name)
        && let Some(definition) = definitions.get(name)
    {
        let description = members.remove("description");
        let mut made = definition.clone();
        if let (Value::Object(made), Some(description)) = (&mut made, description) {
            made.insert("description".to_owned(), description);
        }
        *value = made;
        // What stays out is cyclic, so this ends.
        expand(value, definitions, stays);
        return;
    }
    match value {
        Value::Object(members) => {
            members
                .values_mut()
                .for_each(|it| expand(it, definitions, stays));
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|it| expand(it, definitions, stays)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_cycles_and_long_shared_definitions_stay() {
        let long = "x".repeat(200);
        let definitions = json!({
            "once": {"type": "object", "properties": {"s": {"$ref": "#/$defs/short"}}},
            "short": {"type": "string"},
            "long": {"type": "string", "description": long},
            "cycle": {"type": "object", "properties": {"next": {"$ref": "#/$defs/cycle"}}},
        });
        let mut root = json!({"properties": {
            "a": {"$ref": "#/$defs/once", "description": "A."},
            "b": {"$ref": "#/$defs/short"},
            "c": {"$ref": "#/$defs/long"}, "d": {"$ref": "#/$defs/long"},
            "e": {"$ref": "#/$defs/cycle"},
        }});
        let (Value::Object(root), Value::Object(definitions)) = (&mut root, definitions) else {
            panic!("they are objects");
        };
        inlined(root, &definitions);
        let kept: Vec<_> = root["$defs"].as_object().unwrap().keys().collect();
        assert_eq!(kept, ["cycle", "long"]);
        assert_eq!(
            root["properties"]["a"],
            json!({"type": "object", "properties": {"s": {"type": "string"}}, "description": "A."})
        );
        assert_eq!(root["properties"]["b"], json!({"type": "string"}));
    }
}
