//! References: written out if a provider has none, kept if it has.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::limits::{self, DEPTH_MAX, NODES_MAX};
use super::walk::{children, children_mut, each};
use super::{Located, SchemaProblem};
use crate::dialect::raw::pointer_segment as segment;

/// Treatment of `$ref`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refs {
    /// A reference to a definition stays, alone in its node.
    Keep,
    /// Every reference is written out; a recursive one is refused.
    Inline,
}

/// Resolves the references of a schema that [`limits::bounded`] has accepted.
pub(super) fn resolve(schema: &mut Value, refs: Refs) -> Result<(), Located> {
    let document = schema.clone();
    let mut resolver = Resolver {
        document: &document,
        refs,
        open: vec!["#".to_owned()],
        nodes: 0,
    };
    resolver.node(schema, "")?;
    drop_inner_definitions(schema);
    prune_definitions(schema);
    Ok(())
}

struct Resolver<'a> {
    document: &'a Value,
    refs: Refs,
    /// The references that contain the current node.
    open: Vec<String>,
    nodes: usize,
}

impl Resolver<'_> {
    fn node(&mut self, value: &mut Value, path: &str) -> Result<(), Located> {
        self.nodes += 1;
        limits::check(path, "nodes", self.nodes, NODES_MAX)?;
        limits::check(path, "levels", path.matches('/').count() / 2, DEPTH_MAX)?;
        let Value::Object(node) = value else {
            return Ok(());
        };
        if let Some(Value::String(reference)) = node.get("$ref") {
            let reference = reference.clone();
            if self.stays(&reference, node, path)? {
                node.retain(|keyword, _| keyword == "$ref");
                return Ok(());
            }
            *value = self.target_with_siblings(&reference, node, path)?;
            self.open.push(reference);
            let resolved = self.node(value, path);
            self.open.pop();
            return resolved;
        }
        for (below, child) in children_mut(node) {
            let definition = is_definition(&below);
            if definition && self.refs == Refs::Inline {
                continue;
            }
            if definition {
                self.open.push(format!("#{below}"));
            }
            let resolved = self.node(child, &format!("{path}{below}"));
            if definition {
                self.open.pop();
            }
            resolved?;
        }
        Ok(())
    }

    /// True if the reference stays in its node, alone.
    fn stays(
        &self,
        reference: &str,
        node: &Map<String, Value>,
        path: &str,
    ) -> Result<bool, Located> {
        let recursive = self.open.iter().any(|open| open == reference);
        let named = reference == "#" || is_definition(reference.trim_start_matches('#'));
        let alone = node.len() == 1;
        let annotated = node
            .keys()
            .all(|keyword| keyword == "$ref" || is_annotation(keyword) || is_definitions(keyword));
        match self.refs {
            Refs::Keep if named && alone && !is_merged(path, recursive) => {
                self.target(reference, path).map(|_| true)
            }
            // Writing out a definition inside itself never ends; its annotations can be spared.
            Refs::Keep if recursive && named && annotated && !path.is_empty() => Ok(true),
            Refs::Keep | Refs::Inline if recursive => Err(located(
                path,
                SchemaProblem::Recursive {
                    reference: reference.to_owned(),
                },
            )),
            Refs::Keep | Refs::Inline => Ok(false),
        }
    }

    fn target(&self, reference: &str, path: &str) -> Result<&Value, Located> {
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(located(
                path,
                SchemaProblem::RemoteRef {
                    reference: reference.to_owned(),
                },
            ));
        };
        self.document.pointer(pointer).ok_or_else(|| {
            located(
                path,
                SchemaProblem::MissingRef {
                    reference: reference.to_owned(),
                },
            )
        })
    }

    /// The target with the keywords that stood beside the reference; an annotation of the place
    /// wins over that of the definition.
    fn target_with_siblings(
        &self,
        reference: &str,
        siblings: &Map<String, Value>,
        path: &str,
    ) -> Result<Value, Located> {
        let target = self.target(reference, path)?;
        let mut merged = match target {
            Value::Object(target) => target.clone(),
            Value::Bool(true) => Map::new(),
            _ => return Ok(target.clone()),
        };
        for (keyword, value) in siblings {
            let clash = merged.get(keyword).is_some_and(|there| there != value);
            if keyword == "$ref" {
                continue;
            }
            if clash && !is_annotation(keyword) && !is_definitions(keyword) {
                return Err(located(
                    path,
                    SchemaProblem::RefSibling {
                        reference: reference.to_owned(),
                        keyword: keyword.clone(),
                    },
                ));
            }
            merged.insert(keyword.clone(), value.clone());
        }
        Ok(Value::Object(merged))
    }
}

/// Removes definitions below the root: whatever referred to them has been written out.
fn drop_inner_definitions(schema: &mut Value) {
    let Value::Object(root) = schema else { return };
    for (_, child) in children_mut(root) {
        each(child, &mut |node| {
            node.retain(|keyword, _| !is_definitions(keyword));
        });
    }
}

/// Removes the definitions that nothing refers to any more.
fn prune_definitions(schema: &mut Value) {
    let mut used = BTreeSet::new();
    let mut open = vec![String::from("#")];
    while let Some(reference) = open.pop() {
        if !used.insert(reference.clone()) {
            continue;
        }
        let pointer = reference.trim_start_matches('#');
        if let Some(target) = schema.pointer(pointer) {
            references(target, &mut open);
        }
    }
    let Value::Object(root) = schema else { return };
    for keyword in ["$defs", "definitions"] {
        if let Some(Value::Object(definitions)) = root.get_mut(keyword) {
            let path = |name: &str| format!("#/{keyword}/{}", segment(name));
            definitions.retain(|name, _| used.contains(&path(name)));
            if definitions.is_empty() {
                root.remove(keyword);
            }
        }
    }
}

/// The references of a schema, those of its own definitions left out.
fn references(schema: &Value, found: &mut Vec<String>) {
    let Value::Object(node) = schema else { return };
    if let Some(Value::String(reference)) = node.get("$ref") {
        found.push(reference.clone());
    }
    for (path, child) in children(node) {
        if !is_definition(&path) {
            references(child, found);
        }
    }
}

/// True if a path is `/$defs/<name>` or `/definitions/<name>`.
fn is_definition(path: &str) -> bool {
    ["/$defs/", "/definitions/"].iter().any(|prefix| {
        path.strip_prefix(prefix)
            .is_some_and(|name| !name.contains('/'))
    })
}

fn is_definitions(keyword: &str) -> bool {
    matches!(keyword, "$defs" | "definitions")
}

/// True if a node is going to be merged with others, which a reference cannot be: the root, the branches of its
/// compositions, and branches of `allOf` that can be written out at all.
fn is_merged(path: &str, recursive: bool) -> bool {
    let mut segments = path.rsplit('/');
    let (_, keyword) = (segments.next(), segments.next());
    let at_root = segments.eq([""]);
    match keyword {
        None => true,
        Some("allOf") => at_root || !recursive,
        Some("anyOf" | "oneOf") => at_root,
        Some(_) => false,
    }
}

/// True if a keyword only describes, and accepts everything.
pub(super) fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "title"
            | "description"
            | "default"
            | "examples"
            | "example"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
    )
}

fn located(path: &str, problem: SchemaProblem) -> Located {
    Located {
        path: path.to_owned(),
        problem,
    }
}
