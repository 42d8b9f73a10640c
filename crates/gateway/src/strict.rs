//! Strict JSON deserialization: an object for each struct, a string for each choice.
//!
//! Derived deserialization of a struct also accepts an array of its members in their order, and of a choice
//! also an object with one member. No author intends that, so it is a mistake or an attack.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{
    DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor,
};
use serde_json::{Error, Value};

/// Parses a text.
pub(crate) fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    // From the text first: it detects duplicate members, which a value no longer has.
    let read = serde_json::from_str(text)?;
    if !text.trim_ascii_start().starts_with(['{', '[']) {
        return Ok(read);
    }
    from_value(serde_json::from_str(text)?)
}

/// Parses the bytes of a text.
pub(crate) fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    from_str(std::str::from_utf8(bytes).map_err(Error::custom)?)
}

/// Deserializes a value.
pub(crate) fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    T::deserialize(Strict(value))
}

struct Strict(Value);

impl Strict {
    fn unexpected(&self, expected: &'static str) -> Error {
        let found = match &self.0 {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(_) => Unexpected::Other("number"),
            // The content may be personal.
            Value::String(_) => Unexpected::Other("string"),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        };
        Error::invalid_type(found, &expected)
    }
}

impl<'de> Deserializer<'de> for Strict {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => {
                visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(Strict)))
            }
            Value::Object(members) => {
                let members = members.into_iter();
                visitor.visit_map(MapDeserializer::new(
                    members.map(|(name, value)| (name, Strict(value))),
                ))
            }
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                plain.deserialize_any(visitor)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.0.is_object() {
            self.deserialize_any(visitor)
        } else {
            Err(self.unexpected("an object"))
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(name.into_deserializer()),
            other => Err(Strict(other).unexpected("a string")),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

impl IntoDeserializer<'_, Error> for Strict {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use countersign::contract::RequestEnvelope;

    use super::*;

    #[track_caller]
    fn check(text: &str, is_read: bool) {
        let read = from_str::<RequestEnvelope>(text);
        assert_eq!(read.is_ok(), is_read, "{text}: {read:?}");
    }

    #[test]
    fn only_objects_are_objects() {
        let whole = r#"{"request_id": "r", "actor": {"type": "agent", "id": "a"}, "dry_run": true,
            "client": {"app": "a", "version": "1"}, "locale": null, "trace": {"trace_id": "1"}}"#;
        check(whole, true);
        assert_eq!(
            from_str::<RequestEnvelope>(whole).unwrap(),
            serde_json::from_str(whole).unwrap()
        );
        check(r#"["r"]"#, false);
        check(r#"{"actor": ["agent", "local"]}"#, false);
        check(r#"{"actor": {"type": {"agent": null}, "id": "a"}}"#, false);
        check(r#"{"client": ["a", "1"]}"#, false);
        check(r#"{"trace": ["a"]}"#, false);
        check(r#"{"user_id": "a", "user_id": "b"}"#, false);
        check(r#"{"other": 1}"#, false);
    }
}
