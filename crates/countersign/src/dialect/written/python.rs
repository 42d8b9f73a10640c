//! Calls as Python writes them: `[f(a=1), g(b="x")]`, `print(default_api.f(a=1))`, a call a line.

use super::body::is_name;
use super::{DecodeError, Reader};

/// Functions around a call that only show its result.
const SHOWING: [&str; 2] = ["print", "console.log"];

/// Objects that hold all tools.
const HOLDERS: [&str; 5] = ["default_api.", "functions.", "api.", "tools.", "tool."];

impl Reader<'_> {
    /// Adds the calls at the start of a text. Returns the byte behind the last one; adds none if something else stands
    /// there.
    pub(super) fn python_calls(&mut self, text: &str) -> Result<usize, DecodeError> {
        let mut at = 0;
        let mut end = 0;
        let mut listed = false;
        let mut assigned = Vec::new();
        loop {
            let rest = text.get(at..).unwrap_or_default();
            let white = behind_comments(rest);
            at += rest.len() - white.len();
            if !listed && end == 0 && white.starts_with('[') {
                listed = true;
                at += 1;
                continue;
            }
            if listed && white.starts_with(']') {
                return Ok(at + 1);
            }
            if white.is_empty() && (listed || end == 0) {
                if listed && end > 0 {
                    self.written.truncated = true;
                }
                return Ok(text.len());
            }
            if let Some(length) = shows(white, &assigned) {
                at += length;
                end = at;
                continue;
            }
            let Some(start) = start_of_call(white) else {
                return Ok(end);
            };
            let called = white.get(start..).unwrap_or_default();
            let name_length = called.find('(').unwrap_or_default();
            let name = tool_name(called.get(..name_length).unwrap_or_default().trim());
            if !is_name(name) || name.starts_with('.') {
                return Ok(end);
            }
            let Some(length) = end_of_call(called, name_length) else {
                self.add_cut(name, called)?;
                return Ok(text.len());
            };
            self.add(name, called.get(..length).unwrap_or_default())?;
            let before = white.get(..start).unwrap_or_default();
            if let Some((variable, _)) = before.split_once('=') {
                assigned.push(variable.trim());
            }
            // The parenthesis of what shows the result.
            let shown = before.contains('(');
            let mut behind = at + start + length;
            if shown {
                let rest = text.get(behind..).unwrap_or_default();
                if !rest.trim_start().starts_with(')') {
                    self.written.truncated |= rest.trim().is_empty();
                    return Ok(behind);
                }
                behind += rest.len() - rest.trim_start().len() + 1;
            }
            at = behind;
            end = behind + comments(text.get(behind..).unwrap_or_default());
        }
    }
}

/// Returns a text behind white space, separators and comments.
fn behind_comments(text: &str) -> &str {
    let blank = |c: char| c.is_whitespace() || matches!(c, ',' | ';');
    let mut rest = text.trim_start_matches(blank);
    while rest.starts_with('#') {
        let length = memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        // A block of code may end in the line.
        let line = rest.get(..length).unwrap_or_default();
        let length = line.find("```").unwrap_or(length);
        rest = rest
            .get(length..)
            .unwrap_or_default()
            .trim_start_matches(blank);
    }
    rest
}

/// Returns the length of the comments at the start of a text; 0 if there are none.
fn comments(text: &str) -> usize {
    if text.trim_start().starts_with('#') {
        text.len() - behind_comments(text).len()
    } else {
        0
    }
}

/// Returns the length of a statement that only shows what a call has returned: `print(result)`.
fn shows(text: &str, assigned: &[&str]) -> Option<usize> {
    if assigned.is_empty() {
        return None;
    }
    let (shown, _) = text.split_once(')')?;
    let (function, variable) = shown.split_once('(')?;
    let is_shown = SHOWING.contains(&function.trim()) && assigned.contains(&variable.trim());
    is_shown.then_some(shown.len() + 1)
}

/// Returns the place of the call at the start of a text, behind an assignment or a function that shows the result.
fn start_of_call(text: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let word = text.find(|c| !is_part(c))?;
    let name = text.get(..word)?;
    let behind = text.get(word..)?;
    if behind.starts_with('(') && SHOWING.contains(&name) {
        let inside = behind.get(1..)?;
        let white = inside.len() - inside.trim_start().len();
        let called = inside.trim_start();
        let length = called.find(|c| !is_part(c))?;
        return (length > 0 && called.get(length..)?.starts_with('(')).then_some(word + 1 + white);
    }
    if word > 0 && behind.starts_with('(') {
        return Some(0);
    }
    // `result = f(a=1)`
    let value = behind.trim_start().strip_prefix('=')?;
    let value = value.trim_start();
    let length = value.find(|c| !is_part(c))?;
    let called = length > 0 && value.get(length..)?.starts_with('(');
    (word > 0 && called).then_some(text.len() - value.len())
}

/// Returns the name of the tool without the object that holds it.
fn tool_name(name: &str) -> &str {
    let name = HOLDERS
        .iter()
        .find_map(|holder| name.strip_prefix(holder))
        .unwrap_or(name);
    name.strip_suffix(".call").unwrap_or(name)
}

/// Returns the byte behind the parenthesis that closes a call; `None` if the text ends before it.
fn end_of_call(text: &str, open: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = open;
    let mut depth = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b'"' | b'\'' => {
                at = end_of_literal(bytes, at)?;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the byte behind the literal that starts here.
fn end_of_literal(bytes: &[u8], start: usize) -> Option<usize> {
    let quote = *bytes.get(start)?;
    let triple = bytes.get(start..start + 3) == Some(&[quote; 3]);
    let mut at = start + if triple { 3 } else { 1 };
    loop {
        at += memchr::memchr2(b'\\', quote, bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'\\') {
            at += 2;
        } else if !triple {
            return Some(at + 1);
        } else if bytes.get(at..at + 3) == Some(&[quote; 3]) {
            return Some(at + 3);
        } else {
            at += 1;
        }
    }
}
