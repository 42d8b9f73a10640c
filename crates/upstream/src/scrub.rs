//! Answers of upstreams without the gateway's own secrets: some services and servers quote the credential that they were given.

use std::borrow::Cow;

use memchr::memmem::Finder;
use serde_json::{Map, Value};

use crate::manifest::Secret;

/// Text in the place of a secret.
const MARK: &str = "[credential]";

/// Fewest bytes of a secret that is looked for in data: a shorter one would be found in words that are none.
const BYTES_MIN: usize = 8;

/// Replaces secrets in the body of an answer, as they are and as JSON writes them. A body without one is only searched.
pub(crate) fn body(mut bytes: Vec<u8>, secrets: &[Secret]) -> Vec<u8> {
    let known = secrets.iter().map(Secret::expose);
    for secret in known.filter(|secret| secret.len() >= BYTES_MIN) {
        for form in forms(secret) {
            let finder = Finder::new(form.as_bytes());
            if finder.find(&bytes).is_some() {
                bytes = replaced(&bytes, &finder);
            }
        }
    }
    bytes
}

fn replaced(bytes: &[u8], finder: &Finder<'_>) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = finder.find(rest) {
        let (before, found) = rest.split_at(at);
        kept.extend_from_slice(before);
        kept.extend_from_slice(MARK.as_bytes());
        rest = found.get(finder.needle().len()..).unwrap_or_default();
    }
    kept.extend_from_slice(rest);
    kept
}

/// An error's text without secrets of any length.
pub(crate) fn error_text<'t>(text: &'t str, secrets: &[Secret]) -> Cow<'t, str> {
    let known = secrets.iter().map(Secret::expose);
    let known = known.filter(|secret| !secret.is_empty());
    known.fold(Cow::Borrowed(text), |text, secret| {
        if text.contains(secret) {
            Cow::Owned(text.replace(secret, MARK))
        } else {
            text
        }
    })
}

/// A text without secrets. Of a secret with several lines each line is one, because logs are written line by line.
pub(crate) fn text(text: &str, secrets: &[Secret]) -> String {
    let lines = secrets.iter().flat_map(|own| own.expose().lines());
    let known = secrets.iter().map(Secret::expose).chain(lines);
    let known = known.filter(|secret| secret.len() >= BYTES_MIN);
    known.fold(text.to_owned(), |text, secret| {
        if text.contains(secret) {
            text.replace(secret, MARK)
        } else {
            text
        }
    })
}

/// A value without secrets: in its texts, in the names of its members, and as a number.
pub(crate) fn value(own: Value, secrets: &[Secret]) -> Value {
    if secrets.is_empty() {
        return own;
    }
    match own {
        Value::String(own) => text(&own, secrets).into(),
        Value::Number(number) => {
            let written = number.to_string();
            let known = secrets.iter().map(Secret::expose);
            let mut known = known.filter(|secret| secret.len() >= BYTES_MIN);
            if known.any(|secret| secret == written) {
                MARK.into()
            } else {
                number.into()
            }
        }
        Value::Array(items) => {
            let items = items.into_iter().map(|item| value(item, secrets));
            items.collect()
        }
        Value::Object(members) => Value::Object(object(members, secrets)),
        Value::Null | Value::Bool(_) => own,
    }
}

/// The same for an object.
pub(crate) fn object(members: Map<String, Value>, secrets: &[Secret]) -> Map<String, Value> {
    let clean = |(name, own): (String, Value)| (text(&name, secrets), value(own, secrets));
    members.into_iter().map(clean).collect()
}

/// The spellings of a secret: as it is, and within a JSON string of the usual writers, some of which escape `/` or what means something in
/// HTML. Most secrets have one.
fn forms(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    let json = Value::from(secret).to_string();
    let json = json.trim_start_matches('"');
    let json = json.strip_suffix('"').unwrap_or(json);
    let coded = |is_upper: bool| -> String {
        let write = |c: char| match c {
            '+' | '&' | '<' | '>' | '\'' | '`' if is_upper => format!("\\u{:04X}", u32::from(c)),
            '+' | '&' | '<' | '>' | '\'' | '`' => format!("\\u{:04x}", u32::from(c)),
            other => other.to_string(),
        };
        json.chars().map(write).collect()
    };
    let html = |c: char| match c {
        '&' | '<' | '>' => format!("\\u{:04x}", u32::from(c)),
        other => other.to_string(),
    };
    for form in [
        json.to_owned(),
        json.replace('/', "\\/"),
        json.chars().map(html).collect(),
        coded(true),
        coded(false),
    ] {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A21: a secret is found in each spelling, and nothing else is touched.
    #[test]
    fn secrets_are_replaced_in_every_spelling() {
        let secrets =
            ["plain-secret", "a/b+c\"d<secret>", "short"].map(|it| Secret::new(it.to_owned()));
        let check = |body_text: &str, expected: &str| {
            let made = body(body_text.as_bytes().to_vec(), &secrets);
            assert_eq!(String::from_utf8(made).unwrap(), expected, "{body_text}");
        };
        check("plain-secretplain-secret!", "[credential][credential]!");
        check(r#"{"a":"a/b+c\"d<secret>"}"#, r#"{"a":"[credential]"}"#);
        check(r#"{"a":"a\/b+c\"d<secret>"}"#, r#"{"a":"[credential]"}"#);
        check(
            r#"{"a":"a/b+c\"d\u003csecret\u003e"}"#,
            r#"{"a":"[credential]"}"#,
        );
        check(
            r#"{"a":"a/b\u002Bc\"d\u003Csecret\u003E"}"#,
            r#"{"a":"[credential]"}"#,
        );
        check("a short plain-secre", "a short plain-secre");
        assert_eq!(error_text("a short one", &secrets), "a [credential] one");
    }

    /// A21: a secret is replaced wherever it stands, and nothing else is.
    #[test]
    fn secrets_are_replaced_wherever_they_stand() {
        let secrets = ["a-long-secret", "1234567890", "short", "line one\nline two"];
        let secrets = secrets.map(|own| Secret::new(own.to_owned()));
        let given = json!({"x a-long-secret": ["Bearer a-long-secret", 1_234_567_890, 12, "short", null, "line two"]});
        let expected = json!({"x [credential]": ["Bearer [credential]", "[credential]", 12, "short", null, "[credential]"]});
        assert_eq!(value(given, &secrets), expected);
    }
}
