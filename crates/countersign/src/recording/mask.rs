//! Placeholders for sensitive values: equal values of a kind get the same number, in the order of their appearance.

use std::collections::HashMap;

use countersign_contract::recording::{Piece, pieces};
use serde_json::Value;

use crate::redact::Mark;

/// The brackets of placeholders in a file.
const IN_FILE: (char, char) = ('[', ']');

/// The brackets in a call that is being matched: of the private use area, so that no text of a caller is taken
/// for a placeholder.
const IN_CALL: (char, char) = ('\u{E0F0}', '\u{E0F1}');

/// Replaces sensitive values by placeholders, and knows which value each stands for.
pub(crate) struct Masker {
    brackets: (char, char),
    numbers: HashMap<(String, String), u32>,
    /// The values of each kind, by their numbers.
    values: HashMap<String, Vec<Value>>,
}

impl Masker {
    /// For a file.
    pub(crate) fn for_file() -> Self {
        Self::with(IN_FILE)
    }

    /// For a call that is to be matched.
    pub(super) fn for_call() -> Self {
        Self::with(IN_CALL)
    }

    fn with(brackets: (char, char)) -> Self {
        Self {
            brackets,
            numbers: HashMap::new(),
            values: HashMap::new(),
        }
    }

    /// The value that a placeholder stands for.
    pub(crate) fn value(&self, kind: &str, number: u32) -> Option<&Value> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        self.values.get(kind)?.get(at)
    }

    /// Every value with its kind and number, in no order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, u32, &Value)> {
        self.values.iter().flat_map(|(kind, values)| {
            let numbered = (1_u32..).zip(values);
            numbered.map(move |(number, value)| (kind.as_str(), number, value))
        })
    }

    /// The parts of a text that was masked here.
    pub(crate) fn pieces<'t>(&self, text: &'t str) -> Vec<Piece<'t>> {
        pieces(text, self.brackets.0, self.brackets.1)
    }

    /// True if the text is one placeholder of this very masker.
    fn is_own(&self, text: &str) -> bool {
        match self.pieces(text).as_slice() {
            [Piece::Placeholder { kind, number }] => self.value(kind, *number).is_some(),
            _ => false,
        }
    }
}

impl Mark for Masker {
    fn mark(&mut self, kind: &str, value: &Value) -> String {
        if let Value::String(text) = value
            && self.is_own(text)
        {
            return text.clone();
        }
        let kind = kind_name(kind);
        let key = (kind.clone(), text_of(value));
        let values = self.values.entry(kind.clone()).or_default();
        let number = *self.numbers.entry(key).or_insert_with(|| {
            values.push(value.clone());
            u32::try_from(values.len()).unwrap_or(u32::MAX)
        });
        placeholder(self.brackets, &kind, number)
    }
}

/// Text of a placeholder; in a file it has `[` and `]`.
pub(crate) fn placeholder((open, close): (char, char), kind: &str, number: u32) -> String {
    format!("{open}{kind}:{number}{close}")
}

/// A label as the kind of a placeholder.
fn kind_name(label: &str) -> String {
    let kept = label.chars().take(64).map(|c| match c {
        c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') => c,
        _ => '-',
    });
    let name: String = kept.collect();
    if name.is_empty() {
        "-".to_owned()
    } else {
        name
    }
}

/// A value as text: that of a string, else its JSON. A number and the same digits in a string are one value.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}
