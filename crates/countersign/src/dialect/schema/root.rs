//! An object without composition at its root, which is all that providers accept there.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Located, NoteKind, Prepared, SchemaProblem};

/// Merges `allOf`, `anyOf` and `oneOf` at the root into the root itself.
///
/// `allOf` keeps its meaning. Alternatives become one object with the properties of all of them, of
/// which only those are required that every alternative requires; a remark names the alternatives
/// and the binder goes on insisting on them.
pub(super) fn flatten(prepared: &mut Prepared) -> Result<(), Located> {
    let Value::Object(root) = &mut prepared.schema else {
        return Ok(());
    };
    refuse(root, &["not", "enum", "const"])?;
    if let Some(branches) = take(root, "allOf")? {
        for branch in &branches {
            merge(root, branch).map_err(|conflict| refused("allOf", &conflict))?;
        }
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(branches) = take(root, keyword)? else {
            continue;
        };
        let remark = unite(root, &branches).map_err(|conflict| refused(keyword, &conflict))?;
        if branches.len() > 1 {
            prepared.remark = remark;
            prepared.notes.push(NoteKind::Widened {
                path: String::new(),
                keyword: keyword.to_owned(),
            });
        }
    }
    // A branch may have brought one of these up with it.
    refuse(root, &["not", "enum", "const", "allOf", "anyOf", "oneOf"])
}

/// Refuses keywords that no provider accepts at the root.
fn refuse(root: &Map<String, Value>, keywords: &[&str]) -> Result<(), Located> {
    let there = keywords.iter().find(|keyword| root.contains_key(**keyword));
    there.map_or(Ok(()), |keyword| Err(refused(keyword, keyword)))
}

/// Merges a branch of `allOf` into its node; the error is the keyword that stands in the way.
pub(super) fn merge(
    node: &mut Map<String, Value>,
    branch: &Map<String, Value>,
) -> Result<(), String> {
    let brings_properties = branch.contains_key("properties");
    let closed =
        |node: &Map<String, Value>| node.get("additionalProperties") == Some(&json!(false));
    // A closed object does not allow the properties of another branch: the union would.
    if (closed(node) && brings_properties) || (closed(branch) && node.contains_key("properties")) {
        return Err("additionalProperties".to_owned());
    }
    for (keyword, value) in branch {
        match (keyword.as_str(), node.get_mut(keyword), value) {
            ("properties", Some(Value::Object(there)), Value::Object(more)) => {
                for (name, schema) in more {
                    if there.get(name).is_some_and(|known| known != schema) {
                        return Err(format!("property {name:?}"));
                    }
                    there.insert(name.clone(), schema.clone());
                }
            }
            ("required", Some(Value::Array(there)), Value::Array(more)) => {
                there.extend(
                    more.iter()
                        .filter(|name| !there.contains(name))
                        .cloned()
                        .collect::<Vec<_>>(),
                );
            }
            ("title" | "description" | "examples" | "default", Some(_), _) => {}
            (_, Some(there), value) if there == value => {}
            (_, Some(_), _) => return Err(keyword.clone()),
            (_, None, value) => {
                node.insert(keyword.clone(), value.clone());
            }
        }
    }
    Ok(())
}

/// Unites alternatives; answers the sentence that tells them apart.
fn unite(
    root: &mut Map<String, Value>,
    branches: &[Map<String, Value>],
) -> Result<Option<String>, String> {
    if let [only] = branches {
        return merge(root, only).map(|()| None);
    }
    let mut properties = object_member(root, "properties");
    let mut common: Option<BTreeSet<String>> = None;
    let mut choices = Vec::new();
    for branch in branches {
        for (keyword, value) in branch {
            match keyword.as_str() {
                "properties" | "required" | "title" | "description" => {}
                "type" if value == "object" => {}
                "additionalProperties" if value == &json!(false) => {}
                other => return Err(other.to_owned()),
            }
        }
        for (name, schema) in object_member(branch, "properties") {
            unite_property(&mut properties, name, schema);
        }
        let required = names(branch.get("required"));
        choices.push(format!(
            "({})",
            required.iter().cloned().collect::<Vec<_>>().join(", ")
        ));
        common = Some(match common {
            None => required,
            Some(common) => common.intersection(&required).cloned().collect(),
        });
    }
    let mut required = names(root.get("required"));
    required.extend(common.unwrap_or_default());
    root.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        root.insert("required".into(), json!(required));
    }
    Ok(Some(format!("Give {}.", choices.join(" or "))))
}

/// A property that two alternatives declare differently may be either.
fn unite_property(properties: &mut Map<String, Value>, name: String, schema: Value) {
    match properties.get_mut(&name) {
        None => {
            properties.insert(name, schema);
        }
        Some(known) if *known == schema => {}
        Some(Value::Object(known)) if known.len() == 1 && known.contains_key("anyOf") => {
            if let Some(Value::Array(choices)) = known.get_mut("anyOf")
                && !choices.contains(&schema)
            {
                choices.push(schema);
            }
        }
        Some(known) => *known = json!({ "anyOf": [known.take(), schema] }),
    }
}

/// Takes a composition off its node, every branch as an object.
fn take(
    root: &mut Map<String, Value>,
    keyword: &str,
) -> Result<Option<Vec<Map<String, Value>>>, Located> {
    let Some(value) = root.remove(keyword) else {
        return Ok(None);
    };
    let Value::Array(branches) = value else {
        return Err(refused(keyword, keyword));
    };
    let branch = |branch| match branch {
        // References of branches have been written out; what is left is recursive.
        Value::Object(node) if !node.contains_key("$ref") => Ok(node),
        Value::Object(_) => Err(refused(keyword, "$ref")),
        _ => Err(refused(keyword, "a boolean schema")),
    };
    branches
        .into_iter()
        .map(branch)
        .collect::<Result<_, _>>()
        .map(Some)
}

fn object_member(node: &Map<String, Value>, keyword: &str) -> Map<String, Value> {
    node.get(keyword)
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

fn names(required: Option<&Value>) -> BTreeSet<String> {
    let list = required.and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

fn refused(keyword: &str, conflict: &str) -> Located {
    Located {
        path: format!("/{keyword}"),
        problem: SchemaProblem::RootKeyword {
            keyword: keyword.to_owned(),
            conflict: conflict.to_owned(),
        },
    }
}
