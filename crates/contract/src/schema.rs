//! JSON Schema 2020-12 made from a declaration: the one tree that binder, forms, documents and
//! provider dialects are made from.
//!
//! What JSON Schema has no keyword for travels as an extension keyword ([`ext`]); a reader that does
//! not know it ignores it.

mod read;

use serde_json::{Map, Value, json};

use crate::parameter::{Cardinality, CaseRule, Leniency, Parameter, Sensitivity, ValueKind};

pub use read::to_parameters;

/// The extension keywords.
pub mod ext {
    /// The declared [`ValueKind`](crate::ValueKind) of a node.
    pub const KIND: &str = "x-kind";
    /// Other names of a property: a list of texts.
    pub const ALIASES: &str = "x-aliases";
    /// Other names of enum members: an object from member to a list of texts.
    pub const ENUM_ALIASES: &str = "x-enum-aliases";
    /// `exact` where the spelling of an enum member matters.
    pub const CASE: &str = "x-case";
    /// `lenient` or `strict`, where a node differs from its tool.
    pub const LENIENCY: &str = "x-leniency";
    /// `true` where a decimal may be cut to an integer.
    pub const TRUNCATE: &str = "x-truncate";
    /// `refuse` or `tell`, on an optional property that differs from its tool.
    pub const ON_OPTIONAL_ERROR: &str = "x-on-optional-error";
    /// `personal` or `secret`.
    pub const SENSITIVITY: &str = "x-sensitivity";
    /// `true` where a number may stand in the permanent record.
    pub const HARMLESS: &str = "x-harmless";
    /// Every one of them.
    pub const ALL: [&str; 9] = [
        KIND,
        ALIASES,
        ENUM_ALIASES,
        CASE,
        LENIENCY,
        TRUNCATE,
        ON_OPTIONAL_ERROR,
        SENSITIVITY,
        HARMLESS,
    ];
}

/// The schema of a whole argument object; unknown members are refused unless the tool opts out.
pub fn of_parameters(parameters: &[Parameter]) -> Value {
    let mut schema = object_of(parameters);
    schema.insert("additionalProperties".into(), Value::Bool(false));
    Value::Object(schema)
}

/// The schema of one parameter.
pub(crate) fn of_parameter(parameter: &Parameter) -> Value {
    let single = single_value(parameter);
    let mut schema = match parameter.cardinality {
        Cardinality::One | Cardinality::Optional => single,
        Cardinality::List { .. } => {
            let mut list = Map::new();
            list.insert("type".into(), "array".into());
            list.insert("items".into(), Value::Object(single));
            insert_some(&mut list, "minItems", parameter.bounds.min_items);
            insert_some(&mut list, "maxItems", parameter.bounds.max_items);
            list
        }
        Cardinality::Map { .. } => {
            let mut map = Map::new();
            map.insert("type".into(), "object".into());
            map.insert("additionalProperties".into(), Value::Object(single));
            map
        }
    };
    if !parameter.description.is_empty() {
        schema.insert("description".into(), parameter.description.clone().into());
    }
    insert_some(&mut schema, "default", parameter.default.clone());
    if let Some(example) = &parameter.example {
        schema.insert("examples".into(), json!([example]));
    }
    if !parameter.aliases.is_empty() {
        schema.insert(ext::ALIASES.into(), parameter.aliases.clone().into());
    }
    match parameter.sensitivity {
        Sensitivity::Public => {}
        Sensitivity::Personal => insert_text(&mut schema, ext::SENSITIVITY, "personal"),
        Sensitivity::Secret => insert_text(&mut schema, ext::SENSITIVITY, "secret"),
    }
    if parameter.harmless {
        schema.insert(ext::HARMLESS.into(), Value::Bool(true));
    }
    match parameter.leniency {
        None => {}
        Some(Leniency::Lenient) => insert_text(&mut schema, ext::LENIENCY, "lenient"),
        Some(Leniency::Strict) => insert_text(&mut schema, ext::LENIENCY, "strict"),
    }
    if let Some(rule) = parameter.on_optional_error {
        insert_text(&mut schema, ext::ON_OPTIONAL_ERROR, rule.as_str());
    }
    Value::Object(schema)
}

/// Returns the schema of one value, without its cardinality and description.
fn single_value(parameter: &Parameter) -> Map<String, Value> {
    let mut schema = match parameter.kind {
        ValueKind::Object if !parameter.fields.is_empty() => {
            let mut object = object_of(&parameter.fields);
            object.insert("additionalProperties".into(), Value::Bool(false));
            object
        }
        kind => typed(kind),
    };
    schema.insert(ext::KIND.into(), parameter.kind.as_str().into());
    if let Some(allowed) = &parameter.allowed {
        let values = allowed
            .values
            .iter()
            .map(|value| member(parameter.kind, value));
        schema.insert("enum".into(), values.collect());
        if allowed.case == CaseRule::Exact {
            insert_text(&mut schema, ext::CASE, "exact");
        }
        if !allowed.aliases.is_empty() {
            let mut aliases = Map::new();
            for (member, alias) in &allowed.aliases {
                let list = aliases.entry(member.clone()).or_insert_with(|| json!([]));
                if let Value::Array(list) = list {
                    list.push(alias.clone().into());
                }
            }
            schema.insert(ext::ENUM_ALIASES.into(), Value::Object(aliases));
        }
    }
    let bounds = &parameter.bounds;
    insert_some(&mut schema, "minimum", bounds.minimum.clone());
    insert_some(&mut schema, "maximum", bounds.maximum.clone());
    insert_some(&mut schema, "minLength", bounds.min_length);
    insert_some(&mut schema, "maxLength", bounds.max_length);
    insert_some(&mut schema, "pattern", bounds.pattern.clone());
    if parameter.kind == ValueKind::Array {
        insert_some(&mut schema, "minItems", bounds.min_items);
        insert_some(&mut schema, "maxItems", bounds.max_items);
    }
    if parameter.truncate {
        schema.insert(ext::TRUNCATE.into(), Value::Bool(true));
    }
    schema
}

/// Returns an allowed value as the kind writes it: those of integers and numbers are numbers (B5).
fn member(kind: ValueKind, value: &str) -> Value {
    match kind {
        ValueKind::Integer => value
            .parse::<i64>()
            .map_or_else(|_| value.into(), Value::from),
        ValueKind::Number => value.parse().map_or_else(|_| value.into(), Value::Number),
        ValueKind::String
        | ValueKind::Boolean
        | ValueKind::Object
        | ValueKind::Array
        | ValueKind::Timestamp
        | ValueKind::Uri
        | ValueKind::EnumToken
        | ValueKind::AttachmentReference => value.into(),
    }
}

fn typed(kind: ValueKind) -> Map<String, Value> {
    let (name, format) = match kind {
        ValueKind::String | ValueKind::EnumToken | ValueKind::AttachmentReference => {
            ("string", None)
        }
        ValueKind::Boolean => ("boolean", None),
        ValueKind::Integer => ("integer", None),
        ValueKind::Number => ("number", None),
        ValueKind::Object => ("object", None),
        ValueKind::Array => ("array", None),
        ValueKind::Timestamp => ("string", Some("date-time")),
        ValueKind::Uri => ("string", Some("uri")),
    };
    let mut schema = Map::new();
    insert_text(&mut schema, "type", name);
    if let Some(format) = format {
        insert_text(&mut schema, "format", format);
    }
    schema
}

fn object_of(parameters: &[Parameter]) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for parameter in parameters {
        properties.insert(parameter.name.clone(), of_parameter(parameter));
        if parameter.is_required() {
            required.push(Value::from(parameter.name.clone()));
        }
    }
    let mut schema = Map::new();
    insert_text(&mut schema, "type", "object");
    schema.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), Value::Array(required));
    }
    schema
}

fn insert_text(schema: &mut Map<String, Value>, key: &str, text: &str) {
    schema.insert(key.to_owned(), text.into());
}

fn insert_some<T: Into<Value>>(schema: &mut Map<String, Value>, key: &str, value: Option<T>) {
    if let Some(value) = value {
        schema.insert(key.to_owned(), value.into());
    }
}
