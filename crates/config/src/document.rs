//! A file that was read: its values, and the place of each in the text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use countersign_upstream::ToolEntry;
use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::check::{self, Finding, Findings, joined};
use crate::mistake::{Mistake, Mistakes};
use crate::schema::{Node, schema};
use crate::sections::Config;

/// A configuration file that can be used.
#[derive(Debug, Clone)]
pub struct Document {
    path: PathBuf,
    text: String,
    tree: Value,
    /// Line and column of every key, both from 1.
    places: BTreeMap<String, (usize, usize)>,
}

impl Document {
    /// Reads the text of a file, or says everything that is wrong with it.
    ///
    /// # Example
    ///
    /// ```
    /// use countersign_config::Document;
    ///
    /// let wrong = Document::parse("countersign.toml", "[server]\nlisten_on = 8787\n").unwrap_err();
    /// assert_eq!(
    ///     wrong.to_string(),
    ///     "countersign.toml:2:1: server.listen_on: there is no such key; did you mean server.listen?"
    /// );
    /// ```
    pub fn parse(path: impl Into<PathBuf>, text: &str) -> Result<Self, Mistakes> {
        let path = path.into();
        let lines = Lines::new(&path, text);
        if text.len() > crate::FILE_BYTES_MAX {
            let message = format!("the file has more than {} bytes", crate::FILE_BYTES_MAX);
            return Err(Mistakes(vec![lines.whole(message)]));
        }
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let mut mistakes: Vec<Mistake> =
                errors.iter().map(|error| lines.no_toml(error)).collect();
            mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
            mistakes.truncate(check::MISTAKES_MAX);
            return Err(Mistakes(mistakes));
        }
        let span = table.span();
        let root = Spanned::new(span, DeValue::Table(table.into_inner()));
        let mut findings = Findings::default();
        let node = Node::new(schema(), schema());
        check::check(&root, &node, "", &mut findings);
        let mut read = Reading::default();
        let tree = read.tree(&root, "");
        if findings.0.is_empty() {
            findings.0.extend(typed(root, &read.ends));
        }
        if !findings.0.is_empty() {
            findings.0.sort_by_key(|finding| finding.at);
            let mistakes = findings.0.into_iter().map(|finding| lines.mistake(finding));
            return Err(Mistakes(mistakes.collect()));
        }
        let places = read.starts.into_iter();
        let places = places.map(|(key, at)| (key, lines.place(at))).collect();
        Ok(Self {
            text: text.to_owned(),
            path,
            tree,
            places,
        })
    }

    /// The file, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of a key, where the file has it.
    pub fn place(&self, key: &str) -> Option<(usize, usize)> {
        self.places.get(key).copied()
    }

    /// The keys that the file has, with their places.
    pub(crate) fn places(&self) -> &BTreeMap<String, (usize, usize)> {
        &self.places
    }

    pub(crate) fn tree(&self) -> &Value {
        &self.tree
    }

    /// Something that is wrong at a key of this file.
    pub fn mistake(&self, key: &str, message: impl Into<String>) -> Mistake {
        let (line, column) = self.place(key).unwrap_or((0, 0));
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
}

/// What the types say of a document that the schema allows.
fn typed(root: Spanned<DeValue<'_>>, ends: &[(String, std::ops::Range<usize>)]) -> Vec<Finding> {
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
    let config = match Config::deserialize(root.into_deserializer()) {
        Ok(config) => config,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            // The innermost value that holds the place.
            let around = ends.iter().filter(|(_, span)| span.contains(&at));
            let key = around.min_by_key(|(_, span)| span.len());
            let message = error.message().lines().next().unwrap_or_default();
            let (message, expected) = match message.strip_prefix("expected ") {
                Some(expected) => ("it does not fit", Some(expected.to_owned())),
                None => (message, None),
            };
            return vec![Finding {
                at,
                key: key.map(|(key, _)| key.clone()).unwrap_or_default(),
                message: message.to_owned(),
                expected,
                suggestion: None,
            }];
        }
    };
    // An entry about a tool that no entry defines is about one of the program.
    let defines = |entry: &ToolEntry, name: &str| entry.name == name && entry.is_definition();
    let is_built_in = |name: &str| !config.tool.iter().any(|entry| defines(entry, name));
    let complaints = config.manifest().check_beside(is_built_in).into_iter();
    let complaints = complaints.map(|complaint| {
        let key = check::key_of(&complaint.at);
        Finding {
            at: start_of(&key),
            key,
            message: complaint.message,
            expected: None,
            suggestion: None,
        }
    });
    let broken = check::rules(&config).into_iter();
    let finding = |(key, message, expected): (&str, &str, &str)| Finding {
        at: start_of(key),
        key: key.to_owned(),
        message: message.to_owned(),
        expected: Some(expected.to_owned()),
        suggestion: None,
    };
    broken.map(finding).chain(complaints).collect()
}

/// The values of a document without their places, and their places.
#[derive(Default)]
struct Reading {
    /// Where each key begins.
    starts: Vec<(String, usize)>,
    /// Where each value is.
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
