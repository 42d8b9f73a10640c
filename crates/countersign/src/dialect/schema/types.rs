//! One `type` a node: several types become alternatives, each with the keywords that concern it.

use serde_json::{Map, Value, json};

use super::NoteKind;
use super::refs::is_annotation;
use super::walk::children_mut;

/// Replaces every list of types.
pub(super) fn one_per_node(schema: &mut Value, path: &str, notes: &mut Vec<NoteKind>) {
    let Value::Object(node) = schema else { return };
    if let Some(Value::Array(types)) = node.get("type") {
        let types: Vec<String> = types
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        split(node, &types, path, notes);
    }
    for (below, child) in children_mut(node) {
        one_per_node(child, &format!("{path}{below}"), notes);
    }
}

fn split(node: &mut Map<String, Value>, types: &[String], path: &str, notes: &mut Vec<NoteKind>) {
    node.remove("type");
    // Alternatives that are already there cannot be crossed with the types without growing; the
    // types are given up instead and the binder alone insists on them.
    if ["anyOf", "oneOf", "allOf", "$ref"]
        .iter()
        .any(|keyword| node.contains_key(*keyword))
    {
        notes.push(NoteKind::Widened {
            path: path.to_owned(),
            keyword: "type".to_owned(),
        });
        return;
    }
    let mut branches: Vec<Map<String, Value>> =
        types.iter().filter_map(|name| branch(node, name)).collect();
    node.retain(|keyword, _| {
        is_annotation(keyword) || matches!(&**keyword, "$defs" | "definitions")
    });
    if branches.len() == 1 {
        node.append(&mut branches.remove(0));
    } else {
        node.insert("anyOf".into(), json!(branches));
    }
}

/// The node for one of its types; `None` if its enum has no value of that type.
fn branch(node: &Map<String, Value>, name: &str) -> Option<Map<String, Value>> {
    let mut branch = Map::new();
    branch.insert("type".into(), name.into());
    for (keyword, value) in node {
        match keyword.as_str() {
            "enum" => {
                let members: Vec<&Value> = value.as_array()?.iter().collect();
                let fitting: Vec<&Value> = members
                    .into_iter()
                    .filter(|member| is_of_type(member, name))
                    .collect();
                if fitting.is_empty() {
                    return None;
                }
                if name != "null" {
                    branch.insert(keyword.clone(), json!(fitting));
                }
            }
            "const" if !is_of_type(value, name) => return None,
            _ if concerns(keyword, name) => {
                branch.insert(keyword.clone(), value.clone());
            }
            _ => {}
        }
    }
    Some(branch)
}

/// True if a keyword applies to values of a type.
fn concerns(keyword: &str, name: &str) -> bool {
    match keyword {
        "minLength" | "maxLength" | "pattern" | "format" | "contentEncoding"
        | "contentMediaType" => name == "string",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            matches!(name, "number" | "integer")
        }
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains"
        | "unevaluatedItems" => name == "array",
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "dependentRequired"
        | "dependentSchemas"
        | "unevaluatedProperties" => name == "object",
        "$defs" | "definitions" => false,
        _ => !is_annotation(keyword),
    }
}

/// True if a value is of a JSON Schema type.
pub(super) fn is_of_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => {
            name == "number" || (name == "integer" && (number.is_i64() || number.is_u64()))
        }
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}
