//! A cursor over JSON text that keeps the source and the JSON pointer of every value.
//!
//! Arguments must reach the binder byte for byte, so a message is never turned into a [`Value`] on its way in. Each
//! step reads one level; unused members are only skipped.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{DecodeError, MESSAGE_BYTES_MAX, Provenance, RawText};

/// One JSON value with its source text and its JSON pointer.
#[derive(Clone)]
pub(super) struct Node<'a> {
    source: &'a str,
    path: String,
    provenance: Provenance,
}

/// The members of an object, as they are written.
pub(super) struct Entries<'m> {
    pub(super) values: BTreeMap<String, &'m RawValue>,
    /// True if a name stands there more than once.
    pub(super) is_twice: bool,
}

impl<'de: 'm, 'm> Deserialize<'de> for Entries<'m> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = (BTreeMap<String, &'de RawValue>, bool);

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut values, mut is_twice) = (BTreeMap::new(), false);
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    is_twice |= values.insert(name, value).is_some();
                }
                Ok((values, is_twice))
            }
        }

        let (values, is_twice) = deserializer.deserialize_map(Each)?;
        Ok(Self { values, is_twice })
    }
}

/// The members of an object; a member that is null counts as missing.
pub(super) struct Members<'a> {
    values: BTreeMap<String, &'a RawValue>,
    path: String,
    provenance: Provenance,
}

impl<'a> Node<'a> {
    /// Checks that the text is one JSON value of acceptable size.
    pub(super) fn parse(text: &'a str) -> Result<Self, DecodeError> {
        Self::parse_as(text, Provenance::AsSent)
    }

    /// The same for a text with this provenance.
    pub(super) fn parse_as(text: &'a str, provenance: Provenance) -> Result<Self, DecodeError> {
        if text.len() > MESSAGE_BYTES_MAX {
            return Err(DecodeError::TooLarge { bytes: text.len() });
        }
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| DecodeError::NotJson {
            line: error.line(),
            column: error.column(),
        })?;
        Ok(Self {
            source: raw.get(),
            path: String::new(),
            provenance,
        })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The text of the value as it was sent.
    pub(super) fn source(&self) -> &'a str {
        self.source
    }

    pub(super) fn is_array(&self) -> bool {
        self.source.starts_with('[')
    }

    pub(super) fn object(&self) -> Result<Members<'a>, DecodeError> {
        let Entries { values, is_twice } =
            serde_json::from_str(self.source).map_err(|_| self.expected("an object"))?;
        if is_twice {
            return Err(DecodeError::Contradiction {
                path: self.path.clone(),
                what: "a name stands there twice",
            });
        }
        Ok(Members {
            values,
            path: self.path.clone(),
            provenance: self.provenance,
        })
    }

    pub(super) fn array(&self) -> Result<Vec<Self>, DecodeError> {
        let items: Vec<&'a RawValue> =
            serde_json::from_str(self.source).map_err(|_| self.expected("a list"))?;
        let item = |(index, raw): (usize, &'a RawValue)| Self {
            source: raw.get(),
            path: format!("{}/{index}", self.path),
            provenance: self.provenance,
        };
        Ok(items.into_iter().enumerate().map(item).collect())
    }

    pub(super) fn string(&self) -> Result<String, DecodeError> {
        serde_json::from_str(self.source).map_err(|_| self.expected("a text"))
    }

    pub(super) fn number(&self) -> Result<u64, DecodeError> {
        serde_json::from_str(self.source).map_err(|_| self.expected("a whole number"))
    }

    /// The JSON value, for members that are sent back but not interpreted.
    pub(super) fn value(&self) -> Result<Value, DecodeError> {
        serde_json::from_str(self.source).map_err(|_| self.expected("JSON of bounded depth"))
    }

    /// The arguments of a call: the content of a text, or the source of anything else.
    ///
    /// Providers that require an object sometimes send a text, and the other way round; both are accepted.
    pub(super) fn arguments(&self) -> Result<RawText, DecodeError> {
        if self.source.starts_with('"') {
            return Ok(RawText {
                text: self.string()?,
                provenance: Provenance::AsSent,
            });
        }
        Ok(RawText {
            text: self.source.to_owned(),
            provenance: self.provenance,
        })
    }

    /// The error for a value of another type than the dialect requires.
    pub(super) fn expected(&self, expected: &'static str) -> DecodeError {
        DecodeError::Expected {
            path: self.path.clone(),
            expected,
            found: match self.source.bytes().next() {
                Some(b'{') => "an object",
                Some(b'[') => "a list",
                Some(b'"') => "a text",
                Some(b't' | b'f') => "a boolean",
                Some(b'n') => "null",
                _ => "a number",
            },
        }
    }

    /// The error for a feature that the provider has and this dialect does not read.
    pub(super) fn unsupported(&self, what: &'static str) -> DecodeError {
        DecodeError::Unsupported {
            path: self.path.clone(),
            what,
        }
    }
}

impl<'a> Members<'a> {
    pub(super) fn optional(&self, name: &str) -> Option<Node<'a>> {
        let raw = self.values.get(name).filter(|raw| raw.get() != "null")?;
        Some(Node {
            source: raw.get(),
            path: format!("{}/{}", self.path, pointer_segment(name)),
            provenance: self.provenance,
        })
    }

    pub(super) fn required(&self, name: &str) -> Result<Node<'a>, DecodeError> {
        self.optional(name).ok_or_else(|| DecodeError::Missing {
            path: format!("{}/{name}", self.path),
        })
    }

    /// A text; an empty one counts as missing, because some servers send that.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, DecodeError> {
        let text = self.optional(name).map(|node| node.string()).transpose()?;
        Ok(text.filter(|text| !text.is_empty()))
    }

    pub(super) fn required_text(&self, name: &str) -> Result<String, DecodeError> {
        self.text(name)?.ok_or_else(|| DecodeError::Missing {
            path: format!("{}/{name}", self.path),
        })
    }

    /// The arguments under `name`; an empty object if nothing was sent.
    pub(super) fn arguments(&self, name: &str) -> Result<RawText, DecodeError> {
        match self.optional(name) {
            Some(node) => node.arguments(),
            None => Ok(RawText {
                text: "{}".to_owned(),
                provenance: Provenance::Reserialised,
            }),
        }
    }

    /// Every member but these, as an object: the members that have to be sent back unchanged.
    pub(super) fn rest(&self, known: &[&str]) -> Result<Value, DecodeError> {
        let mut rest = serde_json::Map::new();
        for name in self.values.keys() {
            if known.contains(&name.as_str()) {
                continue;
            }
            if let Some(node) = self.optional(name) {
                rest.insert(name.clone(), node.value()?);
            }
        }
        Ok(if rest.is_empty() {
            Value::Null
        } else {
            Value::Object(rest)
        })
    }
}

/// A name as a segment of a JSON pointer.
pub(super) fn pointer_segment(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Sets a member of an object that has just been written.
pub(super) fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(members) = object {
        members.insert(name.to_owned(), value.into());
    }
}
