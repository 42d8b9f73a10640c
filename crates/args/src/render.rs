//! Rendering of trees as JSON text.

use serde_json::Value;

use crate::number::Decimal;
use crate::tree::{Kind, NodeId, Tree};

/// Writes the JSON text of a value, with numbers as they were spelt. [`Limits`](crate::Limits) bound the depth
/// of a tree, and thus this recursion.
pub(crate) fn json(tree: &Tree<'_>, id: NodeId, out: &mut String) {
    match tree.kind(id) {
        Kind::Null => out.push_str("null"),
        Kind::True => out.push_str("true"),
        Kind::False => out.push_str("false"),
        Kind::Number => out.push_str(tree.text(id)),
        Kind::Text => quote(tree.text(id), out),
        Kind::Array => {
            out.push('[');
            for (i, item) in tree.children(id).enumerate() {
                if i > 0 {
                    out.push(',');
                }
                json(tree, item, out);
            }
            out.push(']');
        }
        Kind::Object => {
            out.push('{');
            for (i, member) in tree.children(id).enumerate() {
                if i > 0 {
                    out.push(',');
                }
                quote(tree.key(member), out);
                out.push(':');
                json(tree, member, out);
            }
            out.push('}');
        }
    }
}

/// Writes a text that is the same for equal values: keys sorted, numbers by value. It is for comparing, not for
/// hashing: canonical JSON is for that.
pub(crate) fn comparable(tree: &Tree<'_>, id: NodeId, out: &mut String) {
    match tree.kind(id) {
        Kind::Number => match Decimal::parse(tree.text(id)) {
            Some(number) => out.push_str(&number.to_string()),
            None => out.push_str(tree.text(id)),
        },
        Kind::Array => {
            out.push('[');
            for item in tree.children(id) {
                comparable(tree, item, out);
                out.push(',');
            }
            out.push(']');
        }
        Kind::Object => {
            let mut members: Vec<(&str, NodeId)> = tree
                .children(id)
                .map(|member| (tree.key(member), member))
                .collect();
            members.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (key, member) in members {
                quote(key, out);
                out.push(':');
                comparable(tree, member, out);
                out.push(',');
            }
            out.push('}');
        }
        Kind::Null | Kind::False | Kind::True | Kind::Text => json(tree, id, out),
    }
}

/// Same as [`comparable`] for a JSON value, for the members of an enum.
pub(crate) fn of_value(value: &Value) -> String {
    let text = value.to_string();
    match crate::strict::parse(&text, &crate::Limits::default()) {
        Ok(document) => {
            let mut out = String::new();
            comparable(&document.tree, document.root, &mut out);
            out
        }
        // Larger than anything that a call could send, so nothing equals it.
        Err(_) => text,
    }
}

/// Writes a string as a JSON string.
pub(crate) fn quote(text: &str, out: &mut String) {
    out.push('"');
    if crate::strict::plain(text.as_bytes()) == text.len() {
        out.push_str(text);
        out.push('"');
        return;
    }
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => {
                out.push_str(text.get(from..at).unwrap_or_default());
                let digit = |nibble| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
                out.push_str("\\u00");
                out.extend([digit(byte >> 4), digit(byte & 0xf)]);
                from = at + 1;
                continue;
            }
            _ => continue,
        };
        out.push_str(text.get(from..at).unwrap_or_default());
        out.push_str(escaped);
        from = at + 1;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out.push('"');
}
