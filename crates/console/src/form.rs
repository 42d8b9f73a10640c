//! A form drawn from the schema of a tool, and the arguments that a filled form makes.
//!
//! The name of a field is its kind and its place: `n:/items/0/quantity`. So a form is read without its schema, and the
//! binder, which has the last word anyway, is given what a person wrote: a number where the text is one, the text
//! itself where it is none. An entry of a map has two fields of one place, `k:/labels/0` with its key and `ks:/labels/0` with
//! its value.

use std::collections::BTreeMap;

use askama::Template;
use countersign::contract::schema::ext;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::pages::docs;
use crate::shown::below;
use crate::words::Words;

pub(crate) mod digits;
mod read;

pub(crate) use read::arguments;

/// Maximum depth of a form; deeper values are written as JSON.
const DEPTH_MAX: usize = 4;

/// The largest index of a list in a form.
const INDEX_MAX: usize = 200;

/// Time as the input of a browser has it: no zone, whole seconds.
const LOCAL: &str = "%Y-%m-%dT%H:%M:%S";

/// One field, or a group of them.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Field {
    /// The last part of its place.
    pub(crate) label: String,
    /// JSON pointer. In a map: place of the entry among the entries.
    pub(crate) pointer: String,
    pub(crate) description: String,
    pub(crate) required: bool,
    /// The type and the bounds, in a few words.
    pub(crate) form: String,
    pub(crate) kind: Kind,
    pub(crate) value: String,
    pub(crate) issues: Vec<String>,
    /// Further meaning of the value.
    pub(crate) note: Option<Note>,
    /// True if it is the value of an entry of a map.
    pub(crate) in_map: bool,
    /// True if an empty field stands for null: the value may be null, and has to be there.
    pub(crate) empty_is_null: bool,
}

/// Kind of input that a field is drawn as.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// One line.
    Text,
    /// A day.
    Date,
    /// A time, in UTC.
    Time,
    /// A whole number or a decimal.
    Number,
    /// True, false, or nothing.
    Boolean,
    /// One of these.
    Choice(Choices),
    /// A list of texts, one a line.
    Lines,
    /// A list of numbers, one a line.
    Numbers,
    /// Everything else, as JSON.
    Json,
    /// An object.
    Group(Vec<Field>),
    /// A list whose items have fields of their own: objects, choices, days, times.
    List(Vec<Vec<Field>>),
    /// Keys with a value each.
    Map(Vec<Entry>),
}

/// The values of a choice, as their options show them.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Choices {
    options: Vec<String>,
    /// Mark of the type that all of them have; options of several types are written as JSON.
    mark: &'static str,
}

impl Choices {
    /// The choices of an `enum`; `None` if there are none, or one of them is an object or a list.
    fn new(listed: Option<&Value>) -> Option<Self> {
        let listed = listed?.as_array()?.iter().filter(|value| !value.is_null());
        let listed: Vec<&Value> = listed.collect();
        let is_every = |is: fn(&Value) -> bool| listed.iter().all(|value| is(value));
        let is_scalar = |value: &Value| !value.is_object() && !value.is_array();
        if listed.is_empty() || !is_every(is_scalar) {
            return None;
        }
        let mark = if is_every(Value::is_string) {
            "s"
        } else if is_every(Value::is_number) {
            "n"
        } else if is_every(Value::is_boolean) {
            "b"
        } else {
            "j"
        };
        let option = |value: &&Value| match value {
            Value::String(text) if mark == "s" => text.clone(),
            value => value.to_string(),
        };
        let options = listed.iter().map(option).collect();
        Some(Self { options, mark })
    }
}

/// An entry of a map.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: Field,
}

/// Meaning of a value that its type does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Note {
    /// An amount with its currency.
    Money,
    /// The name of a file that the tool can reach.
    Attachment,
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

    /// The description as HTML, its code as code.
    pub(crate) fn description_html(&self) -> String {
        docs::line(&self.description)
    }

    /// The name under which the value comes back.
    pub(crate) fn name(&self) -> String {
        let mark = match &self.kind {
            Kind::Text | Kind::Date => "s",
            Kind::Choice(choices) => choices.mark,
            Kind::Time => "t",
            Kind::Number => "n",
            Kind::Boolean => "b",
            Kind::Lines => "l",
            Kind::Numbers => "r",
            Kind::Json | Kind::Group(_) | Kind::List(_) | Kind::Map(_) => "j",
        };
        let of_map = if self.in_map { "k" } else { "" };
        let or_null = if self.empty_is_null { "?" } else { "" };
        format!("{of_map}{mark}{or_null}:{}", self.pointer)
    }

    /// The name under which the key of an entry comes back.
    pub(crate) fn key_name(&self) -> String {
        format!("k:{}", self.pointer)
    }

    /// True if the field has many lines.
    pub(crate) fn is_long(&self) -> bool {
        matches!(self.kind, Kind::Lines | Kind::Numbers | Kind::Json)
    }

    /// The type of input that picks a day or a time; `None` for all other kinds.
    pub(crate) fn picker(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Date => Some("date"),
            Kind::Time => Some("datetime-local"),
            _ => None,
        }
    }

    /// The type of the input. A browser drops what it cannot read, so a text that is no time stays in a line of text.
    pub(crate) fn input_type(&self) -> &'static str {
        let is_empty = self.value.is_empty();
        match self.kind {
            Kind::Date if is_empty || self.value.parse::<Date>().is_ok() => "date",
            Kind::Time if is_empty || DateTime::strptime(LOCAL, &self.value).is_ok() => {
                "datetime-local"
            }
            _ => "text",
        }
    }

    /// The choices; empty if there are none.
    pub(crate) fn choices(&self) -> Option<&[String]> {
        match &self.kind {
            Kind::Choice(choices) => Some(&choices.options),
            _ => None,
        }
    }

    /// The value, if it is none of the choices: it is shown, and the binder has the last word about it.
    pub(crate) fn other(&self) -> Option<&str> {
        let is_known = match &self.kind {
            Kind::Choice(choices) => choices.options.contains(&self.value),
            Kind::Boolean => matches!(self.value.as_str(), "true" | "false"),
            _ => true,
        };
        (!is_known && !self.value.is_empty()).then_some(self.value.as_str())
    }

    /// The fields of an object.
    pub(crate) fn group(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::Group(fields) => Some(fields),
            _ => None,
        }
    }

    /// The items of a list, each with its fields.
    pub(crate) fn list(&self) -> Option<&[Vec<Self>]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    /// The entries of a map.
    pub(crate) fn map(&self) -> Option<&[Entry]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub(crate) fn is_boolean(&self) -> bool {
        matches!(self.kind, Kind::Boolean)
    }

    pub(crate) fn is_money(&self) -> bool {
        self.note == Some(Note::Money)
    }

    pub(crate) fn is_attachment(&self) -> bool {
        self.note == Some(Note::Attachment)
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
        (name, declared): (&str, &Value),
        value: &Value,
        parent: &str,
        required: bool,
        depth: usize,
    ) -> Field {
        let schema = self.resolved(declared);
        let pointer = below(parent, name);
        let kind = self.kind(schema, value, &pointer, depth + 1);
        // What is said beside a reference is said of this field.
        let description = declared.get("description").or(schema.get("description"));
        Field {
            label: name.to_owned(),
            description: description
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            required,
            form: self.form_of(declared, schema),
            value: text_of(value, &kind),
            issues: self.issues.get(&pointer).cloned().unwrap_or_default(),
            note: note_of(schema),
            in_map: false,
            empty_is_null: required && (allows_null(declared) || allows_null(schema)),
            kind,
            pointer,
        }
    }

    fn kind(&self, schema: &Value, value: &Value, pointer: &str, depth: usize) -> Kind {
        if let Some(choices) = Choices::new(schema.get("enum")) {
            return Kind::Choice(choices);
        }
        match type_of(schema) {
            Some("string") => match schema.get("format").and_then(Value::as_str) {
                Some("date") => Kind::Date,
                Some("date-time") => Kind::Time,
                _ => Kind::Text,
            },
            Some("integer" | "number") => Kind::Number,
            Some("boolean") => Kind::Boolean,
            Some("object") if depth >= DEPTH_MAX => Kind::Json,
            Some("object") if schema.get("properties").is_some() => {
                Kind::Group(self.members(schema, value, pointer, depth))
            }
            Some("object") => self.map_kind(schema, value, pointer, depth),
            Some("array") => self.list_kind(schema, value, pointer, depth),
            _ => Kind::Json,
        }
    }

    fn list_kind(&self, schema: &Value, value: &Value, pointer: &str, depth: usize) -> Kind {
        let Some(item) = schema.get("items").map(|item| self.resolved(item)) else {
            return Kind::Json;
        };
        let given = value.as_array().filter(|items| !items.is_empty());
        let has_control = has_control(item);
        // A list that is longer than a form is written as a whole.
        if has_control && given.is_some_and(|items| items.len() > INDEX_MAX) {
            return Kind::Json;
        }
        let each = |draw: &dyn Fn(usize, &Value) -> Vec<Field>| {
            let nothing = vec![Value::Null];
            let items = given.unwrap_or(&nothing).iter().take(INDEX_MAX).enumerate();
            Kind::List(items.map(|(at, value)| draw(at, value)).collect())
        };
        match type_of(item) {
            _ if has_control => each(&|at, value| {
                let mut field = self.field((&at.to_string(), item), value, pointer, false, depth);
                field.label = last_part(pointer);
                vec![field]
            }),
            Some("string") => Kind::Lines,
            Some("integer" | "number") => Kind::Numbers,
            Some("object") if depth < DEPTH_MAX && item.get("properties").is_some() => {
                each(&|at, value| {
                    let place = below(pointer, &at.to_string());
                    self.members(item, value, &place, depth + 1)
                })
            }
            _ => Kind::Json,
        }
    }

    /// Rows of a key and a value, where the schema says what a value is.
    fn map_kind(&self, schema: &Value, value: &Value, pointer: &str, depth: usize) -> Kind {
        let of_values = schema.get("additionalProperties");
        let Some(of_values) = of_values.filter(|schema| schema.is_object()) else {
            return Kind::Json;
        };
        let (nothing, mut entries) = (Map::new(), Vec::new());
        let given = value.as_object().unwrap_or(&nothing);
        let rows = given.iter().map(|(key, value)| (key.as_str(), value));
        // An empty row to begin with.
        let first = given.is_empty().then_some(("", &Value::Null));
        for (at, (key, value)) in rows.chain(first).take(INDEX_MAX).enumerate() {
            let at = at.to_string();
            let mut field = self.field((&at, of_values), value, pointer, false, depth);
            if matches!(
                field.kind,
                Kind::Group(_) | Kind::List(_) | Kind::Map(_) | Kind::Lines | Kind::Numbers
            ) {
                field.kind = Kind::Json;
                field.value = text_of(value, &field.kind);
            }
            let issues = self.issues.get(&below(pointer, key));
            field.issues = issues.cloned().unwrap_or_default();
            field.in_map = true;
            let key = key.to_owned();
            entries.push(Entry { key, value: field });
        }
        Kind::Map(entries)
    }

    /// The schema that a reference within the document leads to, and the one that is meant where null is allowed too.
    fn resolved<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let mut schema = schema;
        for _ in 0..8 {
            let reference = schema.get("$ref").and_then(Value::as_str);
            let referred = reference
                .and_then(|text| text.strip_prefix('#'))
                .and_then(|place| self.root.pointer(place));
            let Some(found) = referred.or_else(|| beside_null(schema)) else {
                break;
            };
            schema = found;
        }
        schema
    }

    /// `integer, 1 … 99`, from what is declared at the place and from what that leads to.
    fn form_of(&self, declared: &Value, schema: &Value) -> String {
        let named = |schema: &Value| {
            let format = schema.get("format").and_then(Value::as_str);
            format.or(type_of(schema)).map(str::to_owned)
        };
        let inner = |name: &str| {
            let inner = schema.get(name).filter(|inner| inner.is_object());
            inner.and_then(|inner| named(self.resolved(inner)))
        };
        let mut name = match (inner("items"), inner("additionalProperties")) {
            (Some(item), _) => format!("{item}[]"),
            (None, Some(value)) => format!("map<{value}>"),
            (None, None) => named(schema).unwrap_or_else(|| "JSON".to_owned()),
        };
        if allows_null(declared) || allows_null(schema) {
            name.push_str(" | null");
        }
        let mut parts = vec![name];
        match (schema.get("minimum"), schema.get("maximum")) {
            (Some(low), Some(high)) => parts.push(format!("{low} … {high}")),
            (Some(low), None) => parts.push(format!("≥ {low}")),
            (None, Some(high)) => parts.push(format!("≤ {high}")),
            (None, None) => {}
        }
        let default = declared.get("default").or(schema.get("default"));
        if let Some(default) = default {
            parts.push(format!("= {default}"));
        }
        parts.join(", ")
    }
}

/// True if an item of a list has an input that knows its values: a choice, a day, a time.
fn has_control(schema: &Value) -> bool {
    let format = schema.get("format").and_then(Value::as_str);
    Choices::new(schema.get("enum")).is_some()
        || match type_of(schema) {
            Some("boolean") => true,
            Some("string") => matches!(format, Some("date" | "date-time")),
            _ => false,
        }
}

/// The schema of a value that is there, where the only other one is that of null.
fn beside_null(schema: &Value) -> Option<&Value> {
    let branches = schema.get("anyOf").or_else(|| schema.get("oneOf"))?;
    let branches = branches.as_array()?;
    let mut others = branches.iter().filter(|branch| !is_null(branch));
    let (first, second) = (others.next(), others.next());
    first.filter(|_| second.is_none() && branches.len() > 1)
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

fn allows_null(schema: &Value) -> bool {
    let types = strings(schema.get("type"));
    let branches = schema.get("anyOf").or_else(|| schema.get("oneOf"));
    let mut branches = branches.and_then(Value::as_array).into_iter().flatten();
    let mut listed = schema
        .get("enum")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    types.contains(&"null") || branches.any(is_null) || listed.any(Value::is_null)
}

/// The type, and the one beside null where null is allowed; `None` where there are several.
fn type_of(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(name) => Some(name),
        types @ Value::Array(_) => {
            let mut others = strings(Some(types))
                .into_iter()
                .filter(|name| *name != "null");
            let (first, second) = (others.next(), others.next());
            first.filter(|_| second.is_none())
        }
        _ => None,
    }
}

fn note_of(schema: &Value) -> Option<Note> {
    if schema.get(ext::KIND).and_then(Value::as_str) == Some("attachment_reference") {
        return Some(Note::Attachment);
    }
    let members = schema.get("properties").and_then(Value::as_object)?;
    let is_money = members.contains_key("amount") && members.contains_key("currency");
    is_money.then_some(Note::Money)
}

fn strings(value: Option<&Value>) -> Vec<&str> {
    let items = value.and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// A value as its field shows it.
fn text_of(value: &Value, kind: &Kind) -> String {
    match (value, kind) {
        (Value::Null, _) | (_, Kind::Group(_) | Kind::List(_) | Kind::Map(_)) => String::new(),
        (Value::Array(items), Kind::Lines | Kind::Numbers) => {
            let lines = items.iter().map(|item| match item.as_str() {
                Some(text) => digits::shown(text).to_owned(),
                None => digits::text(item),
            });
            lines.collect::<Vec<_>>().join("\n")
        }
        (Value::String(text), Kind::Time) => local(text).unwrap_or_else(|| text.clone()),
        (value, Kind::Choice(choices)) if choices.mark == "j" => digits::text(value),
        (
            Value::String(text),
            Kind::Text | Kind::Date | Kind::Choice(_) | Kind::Number | Kind::Boolean,
        ) => digits::shown(text).to_owned(),
        (value, _) => digits::text(value),
    }
}

/// The last part of a pointer, as its author wrote it.
fn last_part(pointer: &str) -> String {
    let part = pointer.rsplit('/').next().unwrap_or_default();
    part.replace("~1", "/").replace("~0", "~")
}

/// A time without its zone, UTC; `None` if something would be lost.
fn local(text: &str) -> Option<String> {
    let at: Timestamp = text.parse().ok()?;
    (at.subsec_nanosecond() == 0).then(|| at.strftime(LOCAL).to_string())
}

#[cfg(test)]
mod tests;
