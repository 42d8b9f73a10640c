//! Strict forms: schemas that a provider can enforce while the model writes.

use serde_json::{Map, Value, json};

use super::limits::Counted;
use super::refs::Refs;
use super::walk::children_mut;
use super::{describe, root, types};

/// Differences between the strict modes of providers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Treatment of references.
    pub(super) refs: Refs,
    /// True if every property is required, which makes optional ones nullable.
    all_required: bool,
    /// `Yes` if OpenAI's size limits apply.
    pub(super) counted: Counted,
    /// Keywords that stay, beside those that every strict mode has.
    keeps: fn(&str, &Value) -> bool,
}

/// OpenAI, in both of its APIs.
pub(super) const OPENAI: Rules = Rules {
    refs: Refs::Keep,
    all_required: true,
    counted: Counted::Yes,
    keeps: |keyword, value| match keyword {
        "pattern" | "multipleOf" | "minimum" | "maximum" | "exclusiveMinimum"
        | "exclusiveMaximum" | "minItems" | "maxItems" => true,
        "format" => is_format(value, &OPENAI_FORMATS),
        _ => false,
    },
};

/// Anthropic: optional members may stay optional, numbers and texts are unbounded.
pub(super) const ANTHROPIC: Rules = Rules {
    refs: Refs::Inline,
    all_required: false,
    counted: Counted::No,
    keeps: |keyword, value| match keyword {
        "format" => is_format(value, &OPENAI_FORMATS) || value == "uri",
        "minItems" => matches!(value.as_u64(), Some(0 | 1)),
        _ => false,
    },
};

const OPENAI_FORMATS: [&str; 9] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Keywords that can neither be enforced nor be put into words without changing what is accepted.
const IMPOSSIBLE: [&str; 11] = [
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "prefixItems",
    "contains",
    "not",
    "if",
    "dependentSchemas",
    "dependentRequired",
    "allOf",
];

/// The path and the keyword that make a schema impossible to enforce.
pub(super) type Refused = (String, String);

/// Rewrites a portable schema.
pub(super) fn rewrite(schema: &mut Value, rules: Rules) -> Result<(), Refused> {
    node(schema, "", rules)
}

fn node(schema: &mut Value, path: &str, rules: Rules) -> Result<(), Refused> {
    let Value::Object(node) = schema else {
        return Err((path.to_owned(), "a boolean schema".to_owned()));
    };
    if node.contains_key("$ref") {
        return Ok(());
    }
    merge_all_of(node);
    if let Some(keyword) = IMPOSSIBLE
        .iter()
        .find(|keyword| node.contains_key(**keyword))
    {
        return Err((path.to_owned(), (*keyword).to_owned()));
    }
    if let Some(choices) = node.remove("oneOf") {
        node.insert("anyOf".into(), choices);
    }
    infer_type(node);
    match node.get("type").and_then(Value::as_str) {
        Some("object") => close(node, path)?,
        Some("array") if !node.contains_key("items") => {
            return Err((path.to_owned(), "a list of anything".to_owned()));
        }
        Some(_) => {}
        None if ["anyOf", "enum", "const"]
            .iter()
            .any(|keyword| node.contains_key(*keyword)) => {}
        None => return Err((path.to_owned(), "a value of any type".to_owned())),
    }
    describe::fold(node, |keyword, value| {
        !is_structural(keyword) && !(rules.keeps)(keyword, value)
    });
    for (below, child) in children_mut(node) {
        // What is left under this keyword is `false`, which is no schema here.
        if below != "/additionalProperties" {
            self::node(child, &format!("{path}{below}"), rules)?;
        }
    }
    if rules.all_required {
        require_all(node);
    }
    Ok(())
}

/// Closes an object, unless its members are free.
fn close(node: &mut Map<String, Value>, path: &str) -> Result<(), Refused> {
    let free = match node.get("additionalProperties") {
        None => !node.contains_key("properties"),
        Some(Value::Bool(free)) => *free,
        Some(_) => true,
    };
    // A tool that takes nothing says so with a root that has no members.
    let takes_nothing = path.is_empty() && !node.contains_key("additionalProperties");
    if free && !takes_nothing {
        return Err((path.to_owned(), "additionalProperties".to_owned()));
    }
    node.insert("additionalProperties".into(), json!(false));
    node.entry("properties").or_insert_with(|| json!({}));
    Ok(())
}

/// Requires every property; one that could be left out may be null instead.
fn require_all(node: &mut Map<String, Value>) {
    let required = node
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let Some(Value::Object(properties)) = node.get_mut("properties") else {
        return;
    };
    let names: Vec<Value> = properties.keys().cloned().map(Value::from).collect();
    for (name, schema) in properties {
        if !required.iter().any(|known| known == name) {
            make_nullable(schema);
        }
    }
    node.insert("required".into(), Value::Array(names));
}

fn make_nullable(schema: &mut Value) {
    let Value::Object(node) = schema else { return };
    if accepts_null(node) {
        return;
    }
    let description = node.remove("description");
    let mut nullable = Map::new();
    match node.remove("anyOf") {
        Some(Value::Array(mut choices)) if node.is_empty() => {
            choices.push(json!({ "type": "null" }));
            nullable.insert("anyOf".into(), Value::Array(choices));
        }
        choices => {
            node.extend(choices.map(|choices| ("anyOf".to_owned(), choices)));
            nullable.insert("anyOf".into(), json!([node, { "type": "null" }]));
        }
    }
    nullable.extend(description.map(|text| ("description".to_owned(), text)));
    *schema = Value::Object(nullable);
}

fn accepts_null(node: &Map<String, Value>) -> bool {
    let in_list = |keyword: &str, test: fn(&Value) -> bool| {
        let list = node.get(keyword).and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(test))
    };
    node.get("type") == Some(&json!("null"))
        || in_list("enum", Value::is_null)
        || in_list("anyOf", |choice| {
            choice.as_object().is_some_and(accepts_null)
        })
}

/// Merges `allOf` if its branches agree; otherwise it stays, and the schema is not strict.
fn merge_all_of(node: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = node.get("allOf") else {
        return;
    };
    let mut merged = node.clone();
    merged.remove("allOf");
    let fits = branches.iter().all(|branch| match branch {
        Value::Object(branch) if !branch.contains_key("$ref") => {
            root::merge(&mut merged, branch).is_ok()
        }
        _ => false,
    });
    if fits {
        *node = merged;
    }
}

/// Infers the type of an enum from its members.
fn infer_type(node: &mut Map<String, Value>) {
    if ["type", "anyOf"]
        .iter()
        .any(|keyword| node.contains_key(*keyword))
    {
        return;
    }
    let members = match (node.get("enum"), node.get("const")) {
        (Some(Value::Array(members)), _) => members.clone(),
        (_, Some(only)) => vec![only.clone()],
        _ if node.contains_key("properties") => vec![json!({})],
        _ => return,
    };
    let all = |name: &str| members.iter().all(|member| types::is_of_type(member, name));
    let names = ["string", "integer", "number", "boolean", "object"];
    if let Some(name) = names.into_iter().find(|name| all(name)) {
        node.insert("type".into(), name.into());
    }
}

fn is_structural(keyword: &str) -> bool {
    matches!(
        keyword,
        "type"
            | "title"
            | "description"
            | "properties"
            | "required"
            | "additionalProperties"
            | "items"
            | "anyOf"
            | "enum"
            | "const"
            | "$ref"
            | "$defs"
            | "definitions"
    )
}

fn is_format(value: &Value, formats: &[&str]) -> bool {
    value.as_str().is_some_and(|name| formats.contains(&name))
}
