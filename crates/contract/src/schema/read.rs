//! The way back: parameters read from a JSON Schema, for forms and pages of tools that bring one.
//!
//! Schemas that are made from parameters are read back exactly; a foreign schema is read as far as parameters can express it. The binder
//! does not use this: it walks the schema itself.

use serde_json::{Map, Value};

use super::ext;
use crate::parameter::{
    AllowedValues, Bounds, Cardinality, CaseRule, Leniency, OnOptionalError, Parameter,
    Sensitivity, ValueKind,
};

/// The deepest nesting that is described; a schema may refer to itself.
const DEPTH_MAX: usize = 8;

/// The parameters that a schema with an object at its root declares, in the schema's order.
///
/// # Example
///
/// ```
/// use countersign_contract::{Cardinality, ValueKind, schema};
/// use serde_json::json;
///
/// let parameters = schema::to_parameters(&json!({
///     "type": "object",
///     "properties": {"tags": {"type": "array", "items": {"type": "string"}}},
///     "required": ["tags"],
/// }));
/// assert_eq!(parameters[0].name, "tags");
/// assert_eq!(parameters[0].kind, ValueKind::String);
/// assert_eq!(parameters[0].cardinality, Cardinality::List { required: true });
/// ```
pub fn to_parameters(schema: &Value) -> Vec<Parameter> {
    let reader = Reader { root: schema };
    reader.members(&reader.resolved(schema), 0)
}

struct Reader<'s> {
    root: &'s Value,
}

impl Reader<'_> {
    fn members(&self, object: &Map<String, Value>, depth: usize) -> Vec<Parameter> {
        let Some(Value::Object(properties)) = object.get("properties") else {
            return Vec::new();
        };
        let required = object.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|required| required == name))
        };
        properties
            .iter()
            .map(|(name, node)| self.parameter(name, node, is_required(name), depth))
            .collect()
    }

    fn parameter(&self, name: &str, node: &Value, required: bool, depth: usize) -> Parameter {
        let outer = self.resolved(node);
        let (cardinality, single) = self.cardinality(&outer, required);
        let kind = kind_of(&single);
        let mut parameter = Parameter::new(name, kind, text(&outer, "description"));
        parameter.cardinality = cardinality;
        parameter.allowed = allowed_values(&single);
        if kind == ValueKind::Object && depth < DEPTH_MAX {
            parameter.fields = self.members(&single, depth + 1);
        }
        parameter.default = outer.get("default").cloned();
        let examples = outer.get("examples").and_then(Value::as_array);
        let first = examples.and_then(|examples| examples.first());
        parameter.example = first.or_else(|| outer.get("example")).cloned();
        parameter.bounds = bounds(&outer, &single);
        parameter.aliases = texts(outer.get(ext::ALIASES));
        parameter.sensitivity = match text(&outer, ext::SENSITIVITY) {
            "personal" => Sensitivity::Personal,
            "secret" => Sensitivity::Secret,
            _ => Sensitivity::Public,
        };
        parameter.harmless = outer.get(ext::HARMLESS) == Some(&Value::Bool(true));
        parameter.leniency = match text(&outer, ext::LENIENCY) {
            "lenient" => Some(Leniency::Lenient),
            "strict" => Some(Leniency::Strict),
            _ => None,
        };
        parameter.truncate = single.get(ext::TRUNCATE) == Some(&Value::Bool(true));
        parameter.on_optional_error = match text(&outer, ext::ON_OPTIONAL_ERROR) {
            "refuse" => Some(OnOptionalError::Refuse),
            "tell" => Some(OnOptionalError::Tell),
            _ => None,
        };
        parameter
    }

    /// Returns the cardinality, and the schema of one value.
    fn cardinality(
        &self,
        node: &Map<String, Value>,
        required: bool,
    ) -> (Cardinality, Map<String, Value>) {
        let member = |key: &str| node.get(key).filter(|inner| inner.is_object());
        if let Some(items) = member("items") {
            return (Cardinality::List { required }, self.resolved(items));
        }
        if let Some(values) = member("additionalProperties")
            && !node.contains_key("properties")
        {
            return (Cardinality::Map { required }, self.resolved(values));
        }
        let one = if required {
            Cardinality::One
        } else {
            Cardinality::Optional
        };
        (one, node.clone())
    }

    /// Returns a node with its reference followed and its "or null" taken away; the node's own keywords take precedence over those that it
    /// refers to.
    fn resolved(&self, node: &Value) -> Map<String, Value> {
        let mut resolved = Map::new();
        let mut next = Some(node);
        // A reference may lead back to itself, so only so many are followed.
        for _ in 0..DEPTH_MAX {
            let Some(Value::Object(own)) = next else {
                break;
            };
            for (key, value) in own {
                if !matches!(key.as_str(), "$ref" | "allOf" | "anyOf" | "oneOf") {
                    resolved.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
            next = self.refers_to(own);
        }
        resolved
    }

    /// The one schema that a node stands for beside itself.
    fn refers_to<'n>(&'n self, node: &'n Map<String, Value>) -> Option<&'n Value> {
        if let Some(pointer) = node.get("$ref").and_then(Value::as_str) {
            return self.root.pointer(pointer.strip_prefix('#')?);
        }
        let branches = ["allOf", "anyOf", "oneOf"]
            .into_iter()
            .find_map(|key| node.get(key)?.as_array())?;
        let mut branches = branches.iter().filter(|branch| branch["type"] != "null");
        branches.next().filter(|_| branches.next().is_none())
    }
}

/// Returns the declared kind or, without one, the kind that type, format and enum suggest. A node without a type is shown as text, which
/// takes anything.
fn kind_of(node: &Map<String, Value>) -> ValueKind {
    let declared = text(node, ext::KIND);
    if let Some(kind) = ValueKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == declared)
    {
        return kind;
    }
    let name = match node.get("type") {
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|n| *n != "null"),
        other => other.and_then(Value::as_str),
    };
    match name {
        Some("boolean") => ValueKind::Boolean,
        Some("integer") => ValueKind::Integer,
        Some("number") => ValueKind::Number,
        Some("array") => ValueKind::Array,
        Some("object") => ValueKind::Object,
        None if node.contains_key("properties") => ValueKind::Object,
        _ if node.contains_key("enum") => ValueKind::EnumToken,
        _ => match text(node, "format") {
            "date-time" => ValueKind::Timestamp,
            "uri" => ValueKind::Uri,
            _ => ValueKind::String,
        },
    }
}

fn allowed_values(node: &Map<String, Value>) -> Option<AllowedValues> {
    let values = match (node.get("enum"), node.get("const")) {
        (Some(Value::Array(values)), _) => {
            values.iter().filter(|v| !v.is_null()).map(spelt).collect()
        }
        (_, Some(value)) => vec![spelt(value)],
        _ => return None,
    };
    let case = match text(node, ext::CASE) {
        "exact" => CaseRule::Exact,
        _ => CaseRule::Fold,
    };
    let mut aliases = Vec::new();
    if let Some(Value::Object(members)) = node.get(ext::ENUM_ALIASES) {
        for (member, names) in members {
            aliases.extend(
                texts(Some(names))
                    .into_iter()
                    .map(|alias| (member.clone(), alias)),
            );
        }
    }
    Some(AllowedValues {
        values,
        case,
        aliases,
    })
}

/// Items are counted where the list is, the rest is asked of each value.
fn bounds(outer: &Map<String, Value>, single: &Map<String, Value>) -> Bounds {
    let number = |key: &str| single.get(key).and_then(Value::as_number).cloned();
    let length = |key: &str| single.get(key).and_then(Value::as_u64);
    let items = |key: &str| {
        outer
            .get(key)
            .and_then(Value::as_u64)
            .or_else(|| length(key))
    };
    Bounds {
        minimum: number("minimum"),
        maximum: number("maximum"),
        min_length: length("minLength"),
        max_length: length("maxLength"),
        pattern: single
            .get("pattern")
            .and_then(Value::as_str)
            .map(str::to_owned),
        min_items: items("minItems"),
        max_items: items("maxItems"),
    }
}

fn spelt(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn text<'n>(node: &'n Map<String, Value>, key: &str) -> &'n str {
    node.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
