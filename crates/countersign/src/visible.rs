//! Visible characters, and texts without hidden ones: ids ([`realm`](crate::realm)) have only visible characters, and
//! an approver is shown the others as numbers.

use serde_json::Value;

/// Escapes every invisible character, and every one that changes how others are displayed, as its number, such as
/// `\u{202e}`. Line breaks and tabs stay. Two different values are never shown as the same.
pub(crate) fn make_visible(value: &mut Value) {
    match value {
        Value::String(text) => *text = visible(std::mem::take(text)),
        Value::Array(items) => items.iter_mut().for_each(make_visible),
        Value::Object(members) => {
            if !members.keys().all(|name| is_clear(name)) {
                let named = std::mem::take(members).into_iter();
                members.extend(named.map(|(name, value)| (visible(name), value)));
            }
            members.values_mut().for_each(make_visible);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Escapes a text; a text with escapes has each backslash of its own twice, so that no text looks like another one.
fn visible(text: String) -> String {
    if is_clear(&text) {
        return text;
    }
    escaped(&text, is_plain)
}

/// The same for a text on one line: line breaks and tabs are escaped as well.
pub(crate) fn visible_line(text: String) -> String {
    if text.chars().all(is_visible) && !text.contains(r"\u{") {
        return text;
    }
    escaped(&text, is_visible)
}

fn escaped(text: &str, stays: fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => shown.push_str(r"\\"),
            c if stays(c) => shown.push(c),
            c => shown.extend(c.escape_unicode()),
        }
    }
    shown
}

/// True if a text needs no escapes: nothing is hidden in it, and nothing in it looks like an escape.
fn is_clear(text: &str) -> bool {
    text.chars().all(is_plain) && !text.contains(r"\u{")
}

fn is_plain(c: char) -> bool {
    matches!(c, '\n' | '\t') || is_visible(c)
}

/// True if a character is visible, and is displayed at its place. It is a list of our own: format characters, fillers
/// and blanks of Unicode 17, and direction marks.
pub(crate) fn is_visible(c: char) -> bool {
    let is_hidden = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{2800}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffc}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    !c.is_control() && !is_hidden
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_hides() {
        let check = |mut value: Value, expected: Value| {
            make_visible(&mut value);
            assert_eq!(value, expected);
        };
        check(json!("pay 10 EUR\nto ann"), json!("pay 10 EUR\nto ann"));
        check(json!(r"C:\users"), json!(r"C:\users"));
        check(json!("to \u{202e}nna"), json!(r"to \u{202e}nna"));
        check(
            json!(["a\u{200b}b", 1, null]),
            json!([r"a\u{200b}b", 1, null]),
        );
        check(
            json!({"x\u{2066}": {"y": "\u{1b}[2K"}}),
            json!({r"x\u{2066}": {"y": r"\u{1b}[2K"}}),
        );
        // What only looks like a number is told apart from one, in values and in names.
        check(json!(r"\u{202e}"), json!(r"\\u{202e}"));
        check(
            json!({"to\u{2066}": "ann", r"to\u{2066}": "eve"}),
            json!({r"to\u{2066}": "ann", r"to\\u{2066}": "eve"}),
        );
    }

    proptest! {
        /// Two different texts are never shown as the same (A13).
        #[test]
        fn no_two_texts_look_the_same(
            one in r"[a\\u{}2066\u{2066}\u{200b}]{0,12}",
            other in r"[a\\u{}2066\u{2066}\u{200b}]{0,12}",
        ) {
            let shown = [&one, &other].map(|text| visible(text.clone()));
            prop_assert_eq!(one == other, shown[0] == shown[1]);
            prop_assert!(shown[0].chars().all(is_plain));
        }
    }
}
