//! The JSON Schema of the file, and the flat list of its settings that is read from it.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::sections::Config;

mod node;
mod order;
mod policy;

pub(crate) use node::Node;
pub use policy::{policy_sections, with_policy};

/// Identifier of the schema. It is a name: nothing is fetched from it.
const ID: &str = "https://countersign.dev/schemas/config.schema.json";

/// Name of the schema's file beside a `countersign.toml`, which names it in its first line.
pub const FILE_NAME: &str = "countersign.schema.json";

/// The JSON Schema of `countersign.toml`, in which a policy is any table: its members are the gateway's ([`with_policy`]).
///
/// # Example
///
/// ```
/// let schema = countersign_config::schema::schema();
/// assert_eq!(schema["title"], "countersign.toml");
/// ```
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let settings = SchemaSettings::draft2020_12().for_deserialize();
        let mut schema = settings.into_generator().into_root_schema_for::<Config>();
        schema.insert("$id".to_owned(), ID.into());
        schema.insert("title".to_owned(), "countersign.toml".into());
        let mut schema = schema.to_value();
        tidy(&mut schema);
        schema
    });
    &SCHEMA
}

/// The schema as the file `contracts/config.schema.json`; `policy` is the schema of a policy file.
pub fn text(policy: &Value) -> String {
    format!("{:#}\n", sorted(&with_policy(policy)))
}

/// One setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The key with its tables, such as `server.listen`; `tool[].name` in a list of tables.
    pub key: String,
    /// The text about it.
    pub text: String,
    /// The form of its value.
    pub form: String,
    /// The default value.
    pub default: Option<Value>,
    /// The variable that overrides the file.
    pub env: Option<String>,
    /// The flag of `countersign serve` that overrides both.
    pub flag: Option<String>,
    /// True if a running server takes a new value.
    pub is_live: bool,
    /// Members of the tables in its value: of the entries of a list or a map, or of the forms to choose from. Their keys are relative.
    pub parts: Vec<Setting>,
    /// Kind of path in its value; a relative one is resolved.
    pub(crate) path: PathKind,
}

/// The paths in a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathKind {
    /// The value has no path.
    None,
    /// The whole value is one.
    Plain,
    /// The path may stand behind `sqlite:` or `file:`.
    Scheme,
}

/// A table of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// The name of the table; empty for the keys outside of all tables.
    pub key: String,
    /// The text about it.
    pub text: String,
    /// True if there may be several: `[[key]]`.
    pub is_list: bool,
    /// Its settings, in the order of the file.
    pub settings: Vec<Setting>,
}

/// All sections, in the order in which they are explained.
pub fn sections() -> &'static [Section] {
    static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(|| {
        let mut sections = Vec::new();
        let root = Node::new(schema(), schema());
        let head = Section {
            key: String::new(),
            text: String::new(),
            is_list: false,
            settings: Vec::new(),
        };
        gather(&root, head, &mut sections);
        // A table of tables has no settings of its own.
        sections.retain(|section| !section.settings.is_empty());
        sections
            .sort_by(|a, b| (order::place(&a.key), &a.key).cmp(&(order::place(&b.key), &b.key)));
        // What stands outside of all tables has to stand before them.
        sections.sort_by_key(|section| !section.key.is_empty());
        sections
    });
    &SECTIONS
}

/// All settings.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    sections().iter().flat_map(|section| &section.settings)
}

/// The setting of a key, or the one that the key is a part of.
pub(crate) fn setting_of(key: &str) -> Option<&'static Setting> {
    let general = general(key);
    let is_it = |setting: &&Setting| {
        let rest = general.strip_prefix(setting.key.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    settings()
        .filter(is_it)
        .max_by_key(|setting| setting.key.len())
}

/// True if a running server takes a change of this key. The key of a list of tables stands for the list while it has no entry.
pub(crate) fn is_live(key: &str) -> bool {
    let list = || {
        let mut lists = sections().iter().filter(|section| section.is_list);
        lists.find(|section| section.key == key)
    };
    match setting_of(key) {
        Some(setting) => setting.is_live,
        None => list().is_some_and(|list| list.settings.iter().all(|setting| setting.is_live)),
    }
}

/// A key without the places in lists: `tool[2].name` is `tool[].name`.
fn general(key: &str) -> String {
    let mut general = String::with_capacity(key.len());
    let mut is_inside = false;
    for character in key.chars() {
        match character {
            '[' => {
                is_inside = true;
                general.push('[');
            }
            ']' => {
                is_inside = false;
                general.push(']');
            }
            _ if is_inside => {}
            other => general.push(other),
        }
    }
    general
}

fn gather(node: &Node<'_>, head: Section, sections: &mut Vec<Section>) {
    let mut section = head;
    let mut tables = Vec::new();
    for (name, child) in node.properties() {
        let path = match section.key.as_str() {
            "" => name.to_owned(),
            key => format!("{key}.{name}"),
        };
        let items = child.items().filter(Node::is_table);
        let text = joined(child.text("description").unwrap_or_default());
        let below = Section {
            key: path.clone(),
            text,
            is_list: false,
            settings: Vec::new(),
        };
        if child.is_table() {
            tables.push((child, below));
        } else if let Some(items) = items.filter(|_| has_entries(&section.key)) {
            let mut list = Section {
                is_list: true,
                ..below
            };
            let is_live = child.get("x-live") == Some(&Value::Bool(true));
            entries(&items, &format!("{path}[]"), is_live, &mut list.settings);
            list.settings.sort_by(|a, b| a.key.cmp(&b.key));
            sections.push(list);
        } else {
            section.settings.push(setting(path, &child));
        }
    }
    section
        .settings
        .sort_by(|a, b| (order::place(&a.key), &a.key).cmp(&(order::place(&b.key), &b.key)));
    sections.push(section);
    for (child, below) in tables {
        gather(&child, below, sections);
    }
}

/// True if lists of tables in this table are sections of their own.
fn has_entries(key: &str) -> bool {
    key.is_empty() || key == policy::KEY
}

/// The settings of an entry in a list of tables; those of tables within it stand among them.
fn entries(node: &Node<'_>, key: &str, is_live: bool, settings: &mut Vec<Setting>) {
    for (name, child) in node.properties() {
        let path = format!("{key}.{name}");
        if child.is_table() && child.alternatives().is_empty() {
            entries(&child, &path, is_live, settings);
            continue;
        }
        let one = setting(path, &child);
        settings.push(Setting {
            is_live: is_live || one.is_live,
            ..one
        });
    }
}

fn setting(key: String, node: &Node<'_>) -> Setting {
    Setting {
        parts: parts(node),
        ..flat(key, node)
    }
}

/// The members of the tables in a value that is no table itself.
fn parts(node: &Node<'_>) -> Vec<Setting> {
    let mut found = Vec::new();
    let entry = node.other_properties().or_else(|| node.items());
    let forms = entry.as_ref().map_or(&[][..], Node::alternatives);
    for form in node.alternatives().iter().chain(&entry).chain(forms) {
        for (name, child) in form.properties() {
            let is_new = |found: &[Setting]| !found.iter().any(|it: &Setting| it.key == name);
            if child.is_table() && child.alternatives().is_empty() {
                for (member, inner) in child.properties() {
                    found.push(flat(format!("{name}.{member}"), &inner));
                }
            } else if is_new(&found) {
                found.push(flat(name.to_owned(), &child));
            }
        }
    }
    found
}

/// A member, without the tables in its own value.
fn flat(key: String, node: &Node<'_>) -> Setting {
    let owned = |keyword| node.text(keyword).map(str::to_owned);
    Setting {
        text: joined(node.text("description").unwrap_or_default()),
        form: node.form(),
        default: node.get("default").cloned(),
        env: owned("x-env"),
        flag: owned("x-flag"),
        is_live: node.get("x-live") == Some(&Value::Bool(true)),
        parts: Vec::new(),
        path: match node.get("x-path") {
            None => PathKind::None,
            Some(Value::String(_)) => PathKind::Scheme,
            Some(_) => PathKind::Plain,
        },
        key,
    }
}

/// Joins a text that was wrapped in the source into one line.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Takes out what says nothing: the defaults of whole tables, and defaults that are none. Joins wrapped texts.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if matches!(members.get("default"), Some(Value::Null | Value::Object(_))) {
                members.remove("default");
            }
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = joined(text);
            }
            for (name, member) in members.iter_mut() {
                match member {
                    // What these are called is no keyword: a setting may be called `default`.
                    Value::Object(named) if name == "properties" || name == "$defs" => {
                        named.values_mut().for_each(tidy);
                    }
                    member => tidy(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Sorts members by name, so that every build writes the same text.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            let members = names
                .into_iter()
                .filter_map(|name| Some((name.clone(), sorted(members.get(name)?))));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
