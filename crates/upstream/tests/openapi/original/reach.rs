//! The definitions that a schema refers to, and those that these refer to: a small schema stays one, however large its document is.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::decode::unescaped;

/// Adds to a schema every part of the document that its references lead to, at the place where they look for it.
pub(super) fn complete(root: &mut Value, document: &Value) {
    let mut wanted = BTreeSet::new();
    references(root, &mut wanted);
    let mut waiting: Vec<String> = wanted.iter().cloned().collect();
    let mut whole: BTreeSet<String> = BTreeSet::new();
    while let Some(pointer) = waiting.pop() {
        let is_there = whole
            .iter()
            .any(|it| pointer == *it || pointer.starts_with(&format!("{it}/")));
        if is_there || document.pointer(&pointer).is_none() {
            continue;
        }
        let copied = put(root, document, &pointer);
        let mut more = BTreeSet::new();
        if let Some(part) = document.pointer(&copied) {
            references(part, &mut more);
        }
        waiting.extend(more.into_iter().filter(|it| wanted.insert(it.clone())));
        whole.insert(copied);
    }
}

/// The pointers of all references into the document itself.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(pointer) = members
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|it| it.strip_prefix("#/"))
            {
                found.insert(format!("/{}", unescaped(pointer)));
            }
            members.values().for_each(|it| references(it, found));
        }
        Value::Array(items) => items.iter().for_each(|it| references(it, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Copies a part to its place. A part below a list brings the list. Returns the pointer that was copied.
fn put(root: &mut Value, document: &Value, pointer: &str) -> String {
    let mut place = root;
    let mut source = document;
    let mut done = String::new();
    let steps: Vec<&str> = pointer.split('/').skip(1).collect();
    for (at, step) in steps.iter().enumerate() {
        let name = step.replace("~1", "/").replace("~0", "~");
        let Some(next) = source.get(&name) else {
            break;
        };
        source = next;
        done = format!("{done}/{step}");
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[&name];
        if at + 1 == steps.len() || source.is_array() {
            *place = source.clone();
            break;
        }
    }
    done
}
