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
    let mut stays: BTreeSet<String> = definitions
        .keys()
        .filter(|name| is_cyclic(name, &edges))
        .cloned()
        .collect();
    // The length counts with everything that is inlined into it: short ones that name short ones twice would double with each step.
    let mut lengths = BTreeMap::new();
    for name in definitions.keys() {
        length(name, definitions, &edges, &uses, &mut stays, &mut lengths);
    }
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

/// The length of a definition in the place of a reference. Those that are too long for that, and used more than once, are added to
/// `stays`, of which cyclic ones are already a part.
fn length(
    name: &str,
    definitions: &Map<String, Value>,
    edges: &BTreeMap<&str, Vec<String>>,
    uses: &BTreeMap<String, usize>,
    stays: &mut BTreeSet<String>,
    known: &mut BTreeMap<String, usize>,
) -> usize {
    if stays.contains(name) {
        return 0;
    }
    if let Some(length) = known.get(name) {
        return *length;
    }
    let own = definitions.get(name).map_or(0, |it| it.to_string().len());
    let targets = edges.get(name).into_iter().flatten();
    let inner = targets.map(|it| length(it, definitions, edges, uses, stays, known));
    let all = inner.fold(own, usize::saturating_add);
    let is_shared = uses.get(name).copied().unwrap_or(0) > 1;
    let in_place = if is_shared && all > SHORT_BYTES {
        stays.insert(name.to_owned());
        0
    } else {
        all
    };
    known.insert(name.to_owned(), in_place);
    in_place
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

    /// B15: short definitions that name the next one twice do not double with each step.
    #[test]
    fn short_definitions_do_not_double() {
        let mut definitions = Map::new();
        for at in 0..64 {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            definitions.insert(
                format!("d{at}"),
                json!({"properties": {"a": next, "b": next}}),
            );
        }
        definitions.insert("d64".to_owned(), json!({"type": "string"}));
        let mut root = Map::new();
        root.insert("x".to_owned(), json!({"$ref": "#/$defs/d0"}));
        inlined(&mut root, &definitions);
        assert!(Value::Object(root).to_string().len() < 64 * 200);
    }
}
