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

    /// Reads JSON text one level deep: a list or an object inside another is its JSON text, because no style but `deepObject` says how
    /// it would be written.
    pub(crate) fn read_flat(json: &str) -> Self {
        let inner = |value: &RawValue| match value.get().trim_ascii().as_bytes().first() {
            Some(b'[' | b'{') => Self::Scalar(value.get().trim_ascii().to_owned()),
            Some(_) | None => Self::read(value.get()),
        };
        match json.trim_ascii().as_bytes().first() {
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
                Self::List(items.into_iter().map(inner).collect())
            }
            Some(b'{') => {
                let members: Members = serde_json::from_str(json).unwrap_or_default();
                let members = members.0.into_iter();
                Self::Object(members.map(|(name, value)| (name, inner(&value))).collect())
            }
            Some(_) | None => Self::read(json),
        }
    }

    /// The value as one text: the items of a list, or the names and values of an object, with commas between them.
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

    #[test]
    fn what_is_inside_stays_json_where_no_style_writes_it() {
        let scalar = |text: &str| Node::Scalar(text.to_owned());
        let list = Node::read_flat(r#"[ {"a": 1.10}, "x", [2]]"#);
        let items = vec![scalar(r#"{"a": 1.10}"#), scalar("x"), scalar("[2]")];
        assert_eq!(list, Node::List(items));
        let object = Node::read_flat(r#"{"a": {"b": "c"}}"#);
        let members = vec![("a".to_owned(), scalar(r#"{"b": "c"}"#))];
        assert_eq!(object, Node::Object(members));
    }
}
