//! The layers of a configuration, joined: default, file, environment, flag. The later counts, and the origin of
//! every value is kept.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use countersign_upstream::manifest::Complaint;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::check::is_in_range;
use crate::document::Document;
use crate::mistake::{Mistake, Mistakes};
use crate::schema::{self, Node, PathKind, schema};
use crate::sections::Config;

/// The origin of a value. The later ones count before the earlier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// The default value.
    Default,
    /// The configuration file.
    File {
        /// The file, as it was named.
        file: String,
        /// The line, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Environment {
        /// Its name.
        name: String,
    },
    /// A flag of the command line.
    Flag {
        /// Its name.
        name: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { file, line } => write!(f, "{file}:{line}"),
            Self::Environment { name } => write!(f, "environment {name}"),
            Self::Flag { name } => write!(f, "flag {name}"),
        }
    }
}

/// A value that the environment or the command line gives.
#[derive(Clone)]
pub struct Given {
    key: &'static str,
    value: Value,
    origin: Origin,
}

impl Given {
    /// A variable, as text; it is read as the type of the setting.
    pub fn variable(key: &'static str, name: &str, text: &str) -> Self {
        let origin = Origin::Environment {
            name: name.to_owned(),
        };
        Self {
            key,
            value: of_text(key, text),
            origin,
        }
    }

    /// A variable that removes a setting, even one of the file.
    pub fn unset_by(key: &'static str, name: &str) -> Self {
        let origin = Origin::Environment {
            name: name.to_owned(),
        };
        Self {
            key,
            value: Value::Null,
            origin,
        }
    }

    /// A flag.
    pub fn flag(key: &'static str, name: &str, value: impl Into<Value>) -> Self {
        let origin = Origin::Flag {
            name: name.to_owned(),
        };
        let value = match value.into() {
            Value::String(text) => of_text(key, &text),
            other => other,
        };
        Self { key, value, origin }
    }

    fn mistake(&self, message: impl Into<String>, expected: Option<String>) -> Mistake {
        Mistake {
            file: match &self.origin {
                Origin::Environment { name } | Origin::Flag { name } => name.clone(),
                Origin::Default | Origin::File { .. } => String::new(),
            },
            line: 0,
            column: 0,
            key: self.key.to_owned(),
            message: message.into(),
            expected,
            suggestion: None,
        }
    }

    /// Checks the value alone; `None` if it is valid.
    fn check(&self) -> Option<Mistake> {
        let node = node_of(self.key);
        let form = node.as_ref().map(Node::form);
        let mut tree = Value::Object(Map::new());
        put(&mut tree, self.key, self.value.clone());
        if serde_json::from_value::<Config>(tree).is_err() {
            return Some(self.mistake("the value is not valid", form));
        }
        match node {
            Some(node) if self.value.is_number() && !is_in_range(&node, self.value.as_f64()) => {
                Some(self.mistake("it is out of range", form))
            }
            Some(_) | None => None,
        }
    }
}

/// Hides the value, because it may have a password.
impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Given({} from {})", self.key, self.origin)
    }
}

/// A setting with its value and where it came from. Secrets are not in it: addresses are without passwords, and keys
/// are named, not shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The key with its tables.
    pub key: String,
    /// The value; `null` if there is none.
    pub value: Value,
    /// Source of the value.
    pub origin: Origin,
}

/// A value that differs between two configurations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The key with its tables; an entry of a list has its name there, such as `tool[crm.find].deadline_ms`.
    pub key: String,
    /// True if a running server takes it; otherwise it counts from the next start.
    pub is_live: bool,
    /// The old and the new value as JSON; `None` unless both may be shown: numbers, booleans and short strings, and no reference to a
    /// secret, no address, and nothing of the tables whose values only the operator and a service know.
    pub values: Option<(String, String)>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        match &self.values {
            Some((old, new)) => write!(f, " ({old} → {new})"),
            None => Ok(()),
        }
    }
}

/// A whole configuration.
#[derive(Debug, Clone)]
pub struct Loaded {
    config: Config,
    document: Option<Arc<Document>>,
    given: Vec<Given>,
    origins: BTreeMap<String, Origin>,
}

impl Loaded {
    /// Joins the layers. Without a file, the shop is there.
    pub fn new(document: Option<Document>, given: Vec<Given>) -> Result<Self, Mistakes> {
        Self::join(document.map(Arc::new), given)
    }

    /// Returns the configuration with more flags.
    pub fn with(&self, more: impl IntoIterator<Item = Given>) -> Result<Self, Mistakes> {
        let mut given = self.given.clone();
        given.extend(more);
        Self::join(self.document.clone(), given)
    }

    /// Returns the configuration with another file.
    pub fn with_document(&self, document: Document) -> Result<Self, Mistakes> {
        Self::join(Some(Arc::new(document)), self.given.clone())
    }

    fn join(document: Option<Arc<Document>>, mut given: Vec<Given>) -> Result<Self, Mistakes> {
        let wrong: Vec<Mistake> = given.iter().filter_map(Given::check).collect();
        if !wrong.is_empty() {
            return Err(Mistakes(wrong));
        }
        given.sort_by_key(|one| matches!(one.origin, Origin::Flag { .. }));
        let mut origins = BTreeMap::new();
        let mut tree = Value::Object(Map::new());
        if let Some(document) = &document {
            tree = document.tree().clone();
            let folder = document.path().parent().unwrap_or(Path::new(""));
            paths_from(folder, &mut tree);
            let files = document.files().iter();
            let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
            for (key, place) in document.places() {
                let file = files.get(place.file).cloned().unwrap_or_default();
                let line = place.line;
                origins.insert(key.clone(), Origin::File { file, line });
            }
        } else {
            put(&mut tree, "shop.enabled", Value::Bool(true));
        }
        for one in &given {
            put(&mut tree, one.key, one.value.clone());
            // What the file has below it counts no more.
            let below = format!("{}.", one.key);
            origins.retain(|key: &String, _| !key.starts_with(&below));
            origins.insert(one.key.to_owned(), one.origin.clone());
        }
        let config = serde_json::from_value(tree).map_err(|error| {
            let file = document
                .as_deref()
                .map(|document| document.mistake("", error.to_string()));
            Mistakes(file.into_iter().collect())
        })?;
        Ok(Self {
            config,
            document,
            given,
            origins,
        })
    }

    /// The values.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The file, where there is one.
    pub fn document(&self) -> Option<&Document> {
        self.document.as_deref()
    }

    /// Returns the source of a key's value.
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// The folder that relative paths of upstreams count from: that of the file.
    pub fn folder(&self) -> &Path {
        let parent = self
            .document()
            .and_then(|document| document.path().parent());
        parent.unwrap_or(Path::new(""))
    }

    /// Everything that is wrong with the upstreams and tools beside the tools that the program brings itself.
    pub fn check_beside(&self, is_built_in: impl Fn(&str) -> bool) -> Result<(), Mistakes> {
        let complaints = self.config.manifest().check_beside(is_built_in).into_iter();
        let mistake = |complaint: Complaint| {
            let key = crate::check::key_of(&complaint.at);
            self.mistake(&key, complaint.message)
        };
        let mistakes: Vec<Mistake> = complaints.map(mistake).collect();
        if mistakes.is_empty() {
            return Ok(());
        }
        Err(Mistakes(mistakes))
    }

    /// Builds a mistake about the value of a key, at the source of the value.
    pub fn mistake(&self, key: &str, message: impl Into<String>) -> Mistake {
        let given = self.given.iter().rev().find(|given| given.key == key);
        match (given, self.document()) {
            (Some(given), _) => given.mistake(message, None),
            (None, Some(document)) => document.mistake(key, message),
            (None, None) => Mistake {
                file: String::new(),
                line: 0,
                column: 0,
                key: key.to_owned(),
                message: message.into(),
                expected: None,
                suggestion: None,
            },
        }
    }

    /// Lists every value with its origin: all settings, in their order, and the values in lists of tables.
    pub fn rows(&self) -> Vec<Row> {
        let tree = serde_json::to_value(&self.config).unwrap_or_default();
        let mut rows = Vec::new();
        for section in schema::sections() {
            if section.is_list {
                let items = tree.get(&section.key).unwrap_or(&Value::Null);
                self.flatten(&section.key, items, &mut rows);
                continue;
            }
            for setting in &section.settings {
                let pointer = format!("/{}", setting.key.replace('.', "/"));
                let value = tree.pointer(&pointer).unwrap_or(&Value::Null);
                self.flatten(&setting.key, value, &mut rows);
            }
        }
        rows
    }

    fn flatten(&self, key: &str, value: &Value, rows: &mut Vec<Row>) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (name, member) in members {
                    self.flatten(&crate::check::joined(key, name), member, rows);
                }
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                for (place, item) in items.iter().enumerate() {
                    self.flatten(&format!("{key}[{place}]"), item, rows);
                }
            }
            // A list of tables that has none.
            Value::Null if key.contains('[') => {}
            value => rows.push(Row {
                key: key.to_owned(),
                value: value.clone(),
                origin: self.origin(key),
            }),
        }
    }

    /// The values that differ in a newer configuration. Entries of lists are compared by their names, so that one that is added or moved
    /// does not make a change of every entry behind it.
    pub fn changes(&self, newer: &Self) -> Vec<Change> {
        let (old, new) = (self.by_name(), newer.by_name());
        let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
        keys.sort();
        keys.dedup();
        let differing = keys.into_iter().filter_map(|key| {
            let (before, after) = (old.get(key), new.get(key));
            if before.map(|it| &it.value) == after.map(|it| &it.value) {
                return None;
            }
            let place = &before.or(after)?.key;
            let value = |row: Option<&Row>| row.map_or(Value::Null, |row| row.value.clone());
            let (before, after) = (value(before), value(after));
            // A table that comes or goes has no value of its own.
            let may_show = before != after && may_show(place, &before) && may_show(place, &after);
            Some(Change {
                key: key.clone(),
                is_live: schema::is_live(place),
                values: may_show.then(|| (before.to_string(), after.to_string())),
            })
        });
        differing.collect()
    }

    /// The rows by their keys, with the names of entries in place of their numbers. A further entry of the same name has its number
    /// among those of that name.
    fn by_name(&self) -> BTreeMap<String, Row> {
        let rows = self.rows();
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut named: BTreeMap<&str, String> = BTreeMap::new();
        for row in &rows {
            let entry = row.key.strip_suffix("].name");
            let entry = entry.and_then(|entry| Some((entry, entry.split_once('[')?)));
            let (Some((entry, (list, place))), Some(name)) = (entry, row.value.as_str()) else {
                continue;
            };
            // A list within an entry has no names of its own here.
            if place.contains('[') {
                continue;
            }
            let count = counts.entry((list, name)).or_default();
            *count += 1;
            let named_as = match count {
                1 => format!("{list}[{name}]"),
                more => format!("{list}[{name}#{more}]"),
            };
            named.insert(entry, named_as);
        }
        let key_of = |key: &str| {
            let (entry, rest) = key.split_once(']')?;
            Some(format!("{}{rest}", named.get(entry)?))
        };
        let keyed = rows.iter().map(|row| {
            let key = key_of(&row.key).unwrap_or_else(|| row.key.clone());
            (key, row.clone())
        });
        keyed.collect()
    }
}

/// Longest string of a setting that is shown.
const SHOWN_BYTES_MAX: usize = 80;

/// True if the value of a key may stand in a log. References to secrets, addresses and e-mail addresses may not, and neither may the values
/// of tables that an operator and a service have agreed on: such a text is often a secret that stands in the wrong place.
fn may_show(key: &str, value: &Value) -> bool {
    const AGREED: [&str; 7] = [
        "auth", "headers", "env", "query", "preset", "request", "policy",
    ];
    let text = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => return true,
        Value::String(text) => text,
        Value::Array(_) | Value::Object(_) => return false,
    };
    let is_reference = text.starts_with("env:") || text.starts_with("file:");
    let is_address = text.contains("://") || text.contains('@');
    let is_agreed = key.split('.').any(|part| AGREED.contains(&part));
    text.len() <= SHOWN_BYTES_MAX && !is_reference && !is_address && !is_agreed
}

/// The schema at a key.
pub(crate) fn node_of(key: &str) -> Option<Node<'static>> {
    let root = Node::new(schema(), schema());
    key.split('.')
        .try_fold(root, |node, name| node.property(name))
}

/// A text as the type of its setting, where it can be read so.
fn of_text(key: &str, text: &str) -> Value {
    let types = node_of(key).map(|node| node.types()).unwrap_or_default();
    let read = match types.as_slice() {
        ["integer" | "number" | "boolean"] => serde_json::from_str(text).ok(),
        _ => None,
    };
    read.unwrap_or_else(|| text.into())
}

/// Sets a value in a tree; tables on the way are made.
pub(crate) fn put(tree: &mut Value, key: &str, value: Value) {
    let mut place = tree;
    for name in key.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(members) = place else {
            return;
        };
        place = members.entry(name).or_insert(Value::Null);
    }
    *place = value;
}

/// Reads relative paths of the file from its folder.
fn paths_from(folder: &Path, tree: &mut Value) {
    for setting in schema::settings() {
        let pointer = format!("/{}", setting.key.replace('.', "/"));
        match tree.pointer_mut(&pointer) {
            Some(Value::String(text)) => path_from(folder, setting.path, text),
            Some(Value::Array(items)) => {
                for item in items {
                    if let Value::String(text) = item {
                        path_from(folder, setting.path, text);
                    }
                }
            }
            Some(_) | None => {}
        }
    }
}

/// Reads a relative path in a value from this folder.
fn path_from(folder: &Path, kind: PathKind, text: &mut String) {
    let join = |path: &str| folder.join(path).display().to_string();
    match kind {
        PathKind::None => {}
        PathKind::Plain => *text = join(text),
        PathKind::Scheme => {
            for scheme in ["sqlite:", "file:"] {
                if let Some(path) = text.strip_prefix(scheme) {
                    *text = format!("{scheme}{}", join(path));
                    break;
                }
            }
        }
    }
}
