//! Look-ahead from a quote: it closes the string, or stands inside it. Only the text behind it can tell, within
//! a window that [`Limits`](crate::Limits) set.

use super::quote::{Place, Quote, Style};
use super::{Closer, Reader};
use crate::fault::Fault;

impl Reader<'_, '_, '_> {
    /// True if a quote that ends before `behind` closes the string: only if structure that fits this place
    /// follows.
    pub(super) fn closes(&mut self, behind: usize, place: Place, mark: usize) -> bool {
        self.lookaheads += 1;
        let next = self.skip_filler(behind);
        if next >= self.bytes.len() {
            return true;
        }
        let (byte, width) = self.punctuation(next);
        match place {
            Place::Whole => false,
            Place::Key => self.closes_key(behind, next, byte, mark),
            Place::Member => match byte {
                b'}' => self.brace_ends(next),
                b']' => self.in_brackets(),
                b')' => self.in_parentheses(),
                b',' | b';' => {
                    let then = self.skip_commas(next + width);
                    let ends = self.container_ends(then) || self.member_follows(then, true);
                    if !ends && self.is_item_at(then) {
                        self.breaks(then, Fault::Unreadable);
                    }
                    ends
                }
                // The comma is missing: a quoted key after a space is a key, any other must be declared.
                _ => {
                    next > behind
                        && (self.quoted_key_at(next).is_some() || self.member_follows(next, false))
                }
            },
            Place::Item => match byte {
                b']' => true,
                b'}' => self.has_open(Closer::Brace) && self.brace_ends(next),
                b')' => self.in_parentheses(),
                b',' => {
                    let then = self.skip_commas(next + width);
                    self.container_ends(then) || self.item_follows(then)
                }
                _ => next > behind && self.item_without_comma(next),
            },
        }
    }

    fn closes_key(&mut self, behind: usize, next: usize, byte: u8, mark: usize) -> bool {
        match byte {
            b':' => true,
            b'=' => self.in_parentheses() || self.byte_at(next + 1) == b'>',
            // The colon is missing: only behind a space, and if the name is declared exactly.
            _ if next == behind => false,
            _ if self.is_colon_in_quotes(next) => false,
            _ => {
                let schema = self.stack.last().and_then(|frame| frame.schema);
                let object = schema.and_then(|id| self.schema.rules(id).object.as_ref());
                let key = self.tree.side().get(mark..).unwrap_or_default();
                object.is_some_and(|object| object.property(key).is_some())
            }
        }
    }

    /// True for `":`, the end of another key.
    fn is_colon_in_quotes(&mut self, at: usize) -> bool {
        Quote::at(self.rest(at)).is_some_and(|quote| {
            let inside = self.skip_filler(at + quote.width);
            matches!(self.punctuation(inside).0, b':' | b',')
        })
    }

    /// True if a brace right behind a quote ends the object. It does not if another quote follows that opens no
    /// member, or if the text goes on to a quote with a declared member behind it: then the brace belongs to
    /// the string.
    fn brace_ends(&mut self, brace: usize) -> bool {
        let next = self.skip_filler(brace + 1);
        match Quote::at(self.rest(next)) {
            Some(Quote {
                style: Style::Backtick,
                ..
            }) => return true,
            Some(_) => return self.quoted_key_at(next).is_some(),
            None => {}
        }
        if matches!(self.byte_at(next), b',' | b'}' | b']' | b'{') || next >= self.bytes.len() {
            return true;
        }
        let schema = self.stack.last().and_then(|frame| frame.schema);
        let window = next + self.limits.lookahead_bytes_max.min(self.bytes.len() - next);
        for at in next..window {
            match self.byte_at(at) {
                b'{' => return true,
                b'"' => {
                    let comma = self.skip_filler(at + 1);
                    if self.byte_at(comma) == b',' {
                        let member = self.skip_filler(comma + 1);
                        let key = self.quoted_key_at(member);
                        if key.is_some_and(|key| self.declares(schema, key)) {
                            return false;
                        }
                    }
                }
                _ => {}
            }
        }
        true
    }

    /// Returns the first byte behind filler and surplus commas.
    fn skip_commas(&mut self, at: usize) -> usize {
        let mut at = self.skip_filler(at);
        for _ in 0..4 {
            if self.byte_at(at) != b',' {
                break;
            }
            at = self.skip_filler(at + 1);
        }
        at
    }

    /// True if a quoted string that can only be an item of a list stands here: then the string before it is an
    /// item too, and the bracket is missing.
    fn is_item_at(&mut self, at: usize) -> bool {
        let Some(quote) = Quote::at(self.rest(at)) else {
            return false;
        };
        let start = at + quote.width;
        let window = start
            + self
                .limits
                .lookahead_bytes_max
                .min(self.bytes.len().saturating_sub(start));
        for end in start..window {
            if let Some(width) = quote.closing_at(self.rest(end)) {
                let next = self.skip_filler(end + width);
                return matches!(self.byte_at(next), b']' | b',');
            }
        }
        false
    }

    /// True if only the end of the container follows.
    fn container_ends(&mut self, at: usize) -> bool {
        match self.byte_at(at) {
            b'}' | b']' => true,
            b')' => self.in_parentheses(),
            _ => at >= self.bytes.len(),
        }
    }

    /// True if an item of a list starts here.
    fn item_follows(&mut self, at: usize) -> bool {
        match self.byte_at(at) {
            b'{' | b'[' | b'-' | b'+' | b'.' | b'0'..=b'9' => return true,
            _ if Quote::at(self.rest(at)).is_some() => return true,
            _ => {}
        }
        // A bare word is an item if it ends where items end.
        let rest = self.rest(at);
        let window = rest
            .get(..self.limits.lookahead_bytes_max.min(rest.len()))
            .unwrap_or(rest);
        let end = window
            .iter()
            .position(|b| matches!(b, b',' | b']' | b'"' | b'\'' | b'\n'));
        end.is_some_and(|end| end > 0 && matches!(window.get(end), Some(b',' | b']')))
    }

    /// True if the next item starts here without a comma: a quote, or a number and the end of an item.
    fn item_without_comma(&mut self, at: usize) -> bool {
        if Quote::at(self.rest(at)).is_some() {
            return true;
        }
        let rest = self.rest(at);
        let digits = rest
            .iter()
            .take(24)
            .take_while(|b| b.is_ascii_digit() || matches!(b, b'-' | b'.'));
        let width = digits.count();
        let end = self.skip_filler(at + width);
        width > 0 && (matches!(self.byte_at(end), b',' | b']') || end >= self.bytes.len())
    }
}
