//! Quoted strings. The one hard question, whether a quote closes the string or stands inside it, is answered in
//! `ahead`.

use countersign_contract::IssueCode;

use super::{Closer, NoRead, Reader};
use crate::escape;
use crate::fault::Fault;
use crate::strict::plain;
use crate::tree::{Kind, NodeId, Str};

/// An opening quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) style: Style,
    /// Width in bytes.
    pub(super) width: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Double,
    Single,
    Backtick,
    SmartDouble,
    SmartSingle,
    TripleDouble,
    TripleSingle,
    /// `«…»`
    Guillemet,
    /// `「…」` and `『…』`
    Corner,
    /// `＂…＂`
    FullWidth,
    /// `＇…＇`
    FullWidthSingle,
    /// `″…″`
    Prime,
    /// `´…´`
    Acute,
    /// `<|"|>…<|"|>`
    Token,
}

impl Quote {
    /// Returns the opening quote at the start of `rest`.
    pub(super) fn at(rest: &[u8]) -> Option<Self> {
        let (style, width) = match rest {
            [b'"', b'"', b'"', ..] => (Style::TripleDouble, 3),
            [b'\'', b'\'', b'\'', ..] => (Style::TripleSingle, 3),
            [b'"', ..] => (Style::Double, 1),
            [b'\'', ..] => (Style::Single, 1),
            [b'`', ..] => (Style::Backtick, 1),
            [0xe2, 0x80, 0x9c..=0x9e, ..] => (Style::SmartDouble, 3),
            [0xe2, 0x80, 0x98..=0x9a, ..] => (Style::SmartSingle, 3),
            [0xc2, 0xab, ..] => (Style::Guillemet, 2),
            [0xe3, 0x80, 0x8c | 0x8e, ..] => (Style::Corner, 3),
            [0xef, 0xbc, 0x82, ..] => (Style::FullWidth, 3),
            [0xef, 0xbc, 0x87, ..] => (Style::FullWidthSingle, 3),
            [0xe2, 0x80, 0xb3, ..] => (Style::Prime, 3),
            [0xc2, 0xb4, ..] => (Style::Acute, 2),
            [b'<', b'|', b'"', b'|', b'>', ..] => (Style::Token, 5),
            _ => return None,
        };
        Some(Self { style, width })
    }

    /// Returns the width of the quote at the start of `rest`, if it can close this one.
    pub(super) fn closing_at(self, rest: &[u8]) -> Option<usize> {
        match (self.style, rest) {
            (Style::Double, [b'"', ..])
            | (Style::Single, [b'\'', ..])
            | (Style::Backtick, [b'`', ..]) => Some(1),
            (Style::Guillemet, [0xc2, 0xbb, ..]) | (Style::Acute, [0xc2, 0xb4, ..]) => Some(2),
            (Style::Corner, [0xe3, 0x80, 0x8d | 0x8f, ..])
            | (Style::FullWidth, [0xef, 0xbc, 0x82, ..])
            | (Style::FullWidthSingle, [0xef, 0xbc, 0x87, ..])
            | (Style::Prime, [0xe2, 0x80, 0xb3, ..])
            | (Style::SmartDouble, [0xe2, 0x80, 0x9c..=0x9e, ..])
            | (Style::SmartSingle, [0xe2, 0x80, 0x98..=0x9a, ..])
            | (Style::TripleDouble, [b'"', b'"', b'"', ..])
            | (Style::TripleSingle, [b'\'', b'\'', b'\'', ..]) => Some(3),
            (Style::Token, [b'<', b'|', b'"', b'|', b'>', ..]) => Some(5),
            _ => None,
        }
    }

    /// True if a byte can start a closing quote or needs another check.
    pub(super) fn stops_at(self, byte: u8) -> bool {
        byte == b'\\'
            || byte < 0x20
            || match self.style {
                Style::Double | Style::TripleDouble => byte == b'"',
                Style::Single | Style::TripleSingle => byte == b'\'',
                Style::Backtick => byte == b'`',
                Style::SmartDouble | Style::SmartSingle | Style::Prime => byte == 0xe2,
                Style::Guillemet | Style::Acute => byte == 0xc2,
                Style::Corner => byte == 0xe3,
                Style::FullWidth | Style::FullWidthSingle => byte == 0xef,
                Style::Token => byte == b'<',
            }
    }
}

/// Place of a quoted string, which decides what may follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Key,
    Member,
    Item,
    /// The whole text.
    Whole,
}

impl Reader<'_, '_, '_> {
    pub(super) fn quote_here(&self) -> Option<Quote> {
        Quote::at(self.rest(self.at))
    }

    /// Returns the place of the current value.
    pub(super) fn value_place(&self) -> Place {
        match self.stack.last() {
            None => Place::Whole,
            Some(frame) if frame.closer.is_list() => Place::Item,
            Some(_) => Place::Member,
        }
    }

    pub(super) fn quoted_value(&mut self, quote: Quote) -> Result<Option<NodeId>, NoRead> {
        let start = self.at;
        let (text, _) = self.quoted(quote, self.value_place());
        self.push(Kind::Text, text, start).map(Some)
    }

    /// Reads the string that is the whole text. Also returns true if it was closed.
    pub(super) fn whole_string(&mut self, quote: Quote) -> Result<(Option<NodeId>, bool), NoRead> {
        let start = self.at;
        let (text, closed) = self.quoted(quote, Place::Whole);
        let node = self.push(Kind::Text, text, start)?;
        Ok((Some(node), closed))
    }

    /// Reads a quoted key; `None` if the text ends inside it.
    pub(super) fn quoted_key(&mut self, quote: Quote) -> Option<Str> {
        let (key, closed) = self.quoted(quote, Place::Key);
        closed.then_some(key)
    }

    /// Reads a quoted string into the side buffer. Also returns true if it was closed.
    fn quoted(&mut self, quote: Quote, place: Place) -> (Str, bool) {
        let opened = self.at;
        if quote.style != Style::Double {
            self.note(IssueCode::QuoteStyle, opened, opened + quote.width);
        }
        self.single_quoted |= matches!(quote.style, Style::Single | Style::TripleSingle);
        self.escapes = Escapes::default();
        self.at += quote.width;
        let mark = self.tree.side_mark();
        let mut inner = Pairs::default();
        loop {
            let run = self.at;
            let rest = self.rest(run);
            self.at += match quote.style {
                Style::Double => plain(rest),
                _ => rest
                    .iter()
                    .position(|byte| quote.stops_at(*byte))
                    .unwrap_or(rest.len()),
            };
            let plain = self.slice(run, self.at);
            self.tree.side().push_str(plain);
            if self.lookaheads > self.limits.lookaheads_max {
                self.at = self.bytes.len();
            }
            if self.at_end() {
                // The document has its end, so the missing quote was not cut off.
                if inner.broken && self.text.trim_end().ends_with(['}', ']', '`', '>']) {
                    self.breaks(opened, Fault::Quotes);
                }
                if place != Place::Key {
                    self.leave_closers(mark);
                }
                return (self.tree.side_since(mark), false);
            }
            if let Some(width) = quote.closing_at(self.rest(self.at)) {
                let closes = self.closes(self.at + width, place, mark);
                if closes || place == Place::Key {
                    self.at += width;
                    self.check_string(opened, quote, place, mark);
                    let paired = inner.are_closed() && !self.is_quoted_twice(&inner, quote, mark);
                    // An author who escapes one quote of a string escapes all of them.
                    let paired = paired && !(inner.any && self.escapes.quoted);
                    // Only a colon can follow a key, so a key contains no quote.
                    if !closes || !paired {
                        self.breaks(opened, Fault::Quotes);
                    }
                    return (self.tree.side_since(mark), true);
                }
                self.inner_quote(opened, quote, width, &mut inner);
            } else if self.byte() == b'\\' {
                self.escape(quote, place);
            } else {
                if self.byte() < 0x20 {
                    self.note(IssueCode::ControlChar, self.at, self.at + 1);
                }
                let width = self.character_width();
                self.take(width);
            }
        }
    }

    /// Keeps the quote here as a part of the string.
    fn inner_quote(&mut self, opened: usize, quote: Quote, width: usize, inner: &mut Pairs) {
        self.note(IssueCode::InnerQuoteEscaped, self.at, self.at + width);
        self.inner_quote.get_or_insert(opened);
        let inside = self.slice(opened + quote.width, self.at);
        let behind = self.slice(self.at + width, self.bytes.len());
        let bare_keys = self.stack.last().is_some_and(|frame| frame.keys.unquoted);
        inner.add(inside, behind, quote, bare_keys);
        self.take(width);
    }

    /// Checks a complete string for signs of a wrong end.
    fn check_string(&mut self, opened: usize, quote: Quote, place: Place, mark: usize) {
        self.check_escapes(opened, mark);
        self.check_partner(opened, quote, place);
        let raw = self.slice(opened, self.at);
        if quote.style == Style::Backtick && raw.contains("${") {
            self.breaks(opened, Fault::Bare);
        }
        if place != Place::Key {
            return;
        }
        let key = self.tree.side().as_bytes().get(mark..).unwrap_or_default();
        let torn = key
            .iter()
            .any(|byte| matches!(byte, b'"' | b'\'' | b'\n' | b','))
            || matches!(key, [b':' | b'}' | b']', ..])
            || key.windows(2).any(|pair| pair == b": ");
        if torn {
            self.breaks(opened, Fault::Quotes);
        }
    }

    /// Removes closers from a string that the text ended in, if they fit the open containers: `{"a": "b}`
    /// arrived with `b`.
    fn leave_closers(&mut self, mark: usize) {
        let text = self.tree.side().get(mark..).unwrap_or_default();
        let mut kept = text.trim_end();
        for frame in &self.stack {
            let closer = match frame.closer {
                Closer::Brace | Closer::End => '}',
                Closer::Bracket => ']',
                Closer::Parenthesis | Closer::Tuple => ')',
            };
            match kept.strip_suffix(closer) {
                Some(inner) => kept = inner.trim_end(),
                None => break,
            }
        }
        if kept.len() < text.trim_end().len() {
            let end = mark + kept.len();
            self.tree.side().truncate(end);
        }
    }

    /// Refuses a string that has both an escape that JSON does not have and one that is decoded: it is a path,
    /// a regular expression or a formula, and the meaning of the escapes would be a guess.
    fn check_escapes(&mut self, opened: usize, mark: usize) {
        let Escapes { kept, foreign, .. } = self.escapes;
        if !kept {
            return;
        }
        let text = self.tree.side().get(mark..).unwrap_or_default();
        let decoded = text.contains(['\u{8}', '\u{c}', '\n', '\r', '\t']);
        let raw = self.slice(opened, self.at);
        let escaped = ["\\b", "\\f", "\\n", "\\r", "\\t"]
            .iter()
            .any(|escape| raw.contains(escape));
        if foreign || (decoded && escaped) {
            self.breaks(opened, Fault::Escape);
        }
    }

    /// Refuses a string in other quotes that contains `", "key":` of a declared key: it was closed there by the
    /// wrong quote.
    fn check_partner(&mut self, opened: usize, quote: Quote, place: Place) {
        if place != Place::Member || quote.style == Style::Double {
            return;
        }
        let text = self.slice(opened, self.at);
        // Quotes in pairs belong to a document inside the string.
        if text.matches('"').count().is_multiple_of(2) {
            return;
        }
        let schema = self.stack.last().and_then(|frame| frame.schema);
        for (at, _) in text.match_indices('"').take(16) {
            let comma = self.skip_filler(opened + at + 1);
            if self.byte_at(comma) != b',' {
                continue;
            }
            let key = self.skip_filler(comma + 1);
            let key = self.quoted_key_at(key);
            if key.is_some_and(|key| schema.is_some_and(|id| self.declares_by_name(id, key))) {
                self.breaks(opened + at, Fault::Quotes);
            }
        }
    }

    /// True if a string has the same quotes inside its quotes: `""text""`.
    fn is_quoted_twice(&mut self, inner: &Pairs, quote: Quote, mark: usize) -> bool {
        if !inner.any {
            return false;
        }
        let text = self.tree.side().get(mark..).unwrap_or_default();
        let text = text.trim().as_bytes();
        let last = text
            .len()
            .checked_sub(quote.width)
            .and_then(|at| text.get(at..));
        quote.closing_at(text).is_some()
            && last.is_some_and(|last| quote.closing_at(last).is_some())
    }

    /// Copies this many bytes as they are.
    fn take(&mut self, width: usize) {
        let piece = self.slice(self.at, self.at + width);
        self.tree.side().push_str(piece);
        self.at += width;
    }

    fn character_width(&self) -> usize {
        let rest = self.text.get(self.at..).unwrap_or_default();
        rest.chars().next().map_or(1, char::len_utf8)
    }

    /// Reads an escape. One of another language is decoded if the string is written in that language; any other
    /// that JSON does not have keeps its backslash, unless it would have another meaning there.
    fn escape(&mut self, quote: Quote, place: Place) {
        let rest = self.rest(self.at);
        // Markdown escapes the underscore of a name.
        if place == Place::Key && rest.starts_with(b"\\_") {
            self.note(IssueCode::EscapeRepaired, self.at, self.at + 1);
            self.tree.side().push('_');
            self.at += 2;
            return;
        }
        self.escapes.quoted |= quote
            .closing_at(rest.get(1..).unwrap_or_default())
            .is_some();
        if let Some((character, width)) = escape::decode(rest) {
            self.tree.side().push(character);
            self.at += width;
            return;
        }
        if let Some((character, width)) = escape::decode_foreign(rest) {
            // JSON does not have this escape, so in JSON it may be meant literally.
            if !self.single_quoted {
                self.breaks(self.at, Fault::Escape);
            }
            self.escapes.foreign = true;
            self.tree.side().push(character);
            self.at += width;
            return;
        }
        let unclear = match rest.get(1) {
            Some(b'\n' | b'\r') => true,
            Some(b'a' | b'v' | b'N' | b'0'..=b'7') => quote.style != Style::Double,
            _ => escape::is_broken(rest),
        };
        if unclear {
            self.breaks(self.at, Fault::Escape);
        }
        // Other languages escape every quote; only the style of this string makes that a fault.
        let quoted = Quote::at(self.rest(self.at + 1)).is_some();
        if !quoted || quote.style == Style::Double {
            self.note(IssueCode::EscapeRepaired, self.at, self.at + 1);
        }
        self.escapes.kept |= !quoted;
        self.at += usize::from(quoted);
        let width = self.character_width();
        self.take(width);
    }
}

/// Escapes of one string that JSON does not have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Escapes {
    /// True if one was kept literally.
    kept: bool,
    /// True if one of another language was decoded.
    foreign: bool,
    /// True if a quote of the string's own kind was escaped.
    quoted: bool,
}

/// Quotes inside a string: they must open and close in turn, as in prose. Any other order means that one of
/// them was meant to end the string.
#[derive(Debug, Default)]
struct Pairs {
    any: bool,
    open: bool,
    broken: bool,
    /// Number of inch marks; with one, every other quote must be beyond doubt, so there is no pair beside it.
    inches: usize,
    /// Number of other quotes.
    others: usize,
}

impl Pairs {
    /// Adds the quote between these two parts of the string.
    fn add(&mut self, inside: &str, behind: &str, quote: Quote, bare_keys: bool) {
        let (before, after) = (inside.chars().next_back(), behind.chars().next());
        let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let apostrophe = matches!(quote.style, Style::Single | Style::SmartSingle);
        if apostrophe && word(before) && word(after) {
            return;
        }
        self.any = true;
        // An inch mark has no partner: `a 27" monitor`.
        let next = behind.trim_start().chars().next();
        let inch = before.is_some_and(|c| c.is_ascii_digit())
            && after.is_some_and(|c| c == ' ')
            && next.is_some_and(char::is_alphabetic);
        if inch && !self.open && quote.style == Style::Double {
            self.inches += 1;
            return;
        }
        let space = |c: Option<char>| c.is_none_or(char::is_whitespace);
        // Chinese, Japanese and Korean have no spaces around a quotation.
        let joins = |c: Option<char>| word(c) && !c.is_some_and(is_unspaced);
        let opens =
            !space(after) && !joins(before) && !before.is_some_and(|c| matches!(c, ',' | ';'));
        let closes = !space(before) && !joins(after);
        self.broken |= if self.open { !closes } else { !opens };
        self.broken |= is_structure(inside, behind, quote);
        self.broken |= bare_keys && inside.trim_end().ends_with(':');
        self.open = !self.open;
        self.others += 1;
    }

    fn are_closed(&self) -> bool {
        let one_kind = self.inches == 0 || (self.inches == 1 && self.others == 0);
        !self.open && !self.broken && one_kind
    }
}

/// True for a letter of a script that is written without spaces.
const fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
}

/// True if the quote between these two parts of a string may be one of JSON's own: it touches the first quote,
/// a bracket or a colon, stands in a list of quotes, or was escaped twice.
fn is_structure(inside: &str, behind: &str, quote: Quote) -> bool {
    let before = inside.trim_end().chars().next_back();
    let behind = behind.trim_start();
    let listed = behind.strip_prefix([',', ';', '，']).is_some_and(|next| {
        quote.closing_at(next.trim_start().as_bytes()).is_some()
            || (!behind.starts_with('，') && next.starts_with(|c: char| !c.is_whitespace()))
    });
    // Two adjacent quotes are the end of one string and the start of the next, unless the second ends the text.
    let doubled = quote.closing_at(behind.as_bytes()).is_some_and(|width| {
        let next = behind.get(width..).unwrap_or_default().trim_start();
        !(next.is_empty() || next.starts_with([',', '}', ']', ')', ';']))
    });
    inside.ends_with(['\\', ':'])
        || doubled
        || inside.is_empty()
        || listed
        || behind.starts_with([':', '：', '{', '}', '[', ']'])
        || matches!(before, Some('{' | '[' | '}' | ']'))
}
