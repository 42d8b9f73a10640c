//! The same calls with typical mistakes of models, one kind of damage per call, in rotation.

use std::fmt::Write as _;

use serde_json::Value;

use crate::calls::Call;

/// Kind of damage to a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// It stands in a Markdown fence.
    Fence,
    /// It stands in prose.
    Prose,
    /// Its strings are in single quotes.
    SingleQuotes,
    /// There are commas with nothing behind them.
    TrailingCommas,
    /// Its keys have no quotes.
    BareKeys,
    /// Its numbers and flags are strings.
    Texts,
    /// It is a Python dictionary: single quotes, `True` and `False`.
    Python,
    /// There are comments in it.
    Comments,
    /// The last closing brace is missing.
    Open,
    /// A comma is missing after every value.
    NoCommas,
}

impl Damage {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Fence,
        Self::Prose,
        Self::SingleQuotes,
        Self::TrailingCommas,
        Self::BareKeys,
        Self::Texts,
        Self::Python,
        Self::Comments,
        Self::Open,
        Self::NoCommas,
    ];

    /// A call's text with this damage.
    pub fn of(self, call: &Call) -> String {
        let text = &call.text;
        match self {
            Self::Fence => format!("```json\n{text}\n```"),
            Self::Prose => {
                format!("Sure, I will call the tool now:\n\n{text}\n\nTell me if that is right.")
            }
            Self::Open => text.strip_suffix('}').unwrap_or(text).to_owned(),
            Self::SingleQuotes
            | Self::TrailingCommas
            | Self::BareKeys
            | Self::Texts
            | Self::Python
            | Self::Comments
            | Self::NoCommas => {
                let mut out = String::with_capacity(text.len());
                self.write(&call.value, &mut out);
                out
            }
        }
    }

    fn write(self, value: &Value, out: &mut String) {
        match value {
            Value::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    self.separate(index, out);
                    self.key(key, out);
                    out.push_str(": ");
                    self.write(value, out);
                }
                self.end(out);
                out.push('}');
            }
            Value::Array(items) => {
                out.push('[');
                for (index, value) in items.iter().enumerate() {
                    self.separate(index, out);
                    self.write(value, out);
                }
                out.push(']');
            }
            Value::String(text) if matches!(self, Self::SingleQuotes | Self::Python) => {
                let _ = write!(out, "'{text}'");
            }
            Value::Bool(flag) if self == Self::Python => {
                out.push_str(if *flag { "True" } else { "False" });
            }
            Value::Bool(_) | Value::Number(_) if self == Self::Texts => {
                let _ = write!(out, "\"{value}\"");
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                let _ = write!(out, "{value}");
            }
        }
    }

    fn separate(self, index: usize, out: &mut String) {
        if index > 0 {
            out.push_str(match self {
                Self::Comments => ", // and\n ",
                Self::NoCommas => "\n",
                _ => ", ",
            });
        }
    }

    fn end(self, out: &mut String) {
        if self == Self::TrailingCommas {
            out.push(',');
        }
    }

    fn key(self, key: &str, out: &mut String) {
        let _ = match self {
            Self::BareKeys => write!(out, "{key}"),
            Self::SingleQuotes | Self::Python => write!(out, "'{key}'"),
            _ => write!(out, "{key:?}"),
        };
    }
}

/// Every call damaged: the first by the first kind, and so on.
pub fn all(calls: &[Call]) -> Vec<(Damage, String)> {
    let kinds = Damage::ALL.iter().cycle();
    calls
        .iter()
        .zip(kinds)
        .map(|(call, kind)| (*kind, kind.of(call)))
        .collect()
}
