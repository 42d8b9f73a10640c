//! Numbers that the protocol's library would not carry whole: it reads them as 64-bit integers or doubles.

/// The first number of a JSON text that would lose digits on its way.
pub(super) fn lost(json: &str) -> Option<&str> {
    let mut rest = json;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let (_, from) = rest.split_at(at);
        if let Some(text) = from.strip_prefix('"') {
            rest = behind_string(text);
            continue;
        }
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let end = from.find(|c: char| !is_part(c)).unwrap_or(from.len());
        let (number, behind) = from.split_at(end);
        if !is_carried(number) {
            return Some(number);
        }
        rest = behind;
    }
    None
}

/// Returns the text behind a string whose opening quote was read.
fn behind_string(text: &str) -> &str {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return text.get(at + 1..).unwrap_or_default(),
            _ => {}
        }
    }
    ""
}

fn is_carried(number: &str) -> bool {
    if !number.contains(['.', 'e', 'E']) {
        return number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
    }
    // One that is too large becomes infinite and one that is too small becomes zero: neither has the digits.
    let carried = number.parse::<f64>();
    carried.is_ok_and(|own| significant(&format!("{own:e}")) == significant(number))
}

/// The digits of a number without those that only say how large it is.
fn significant(number: &str) -> String {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_lose_digits_are_found() {
        for (json, found) in [
            (
                r#"{"a": [1, -2.50, 1e30], "b": "123456789012345678901234567890"}"#,
                None,
            ),
            ("18446744073709551615", None),
            ("-9223372036854775808", None),
            ("18446744073709551616", Some("18446744073709551616")),
            (
                r#"{"n": {"x": -9223372036854775809}}"#,
                Some("-9223372036854775809"),
            ),
            ("0.1", None),
            ("0.0", None),
            ("1e400", Some("1e400")),
            ("1.5e-400", Some("1.5e-400")),
            ("3.141592653589793", None),
            ("3.14159265358979323846", Some("3.14159265358979323846")),
            (
                r#"["\"12345678901234567890123\\", 99999999999999999999]"#,
                Some("99999999999999999999"),
            ),
        ] {
            assert_eq!(lost(json), found, "{json}");
        }
    }
}
