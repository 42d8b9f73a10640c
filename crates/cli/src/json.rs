//! JSON text to JSON text, in another layout. Nothing is parsed into numbers, so every number keeps
//! its spelling.

use std::fmt::Write as _;

use crate::table::is_hidden;

/// Writes checked JSON without white space, in exactly one line: also for readers that end a line at
/// U+0085, U+2028 or U+2029, which JSON allows inside texts.
pub(crate) fn compact(json: &str, out: &mut String) {
    let mut text = false;
    let mut escaped = false;
    for character in json.chars() {
        if text {
            match character {
                '\u{85}' | '\u{2028}' | '\u{2029}' => escape(character, out),
                _ => out.push(character),
            }
            text = escaped || character != '"';
            escaped = !escaped && character == '\\';
        } else if !character.is_ascii_whitespace() {
            out.push(character);
            text = character == '"';
        }
    }
}

/// Formats checked JSON over several lines, two spaces a level, for people. Characters that would control a terminal are written as
/// escapes.
pub(crate) fn pretty(json: &str) -> String {
    let mut dense = String::with_capacity(json.len());
    compact(json, &mut dense);
    let mut out = String::with_capacity(2 * dense.len());
    let mut depth = 0_usize;
    let mut text = false;
    let mut escaped = false;
    let mut characters = dense.chars().peekable();
    while let Some(character) = characters.next() {
        if text {
            match character {
                hidden if is_hidden(hidden) => escape(hidden, &mut out),
                plain => out.push(plain),
            }
            text = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        text = character == '"';
        match character {
            '{' | '[' => {
                out.push(character);
                if let Some(closer) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(closer);
                } else {
                    depth += 1;
                    line_break(depth, &mut out);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line_break(depth, &mut out);
                out.push(character);
            }
            ',' => {
                out.push(',');
                line_break(depth, &mut out);
            }
            ':' => out.push_str(": "),
            other => out.push(other),
        }
    }
    out
}

fn line_break(depth: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

fn escape(character: char, out: &mut String) {
    let mut units = [0; 2];
    for unit in character.encode_utf16(&mut units) {
        let _ = write!(out, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_compact(json: &str, expected: &str) {
        let mut out = String::new();
        compact(json, &mut out);
        assert_eq!(out, expected);
    }

    #[test]
    fn white_space_goes_and_everything_else_stays() {
        check_compact(
            " { \"a b\" :\t[ 1.50 ,\r\n-0E+07 ] } ",
            r#"{"a b":[1.50,-0E+07]}"#,
        );
        check_compact(r#"{"a\\" : "\" , \\"}"#, r#"{"a\\":"\" , \\"}"#);
        check_compact("12345678901234567890123", "12345678901234567890123");
    }

    #[test]
    fn line_ends_inside_texts_become_escapes() {
        check_compact(
            "{\"a\u{2028}\": \"\u{85}b\u{2029}\\u2028 ok\"}",
            r#"{"a\u2028":"\u0085b\u2029\u2028 ok"}"#,
        );
    }

    #[test]
    fn people_get_one_member_a_line_and_nothing_that_steers_their_terminal() {
        let shown = pretty("{\"a\":[1.50,{}],\"b\":[],\"c\":\"x, {y}: \u{9b}\u{202e}\"}");
        let expected = r#"{
  "a": [
    1.50,
    {}
  ],
  "b": [],
  "c": "x, {y}: \u009b\u202e"
}"#;
        assert_eq!(shown, expected);
    }
}
