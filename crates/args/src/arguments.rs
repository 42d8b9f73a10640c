//! Bound arguments: strict JSON that the declaration accepts.

use std::sync::Arc;

use serde::de::{self, DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

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

    /// Parses the arguments as a JSON value in which each number that [`to_value`](Self::to_value) would round is a
    /// string with its spelling; `None` if there is no such number.
    pub fn to_spelled_value(&self) -> Option<Value> {
        let mut spelled = String::with_capacity(self.json.len() + 16);
        let mut has_texts = false;
        let mut rest: &str = &self.json;
        while let Some(at) = rest.find(|sign: char| sign == '"' || is_number_start(sign)) {
            let (before, token) = rest.split_at(at);
            spelled.push_str(before);
            let (token, behind) = token.split_at(token_end(token));
            if token.starts_with('"') || is_kept(token) {
                spelled.push_str(token);
            } else {
                has_texts = true;
                spelled.extend(["\"", token, "\""]);
            }
            rest = behind;
        }
        spelled.push_str(rest);
        has_texts.then(|| serde_json::from_str(&spelled).unwrap_or(Value::Null))
    }
}

fn is_number_start(sign: char) -> bool {
    sign == '-' || sign.is_ascii_digit()
}

/// The length of the string or the number with which a text begins.
fn token_end(text: &str) -> usize {
    if !text.starts_with('"') {
        let is_part = |sign: char| sign.is_ascii_digit() || "+-.eE".contains(sign);
        return text.find(|sign| !is_part(sign)).unwrap_or(text.len());
    }
    let mut is_escaped = true;
    let end = text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 1)
}

/// True if a JSON value holds a number without rounding it.
fn is_kept(number: &str) -> bool {
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    let read = serde_json::from_str::<Number>(number);
    read.is_ok_and(|read| digits(&read.to_string()) == digits(number))
}

/// Sign, significant digits and exponent of a number: the same for every spelling of it.
fn digits(number: &str) -> Option<(bool, String, i64)> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_negative = whole.starts_with('-');
    let all = format!("{}{fraction}", whole.trim_start_matches('-'));
    let significant = all.trim_end_matches('0');
    let exponent: i64 = exponent.parse().ok()?;
    let shift =
        i64::try_from(all.len() - significant.len()).ok()? - i64::try_from(fraction.len()).ok()?;
    let significant = significant.trim_start_matches('0');
    let exponent = if significant.is_empty() {
        0
    } else {
        exponent.checked_add(shift)?
    };
    Some((is_negative, significant.to_owned(), exponent))
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

    /// Only numbers that a value would round become strings; all else stays what it is.
    #[test]
    fn numbers_that_would_be_rounded_are_spelled() {
        let spelled = |text: &str| {
            let value = Arguments::from_json(text).unwrap().to_spelled_value();
            value.map(|value| value.to_string())
        };
        for kept in [
            r#"{"a":9007199254740993,"b":-9223372036854775808,"c":18446744073709551615}"#,
            r#"{"a":1.10,"b":-0.125,"c":1e3,"d":0,"e":-0.0,"f":1E-2,"g":0.1}"#,
            r#"{"a":"123456789012345678901234567890","b\"1":"\\","c":null}"#,
        ] {
            assert_eq!(spelled(kept), None, "{kept}");
        }
        let rounded = r#"{"a":[123456789012345678901234567890,1],"b":"\\\"7","c":-0.12345678901234567891,"d":1e400}"#;
        let expected = r#"{"a":["123456789012345678901234567890",1],"b":"\\\"7","c":"-0.12345678901234567891","d":"1e400"}"#;
        assert_eq!(spelled(rounded).as_deref(), Some(expected));
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
