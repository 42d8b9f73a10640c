//! What stands between the marks of a call.

use super::format::{Body, Row, TextFormat, says_more};
use super::marks::{self, Mark};
use super::object::{Object, json};
use super::{DecodeError, Reader, Step, aside, labelled_result, thinking};

/// Maximum length of what stands between a mark and the arguments: a name, or the header of a message.
pub(super) const HEAD_MAX: usize = 512;

/// Returns the place of a mark near the start of a text: `Err(true)` if the text ends before it can come.
pub(super) fn near(text: &str, mark: &str) -> Result<usize, bool> {
    let mut end = text.len().min(HEAD_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = text.get(..end).unwrap_or_default();
    head.find(mark).ok_or(end == text.len())
}

impl Reader<'_> {
    /// Reads the call whose mark starts at `start` and ends at `behind`. Returns the byte behind the call; `None` if the
    /// mark is prose.
    pub(super) fn body(&mut self, row: &Row, start: usize, behind: usize) -> Step {
        match row.body {
            Body::Wrapped => self.wrapped(row, start, behind),
            Body::Element => self.element(row, start),
            Body::Code => self.code(row, behind),
            Body::Mistral => self.mistral(row, behind),
            Body::Separated(separator) => self.separated(row, behind, separator),
            Body::Harmony => self.harmony(row, start, behind),
            Body::Gemma => self.gemma(row, behind),
            Body::React => self.react(row, start, behind),
        }
    }

    /// Returns the first byte of a mark that closes a call, and the byte behind it.
    pub(super) fn closed(&mut self, row: &Row, from: usize) -> Option<(usize, usize)> {
        let rest = self.from(from);
        let found = row.close.iter().filter_map(|close| {
            let at = memchr::memmem::find(rest.as_bytes(), close.as_bytes())?;
            let behind = if says_more(close) {
                at
            } else {
                at + close.len()
            };
            Some((from + at, from + behind))
        });
        let found = found.min();
        self.is_closed |= found.is_some();
        self.is_loose = true;
        found
    }

    /// Returns the byte behind the closing mark, if it is the next thing here.
    pub(super) fn behind_close(&mut self, row: &Row, at: usize) -> usize {
        let white = self.white(at);
        let rest = self.from(white);
        let Some(close) = row.close.iter().find(|close| rest.starts_with(**close)) else {
            return at;
        };
        self.is_closed = true;
        if says_more(close) {
            white
        } else {
            white + close.len()
        }
    }

    /// True if nothing of the call stands behind this byte: the text ends there, or a mark follows.
    pub(super) fn ends_at(&self, row: &Row, at: usize) -> bool {
        let white = self.white(at);
        let mut rest = self.from(white);
        // The end of a code block around the arguments.
        if matches!(row.body, Body::Separated(_) | Body::React)
            && let Some(behind) = rest.strip_prefix("```")
        {
            rest = behind.trim_start();
        }
        rest.is_empty()
            || row
                .close
                .iter()
                .any(|close| self.from(at).starts_with(close) || rest.starts_with(close))
            || (rest.starts_with(['<', '[', '`', 'f']) && marks::starts(rest))
            || (self.between(at, white).contains('\n') && rest.starts_with("Action:"))
            || (rest.starts_with(['<', '[']) && (thinking(rest).is_some() || aside(rest).is_some()))
    }

    /// Returns the end of a call that no mark closes: the next mark, or the end of the text.
    fn next_mark(&mut self, from: usize) -> usize {
        let mut at = from;
        while let Some(found) = self.scan.next(at) {
            let here = self.from(found.start);
            let ends = match found.mark {
                Mark::Opens(row) => self.looks_for(row),
                Mark::Silent | Mark::Ends => true,
                Mark::Aside => thinking(here).is_some() || aside(here).is_some(),
            };
            if ends {
                return found.start;
            }
            at = found.end;
        }
        self.text.len()
    }

    /// Returns the end of what stands in a mark from this byte on, and the byte behind the mark that closes it.
    pub(super) fn region(&mut self, row: &Row, from: usize) -> (usize, usize) {
        self.closed(row, from).unwrap_or_else(|| {
            let end = self.next_mark(from);
            (end, end)
        })
    }

    pub(super) fn white(&self, at: usize) -> usize {
        let rest = self.from(at);
        at + rest.len() - rest.trim_start().len()
    }

    fn wrapped(&mut self, row: &Row, start: usize, behind: usize) -> Step {
        // The bracket of `functools[` belongs to the list.
        let behind = behind - usize::from(row.open.ends_with('['));
        let at = self.white(behind);
        let rest = self.from(at);
        let wants = |format| self.format.is_none_or(|told| told == format);
        match rest.chars().next() {
            None => {
                self.written.truncated = true;
                Ok(Some(self.text.len()))
            }
            Some('{' | '[') if wants(TextFormat::Hermes) => self.objects(row, at),
            Some('<') if wants(TextFormat::QwenCoder) || wants(TextFormat::Invoke) => {
                match self.elements_at(start) {
                    Some(call) => self.element_of(row, start, call),
                    None => Ok(None),
                }
            }
            Some(c) if (c.is_alphabetic() || c == '_') && wants(TextFormat::Glm) => {
                match self.elements_at(start) {
                    Some(call) => self.element_of(row, start, call),
                    // A name that the text ends in.
                    None if rest.len() <= HEAD_MAX && is_name(rest.trim_end()) => {
                        self.cut(rest.trim(), "")
                    }
                    None => Ok(None),
                }
            }
            Some(_) => Ok(None),
        }
    }

    /// Adds a call that the text ends inside of.
    pub(super) fn cut(&mut self, name: &str, arguments: &str) -> Step {
        self.add_cut(name, arguments)?;
        Ok(Some(self.text.len()))
    }

    /// Adds a call whose name is known and whose arguments are JSON that starts here. Whatever else stands there is handed
    /// over with them: it may be a part of the call.
    pub(super) fn named_json(&mut self, row: &Row, name: &str, at: usize) -> Step {
        if let Some((raw, length)) = json(self.from(at)) {
            let end = at + length;
            if self.ends_at(row, end) {
                self.add(name, raw)?;
                return Ok(Some(self.behind_close(row, end)));
            }
            let (end, behind) = self.region(row, end);
            self.add(name, self.between(at, end).trim())?;
            return Ok(Some(behind));
        }
        let Some((end, behind)) = self.closed(row, at) else {
            return self.cut(name, self.from(at));
        };
        self.add(name, self.between(at, end).trim())?;
        Ok(Some(behind))
    }

    fn mistral(&mut self, row: &Row, behind: usize) -> Step {
        let at = self.white(behind);
        let rest = self.from(at);
        if rest.is_empty() {
            return self.cut("", "");
        }
        if rest.starts_with(['[', '{']) {
            return self.objects(row, at);
        }
        let length = rest.find(['[', '{']).unwrap_or(rest.len());
        let name = rest.get(..length).unwrap_or_default().trim();
        if !is_name(name) {
            return Ok(None);
        }
        let mut at = at + length;
        if let Some(id) = self.from(at).strip_prefix("[CALL_ID]") {
            let length = id.find('[').unwrap_or(id.len());
            at += "[CALL_ID]".len() + length;
        }
        if self.from(at).starts_with("[ARGS]") {
            at += "[ARGS]".len();
        }
        let at = self.white(at);
        if !self.from(at).starts_with('{') {
            return self.cut(name, self.from(at));
        }
        self.named_json_until(row, name, at, "[TOOL_CALLS]")
    }

    /// The same as `named_json`, where the next call also ends this one.
    fn named_json_until(&mut self, row: &Row, name: &str, at: usize, next: &str) -> Step {
        if json(self.from(at)).is_some() {
            return self.named_json(row, name, at);
        }
        let following = self.from(at).find(next).map(|offset| at + offset);
        match following {
            Some(end) => {
                self.is_loose = true;
                self.add(name, self.between(at, end).trim())?;
                Ok(Some(end))
            }
            None => self.named_json(row, name, at),
        }
    }

    fn separated(&mut self, row: &Row, behind: usize, separator: &str) -> Step {
        let rest = self.from(behind);
        let length = match near(rest, separator) {
            Ok(length) => length,
            Err(true) => return self.cut("", ""),
            Err(false) => return Ok(None),
        };
        let header = rest.get(..length).unwrap_or_default().trim();
        let mut at = behind + length + separator.len();
        let (name, id) = match header {
            // `function<sep>name`, then the arguments in a code block.
            "function" => {
                let line = self.from(at);
                let length = line.find('\n').unwrap_or(line.len());
                at += length;
                (line.get(..length).unwrap_or_default().trim(), None)
            }
            header => {
                let name = header.strip_prefix("functions.").unwrap_or(header);
                match name.rsplit_once(':') {
                    Some((name, index)) if index.bytes().all(|b| b.is_ascii_digit()) => {
                        (name, Some(header))
                    }
                    _ => (name, None),
                }
            }
        };
        if !is_name(name) {
            return Ok(None);
        }
        let at = self.fence(at);
        let before = self.written.calls.len();
        let end = self.named_json(row, name, at)?;
        if let Some(call) = self.written.calls.get_mut(before) {
            call.id = id.map(str::to_owned);
        }
        // The end of the code block stands before the closing mark.
        let Some(end) = end else { return Ok(None) };
        let fence = self.white(end);
        let behind = fence
            + if self.from(fence).starts_with("```") {
                3
            } else {
                0
            };
        Ok(Some(if behind > fence {
            self.behind_close(row, behind)
        } else {
            end
        }))
    }

    /// Returns the first byte behind white space and the head of a code block.
    fn fence(&self, at: usize) -> usize {
        let at = self.white(at);
        match self.from(at).strip_prefix("```") {
            Some(rest) => {
                let word = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
                self.white(at + 3 + rest.len() - word.len())
            }
            None => at,
        }
    }

    /// Reads a message with its header. Thinking that does not end was cut off; a message without a recipient is prose.
    fn harmony(&mut self, row: &Row, start: usize, behind: usize) -> Step {
        const MESSAGE: &str = "<|message|>";
        let header_start = if row.open.ends_with('=') {
            start
        } else {
            behind
        };
        let rest = self.from(header_start);
        let length = match near(rest, MESSAGE) {
            Ok(length) => length,
            Err(true) => return self.cut("", ""),
            Err(false) => return Ok(None),
        };
        // A recipient may stand before the channel as well.
        let before = self.between(self.at, start);
        let before = match before.rfind("<|start|>") {
            Some(at) if before.len() - at <= HEAD_MAX => before.get(at..).unwrap_or_default(),
            _ => "",
        };
        let header = rest.get(..length).unwrap_or_default();
        let at = header_start + length + MESSAGE.len();
        let recipient = [header, before].into_iter().find_map(|part| {
            let to = part.split_once("to=")?.1;
            to.split(|c: char| c.is_whitespace() || c == '<').next()
        });
        let Some(name) = recipient else {
            let closed = self.closed(row, at);
            let thinks = header.trim_start().starts_with("analysis");
            let end = closed.map_or(self.text.len(), |(end, _)| end);
            if thinks && closed.is_none() {
                return self.cut("", "");
            }
            if !thinks {
                let prose = self.between(at, end);
                self.written.prose.push_str(prose);
            }
            let behind = match closed {
                Some((end, _)) if self.from(end).starts_with("<|start|>") => end,
                Some((_, behind)) => behind,
                None => self.text.len(),
            };
            return Ok(Some(behind));
        };
        let name = name.strip_prefix("functions.").unwrap_or(name);
        if !is_name(name) {
            return Ok(None);
        }
        let name = name.to_owned();
        let at = self.white(at);
        if self.from(at).is_empty() {
            self.cut(&name, "")
        } else {
            self.named_json(row, &name, at)
        }
    }

    fn gemma(&mut self, row: &Row, behind: usize) -> Step {
        let at = self.white(behind);
        let Some(rest) = self.from(at).strip_prefix("call:") else {
            return Ok(None);
        };
        let length = match near(rest, "{") {
            Ok(length) => length,
            Err(true) => return self.cut("", ""),
            Err(false) => return Ok(None),
        };
        let name = rest.get(..length).unwrap_or_default().trim();
        if !is_name(name) {
            return Ok(None);
        }
        self.named_json(row, name, at + "call:".len() + length)
    }

    /// Reads `Action: f` and the line `Action Input:` behind it.
    fn react(&mut self, row: &Row, start: usize, behind: usize) -> Step {
        const INPUT: &str = "Action Input:";
        let starts_line = self.between(0, start).trim_end_matches([' ', '*', '#']);
        if !(starts_line.is_empty() || starts_line.ends_with('\n')) {
            return Ok(None);
        }
        let fenced = self.fence(behind);
        if self.from(fenced).starts_with(['[', '{']) {
            return self.objects(row, fenced);
        }
        let line = self.from(behind);
        let length = line.find('\n').unwrap_or(line.len());
        let name = line.get(..length).unwrap_or_default();
        let name = name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '`'));
        if !is_name(name) {
            return Ok(None);
        }
        let next = self.white(behind + length);
        let next = next + self.from(next).len() - self.from(next).trim_start_matches('*').len();
        let Some(input) = self.from(next).strip_prefix(INPUT) else {
            let rest = self.from(next);
            // A name alone is prose, unless its writer was cut off.
            let ends = INPUT.starts_with(rest) && (!rest.is_empty() || self.is_cut);
            return if ends { self.cut(name, "") } else { Ok(None) };
        };
        let at = self.text.len() - input.len();
        let input = self.white(at) + usize::from(input.starts_with("**")) * 2;
        let at = self.fence(input);
        let rest = self.from(at);
        // What a string has in it ends nothing.
        let inside = json(rest).map_or(0, |(_, length)| length);
        let behind = rest.get(inside..).unwrap_or_default();
        let ends = [
            "\nObservation:",
            "\nThought:",
            "\nAction:",
            "\nFinal Answer:",
        ];
        let label = ends.iter().filter_map(|end| behind.find(end)).min();
        self.is_closed |= label.is_some();
        let behind = behind
            .get(..label.unwrap_or(behind.len()))
            .unwrap_or_default();
        let label = at + inside + labelled_result(behind).unwrap_or(behind.len());
        let end = label.min(self.next_mark(at + inside));
        let whole = self.between(at, end).trim();
        // The end of a code block around the arguments.
        let is_fenced = at > self.white(input);
        let raw = whole
            .strip_suffix("```")
            .filter(|_| is_fenced)
            .unwrap_or(whole);
        self.add(name, raw.trim_end())?;
        Ok(Some(end))
    }

    /// Reads a text without marks: call objects or Python calls, and nothing else.
    pub(super) fn unmarked(&mut self) -> Result<(), DecodeError> {
        let text = self.text.trim();
        let inside = text
            .strip_prefix("```")
            .and_then(|fenced| fenced.strip_suffix("```"))
            .map_or(text, |fenced| {
                fenced.trim_start_matches(|c: char| c.is_ascii_alphanumeric())
            })
            .trim();
        let told = self.format;
        let wants = |format| told.is_none_or(|told| told == format);
        if wants(TextFormat::Json)
            && let Some((raw, length)) = json(inside)
            && inside.get(length..).unwrap_or_default().trim().is_empty()
            && matches!(self.unmarked_object(raw)?, Object::Added)
        {
            self.written.prose.clear();
            return Ok(());
        }
        let is_told = told == Some(TextFormat::Pythonic);
        if wants(TextFormat::Pythonic) && (inside.starts_with('[') || is_told) {
            let end = self.python_calls(inside)?;
            if end < inside.len() {
                // Something stands behind the calls: a text that mentions them, unless all of it should be calls.
                if is_told {
                    self.doubt(0);
                } else {
                    self.written.calls.clear();
                }
            }
            if !self.written.calls.is_empty() || self.written.truncated {
                self.written.prose.clear();
            }
        }
        Ok(())
    }

    fn unmarked_object(&mut self, raw: &str) -> Result<Object, DecodeError> {
        self.is_marked = false;
        self.object(raw, 0)
    }

    fn code(&mut self, row: &Row, behind: usize) -> Step {
        let at = self.white(behind);
        if self.from(at).is_empty() {
            return self.cut("", "");
        }
        if self.from(at).starts_with('{') {
            return self.objects(row, at);
        }
        let before = self.written.calls.len();
        let end = at + self.python_calls(self.from(at))?;
        if self.written.truncated {
            return Ok(Some(self.text.len()));
        }
        if self.written.calls.len() == before {
            return Ok(None);
        }
        if self.ends_at(row, end) {
            return Ok(Some(self.behind_close(row, end)));
        }
        // Something else stands in the code: the calls may depend on it.
        self.doubt(before);
        let (_, behind) = self.region(row, end);
        Ok(Some(behind))
    }
}

pub(super) fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':')
}

/// True if a text can be the name of a tool.
pub(super) fn is_name(text: &str) -> bool {
    // The full stop behind a word in prose is no part of a name.
    !text.is_empty() && text.len() <= 128 && !text.ends_with('.') && text.chars().all(is_part)
}
