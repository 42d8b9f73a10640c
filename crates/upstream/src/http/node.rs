//! A bound argument as a tree whose numbers keep their spelling: what paths, queries, headers and forms are written from.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A value of the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    /// Null: nothing is sent.
    Null,
    /// A text, a number or a boolean, as it is written outside JSON.
    Scalar(String),
    /// A list.
    List(Vec<Self>),
    /// An object, in the order of its members.
    Object(Vec<(String, Self)>),
}

impl Node {
    /// Reads JSON text; bound arguments are JSON, so there is always a tree.
    pub(crate) fn read(json: &str) -> Self {
        match json.trim_ascii().as_bytes().first() {
            Some(b'"') => Self::Scalar(serde_json::from_str(json).unwrap_or_default()),
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
                Self::List(
                    items
                        .into_iter()
                        .map(|item| Self::read(item.get()))
                        .collect(),
                )
            }
            Some(b'{') => {
                let members: Members = serde_json::from_str(json).unwrap_or_default();
                let read = |(name, value): (String, Box<RawValue>)| (name, Self::read(value.get()));
                Self::Object(members.0.into_iter().map(read).collect())
            }
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Scalar(json.trim_ascii().to_owned()),
        }
    }

    /// The value as one text: a scalar as it is, anything else as JSON.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Scalar(text) => text.clone(),
            Self::Null => String::new(),
            Self::List(items) => items.iter().map(Self::text).collect::<Vec<_>>().join(","),
            Self::Object(members) => {
                let pair = |(name, value): &(String, Self)| format!("{name},{}", value.text());
                members.iter().map(pair).collect::<Vec<_>>().join(",")
            }
        }
    }
}

/// The members of a JSON object in their order, each value as its text.
#[derive(Debug, Default)]
pub(crate) struct Members(pub(crate) Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers never go through a double.
    #[test]
    fn numbers_keep_their_spelling() {
        let node =
            Node::read(r#" {"a": 12345678901234567890123, "b": [1.10, "x\"y", true, null]} "#);
        let scalar = |text: &str| Node::Scalar(text.to_owned());
        let list = vec![scalar("1.10"), scalar("x\"y"), scalar("true"), Node::Null];
        let expected = vec![
            ("a".to_owned(), scalar("12345678901234567890123")),
            ("b".to_owned(), Node::List(list)),
        ];
        assert_eq!(node, Node::Object(expected));
    }
}
