//! Bindings: the values of the callers, by the placeholders of a recording that they stand for.

use std::collections::HashMap;

use countersign_contract::recording::{Piece, pieces};
use serde_json::Value;

use super::mask::text_of;

/// A placeholder: its kind and number.
pub(super) type Name = (String, u32);

/// Values of one run, by their placeholders.
#[derive(Default)]
pub(super) struct Bindings {
    values: HashMap<Name, Value>,
    /// From kind and text of a value to the number that it stands for.
    taken: HashMap<(String, String), u32>,
}

/// Bindings that one call would add.
#[derive(Default)]
pub(super) struct New(Vec<(Name, Value)>);

impl Bindings {
    /// Returns true if the value can stand for the placeholder. A new pair is noted in `new`.
    pub(super) fn accepts(&self, new: &mut New, kind: &str, number: u32, value: &Value) -> bool {
        let text = text_of(value);
        let name = (kind.to_owned(), number);
        let bound = new.0.iter().find(|(known, _)| *known == name);
        let bound = bound
            .map(|(_, value)| value)
            .or_else(|| self.values.get(&name));
        if let Some(bound) = bound {
            return text_of(bound) == text;
        }
        // One value does not stand for two: an agent that mixes two addresses up is found out.
        let is_taken = self.taken.contains_key(&(kind.to_owned(), text.clone()))
            || new
                .0
                .iter()
                .any(|((other, _), value)| other == kind && text_of(value) == text);
        if is_taken {
            return false;
        }
        new.0.push((name, value.clone()));
        true
    }

    pub(super) fn add(&mut self, new: New) {
        for ((kind, number), value) in new.0 {
            self.taken.insert((kind.clone(), text_of(&value)), number);
            self.values.insert((kind, number), value);
        }
    }

    /// Puts the callers' values where their placeholders stand; those without a name stay.
    pub(super) fn fill(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => {
                if let Some(filled) = self.filled(text) {
                    *value = filled;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.fill(member)),
        }
    }

    /// The text with values in it; `None` if it has no known placeholder.
    pub(super) fn filled(&self, text: &str) -> Option<Value> {
        if self.values.is_empty() || !text.contains('[') {
            return None;
        }
        let pieces = pieces(text, '[', ']');
        let value = |kind: &str, number: u32| self.values.get(&(kind.to_owned(), number));
        if let [Piece::Placeholder { kind, number }] = pieces.as_slice() {
            return value(kind, *number).cloned();
        }
        let mut filled = String::with_capacity(text.len());
        for piece in &pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Placeholder { kind, number } => match value(kind, *number) {
                    Some(value) => filled.push_str(&text_of(value)),
                    None => filled.push_str(&super::placeholder(('[', ']'), kind, *number)),
                },
            }
        }
        Some(Value::String(filled))
    }
}
