//! Values without quotes: literals, numbers in any spelling, and strings whose quotes are missing.

use countersign_contract::IssueCode;

use super::quote::{Place, Quote};
use super::{NoRead, Reader, word};
use crate::fault::Fault;
use crate::number;
use crate::tree::{Kind, NodeId, Str};

/// Maximum number of pieces that are checked of a string with commas.
const PIECES_MAX: usize = 32;

impl Reader<'_, '_, '_> {
    /// Reads a value without an opening quote; `None` if no value stands here.
    pub(super) fn bare_value(&mut self) -> Result<Option<NodeId>, NoRead> {
        let place = self.value_place();
        self.skip_prefix();
        let start = self.at;
        if let Some(quote) = self.quote_here() {
            return self.quoted_value(quote);
        }
        let (end, closing) = self.bare_end(place);
        let token = self.slice(start, end).trim();
        self.at = end + closing;
        // A closing quote without its opening one: an unknown number of bytes was lost.
        let plain = token.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if closing > 0 || (place != Place::Whole && !plain && self.is_entangled(token, place)) {
            self.breaks(start, Fault::Quotes);
        }
        if token.is_empty() {
            return Ok(None);
        }
        self.classify(token, start).map(Some)
    }

    /// True if a bare string contains what cannot be part of one: a quote, an entity, or the next member.
    fn is_entangled(&mut self, token: &str, place: Place) -> bool {
        let quoted = token.char_indices().any(|(at, c)| match c {
            '"' | '`' => true,
            '\'' => {
                let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                !(word(token.get(..at).and_then(|t| t.chars().next_back()))
                    && word(token.get(at + 1..).and_then(|t| t.chars().next())))
            }
            _ => false,
        });
        let parent = self
            .stack
            .len()
            .checked_sub(2)
            .and_then(|at| self.stack.get(at));
        let member = place == Place::Item
            && token.split_once(':').is_some_and(|(name, _)| {
                parent
                    .and_then(|frame| frame.schema)
                    .is_some_and(|id| self.declares_by_name(id, name.trim()))
            });
        // `Paris, days 3`: the colon of the next member is missing. `a, b`: a member that JavaScript writes as its name
        // alone, or an item of a list.
        let schema = self.stack.last().and_then(|frame| frame.schema);
        let swallowed = place == Place::Member
            && token.split(',').skip(1).take(PIECES_MAX).any(|piece| {
                let piece = piece.trim();
                let word = piece.split(' ').next().unwrap_or_default();
                word::is_name(piece) || schema.is_some_and(|id| self.declares_by_name(id, word))
            });
        quoted || member || swallowed || token.contains("&quot;")
    }

    /// Skips what may stand before a quote without a meaning: a second colon, or Python's prefix of a raw or
    /// byte string.
    fn skip_prefix(&mut self) {
        let start = self.at;
        let meaningless = matches!(
            self.rest(start),
            [b':' | b'=', ..] | [b'b' | b'B' | b'r' | b'R' | b'u' | b'U', b'"' | b'\'', ..]
        );
        if !meaningless {
            return;
        }
        let colon = matches!(self.byte(), b':' | b'=');
        self.at += 1;
        self.filler();
        self.note(IssueCode::StrayText, start, start + 1);
        if colon {
            return;
        }
        // In a raw or byte string a backslash is not an escape of JSON.
        let rest = self.slice(self.at, self.bytes.len());
        let content = rest.get(1..).unwrap_or_default().split(['"', '\'']).next();
        if content.is_some_and(|content| content.contains('\\')) {
            self.breaks(start, Fault::Escape);
        }
    }

    fn classify(&mut self, token: &str, start: usize) -> Result<NodeId, NoRead> {
        let end = start + token.len();
        let literal = match token {
            "true" => Some((Kind::True, false)),
            "false" => Some((Kind::False, false)),
            "null" => Some((Kind::Null, false)),
            "True" | "TRUE" => Some((Kind::True, true)),
            "False" | "FALSE" => Some((Kind::False, true)),
            "None" | "Null" | "NULL" | "nil" | "undefined" => Some((Kind::Null, true)),
            _ => None,
        };
        if let Some((kind, foreign)) = literal {
            if foreign {
                self.note(IssueCode::PythonLiteral, start, end);
            }
            return self.push(kind, Str::EMPTY, start);
        }
        if token.len() <= self.limits.number_digits_max && number::is_plain(token) {
            self.check_grouping(token, start);
            let digits = self.tree.intern(token);
            return self.push(Kind::Number, digits, start);
        }
        if token.len() <= self.limits.number_digits_max
            && let Some(json) = number::from_token(token)
        {
            self.check_grouping(token, start);
            let spelt = self.tree.intern(token);
            if json == token {
                return self.push(Kind::Number, spelt, start);
            }
            self.note(IssueCode::NumberForm, start, end);
            let text = self.tree.intern(&json);
            let node = self.push(Kind::Number, text, start)?;
            self.tree.node_mut(node).spelt = spelt;
            return Ok(node);
        }
        if !self.stack.is_empty() {
            if token.ends_with("...") || token.ends_with('…') {
                return Err(NoRead::Elided);
            }
            // Inside a call a name is a variable, whose value is unknown.
            if self.call || !word::is_text(token) || self.byte() == b'\\' {
                self.breaks(start, Fault::Bare);
            }
        }
        self.bare_text = true;
        self.note(IssueCode::ValueUnquoted, start, end);
        let text = self.tree.intern(token);
        self.push(Kind::Text, text, start)
    }

    /// Refuses `1,000` in a list: it is two items in JSON and one number to its author.
    fn check_grouping(&mut self, token: &str, start: usize) {
        if token.len() != 3 || !token.starts_with('0') || !self.in_list() {
            return;
        }
        let before = self.slice(0, start).trim_end();
        let close = before.len() == start && before.ends_with(',');
        if close || before.ends_with(|c: char| c.is_ascii_digit()) {
            self.breaks(start, Fault::Unreadable);
        }
    }

    /// Returns the end of a bare value, and the width of the closing quote that ends it.
    fn bare_end(&mut self, place: Place) -> (usize, usize) {
        if place == Place::Whole {
            return (self.bytes.len(), 0);
        }
        let start = self.at;
        let mut end = start;
        let mut depth = 0_usize;
        while end < self.bytes.len() {
            if self.lookaheads > self.limits.lookaheads_max {
                return (self.bytes.len(), 0);
            }
            let byte = self.byte_at(end);
            let opens = matches!(byte, b'{' | b'[' | b'(');
            if opens || (depth > 0 && matches!(byte, b'}' | b']' | b')')) {
                depth = if opens { depth + 1 } else { depth - 1 };
                end += 1;
                continue;
            }
            let stop = match byte {
                b',' => {
                    place == Place::Item
                        || self.is_whole_token(start, end)
                        || self.comma_ends_member(end)
                }
                // A full-width comma beside a literal; inside a string it may be a part of it.
                0xef if self.punctuation(end).0 == b',' => self.is_whole_token(start, end),
                b'}' => true,
                b']' => end == start || self.in_brackets() || self.is_whole_token(start, end),
                b')' => self.in_parentheses(),
                b'\n' => self.line_ends_value(place, end),
                b'#' | b'/' => {
                    // `#1` is a part of the string, `# one` is a comment.
                    let spaced = end > start && self.byte_at(end - 1).is_ascii_whitespace();
                    let comment = match self.rest(end) {
                        [b'#', next, ..] | [b'/', b'/', next, ..] => next.is_ascii_whitespace(),
                        _ => true,
                    };
                    spaced && comment && self.comment_end(end, 4).is_some()
                }
                b'\\' => {
                    let behind = self.skip_filler(end);
                    behind > end && matches!(self.byte_at(behind), b'}' | b']' | b',')
                }
                _ => false,
            };
            if stop || self.word_ends_item(place, start, end) {
                return (end, 0);
            }
            if matches!(byte, b'"' | b'\'' | b'`' | 0xe2)
                && let Some(quote) = Quote::at(self.rest(end))
                && end > start
            {
                // The quote of the next key, if only the comma is missing.
                let spaced = self.byte_at(end - 1).is_ascii_whitespace();
                if place == Place::Member && spaced && self.quoted_key_at(end).is_some() {
                    return (end, 0);
                }
                let mark = self.tree.side_mark();
                if self.closes(end + quote.width, place, mark) {
                    return (end, quote.width);
                }
            }
            end += 1;
        }
        (end, 0)
    }

    /// True if the part that was read is a number or a literal: nothing may be added to it.
    fn is_whole_token(&self, start: usize, end: usize) -> bool {
        let token = self.slice(start, end).trim();
        token.len() <= self.limits.number_digits_max
            && (matches!(token, "true" | "false" | "null" | "True" | "False" | "None")
                || number::is_plain(token)
                || number::from_token(token).is_some())
    }

    /// True if the white space here ends a number in a list whose commas are missing.
    fn word_ends_item(&mut self, place: Place, start: usize, end: usize) -> bool {
        if place != Place::Item || !self.byte_at(end).is_ascii_whitespace() {
            return false;
        }
        // Further white space does not change the answer.
        if end > start && self.byte_at(end - 1).is_ascii_whitespace() {
            return false;
        }
        self.lookaheads += 1;
        let next = self.skip_filler(end);
        matches!(self.byte_at(next), b'-' | b'0'..=b'9' | b'{' | b'[' | b'"')
            && self.is_whole_token(start, end)
    }

    fn comma_ends_member(&mut self, comma: usize) -> bool {
        self.lookaheads += 1;
        let next = self.skip_filler(comma + 1);
        match self.byte_at(next) {
            b'}' => true,
            b']' => self.in_brackets(),
            b')' => self.in_parentheses(),
            _ => next >= self.bytes.len() || self.member_follows(next, true),
        }
    }

    fn line_ends_value(&mut self, place: Place, line: usize) -> bool {
        if place == Place::Whole {
            return false;
        }
        self.lookaheads += 1;
        let next = self.skip_filler(line);
        match self.byte_at(next) {
            b'}' | b']' | b',' => true,
            _ => {
                place == Place::Item || next >= self.bytes.len() || self.member_follows(next, false)
            }
        }
    }
}
