//! The members of a schema that are schemas themselves, and simple walks over them.

use countersign_contract::schema::ext;
use serde_json::{Map, Value};

use super::{Located, PropertyNames, SchemaProblem};
use crate::dialect::raw::pointer_segment as segment;

/// Keywords whose value is an object from names to schemas.
pub(super) const NAMED: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];
/// Keywords whose value is a list of schemas.
pub(super) const LISTED: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is a schema.
const SINGLE: [&str; 10] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// The schemas directly inside a node, each with its path from there.
pub(super) fn children(node: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (keyword, value) in node {
        let keyword = keyword.as_str();
        if SINGLE.contains(&keyword) {
            found.push((format!("/{keyword}"), value));
        } else if NAMED.contains(&keyword)
            && let Value::Object(named) = value
        {
            let path = |name: &str| format!("/{keyword}/{}", segment(name));
            found.extend(named.iter().map(|(name, child)| (path(name), child)));
        } else if LISTED.contains(&keyword)
            && let Value::Array(listed) = value
        {
            let path = |at: usize| format!("/{keyword}/{at}");
            found.extend(
                listed
                    .iter()
                    .enumerate()
                    .map(|(at, child)| (path(at), child)),
            );
        }
    }
    found
}

/// The same, to be changed.
pub(super) fn children_mut(node: &mut Map<String, Value>) -> Vec<(String, &mut Value)> {
    let mut found = Vec::new();
    for (keyword, value) in node {
        let keyword = keyword.as_str();
        if SINGLE.contains(&keyword) {
            found.push((format!("/{keyword}"), value));
        } else if NAMED.contains(&keyword)
            && let Value::Object(named) = value
        {
            let path = |name: &str| format!("/{keyword}/{}", segment(name));
            found.extend(named.iter_mut().map(|(name, child)| (path(name), child)));
        } else if LISTED.contains(&keyword)
            && let Value::Array(listed) = value
        {
            let path = |at: usize| format!("/{keyword}/{at}");
            found.extend(
                listed
                    .iter_mut()
                    .enumerate()
                    .map(|(at, child)| (path(at), child)),
            );
        }
    }
    found
}

/// Every object node, parents first.
pub(super) fn each(schema: &mut Value, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Value::Object(node) = schema else { return };
    visit(node);
    for (_, child) in children_mut(node) {
        each(child, visit);
    }
}

/// Removes the extension keywords of our own declarations. Others that start with `x-` may mean something to another
/// program.
///
/// Only keywords are removed: a property may well be called `x-kind`.
pub(super) fn strip_extensions(schema: &mut Value) {
    each(schema, &mut |node| {
        node.retain(|keyword, _| !ext::ALL.contains(&keyword.as_str()));
    });
}

/// Removes keywords that only a JSON Schema validator needs, and every foreign extension.
pub(super) fn strip_identity(schema: &mut Value) {
    each(schema, &mut |node| {
        node.retain(|keyword, _| {
            !matches!(
                keyword.as_str(),
                "$schema" | "$id" | "$comment" | "$vocabulary"
            ) && !keyword.starts_with("x-")
        });
    });
}

/// Rewrites descriptions; `depth` counts the properties, items and definitions on the way.
pub(super) fn descriptions(
    schema: &mut Value,
    depth: usize,
    rewrite: &mut dyn FnMut(usize, String) -> Option<String>,
) {
    let Value::Object(node) = schema else { return };
    if let Some(Value::String(text)) = node.remove("description")
        && let Some(text) = rewrite(depth, text)
    {
        node.insert("description".into(), text.into());
    }
    for (path, child) in children_mut(node) {
        // A definition may be used anywhere, so it is never a parameter of its own.
        let is_definition = path.starts_with("/$defs") || path.starts_with("/definitions");
        descriptions(child, if is_definition { 2 } else { depth + 1 }, rewrite);
    }
}

/// Checks the names of all properties.
pub(super) fn check_names(schema: &Value, names: PropertyNames) -> Result<(), Located> {
    check_names_at(schema, "", names)
}

fn check_names_at(schema: &Value, path: &str, names: PropertyNames) -> Result<(), Located> {
    let Value::Object(node) = schema else {
        return Ok(());
    };
    let properties = node.get("properties").and_then(Value::as_object);
    for name in properties.into_iter().flat_map(Map::keys) {
        if let Some(rule) = refuses(names, name) {
            return Err(Located {
                path: format!("{path}/properties/{}", segment(name)),
                problem: SchemaProblem::PropertyName {
                    name: name.clone(),
                    rule,
                },
            });
        }
    }
    for (below, child) in children(node) {
        check_names_at(child, &format!("{path}{below}"), names)?;
    }
    Ok(())
}

/// The rule that a name breaks, if it does.
fn refuses(names: PropertyNames, name: &str) -> Option<&'static str> {
    let length = (1..=64).contains(&name.len());
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let (fits, rule) = match names {
        PropertyNames::Any => (true, ""),
        PropertyNames::Dotted => (
            length && name.bytes().all(|b| word(b) || matches!(b, b'.' | b'-')),
            "1 to 64 of A-Z a-z 0-9 _ . -",
        ),
        PropertyNames::Identifier => (
            length
                && name.bytes().all(word)
                && !name.bytes().next().is_some_and(|b| b.is_ascii_digit()),
            "1 to 64 of A-Z a-z 0-9 _ and no digit first",
        ),
    };
    (!fits).then_some(rule)
}
