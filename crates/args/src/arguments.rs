//! Bound arguments: strict JSON that the declaration accepts.

use std::sync::Arc;

use serde::de::{self, DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::Value;
use serde_json::value::RawValue;

/// Arguments after binding: strict JSON text that the tool's declaration accepts.
///
/// The text keeps the spelling of every number, so no number goes through a float.
///
/// # Example
///
/// ```
/// use countersign_args::Arguments;
///
/// let arguments = Arguments::from_json(r#"{"price": 0.10}"#)?;
/// assert_eq!(arguments.as_json(), r#"{"price": 0.10}"#);
/// assert!(Arguments::from_json("[1]").is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    json: Arc<str>,
}

impl Arguments {
    /// Creates arguments from text that the binder has just checked.
    pub(crate) fn from_checked(json: impl Into<Arc<str>>) -> Self {
        Self { json: json.into() }
    }

    /// Creates arguments from text that is already one JSON object, for arguments that no model wrote.
    ///
    /// The text is kept as it is. The caller must know that a declaration accepts it.
    ///
    /// # Errors
    ///
    /// The text is not JSON, or JSON of another type than an object.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        let json = json.trim_ascii();
        serde_json::from_str::<AnyObject>(json)?;
        Ok(Self::from_checked(json))
    }

    /// The JSON text.
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// Parses the arguments as a typed value.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.json)
    }

    /// Parses the arguments as a JSON value. Integers beyond 64 bits and long decimals are rounded here, and
    /// only here.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(&self.json).unwrap_or(Value::Null)
    }
}

/// Serialized as JSON, each number in its own spelling.
impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.json).map_err(ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_json(raw.get()).map_err(de::Error::custom)
    }
}

/// Reads an object to its end and discards it.
struct AnyObject;

impl<'de> Deserialize<'de> for AnyObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self)
    }
}

impl<'de> Visitor<'de> for AnyObject {
    type Value = Self;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let arguments = Arguments::from_json(text).ok();
        assert_eq!(arguments.as_ref().map(Arguments::as_json), expected);
    }

    /// Numbers keep their spelling through serde, too.
    #[test]
    fn arguments_survive_serde() {
        let text = r#"{"n":123456789012345678901234567890,"m":[1.10,{"a":1e3}]}"#;
        let arguments = Arguments::from_json(text).unwrap();
        assert_eq!(serde_json::to_string(&arguments).unwrap(), text);
        let read: Arguments = serde_json::from_str(text).unwrap();
        assert_eq!(read, arguments);
        assert!(serde_json::from_str::<Arguments>("[1]").is_err());
    }

    #[test]
    fn one_whole_object_is_kept_as_it_is() {
        check("{}", Some("{}"));
        check(
            " {\"n\": 1.10, \"m\": [{}]}\n",
            Some("{\"n\": 1.10, \"m\": [{}]}"),
        );
        for other in ["", "null", "[]", "\"{}\"", "{} {}", "{\"a\": }", "{a: 1}"] {
            check(other, None);
        }
    }
}
