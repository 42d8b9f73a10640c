//! Numbers of an answer that a reply cannot hold as numbers: no digit is lost without a word.

use std::borrow::Cow;

/// JSON whose integers beyond 64 bits are written as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kept<'t> {
    pub(crate) text: Cow<'t, str>,
    pub(crate) digits: Digits,
}

/// Numbers of an answer that are not handed on as they were written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Digits {
    /// True if an integer is written as text.
    pub(crate) has_text: bool,
    /// True if a decimal number has digits that a double does not keep.
    pub(crate) is_rounded: bool,
}

/// Fewest digits of a number that a double may not keep.
const DIGITS_MIN: usize = 16;

/// Writes JSON so that its integers keep their digits. A text that is no JSON stays none.
pub(crate) fn kept(json: &str) -> Kept<'_> {
    let mut kept = Kept {
        text: Cow::Borrowed(json),
        digits: Digits::default(),
    };
    if !has_long_run(json.as_bytes()) {
        return kept;
    }
    let mut written = String::with_capacity(json.len() + 16);
    let mut rest = json;
    while let Some(at) = rest.find(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        let (before, found) = rest.split_at(at);
        written.push_str(before);
        let is_string = found.starts_with('"');
        let end = if is_string {
            string_end(found)
        } else {
            let is_part = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
            found.find(|c| !is_part(c)).unwrap_or(found.len())
        };
        let (token, behind) = found.split_at(end);
        let is_integer = !token.contains(['.', 'e', 'E']);
        let fits = || token.parse::<i64>().is_ok() || token.parse::<u64>().is_ok();
        if is_string {
            written.push_str(token);
        } else if is_integer && !fits() && is_value(token, behind) {
            kept.digits.has_text = true;
            written.push('"');
            written.push_str(token);
            written.push('"');
        } else {
            kept.digits.is_rounded |= !is_integer && is_rounded(token);
            written.push_str(token);
        }
        rest = behind;
    }
    written.push_str(rest);
    if kept.digits.has_text {
        kept.text = Cow::Owned(written);
    }
    kept
}

/// True if digits are an integer of JSON in the place of a value, so that a string could stand there too: in the place of a name only a
/// string is JSON.
fn is_value(token: &str, behind: &str) -> bool {
    let digits = token.strip_prefix('-').unwrap_or(token);
    let is_written_so =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    is_written_so && !behind.trim_ascii_start().starts_with(':')
}

/// True if digits and points stand so long in a row that some of a number could be lost. Only every 16th byte is looked at.
fn has_long_run(bytes: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let looked_at = (0..bytes.len()).step_by(DIGITS_MIN);
    looked_at
        .filter(|at| bytes.get(*at).is_some_and(is_part))
        .any(|at| {
            let (before, behind) = bytes.split_at(at);
            let before = before.iter().rev().take_while(|byte| is_part(byte));
            let behind = behind.iter().take_while(|byte| is_part(byte));
            before.take(DIGITS_MIN).count() + behind.take(DIGITS_MIN).count() >= DIGITS_MIN
        })
}

/// The end of the string that a text opens with, behind its quotation mark.
fn string_end(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        if byte == b'"' && !is_escaped {
            return at + 1;
        }
        is_escaped = !is_escaped && byte == b'\\';
    }
    text.len()
}

/// True if a decimal number is another one as a double.
fn is_rounded(token: &str) -> bool {
    let digits = |text: &str| -> String {
        let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        digits.trim_matches('0').to_owned()
    };
    let own = digits(token);
    let double = token.parse::<f64>().map(|double| format!("{double:e}"));
    own.len() >= DIGITS_MIN && double.is_ok_and(|double| digits(&double) != own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_kept_or_told() {
        let check = |json: &str, expected: &str, has_text: bool, rounds: bool| {
            let made = kept(json);
            assert_eq!(made.text, expected);
            assert_eq!(
                (made.digits.has_text, made.digits.is_rounded),
                (has_text, rounds),
                "{json}"
            );
        };
        let same = |json: &str, rounds: bool| check(json, json, false, rounds);
        check(
            r#"{"a": 12345678901234567890123, "b\"": [-99999999999999999999], "c": 1}"#,
            r#"{"a": "12345678901234567890123", "b\"": ["-99999999999999999999"], "c": 1}"#,
            true,
            false,
        );
        same("18446744073709551615", false);
        same("-9223372036854775808", false);
        same(
            r#"["12345678901234567890123", "\\", "a\"12345678901234567890123"]"#,
            false,
        );
        same(
            "[0.30000000000000004, 1.7976931348623157e308, 0.10000000000000000]",
            false,
        );
        same("[12345678901234567.89]", true);
        same("[0.1234567890123456789]", true);
        same(r#"{"a": [1, 2, 3.5], "b": "2026-11-17T00:00:00Z"}"#, false);
        same("", false);
    }

    /// The digits are kept before the text is parsed, so a text that is no JSON must not become JSON.
    #[test]
    fn what_is_no_json_stays_none() {
        for text in [
            "{12345678901234567890123: 1}",
            "{12345678901234567890123\n:1}",
            "[0012345678901234567890123]",
            "[12345678901234567890123-1]",
            "[-12345678901234567890123-]",
            "[12345678901234567890123+]",
            "[--12345678901234567890123]",
            "[12345678901234567890123 1]",
            "12345678901234567890123a",
            "\"a\"12345678901234567890123",
        ] {
            let made = kept(text);
            let read = serde_json::from_str::<serde_json::Value>(&made.text);
            assert!(read.is_err(), "{text} became {}", made.text);
        }
    }
}
