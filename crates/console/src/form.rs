//! A form drawn from the schema of a tool, and the arguments that a filled form makes.
//!
//! The name of a field is its kind and its place: `n:/items/0/quantity`. So a form is read without its schema, and the
//! binder, which has the last word anyway, is given what a person wrote: a number where the text is one, the text
//! itself where it is none.

use std::collections::BTreeMap;

use askama::Template;
use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::shown::below;
use crate::words::Words;

/// Maximum depth of a form; deeper values are written as JSON.
const DEPTH_MAX: usize = 4;

/// The largest index of a list in a form.
const INDEX_MAX: usize = 200;

/// One field, or a group of them.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Field {
    /// The last part of its place.
    pub(crate) label: String,
    /// JSON pointer.
    pub(crate) pointer: String,
    pub(crate) description: String,
    pub(crate) required: bool,
    /// The type and the bounds, in a few words.
    pub(crate) form: String,
    pub(crate) kind: Kind,
    pub(crate) value: String,
    pub(crate) issues: Vec<String>,
}

/// Kind of input that a field is drawn as.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// One line.
    Text,
    /// A whole number or a decimal.
    Number,
    /// True, false, or nothing.
    Boolean,
    /// One of these.
    Choice(Vec<String>),
    /// A list of texts, one a line.
    Lines,
    /// Everything else, as JSON.
    Json,
    /// An object.
    Group(Vec<Field>),
    /// A list of objects.
    List(Vec<Vec<Field>>),
}

/// A field with everything in it.
#[derive(Template)]
#[template(path = "field.html")]
struct Drawn<'f> {
    w: &'static Words,
    field: &'f Field,
}

impl Field {
    /// The field as HTML, escaped; groups and lists with all their fields.
    pub(crate) fn html(&self, w: &'static Words) -> String {
        Drawn { w, field: self }.render().unwrap_or_default()
    }

    /// The name under which the value comes back.
    pub(crate) fn name(&self) -> String {
        let mark = match self.kind {
            Kind::Text | Kind::Choice(_) => "s",
            Kind::Number => "n",
            Kind::Boolean => "b",
            Kind::Lines => "l",
            Kind::Json | Kind::Group(_) | Kind::List(_) => "j",
        };
        format!("{mark}:{}", self.pointer)
    }

    /// True if the field has many lines.
    pub(crate) fn is_long(&self) -> bool {
        matches!(self.kind, Kind::Lines | Kind::Json)
    }

    /// The choices; empty if there are none.
    pub(crate) fn choices(&self) -> Option<&[String]> {
        match &self.kind {
            Kind::Choice(choices) => Some(choices),
            Kind::Text
            | Kind::Boolean
            | Kind::Number
            | Kind::Lines
            | Kind::Json
            | Kind::Group(_)
            | Kind::List(_) => None,
        }
    }

    /// The fields of an object.
    pub(crate) fn group(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::Group(fields) => Some(fields),
            _ => None,
        }
    }

    /// The items of a list of objects.
    pub(crate) fn list(&self) -> Option<&[Vec<Self>]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn is_boolean(&self) -> bool {
        matches!(self.kind, Kind::Boolean)
    }
}

/// State while a form is drawn.
struct Drawing<'a> {
    root: &'a Value,
    issues: &'a BTreeMap<String, Vec<String>>,
}

/// The fields of a schema, filled with these arguments; each issue stands at its field.
pub(crate) fn fields(
    schema: &Value,
    arguments: &Value,
    issues: &BTreeMap<String, Vec<String>>,
) -> Vec<Field> {
    let drawing = Drawing {
        root: schema,
        issues,
    };
    drawing.members(schema, arguments, "", 0)
}

impl Drawing<'_> {
    fn members(&self, schema: &Value, value: &Value, pointer: &str, depth: usize) -> Vec<Field> {
        let schema = self.resolved(schema);
        let required: Vec<&str> = strings(schema.get("required"));
        let members = schema.get("properties").and_then(Value::as_object);
        let mut fields: Vec<Field> = members
            .into_iter()
            .flatten()
            .map(|(name, schema)| {
                let is_required = required.contains(&name.as_str());
                let value = value.get(name).unwrap_or(&Value::Null);
                self.field((name, schema), value, pointer, is_required, depth)
            })
            .collect();
        // What has to be there stands first.
        fields.sort_by_key(|field| !field.required);
        fields
    }

    fn field(
        &self,
        (name, schema): (&str, &Value),
        value: &Value,
        parent: &str,
        required: bool,
        depth: usize,
    ) -> Field {
        let schema = self.resolved(schema);
        let pointer = below(parent, name);
        let kind = self.kind(schema, value, &pointer, depth + 1);
        let description = schema.get("description").and_then(Value::as_str);
        Field {
            label: name.to_owned(),
            description: description.unwrap_or_default().to_owned(),
            required,
            form: form_of(schema),
            value: text_of(value, &kind),
            issues: self.issues.get(&pointer).cloned().unwrap_or_default(),
            kind,
            pointer,
        }
    }

    fn kind(&self, schema: &Value, value: &Value, pointer: &str, depth: usize) -> Kind {
        let choices = strings(schema.get("enum"));
        if !choices.is_empty() {
            return Kind::Choice(choices.into_iter().map(str::to_owned).collect());
        }
        let kind = schema.get("type").and_then(Value::as_str);
        match kind {
            Some("string") => Kind::Text,
            Some("integer" | "number") => Kind::Number,
            Some("boolean") => Kind::Boolean,
            Some("object") if depth < DEPTH_MAX && schema.get("properties").is_some() => {
                Kind::Group(self.members(schema, value, pointer, depth))
            }
            Some("array") => self.list_kind(schema, value, pointer, depth),
            _ => Kind::Json,
        }
    }

    fn list_kind(&self, schema: &Value, value: &Value, pointer: &str, depth: usize) -> Kind {
        let Some(item) = schema.get("items").map(|item| self.resolved(item)) else {
            return Kind::Json;
        };
        match item.get("type").and_then(Value::as_str) {
            Some("string") => Kind::Lines,
            Some("object") if depth < DEPTH_MAX && item.get("properties").is_some() => {
                let nothing = vec![Value::Null];
                let given = value.as_array().filter(|items| !items.is_empty());
                let items = given.unwrap_or(&nothing).iter().take(INDEX_MAX).enumerate();
                let drawn = items.map(|(at, value)| {
                    let place = below(pointer, &at.to_string());
                    self.members(item, value, &place, depth + 1)
                });
                Kind::List(drawn.collect())
            }
            _ => Kind::Json,
        }
    }

    /// The schema that a reference within the document leads to, and the one that is meant where null is allowed too.
    fn resolved<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let mut schema = schema;
        for _ in 0..8 {
            let reference = schema.get("$ref").and_then(Value::as_str);
            let Some(reference) = reference.and_then(|text| text.strip_prefix('#')) else {
                break;
            };
            let Some(found) = self.root.pointer(reference) else {
                break;
            };
            schema = found;
        }
        schema
    }
}

fn strings(value: Option<&Value>) -> Vec<&str> {
    let items = value.and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// `integer, 1 to 99`.
fn form_of(schema: &Value) -> String {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or("JSON");
    let format = schema.get("format").and_then(Value::as_str);
    let mut parts = vec![format.unwrap_or(kind).to_owned()];
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(low), Some(high)) => parts.push(format!("{low} … {high}")),
        (Some(low), None) => parts.push(format!("≥ {low}")),
        (None, Some(high)) => parts.push(format!("≤ {high}")),
        (None, None) => {}
    }
    if let Some(default) = schema.get("default") {
        parts.push(format!("= {default}"));
    }
    parts.join(", ")
}

/// A value as its field shows it.
fn text_of(value: &Value, kind: &Kind) -> String {
    match (value, kind) {
        (Value::Null, _) | (_, Kind::Group(_) | Kind::List(_)) => String::new(),
        (Value::Array(items), Kind::Lines) => {
            let lines = items.iter().map(|item| match item.as_str() {
                Some(text) => text.to_owned(),
                None => item.to_string(),
            });
            lines.collect::<Vec<_>>().join("\n")
        }
        (Value::String(text), Kind::Text | Kind::Choice(_) | Kind::Number | Kind::Boolean) => {
            text.clone()
        }
        (value, _) => value.to_string(),
    }
}

/// The arguments that the fields of a form make. An empty field is left out.
pub(crate) fn arguments(fields: &[(String, String)]) -> Value {
    let mut root = Value::Object(Map::new());
    for (name, text) in fields {
        let Some((mark, pointer)) = name.split_once(':') else {
            continue;
        };
        if text.trim().is_empty() || !pointer.starts_with('/') {
            continue;
        }
        let value = match mark {
            "s" => Value::from(text.as_str()),
            "n" => number(text).map_or_else(|| Value::from(text.as_str()), Value::Number),
            "b" => match text.as_str() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                text => Value::from(text),
            },
            "l" => text
                .lines()
                .map(str::trim_end)
                .filter(|line| !line.is_empty())
                .collect(),
            "j" => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())),
            _ => continue,
        };
        put(&mut root, pointer, value);
    }
    without_gaps(root)
}

/// A text that is a number in JSON, digit for digit; anything else is for the binder.
fn number(text: &str) -> Option<Number> {
    serde_json::from_str(text.trim()).ok()
}

/// Puts a value at a place, and makes what has to be around it.
fn put(root: &mut Value, pointer: &str, value: Value) {
    let mut place = root;
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        let index = part
            .parse::<usize>()
            .ok()
            .filter(|index| *index <= INDEX_MAX);
        if place.is_null() {
            *place = match index {
                Some(_) => Value::Array(Vec::new()),
                None => Value::Object(Map::new()),
            };
        }
        place = match (place, index) {
            (Value::Array(items), Some(index)) => {
                if items.len() <= index {
                    items.resize(index + 1, Value::Null);
                }
                match items.get_mut(index) {
                    Some(item) => item,
                    None => return,
                }
            }
            (Value::Object(members), _) => members.entry(part).or_insert(Value::Null),
            // Two fields that contradict each other: the first counts.
            _ => return,
        };
    }
    *place = value;
}

/// Empty items of a list are left out.
fn without_gaps(value: Value) -> Value {
    match value {
        Value::Array(items) => {
            let filled = items.into_iter().filter(|item| !item.is_null());
            filled.map(without_gaps).collect()
        }
        Value::Object(members) => {
            let filled = members.into_iter().filter(|(_, member)| !member.is_null());
            let filled = filled.map(|(name, member)| (name, without_gaps(member)));
            Value::Object(filled.collect())
        }
        scalar => scalar,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A field with nested objects and lists comes back as it was drawn.
    #[test]
    fn what_was_drawn_comes_back() {
        let schema = json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "note": {"type": "string"},
                "fast": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "size": {"enum": ["small", "large"]},
                "more": {"type": "object", "additionalProperties": {"type": "string"}},
                "to": {"type": "object", "properties": {"country": {"type": "string"}}},
                "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
            },
            "$defs": {"item": {"type": "object", "properties": {
                "sku": {"type": "string"}, "quantity": {"type": "integer", "minimum": 1}
            }}},
        });
        let given = json!({
            "note": "a", "fast": false, "tags": ["x", "y"], "size": "small", "more": {"k": "v"},
            "to": {"country": "DE"},
            "items": [{"sku": "A", "quantity": 2}, {"sku": "B", "quantity": 12_345_678_901_234_567_890_u64}],
        });
        let fields = fields(&schema, &given, &BTreeMap::new());
        assert_eq!(fields[0].label, "items");
        let mut sent = Vec::new();
        collect(&fields, &mut sent);
        assert_eq!(arguments(&sent), given);
    }

    fn collect(fields: &[Field], sent: &mut Vec<(String, String)>) {
        for field in fields {
            match &field.kind {
                Kind::Group(fields) => collect(fields, sent),
                Kind::List(items) => items.iter().for_each(|fields| collect(fields, sent)),
                _ => sent.push((field.name(), field.value.clone())),
            }
        }
    }

    /// The binder gets what a person wrote where that is no number, and nothing for an empty field.
    #[test]
    fn a_text_stays_what_it_is() {
        let sent = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let made = arguments(&[
            sent("n:/days", "two"),
            sent("n:/limit", " 3 "),
            sent("s:/query", "3"),
            sent("s:/empty", "  "),
            sent("j:/broken", "{a: 1"),
            sent("l:/tags", "a\n\nb\r\n"),
            sent("n:/list/2/x", "1"),
            sent("csrf", "x"),
            sent("q:/x", "1"),
            sent("n:/list/999999999/x", "1"),
        ]);
        let expected = json!({
            "days": "two", "limit": 3, "query": "3", "broken": "{a: 1", "tags": ["a", "b"],
            "list": [{"x": 1}],
        });
        assert_eq!(made, expected);
    }

    #[test]
    fn an_issue_stands_at_its_field() {
        let schema = json!({"type": "object", "properties": {"days": {"type": "integer"}}});
        let issues = BTreeMap::from([("/days".to_owned(), vec!["no integer".to_owned()])]);
        let fields = fields(&schema, &json!({"days": "two"}), &issues);
        assert_eq!(
            (fields[0].value.as_str(), fields[0].issues.len()),
            ("two", 1)
        );
    }
}
