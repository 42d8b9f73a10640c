//! Calls whose arguments are elements, or that are elements themselves.

use countersign_args::{ElementCall, element_call};

use super::body::{HEAD_MAX, is_name, is_part, near};
use super::format::Row;
use super::{Reader, Step};

/// Number of marks that may stand in prose, for each [`HEAD_MAX`] bytes of the text and for all of it. Behind each of them a call
/// with elements is looked for; with more of them, a mark is prose.
const SEARCHES_MAX: (usize, usize) = (1, 128);

impl<'t> Reader<'t> {
    /// Reads `<function=f>` and `<invoke name="f">` with elements or JSON in them.
    pub(super) fn element(&mut self, row: &Row, start: usize) -> Step {
        if let Some(call) = self.elements_at(start) {
            return self.element_of(row, start, call);
        }
        // `<function=f>{…}</function>`
        let rest = self.from(start);
        let tag = match near(rest, ">") {
            Ok(tag) => tag,
            Err(true) => return self.cut("", ""),
            Err(false) => return Ok(None),
        };
        let name = name_of_tag(rest);
        let at = self.white(start + tag + 1);
        if !self.from(at).starts_with('{') || !is_name(name) {
            return Ok(None);
        }
        self.named_json(row, name, at)
    }

    /// Reads the call at this byte, if its arguments are elements.
    pub(super) fn elements_at(&mut self, start: usize) -> Option<ElementCall<'t>> {
        let (each, more) = SEARCHES_MAX;
        if self.searches > each * self.text.len() / HEAD_MAX + more {
            return None;
        }
        let call = element_call(self.from(start));
        self.searches += usize::from(call.is_none());
        call
    }

    /// Adds a call whose arguments are elements.
    pub(super) fn element_of(&mut self, row: &Row, start: usize, call: ElementCall<'_>) -> Step {
        let rest = self.from(start);
        match call {
            ElementCall::Whole { name, end } => {
                if !is_name(name) {
                    self.searches += 1;
                    return Ok(None);
                }
                self.add(name, self.between(start, start + end))?;
                self.is_closed = true;
                self.has_elements = true;
                Ok(Some(start + end))
            }
            ElementCall::Cut => self.cut(name_of_tag(rest), rest),
            ElementCall::Broken if !is_name(name_of_tag(rest)) => {
                self.searches += 1;
                Ok(None)
            }
            // The binder says what is wrong with it.
            ElementCall::Broken => {
                let (_, end) = self.closed(row, start).unwrap_or((0, self.text.len()));
                self.add(name_of_tag(rest), self.between(start, end))?;
                Ok(Some(end))
            }
        }
    }
}

/// Returns the name that the first tag of a text gives: of a call, or the word behind `<tool_call>`.
fn name_of_tag(text: &str) -> &str {
    let mut end = text.len().min(HEAD_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = text.get(..end).unwrap_or_default();
    let call = ["<function=", "invoke name="]
        .iter()
        .find_map(|open| text.get(text.find(open)? + open.len()..));
    let name = match call {
        Some(call) => call.trim_start_matches(['"', '\'']),
        None => text
            .split_once('>')
            .map_or("", |(_, behind)| behind)
            .trim_start(),
    };
    let length = name.find(|c: char| !is_part(c)).unwrap_or(name.len());
    name.get(..length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(text: &str) -> Reader<'_> {
        let mut reader = Reader::new(text, None);
        reader.marked().unwrap();
        reader
    }

    /// A text full of marks is not searched behind each of them.
    #[test]
    fn searches_are_in_proportion_to_the_text() {
        for mark in [
            "<tool_call>",
            "<invoke name=\"f\">",
            "<function=f>",
            "<tool_call><b>",
        ] {
            let text = mark.repeat(20_000);
            let reader = reader(&text);
            let (each, more) = SEARCHES_MAX;
            let most = each * text.len() / HEAD_MAX + more + 1;
            assert!(reader.searches <= most, "{mark}: {}", reader.searches);
            assert!(reader.written.calls.is_empty(), "{mark}");
        }
    }

    /// A mark that is only mentioned makes no call of the word behind it.
    #[test]
    fn a_mark_in_prose_names_no_call() {
        let call = "<function=f><parameter=a>1</parameter></function>";
        let text = format!("{}{call}", "I write <tool_call> first.\n".repeat(100));
        let reader = reader(&text);
        let mut calls = reader.written.calls.iter();
        assert!(calls.all(|call| call.name == "f"));
    }
}
