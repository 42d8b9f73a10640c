//! Finds the `sslmode` of a connection string only where it is a setting: a password may contain the same
//! letters. Both forms of the string are parsed like `tokio_postgres` parses them.

use std::ops::Range;

/// Returns the range of the value of `sslmode`; `None` if the string does not set it. If it is set twice, the
/// last one counts.
pub(super) fn place(text: &str) -> Option<Range<usize>> {
    let scheme = ["postgres://", "postgresql://"]
        .into_iter()
        .find(|scheme| text.starts_with(scheme));
    match scheme {
        Some(scheme) => in_url(text, scheme.len()),
        None => in_pairs(text),
    }
}

const NAME: &str = "sslmode";

/// Parses `postgres://user:password@host/database?name=value&name=value`: everything before the first `@` is
/// user and password.
fn in_url(text: &str, start: usize) -> Option<Range<usize>> {
    let at = text.get(start..)?.find('@');
    let authority = at.map_or(start, |at| start + at + 1);
    let mut from = authority + text.get(authority..)?.find('?')? + 1;
    let mut found = None;
    for pair in text.get(from..)?.split('&') {
        let end = from + pair.len();
        if let Some((name, value)) = pair.split_once('=')
            && name == NAME
        {
            found = Some(end - value.len()..end);
        }
        from = end + 1;
    }
    found
}

/// Parses `name=value name='a quoted value'`, with a backslash before an escaped character.
fn in_pairs(text: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = None;
    let mut at = 0;
    loop {
        at = after_spaces(bytes, at);
        let start = at;
        while bytes
            .get(at)
            .is_some_and(|byte| *byte != b'=' && !byte.is_ascii_whitespace())
        {
            at += 1;
        }
        let name = bytes.get(start..at)?;
        at = after_spaces(bytes, at);
        if bytes.get(at) != Some(&b'=') {
            return found;
        }
        at = after_spaces(bytes, at + 1);
        let value = value_at(bytes, at);
        at = value.end + usize::from(bytes.get(value.end) == Some(&b'\''));
        if name == NAME.as_bytes() {
            found = Some(value);
        }
    }
}

fn after_spaces(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Returns the range of a value, without its quotes.
fn value_at(bytes: &[u8], at: usize) -> Range<usize> {
    let is_quoted = bytes.get(at) == Some(&b'\'');
    let start = at + usize::from(is_quoted);
    let mut end = start;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'\\' => end += 1,
            b'\'' if is_quoted => break,
            byte if !is_quoted && byte.is_ascii_whitespace() => break,
            _ => {}
        }
        end += 1;
    }
    start..end.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(place(text).map(|place| &text[place]), expected, "{text}");
    }

    #[test]
    fn the_mode_is_found_where_the_text_says_it() {
        check("postgres://a@b/c?sslmode=require", Some("require"));
        check("postgresql://b/c?x=1&sslmode=disable&y=2", Some("disable"));
        check("postgres://b?sslmode=a&sslmode=b", Some("b"));
        check("host=b sslmode=prefer user=a", Some("prefer"));
        check("sslmode = 'verify-full' host=b", Some("verify-full"));
        check("sslmode=", Some(""));
    }

    /// U14: the same letters in a password, a user, a database or another setting are not a mode.
    #[test]
    fn other_values_with_the_same_letters_are_not_a_mode() {
        check("postgres://a:sslmode=disable@b/c", None);
        check("postgres://a:x?sslmode=disable@b/c", None);
        check("postgres://a:x&sslmode=disable@b/c", None);
        check("postgres://a@b/sslmode=disable", None);
        check("postgres://a@b/c?options=-csslmode=disable", None);
        check("postgres://a@b/c?xsslmode=disable", None);
        check("host=b password=sslmode=disable", None);
        check("host=b password='x sslmode=disable'", None);
        check(r"host=b password='x\' sslmode=disable'", None);
        check(r"host=b password=x\ sslmode=disable", None);
        check("", None);
        check("host", None);
        check(r"host=\", None);
    }
}
