//! A file that was read, with the files that it includes: the values, and the place of each in its text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use countersign_upstream::Manifest;
use countersign_upstream::manifest::Step;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use crate::check;
use crate::mistake::{Mistake, Mistakes};

mod part;

use part::Part;

/// A configuration file that can be used, with the files that it includes.
#[derive(Debug, Clone)]
pub struct Document {
    path: PathBuf,
    text: String,
    tree: Value,
    /// The included files, in their order, then this one.
    files: Vec<PathBuf>,
    /// The place of every key.
    places: BTreeMap<String, Place>,
}

/// A place in a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Number of the file.
    pub(crate) file: usize,
    /// Line, from 1.
    pub(crate) line: usize,
    /// Column, from 1.
    pub(crate) column: usize,
}

impl Document {
    /// Reads the text of a file that includes no other. Fails with all mistakes.
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
        let alone = || std::io::Error::other("this file is read alone");
        Self::parse_with(path, text, &mut |_| Err(alone()))
    }

    /// Reads the text of a file and, through `read`, the files that it includes. Fails with all mistakes.
    ///
    /// Entries of included files stand before those of the file itself, so that the file's own settings of a tool win.
    ///
    /// # Example
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use countersign_config::Document;
    ///
    /// let text = "include = ['crm.toml']\n[shop]\nenabled = false\n";
    /// let document = Document::parse_with("etc/countersign.toml", text, &mut |path| {
    ///     assert_eq!(path, Path::new("etc/crm.toml"));
    ///     Ok("[[upstream]]\nname = 'crm'\nbase_url = 'https://crm.example'\n".to_owned())
    /// })?;
    /// assert_eq!(document.files(), [Path::new("etc/crm.toml"), Path::new("etc/countersign.toml")]);
    /// # Ok::<(), countersign_config::Mistakes>(())
    /// ```
    pub fn parse_with(
        path: impl Into<PathBuf>,
        text: &str,
        read: &mut dyn FnMut(&Path) -> std::io::Result<String>,
    ) -> Result<Self, Mistakes> {
        match Self::examine(path, text, read) {
            (Some(document), mistakes) if mistakes.is_empty() => Ok(document),
            (_, mistakes) => Err(Mistakes(mistakes)),
        }
    }

    /// Reads the same, and lists all mistakes. The document is there where what is left without them can be read: for a look at what
    /// stands behind it, and for nothing else.
    pub fn examine(
        path: impl Into<PathBuf>,
        text: &str,
        read: &mut dyn FnMut(&Path) -> std::io::Result<String>,
    ) -> (Option<Self>, Vec<Mistake>) {
        let path = path.into();
        let (own, mut mistakes) = Part::read(&path, text);
        let Some(own) = own else {
            return (None, mistakes);
        };
        let is_mixed = !mistakes.is_empty();
        let mut parts = Vec::new();
        let mut is_whole = true;
        for (at, include) in own.config.include.iter().enumerate() {
            let included = path.parent().unwrap_or(Path::new("")).join(include);
            let part = match read(&included) {
                Ok(text) => {
                    let (part, wrong) = Part::read(&included, &text);
                    mistakes.extend(wrong);
                    part.map(Part::included)
                }
                Err(error) => {
                    let message = format!("{} cannot be read: {error}", included.display());
                    let key = format!("include[{at}]");
                    Some(Err(Mistakes(vec![own.mistake(&key, message)])))
                }
            };
            match part {
                Some(Ok(part)) => parts.push(part),
                Some(Err(wrong)) => {
                    is_whole = false;
                    mistakes.extend(wrong.0);
                }
                None => is_whole = false,
            }
        }
        parts.push(own);
        // What only follows from another mistake is not told.
        if is_whole {
            let further = complaints(&parts).into_iter();
            let further: Vec<_> = further
                .filter(|further| !mistakes.iter().any(|known| explains(known, further)))
                .collect();
            mistakes.extend(further);
        }
        if is_mixed {
            mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
        }
        mistakes.truncate(check::MISTAKES_MAX);
        let document = Self {
            path,
            text: text.to_owned(),
            files: parts.iter().map(|part| part.path.clone()).collect(),
            places: places(&parts),
            tree: joined_tree(parts),
        };
        (Some(document), mistakes)
    }

    /// True if a text is valid TOML, whatever its keys are.
    pub fn is_toml(text: &str) -> bool {
        DeTable::parse(text).is_ok()
    }

    /// The file, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text of the file itself.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The files that it was read from: the included ones in their order, then the file itself.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Line and column of a key, where a file has it.
    pub fn place(&self, key: &str) -> Option<(usize, usize)> {
        let place = self.places.get(key)?;
        Some((place.line, place.column))
    }

    /// Returns the last key of the file itself that begins at this place or before it, both from 1; empty if there is none.
    pub fn key_at(&self, line: usize, column: usize) -> &str {
        let own = self.files.len().saturating_sub(1);
        let is_before =
            |place: &Place| place.file == own && (place.line, place.column) <= (line, column);
        let places = self.places.iter().filter(|(_, place)| is_before(place));
        let last = places.max_by_key(|(_, place)| **place);
        last.map_or("", |(key, _)| key)
    }

    /// The keys that the files have, with their places.
    pub(crate) fn places(&self) -> &BTreeMap<String, Place> {
        &self.places
    }

    pub(crate) fn tree(&self) -> &Value {
        &self.tree
    }

    /// Builds a mistake at a key. If the key is missing, the place is the table that it belongs to.
    pub fn mistake(&self, key: &str, message: impl Into<String>) -> Mistake {
        let place = above(key).find_map(|key| self.places.get(key));
        let file = place.and_then(|place| self.files.get(place.file));
        Mistake {
            file: file.unwrap_or(&self.path).display().to_string(),
            line: place.map_or(0, |place| place.line),
            column: place.map_or(0, |place| place.column),
            key: key.to_owned(),
            message: message.into(),
            expected: None,
            suggestion: None,
        }
    }
}

/// The key of a member of a table, in quotation marks where TOML needs them.
pub fn key_below(table: &str, name: &str) -> String {
    check::joined(table, name)
}

/// The files that a text includes, as far as it can be read; their paths count from the folder of the file.
pub fn includes(path: &Path, text: &str) -> Vec<PathBuf> {
    let (table, _) = DeTable::parse_recoverable(text);
    let folder = path.parent().unwrap_or(Path::new(""));
    let list = table.get_ref().get("include").map(toml::Spanned::get_ref);
    let Some(DeValue::Array(items)) = list else {
        return Vec::new();
    };
    let names = items.iter().filter_map(|item| match item.get_ref() {
        DeValue::String(name) => Some(folder.join(&**name)),
        _ => None,
    });
    names.collect()
}

/// A key, the table or list that it is in, and so on up to the whole document.
fn above(key: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(key), |key| {
        let end = key.rfind(['.', '[']).unwrap_or(0);
        (!key.is_empty()).then(|| key.get(..end).unwrap_or_default())
    })
}

/// The lists that the files of a configuration have together.
const ENTRIES: [&str; 2] = ["upstream", "tool"];

/// A key of one file as a key of all: entries are counted over all files.
fn shifted(key: &str, before: [usize; 2]) -> String {
    for (list, before) in ENTRIES.into_iter().zip(before) {
        let numbered = key.strip_prefix(list).and_then(|it| it.strip_prefix('['));
        if let Some((number, rest)) = numbered.and_then(|it| it.split_once(']'))
            && let Ok(number) = number.parse::<usize>()
        {
            return format!("{list}[{}]{rest}", number + before);
        }
    }
    key.to_owned()
}

/// The places of all keys of all parts.
fn places(parts: &[Part]) -> BTreeMap<String, Place> {
    let mut places = BTreeMap::new();
    let mut before = [0; 2];
    for (file, part) in parts.iter().enumerate() {
        for (key, &(line, column)) in &part.keys {
            let place = Place { file, line, column };
            places.insert(shifted(key, before), place);
        }
        before = counted(before, part);
    }
    places
}

fn counted(before: [usize; 2], part: &Part) -> [usize; 2] {
    let [upstreams, tools] = before;
    let [upstream, tool] = ENTRIES.map(|list| part.count(list));
    [upstreams + upstream, tools + tool]
}

/// The values of the last part, with the entries of all.
fn joined_tree(parts: Vec<Part>) -> Value {
    let mut lists = ENTRIES.map(|_| Vec::new());
    let mut tree = Value::Null;
    for part in parts {
        tree = part.tree;
        for (list, all) in ENTRIES.into_iter().zip(&mut lists) {
            if let Some(Value::Array(items)) = tree.get_mut(list) {
                all.append(items);
            }
        }
    }
    if let Some(members) = tree.as_object_mut() {
        for (list, all) in ENTRIES.into_iter().zip(lists) {
            if !all.is_empty() {
                members.insert(list.to_owned(), Value::Array(all));
            }
        }
    }
    tree
}

/// True if one mistake is the reason of another: the key was misspelt, or a value was taken out of the same entry. A key that does not
/// exist took nothing away.
fn explains(known: &Mistake, further: &Mistake) -> bool {
    let entry = |key: &str| key.split_once(']').map(|(entry, _)| entry.to_owned());
    let is_misspelt = known.suggestion.as_deref() == Some(further.key.as_str());
    let took_away = !check::is_unknown(&known.message)
        && entry(&known.key).is_some()
        && entry(&known.key) == entry(&further.key);
    known.file == further.file && (is_misspelt || took_away)
}

/// Lists the mistakes in the entries of all parts together.
fn complaints(parts: &[Part]) -> Vec<Mistake> {
    let all = || parts.iter().map(|part| &part.config);
    let manifest = Manifest {
        upstream: all().flat_map(|it| it.upstream.clone()).collect(),
        tool: all().flat_map(|it| it.tool.clone()).collect(),
    };
    let definitions = manifest.tool.iter().filter(|entry| entry.is_definition());
    let defined: BTreeSet<&str> = definitions.map(|entry| entry.name.as_str()).collect();
    // An entry about a tool that no entry defines is about one of the program.
    let complaints = manifest.check_beside(|name| !defined.contains(name));
    let mut mistakes = Vec::new();
    let mut before = [0; 2];
    for (number, part) in parts.iter().enumerate() {
        let after = counted(before, part);
        for complaint in &complaints {
            let mut at = complaint.at.clone();
            let list = ENTRIES
                .iter()
                .position(|list| at.first() == Some(&Step::Key((*list).to_owned())));
            if let (Some(list), Some(Step::Item(item))) = (list, at.get_mut(1))
                && let (Some(&first), Some(&end)) = (before.get(list), after.get(list))
                && (first..end).contains(item)
            {
                *item -= first;
                let key = check::key_of(&at);
                let found = part.mistake(&key, complaint.message.clone());
                mistakes.push((number, found.line, found.column, found));
            }
        }
        before = after;
    }
    mistakes.sort_by_key(|(number, line, column, _)| (*number, *line, *column));
    mistakes.into_iter().map(|(.., found)| found).collect()
}
