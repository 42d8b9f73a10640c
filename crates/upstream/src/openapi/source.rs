//! The text of a document as a tree: JSON or YAML, members in their order, each with its line.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use super::DocumentError;

/// The largest document, in bytes. The largest that is known has 47 megabytes.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 20;

/// The most values of a document. YAML can name the same values again and again.
const NODES_MAX: u32 = 8_000_000;

/// The most bytes of texts that are copied: more than any document has, and less than an anchor can make of one.
const COPIED_BYTES_MAX: usize = 2 * DOCUMENT_BYTES_MAX;

/// Bytes in which a name with escapes is sought.
const SOUGHT_BYTES: usize = 16 << 10;

/// A value of a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node<'t> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'t, str>),
    List(Vec<Self>),
    Object(Vec<Member<'t>>),
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member<'t> {
    pub(crate) name: Cow<'t, str>,
    /// Place of the name in the text, in bytes.
    pub(crate) at: u32,
    pub(crate) node: Node<'t>,
}

/// A text and its tree.
#[derive(Debug)]
pub(crate) struct Source<'t> {
    pub(crate) root: Node<'t>,
    /// Starts of the lines, in bytes.
    lines: Vec<u32>,
}

impl<'t> Source<'t> {
    /// Reads a text. What starts with a brace is JSON, anything else is YAML.
    pub(crate) fn read(text: &'t str) -> Result<Self, DocumentError> {
        if text.len() > DOCUMENT_BYTES_MAX {
            return Err(DocumentError::TooLarge { bytes: text.len() });
        }
        let text = text.trim_start_matches('\u{feff}');
        let reading = Reading {
            text,
            last: Cell::new(0),
            nodes: Cell::new(0),
            copied: Cell::new(0),
        };
        let root = if text.trim_start().starts_with('{') {
            reading.json()?
        } else {
            reading.yaml()?
        };
        let breaks = text.match_indices('\n').map(|(at, _)| at as u32 + 1);
        Ok(Self {
            root,
            lines: std::iter::once(0).chain(breaks).collect(),
        })
    }

    /// The line of a place, from 1.
    pub(crate) fn line(&self, at: u32) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }
}

impl<'t> Node<'t> {
    /// The member of this name; the last one if there are several.
    pub(crate) fn member(&self, name: &str) -> Option<&Member<'t>> {
        self.members().iter().rev().find(|it| it.name == name)
    }

    /// The value of the member of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.member(name).map(|member| &member.node)
    }

    /// The members of an object; none of anything else.
    pub(crate) fn members(&self) -> &[Member<'t>] {
        match self {
            Self::Object(members) => members,
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => &[],
        }
    }

    /// The items of a list; none of anything else.
    pub(crate) fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::Object(_) => &[],
        }
    }

    /// The text, if it is one.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// The text of a member.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_text()
    }

    /// True if the member of this name is `true`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some(&Self::Bool(true))
    }

    /// The boolean of a member.
    pub(crate) fn bool(&self, name: &str) -> Option<bool> {
        match self.get(name) {
            Some(Self::Bool(value)) => Some(*value),
            Some(_) | None => None,
        }
    }

    /// The items of a list member.
    pub(crate) fn list(&self, name: &str) -> &[Self] {
        self.get(name).map_or(&[], Self::items)
    }

    /// True if it is an object.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// The value as JSON.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.to_string()),
            Self::List(items) => items.iter().map(Self::value).collect(),
            Self::Object(members) => {
                let member = |it: &Member<'t>| (it.name.to_string(), it.node.value());
                Value::Object(members.iter().map(member).collect())
            }
        }
    }
}

/// State of reading a text.
struct Reading<'t> {
    text: &'t str,
    /// Place of the last text that was read.
    last: Cell<usize>,
    nodes: Cell<u32>,
    /// Bytes of texts that do not stand in the document as they are. YAML can name the same text again and again.
    copied: Cell<usize>,
}

impl<'t> Reading<'t> {
    fn json(&self) -> Result<Node<'t>, DocumentError> {
        let mut reader = serde_json::Deserializer::from_str(self.text);
        let read = Seed(self).deserialize(&mut reader);
        let read = read.and_then(|node| reader.end().map(|()| node));
        read.map_err(|error| DocumentError::NotJson {
            line: error.line(),
            source: error,
        })
    }

    fn yaml(&self) -> Result<Node<'t>, DocumentError> {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_events: 4 * NODES_MAX as usize,
                max_nodes: NODES_MAX as usize,
            },
            duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
            strict_booleans: true,
            with_snippet: false,
        };
        let read =
            serde_saphyr::with_deserializer_from_str_with_options(self.text, options, |it| {
                Seed(self).deserialize(it)
            });
        read.map_err(|error| DocumentError::NotYaml {
            line: error.location().map_or(0, |at| at.line() as usize),
            source: Box::new(error),
        })
    }

    /// The place of a text that was taken from the document as it stands there.
    fn place(&self, part: &str) -> Option<usize> {
        let start = (part.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize)?;
        (start + part.len() <= self.text.len()).then_some(start)
    }

    fn seen(&self, part: &str) -> u32 {
        if let Some(at) = self.place(part) {
            self.last.set(at);
        }
        self.last.get() as u32
    }

    /// The place of a name that was written with escapes: behind the last text, such as `\/` for a slash.
    fn sought(&self, name: &str) -> u32 {
        let rest = self.text.get(self.last.get()..).unwrap_or_default();
        // A name that is written in yet another way is not found at all.
        let mut end = rest.len().min(SOUGHT_BYTES);
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let near = rest.get(..end).unwrap_or_default();
        let written = name.replace('/', "\\/");
        if let Some(at) = near.find(&written) {
            self.last.set(self.last.get() + at);
        }
        self.last.get() as u32
    }

    /// Counts a text that is copied.
    fn copy<E: serde::de::Error>(&self, text: &str) -> Result<(), E> {
        let copied = self.copied.get().saturating_add(text.len());
        self.copied.set(copied);
        if copied > COPIED_BYTES_MAX {
            return Err(E::custom("its anchors name too much text again"));
        }
        Ok(())
    }

    fn count<E: serde::de::Error>(&self) -> Result<(), E> {
        self.nodes.set(self.nodes.get() + 1);
        if self.nodes.get() > NODES_MAX {
            return Err(E::custom(format_args!(
                "it has more than {NODES_MAX} values"
            )));
        }
        Ok(())
    }
}

/// Reads any value.
struct Seed<'r, 't>(&'r Reading<'t>);

impl<'de> DeserializeSeed<'de> for Seed<'_, 'de> {
    type Value = Node<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node<'de>, D::Error> {
        self.0.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, 'de> {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node<'de>, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node<'de>, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node<'de>, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node<'de>, E> {
        Ok(Number::from_f64(value).map_or(Node::Null, Node::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Node<'de>, E> {
        self.0.seen(text);
        Ok(Node::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Node<'de>, E> {
        self.0.copy(text)?;
        Ok(Node::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Node<'de>, E> {
        self.0.copy(&text)?;
        Ok(Node::Text(Cow::Owned(text)))
    }

    fn visit_unit<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(Seed(self.0))? {
            items.push(item);
        }
        items.shrink_to_fit();
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some((name, at)) = map.next_key_seed(Key(self.0))? {
            let node = map.next_value_seed(Seed(self.0))?;
            members.push(Member { name, at, node });
        }
        members.shrink_to_fit();
        Ok(Node::Object(members))
    }
}

/// Reads the name of a member and its place.
struct Key<'r, 't>(&'r Reading<'t>);

impl<'de> DeserializeSeed<'de> for Key<'_, 'de> {
    type Value = (Cow<'de, str>, u32);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key<'_, 'de> {
    type Value = (Cow<'de, str>, u32);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        let at = self.0.seen(name);
        Ok((Cow::Borrowed(name), at))
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
        self.0.copy(name)?;
        let at = self.0.sought(name);
        Ok((Cow::Owned(name.to_owned()), at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_of(text: &str, names: &[&str]) -> usize {
        let source = Source::read(text).unwrap();
        let mut node = &source.root;
        let mut at = 0;
        for name in names {
            let member = node.member(name).unwrap();
            (node, at) = (&member.node, member.at);
        }
        source.line(at)
    }

    /// B15: a refusal names the line, in JSON and in YAML, with escapes too.
    #[test]
    fn every_member_has_its_line() {
        let json =
            "{\n \"openapi\": \"3.0.0\",\n \"paths\": {\n  \"\\/pets\": {\n   \"get\": {}}}}";
        assert_eq!(line_of(json, &["paths", "/pets"]), 4);
        assert_eq!(line_of(json, &["paths", "/pets", "get"]), 5);
        let yaml = "openapi: 3.0.0\npaths:\n  /pets:\n    # a comment\n    get:\n      responses:\n        200: {description: ok}\n";
        assert_eq!(line_of(yaml, &["paths", "/pets", "get"]), 5);
        assert_eq!(
            line_of(yaml, &["paths", "/pets", "get", "responses", "200"]),
            7
        );
    }

    #[test]
    fn anchors_are_followed_and_bounded() {
        let yaml = "a: &a {x: 1}\nb: *a\n";
        let source = Source::read(yaml).unwrap();
        assert_eq!(source.root.get("b"), source.root.get("a"));
        let mut bomb = String::from("a: &a [x,x,x,x,x,x,x,x,x,x]\n");
        for (last, next) in "abcdefghi".chars().zip("bcdefghij".chars()) {
            let many = vec![format!("*{last}"); 10].join(",");
            bomb += &[
                &next.to_string(),
                ": &",
                &next.to_string(),
                " [",
                &many,
                "]\n",
            ]
            .concat();
        }
        assert!(Source::read(&bomb).is_err());
        let long = "x".repeat(1 << 20);
        let many = "- *a\n".repeat(1_000);
        let repeated = format!("a: &a {long}\nb:\n{many}");
        assert!(Source::read(&repeated).is_err());
    }

    #[test]
    fn what_is_no_document_is_told_with_its_line() {
        let check = |text: &str, line: usize| match Source::read(text) {
            Err(
                DocumentError::NotJson { line: found, .. }
                | DocumentError::NotYaml { line: found, .. },
            ) => {
                assert_eq!(found, line, "{text}");
            }
            other => panic!("{text}: {other:?}"),
        };
        check("{\n \"a\": 1,\n}", 3);
        check("a: 1\nb: [1, 2\n", 2);
        assert!(Source::read(&format!("{}{}", "[".repeat(100_000), "{".repeat(9))).is_err());
        assert!(Source::read(&format!("{{\"a\":{}", "[".repeat(100_000))).is_err());
    }
}
