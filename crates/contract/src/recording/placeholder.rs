//! Placeholders in a text: `[email:2]` is the second e-mail address of a recording.

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Text as it is.
    Text(&'t str),
    /// Placeholder of a value.
    Placeholder {
        /// The kind of the value, such as `email`.
        kind: &'t str,
        /// Number within its kind, from 1 on.
        number: u32,
    },
}

/// The longest name of a kind.
const KIND_BYTES_MAX: usize = 64;

/// The placeholders of a text between these two characters, and the text around them.
///
/// # Example
///
/// ```
/// use countersign_contract::recording::{Piece, pieces};
///
/// let found = pieces("ring [phone:3]!", '[', ']');
/// assert_eq!(found, [Piece::Text("ring "), Piece::Placeholder { kind: "phone", number: 3 }, Piece::Text("!")]);
/// assert_eq!(pieces("[1] and [a:01]", '[', ']'), [Piece::Text("[1] and [a:01]")]);
/// ```
pub fn pieces(text: &str, open: char, close: char) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut plain_from = 0;
    let mut from = 0;
    while let Some(start) = text.get(from..).and_then(|rest| rest.find(open)) {
        let start = from + start;
        let inside = start + open.len_utf8();
        from = inside;
        let Some(rest) = text.get(inside..) else {
            break;
        };
        let Some(length) = rest.find([open, close]) else {
            break;
        };
        let is_closed = rest.get(length..).is_some_and(|end| end.starts_with(close));
        let Some((kind, number)) = rest.get(..length).filter(|_| is_closed).and_then(named) else {
            continue;
        };
        if let Some(plain) = text
            .get(plain_from..start)
            .filter(|plain| !plain.is_empty())
        {
            found.push(Piece::Text(plain));
        }
        found.push(Piece::Placeholder { kind, number });
        from = inside + length + close.len_utf8();
        plain_from = from;
    }
    if let Some(plain) = text.get(plain_from..).filter(|plain| !plain.is_empty()) {
        found.push(Piece::Text(plain));
    }
    found
}

/// The kind and the number between the brackets.
fn named(text: &str) -> Option<(&str, u32)> {
    let (kind, number) = text.rsplit_once(':')?;
    let is_kind = (1..=KIND_BYTES_MAX).contains(&kind.len())
        && kind
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
    let number = number.parse().ok().filter(|_| is_kind && is_number)?;
    Some((kind, number))
}
