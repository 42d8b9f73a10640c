//! One file of a configuration: its values, and the place of each in the text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::check::{self, Finding, Findings, joined};
use crate::mistake::{Mistake, Mistakes};
use crate::schema::{Node, schema};
use crate::sections::Config;

/// One file of a configuration.
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) tree: Value,
    pub(super) config: Config,
    /// Line and column of every key, both from 1.
    pub(super) keys: BTreeMap<String, (usize, usize)>,
    /// Line and column of every value.
    values: BTreeMap<String, (usize, usize)>,
}

impl Part {
    /// Reads a file, and lists its mistakes. The part is there where what is left without them is a configuration, so that the mistakes
    /// that only a whole configuration shows are found in the same go.
    pub(super) fn read(path: &Path, text: &str) -> (Option<Self>, Vec<Mistake>) {
        let lines = Lines::new(path, text);
        if text.len() > crate::FILE_BYTES_MAX {
            let message = format!("the file has more than {} bytes", crate::FILE_BYTES_MAX);
            return (None, vec![lines.whole(message)]);
        }
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let mut mistakes: Vec<Mistake> =
                errors.iter().map(|error| lines.no_toml(error)).collect();
            mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
            mistakes.truncate(check::MISTAKES_MAX);
            return (None, mistakes);
        }
        let span = table.span();
        let root = Spanned::new(span, DeValue::Table(table.into_inner()));
        let mut findings = Findings::default();
        let node = Node::new(schema(), schema());
        check::check(&root, &node, "", &mut findings);
        let mut read = Reading::default();
        let mut tree = read.tree(&root, "");
        let mut config = None;
        findings.0.extend(unfit(&tree, &read.ends, &findings));
        if findings.0.is_empty() {
            let (typed, found) = typed(root, &read.ends);
            config = typed;
            findings.0.extend(found);
        }
        if config.is_none() {
            config = without_findings(&mut tree, &findings);
        }
        findings.0.sort_by_key(|finding| finding.at);
        let mistakes = findings.0.into_iter().map(|finding| lines.mistake(finding));
        let mistakes: Vec<Mistake> = mistakes.collect();
        let place = |(key, at): (String, usize)| (key, lines.place(at));
        let values = read.ends.into_iter().map(|(key, span)| (key, span.start));
        let part = config.map(|config| Self {
            path: path.to_owned(),
            tree,
            config,
            values: values.map(place).collect(),
            keys: read.starts.into_iter().map(place).collect(),
        });
        (part, mistakes)
    }

    /// The part, if it has nothing but entries.
    pub(super) fn included(self) -> Result<Self, Mistakes> {
        let members = self.tree.as_object().into_iter().flatten();
        let others = members.filter(|(key, _)| !super::ENTRIES.contains(&key.as_str()));
        let message = "an included file has [[upstream]] and [[tool]] entries only";
        let mistakes: Vec<_> = others.map(|(key, _)| self.mistake(key, message)).collect();
        if mistakes.is_empty() {
            Ok(self)
        } else {
            Err(Mistakes(mistakes))
        }
    }

    /// Builds a mistake at a key; at the table that it belongs to, if the key is not there.
    pub(super) fn mistake(&self, key: &str, message: impl Into<String>) -> Mistake {
        let mut near = key;
        let (line, column) = loop {
            let place = self.values.get(near);
            match place {
                Some(place) => break *place,
                None if near.is_empty() => break (0, 0),
                None => {
                    let end = near.rfind(['.', '[']);
                    near = end.and_then(|end| near.get(..end)).unwrap_or_default();
                }
            }
        };
        Mistake {
            file: self.path.display().to_string(),
            line,
            column,
            key: key.to_owned(),
            message: message.into(),
            expected: None,
            suggestion: None,
        }
    }

    /// Returns the number of entries of a list.
    pub(super) fn count(&self, list: &str) -> usize {
        let items = self.tree.get(list).and_then(Value::as_array);
        items.map_or(0, Vec::len)
    }
}

/// Finds values that the schema allows and their own types do not, each looked at alone so that all of them are reported. Entries are
/// looked at whole.
fn unfit(
    tree: &Value,
    ends: &[(String, std::ops::Range<usize>)],
    known: &Findings,
) -> Vec<Finding> {
    let mut unfit = Vec::new();
    for (key, span) in ends {
        let pointer = format!("/{}", key.replace('.', "/"));
        let value = tree.pointer(&pointer).filter(|value| value.is_string());
        let node = crate::loaded::node_of(key);
        let (Some(value), Some(node)) = (value, node) else {
            continue;
        };
        let is_known = known.0.iter().any(|finding| finding.key == *key);
        let mut alone = Value::Object(Map::new());
        crate::loaded::put(&mut alone, key, value.clone());
        if !is_known && serde_json::from_value::<Config>(alone).is_err() {
            unfit.push(Finding {
                at: span.start,
                key: key.clone(),
                message: "the value is not valid".to_owned(),
                expected: Some(node.form()),
                suggestion: None,
            });
        }
    }
    unfit
}

/// Takes what was found out of the values; `None` if what is left is no configuration.
fn without_findings(tree: &mut Value, findings: &Findings) -> Option<Config> {
    for Finding { key, .. } in &findings.0 {
        let (table, name) = key.rsplit_once('.').unwrap_or(("", key.as_str()));
        let table = table.replace(['.', '['], "/").replace(']', "");
        let pointer = if table.is_empty() {
            table
        } else {
            format!("/{table}")
        };
        if let Some(members) = tree.pointer_mut(&pointer).and_then(Value::as_object_mut) {
            members.remove(name);
        }
    }
    serde_json::from_value(tree.clone()).ok()
}

/// Reads a document that the schema allows into the types; `None` if a value does not fit its type. Lists that, or the rules that are broken.
fn typed(
    root: Spanned<DeValue<'_>>,
    ends: &[(String, std::ops::Range<usize>)],
) -> (Option<Config>, Vec<Finding>) {
    let config = match Config::deserialize(root.into_deserializer()) {
        Ok(config) => config,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            // The innermost value that holds the place.
            let around = ends.iter().filter(|(_, span)| span.contains(&at));
            let key = around.min_by_key(|(_, span)| span.len());
            let message = error.message().lines().next().unwrap_or_default();
            let (message, expected) = match message.strip_prefix("expected ") {
                Some(expected) => ("the value is not valid", Some(expected.to_owned())),
                None => (message, None),
            };
            let finding = Finding {
                at,
                key: key.map(|(key, _)| key.clone()).unwrap_or_default(),
                message: message.to_owned(),
                expected,
                suggestion: None,
            };
            return (None, vec![finding]);
        }
    };
    // A key that is missing is at the table that it belongs to.
    let start_of = |key: &str| {
        let mut key = key;
        loop {
            if let Some((_, span)) = ends.iter().find(|(other, _)| other == key) {
                return span.start;
            }
            key = key
                .rfind(['.', '['])
                .and_then(|end| key.get(..end))
                .unwrap_or_default();
        }
    };
    let broken = check::rules(&config).into_iter();
    let finding = |(key, message, expected): (String, &str, &str)| Finding {
        at: start_of(&key),
        key,
        message: message.to_owned(),
        expected: Some(expected.to_owned()),
        suggestion: None,
    };
    let broken = broken.map(finding).collect();
    (Some(config), broken)
}

/// The values of a document without their places, and their places.
#[derive(Default)]
struct Reading {
    /// Offset at which each key begins.
    starts: Vec<(String, usize)>,
    /// Range of each value.
    ends: Vec<(String, std::ops::Range<usize>)>,
}

impl Reading {
    fn tree(&mut self, value: &Spanned<DeValue<'_>>, key: &str) -> Value {
        self.ends.push((key.to_owned(), value.span()));
        match value.get_ref() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(number) => {
                let number = check::integer(number);
                let signed = number.and_then(|number| i64::try_from(number).ok());
                let unsigned = number.and_then(|number| u64::try_from(number).ok());
                signed.map_or_else(|| unsigned.into(), Value::from)
            }
            DeValue::Float(number) => {
                let number = number.as_str().parse().ok().and_then(Number::from_f64);
                number.map_or(Value::Null, Value::Number)
            }
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Datetime(moment) => Value::String(moment.to_string()),
            DeValue::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (place, item) in items.iter().enumerate() {
                    let key = format!("{key}[{place}]");
                    self.starts.push((key.clone(), item.span().start));
                    list.push(self.tree(item, &key));
                }
                Value::Array(list)
            }
            DeValue::Table(table) => {
                let mut members = Map::new();
                for (name, member) in table {
                    let key = joined(key, name.get_ref());
                    self.starts.push((key.clone(), name.span().start));
                    members.insert(name.get_ref().to_string(), self.tree(member, &key));
                }
                Value::Object(members)
            }
        }
    }
}

/// The lines of a text.
struct Lines<'t> {
    file: String,
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn new(path: &Path, text: &'t str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            file: path.display().to_string(),
            text,
            starts: std::iter::once(0).chain(breaks).collect(),
        }
    }

    /// Line and column of a place, both from 1; the column in characters.
    fn place(&self, at: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= at);
        let start = line.checked_sub(1).and_then(|line| self.starts.get(line));
        let before = self.text.get(start.copied().unwrap_or(0)..at);
        (line, before.unwrap_or_default().chars().count() + 1)
    }

    fn mistake(&self, finding: Finding) -> Mistake {
        let (line, column) = self.place(finding.at);
        Mistake {
            file: self.file.clone(),
            line,
            column,
            key: finding.key,
            message: finding.message,
            expected: finding.expected,
            suggestion: finding.suggestion,
        }
    }

    fn no_toml(&self, error: &toml::de::Error) -> Mistake {
        let message = error.message().lines().next().unwrap_or_default();
        self.mistake(Finding {
            at: error.span().map_or(0, |span| span.start),
            key: String::new(),
            message: message.to_owned(),
            expected: None,
            suggestion: None,
        })
    }

    fn whole(&self, message: String) -> Mistake {
        Mistake {
            line: 0,
            column: 0,
            ..self.mistake(Finding {
                at: 0,
                key: String::new(),
                message,
                expected: None,
                suggestion: None,
            })
        }
    }
}
