//! Limits: ours, so that a schema from a manifest cannot keep us busy, and those of OpenAI's strict mode.

use serde_json::{Map, Value};

use super::walk::children;
use super::{Located, SchemaProblem};

/// Maximum nesting depth of a schema.
pub(super) const DEPTH_MAX: usize = 64;
/// Maximum number of nodes of a schema, references written out.
pub(super) const NODES_MAX: usize = 20_000;

const STRICT_LEVELS_MAX: usize = 10;
const STRICT_PROPERTIES_MAX: usize = 5_000;
const STRICT_ENUM_VALUES_MAX: usize = 1_000;
const STRICT_CHARACTERS_MAX: usize = 120_000;

/// Choice of size limits for a strict form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    /// OpenAI's limits apply.
    Yes,
    /// Other limits apply, which only the whole request shows.
    No,
}

/// Refuses a schema that is too deep or too large to be walked.
pub(super) fn bounded(schema: &Value) -> Result<(), Located> {
    let mut nodes = 0;
    let mut open = vec![(schema, String::new(), 1)];
    while let Some((value, path, depth)) = open.pop() {
        nodes += 1;
        check(&path, "levels", depth, DEPTH_MAX)?;
        check(&path, "nodes", nodes, NODES_MAX)?;
        let Value::Object(node) = value else { continue };
        for (below, child) in children(node) {
            open.push((child, format!("{path}{below}"), depth + 1));
        }
    }
    Ok(())
}

/// Refuses a schema that OpenAI would refuse without naming the tool.
pub(super) fn openai_strict(schema: &Value) -> Result<(), Located> {
    let mut totals = Totals::default();
    totals.count(schema, "", 0)?;
    check("", "properties", totals.properties, STRICT_PROPERTIES_MAX)?;
    check(
        "",
        "enum values",
        totals.enum_values,
        STRICT_ENUM_VALUES_MAX,
    )?;
    let what = "characters in names and enum values";
    check("", what, totals.characters, STRICT_CHARACTERS_MAX)
}

#[derive(Default)]
struct Totals {
    properties: usize,
    enum_values: usize,
    characters: usize,
}

impl Totals {
    /// Counts nodes and levels. The guide does not say if a list is a level. Here it is: better refused by us with the
    /// name of the tool than by the provider without it.
    fn count(&mut self, schema: &Value, path: &str, above: usize) -> Result<(), Located> {
        let Value::Object(node) = schema else {
            return Ok(());
        };
        let kind = node.get("type").and_then(Value::as_str);
        let level = above + usize::from(matches!(kind, Some("object" | "array")));
        check(path, "levels", level, STRICT_LEVELS_MAX)?;
        for keyword in ["properties", "$defs", "definitions"] {
            let named = node.get(keyword).and_then(Value::as_object);
            for name in named.into_iter().flat_map(Map::keys) {
                self.properties += usize::from(keyword == "properties");
                self.characters += name.chars().count();
            }
        }
        if let Some(Value::Array(values)) = node.get("enum") {
            self.enum_values += values.len();
            self.characters += values.iter().map(characters).sum::<usize>();
        }
        self.characters += node.get("const").map_or(0, characters);
        for (below, child) in children(node) {
            // A definition starts its own count; where it is used, the reference is one node.
            let definition = below.starts_with("/$defs") || below.starts_with("/definitions");
            let above = if definition { 0 } else { level };
            self.count(child, &format!("{path}{below}"), above)?;
        }
        Ok(())
    }
}

fn characters(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        other => other.to_string().len(),
    }
}

pub(super) fn check(
    path: &str,
    what: &'static str,
    found: usize,
    limit: usize,
) -> Result<(), Located> {
    if found <= limit {
        return Ok(());
    }
    Err(Located {
        path: path.to_owned(),
        problem: SchemaProblem::Limit { what, found, limit },
    })
}
