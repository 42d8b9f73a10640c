//! Types of what a condition looks at; those of arguments are made from the declaration of a tool.

use std::collections::BTreeMap;

use countersign::contract::{Input, ToolSpec, schema};
use serde_json::Value;

/// A type. Closed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    Bool,
    Number,
    Text,
    Money,
    Time,
    Null,
    List(Box<Type>),
    Object(Object),
    /// Anything: it is found out when a call is decided.
    Any,
}

/// The members of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Object {
    pub(super) members: BTreeMap<String, Member>,
    /// Type of members of any other name; `None` if there are none.
    pub(super) others: Option<Box<Type>>,
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Member {
    pub(super) kind: Type,
    /// True if it may be left out, and nothing is filled in for it.
    pub(super) is_optional: bool,
}

impl Type {
    /// What it is called in a message.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::Money => "money",
            Self::Time => "a time",
            Self::Null => "null",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
            Self::Any => "anything",
        }
    }

    /// Type of the arguments of a tool.
    pub(super) fn of_arguments(tool: &ToolSpec) -> Self {
        match &tool.input {
            Input::Parameters(parameters) => {
                let schema = schema::of_parameters(parameters);
                of_schema(&schema, &schema, 0)
            }
            Input::Schema(schema) => of_schema(schema, schema, 0),
            Input::Undeclared => Self::open(),
        }
    }

    /// An object of which nothing is known.
    fn open() -> Self {
        Self::Object(Object {
            members: BTreeMap::new(),
            others: Some(Box::new(Self::Any)),
        })
    }
}

/// The values that the declaration of a tool allows for a string below its arguments; `None` if it allows any.
pub(super) fn values_of(tool: &ToolSpec, members: &[String]) -> Option<Vec<String>> {
    let root = match &tool.input {
        Input::Parameters(parameters) => schema::of_parameters(parameters),
        Input::Schema(schema) => schema.clone(),
        Input::Undeclared => return None,
    };
    let mut at = &root;
    for member in members {
        at = resolved(at, &root)?.get("properties")?.get(member)?;
    }
    let values = resolved(at, &root)?.get("enum")?.as_array()?.iter();
    values
        .map(|value| value.as_str().map(str::to_owned))
        .collect()
}

/// The schema that references lead to; `None` if they lead nowhere.
fn resolved<'v>(schema: &'v Value, root: &'v Value) -> Option<&'v Value> {
    let mut schema = schema;
    for _ in 0..DEPTH_MAX {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
            return Some(schema);
        };
        schema = root.pointer(reference.strip_prefix('#')?)?;
    }
    None
}

/// Depth from which a schema is not looked at.
const DEPTH_MAX: usize = 16;

fn of_schema(schema: &Value, root: &Value, depth: usize) -> Type {
    if depth > DEPTH_MAX {
        return Type::Any;
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').and_then(|at| root.pointer(at));
        return target.map_or(Type::Any, |target| of_schema(target, root, depth + 1));
    }
    match kind_of(schema) {
        Some("boolean") => Type::Bool,
        Some("integer" | "number") => Type::Number,
        Some("string") => Type::Text,
        Some("null") => Type::Null,
        Some("array") => {
            let items = schema.get("items").filter(|items| items.is_object());
            let item = items.map_or(Type::Any, |items| of_schema(items, root, depth + 1));
            Type::List(Box::new(item))
        }
        Some("object") => Type::Object(of_object(schema, root, depth)),
        Some(_) | None => Type::Any,
    }
}

/// The one type that a schema names, beside null.
fn kind_of(schema: &Value) -> Option<&str> {
    let is_mixed = ["anyOf", "oneOf", "allOf", "not", "if"]
        .iter()
        .any(|keyword| schema.get(keyword).is_some());
    match schema.get("type") {
        Some(Value::String(kind)) => Some(kind),
        Some(Value::Array(kinds)) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            let mut kinds = kinds.filter(|kind| *kind != "null");
            kinds.next().filter(|_| kinds.next().is_none())
        }
        Some(_) => None,
        None if schema.get("properties").is_some() && !is_mixed => Some("object"),
        None => {
            let values = schema.get("enum").and_then(Value::as_array)?;
            let is_text = !values.is_empty() && values.iter().all(Value::is_string);
            is_text.then_some("string")
        }
    }
}

fn of_object(schema: &Value, root: &Value, depth: usize) -> Object {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)));
    let properties = schema.get("properties").and_then(Value::as_object);
    let members = properties.into_iter().flatten().map(|(name, property)| {
        let member = Member {
            kind: of_schema(property, root, depth + 1),
            is_optional: !is_required(name) && property.get("default").is_none(),
        };
        (name.clone(), member)
    });
    let members: BTreeMap<String, Member> = members.collect();
    let others = match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => None,
        Some(others @ Value::Object(_)) => Some(of_schema(others, root, depth + 1)),
        // What a declaration does not name is not there to be looked at, unless it names nothing at all.
        Some(_) | None => members.is_empty().then_some(Type::Any),
    };
    Object {
        members,
        others: others.map(Box::new),
    }
}
