//! Numbers of a form, digit for digit. A double would round a long decimal and write `0.10` as `0.1`.
//!
//! A number that a double does not keep is carried as a string with a mark, which only this file writes and takes away.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::LazyLock;

use serde_json::value::RawValue;
use serde_json::{Number, Value};

/// Mark of a number that is carried as a string. Every process draws another one, so that no text of a caller begins with it.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let drawn = RandomState::new().build_hasher().finish();
    format!("\u{E000}{drawn:016x}:")
});

/// A number as it was written; `None` if the text is none.
pub(super) fn number(text: &str) -> Option<Value> {
    let text = text.trim();
    let raw = serde_json::from_str::<&RawValue>(text).ok()?.get();
    if !raw.starts_with(is_start) {
        return None;
    }
    let kept = serde_json::from_str::<Number>(raw).ok();
    let kept = kept.filter(|number| number.to_string() == raw);
    Some(kept.map_or_else(|| Value::from(format!("{}{raw}", *MARK)), Value::Number))
}

/// The text of a string; that of a number without its mark.
pub(super) fn shown(text: &str) -> &str {
    text.strip_prefix(MARK.as_str()).unwrap_or(text)
}

/// Reads JSON and keeps the digits of its numbers.
pub(crate) fn read(json: &str) -> Result<Value, serde_json::Error> {
    let mut marked = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(|sign: char| sign == '"' || is_start(sign)) {
        let (before, token) = rest.split_at(at);
        marked.push_str(before);
        let end = if token.starts_with('"') {
            end_of_string(token)
        } else {
            let is_part = |sign: char| sign.is_ascii_digit() || "+-.eE".contains(sign);
            token.find(|sign| !is_part(sign)).unwrap_or(token.len())
        };
        let (token, behind) = token.split_at(end);
        match number(token) {
            Some(number) => marked.push_str(&number.to_string()),
            None => marked.push_str(token),
        }
        rest = behind;
    }
    marked.push_str(rest);
    serde_json::from_str(&marked)
}

/// Writes JSON on one line.
pub(crate) fn text(value: &Value) -> String {
    unmarked(&value.to_string())
}

/// Writes JSON for people.
pub(crate) fn pretty(value: &Value) -> String {
    unmarked(&serde_json::to_string_pretty(value).unwrap_or_default())
}

/// The arguments of a request: the value itself, or its text if only that has all digits.
pub(crate) fn sent(value: &Value) -> Value {
    let (text, plain) = (text(value), value.to_string());
    if text == plain {
        value.clone()
    } else {
        Value::from(text)
    }
}

fn unmarked(json: &str) -> String {
    let opened = format!("\"{}", *MARK);
    let mut pieces = json.split(&opened);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (number, rest) = piece.split_once('"').unwrap_or((piece, ""));
        text.push_str(number);
        text.push_str(rest);
    }
    text
}

const fn is_start(sign: char) -> bool {
    sign == '-' || sign.is_ascii_digit()
}

/// The length of the string that a text begins with.
fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|(_, sign)| {
        let is_end = *sign == '"' && !is_escaped;
        is_escaped = *sign == '\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Numbers come back with every digit; strings and all else as they are.
    #[test]
    fn digits_come_back() {
        for json in [
            r#"{"a":0.10,"b":[1,-2.50,1e400],"c":"0.10","d":"a\"1.10\\","e":null}"#,
            r#"{"m":1234567890.12345678901234567890,"n":123456789012345678901234567890}"#,
            "1.0",
            "[]",
        ] {
            let read = read(json).unwrap();
            assert_eq!(text(&read), json);
            let again: Value =
                serde_json::from_str(&pretty(&json!({"x": read}))).unwrap_or_default();
            let is_in_range = !json.contains("1e400");
            assert_eq!(again.get("x").is_some(), is_in_range, "{json}");
        }
        for wrong in ["{", "01", "-", "1.", r#"{"a": 1 2}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for (text, expected) in [
            ("7", json!(7)),
            (" 2.5 ", json!(2.5)),
            ("true", json!(null)),
        ] {
            assert_eq!(number(text).unwrap_or_default(), expected, "{text}");
        }
    }

    /// A text that looks like a marked number stays a text: nothing that a model wrote becomes JSON outside its quotes.
    #[test]
    fn a_text_forges_no_number() {
        for json in [
            "{\"a\":\"\u{E000}number:1\"}",
            "{\"a\":\"\u{E000}number:1,\\\"b\\\":2\"}",
            "{\"a\":\"\u{E000}0123456789abcdef:1\"}",
        ] {
            let read = read(json).unwrap();
            assert_eq!(text(&read), json);
            let member = read.get("a").and_then(Value::as_str).unwrap();
            assert_eq!(shown(member), member);
        }
    }

    /// A request has the arguments as a value, unless that would change a number.
    #[test]
    fn a_text_is_sent_where_a_value_would_round() {
        let plain = json!({"a": 1, "b": 2.5});
        assert_eq!(sent(&plain), plain);
        let exact = read(r#"{"a": 0.10}"#).unwrap();
        assert_eq!(sent(&exact), json!(r#"{"a":0.10}"#));
    }
}
