//! Values that were masked in one place, found again in another: an answer that repeats what an argument said.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, MatchKind};
use countersign_contract::recording::{Piece, pieces};
use serde_json::Value;

use super::mask::{Masker, placeholder};
use crate::redact::Mark as _;

/// The shortest value that is looked for inside of other texts.
const INSIDE_CHARS_MIN: usize = 4;

/// Finds values that a masker has replaced.
pub(crate) struct Known {
    finder: AhoCorasick,
    marks: Vec<String>,
    /// Placeholders by value, for texts that are nothing but the value, however short.
    whole: HashMap<String, String>,
}

impl Known {
    /// Everything that was masked so far, with the texts inside of objects and lists that were.
    pub(crate) fn of(masker: &mut Masker) -> Option<Self> {
        let mut inner = Vec::new();
        for (kind, _, value) in masker.all() {
            if value.is_object() || value.is_array() {
                texts(value, &mut |text| {
                    inner.push((kind.to_owned(), text.to_owned()));
                });
            }
        }
        for (kind, text) in inner {
            masker.mark(&kind, &text.into());
        }
        let all = masker.all().filter_map(|(kind, number, value)| {
            let text = value.as_str().filter(|text| !text.is_empty())?;
            Some((text.to_owned(), placeholder(('[', ']'), kind, number)))
        });
        let mut found: Vec<(String, String)> = all.collect();
        found.sort();
        found.dedup_by(|one, other| one.0 == other.0);
        let whole = found.iter().cloned().collect();
        found.retain(|(text, _)| is_telling(text));
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(found.iter().map(|(text, _)| text));
        Some(Self {
            finder: finder.ok()?,
            marks: found.into_iter().map(|(_, mark)| mark).collect(),
            whole,
        })
    }

    /// Replaces them in every text of a value.
    pub(crate) fn replace(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => {
                let whole = self.whole.get(text);
                *text = whole.cloned().unwrap_or_else(|| self.replaced(text));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::Object(members) => members.values_mut().for_each(|it| self.replace(it)),
        }
    }

    /// The text with every known value replaced that stands there as a word of its own.
    pub(crate) fn replaced(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        for piece in pieces(text, '[', ']') {
            match piece {
                Piece::Placeholder { kind, number } => {
                    clean.push_str(&placeholder(('[', ']'), kind, number));
                }
                Piece::Text(plain) => self.replace_in(plain, &mut clean),
            }
        }
        clean
    }

    fn replace_in(&self, plain: &str, clean: &mut String) {
        let mut done = 0;
        for found in self.finder.find_iter(plain) {
            let before = plain.get(..found.start()).unwrap_or_default();
            let after = plain.get(found.end()..).unwrap_or_default();
            let is_word = |c: char| c.is_ascii_alphanumeric();
            if before.ends_with(is_word) || after.starts_with(is_word) {
                continue;
            }
            clean.push_str(plain.get(done..found.start()).unwrap_or_default());
            let mark = self.marks.get(found.pattern().as_usize());
            clean.push_str(mark.map_or("", String::as_str));
            done = found.end();
        }
        clean.push_str(plain.get(done..).unwrap_or_default());
    }
}

fn is_telling(text: &str) -> bool {
    text.chars().nth(INSIDE_CHARS_MIN - 1).is_some()
}

/// Every text in a value.
fn texts(value: &Value, each: &mut dyn FnMut(&str)) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, each)),
        Value::Object(members) => members.values().for_each(|member| texts(member, each)),
    }
}
