//! Quoted texts. The one hard question about them, whether a quote closes the text or stands inside
//! it, is answered in `ahead`.

use countersign_contract::IssueCode;

use super::{Closer, NoRead, Reader};
use crate::tree::{Kind, NodeId, Str};

/// An opening quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) style: Style,
    /// How many bytes it takes.
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
}

impl Quote {
    /// The opening quote at the start of `rest`.
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
            _ => return None,
        };
        Some(Self { style, width })
    }

    /// How wide the quote at the start of `rest` is, if it can close this one.
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
            _ => None,
        }
    }

    /// Whether a byte can start a closing quote or needs any other look.
    fn stops_at(self, byte: u8) -> bool {
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
            }
    }
}

/// Where a quoted text stands; what may follow it depends on that.
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

    /// Where a value stands now.
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

    /// A quoted key; none where the text ends inside it.
    pub(super) fn quoted_key(&mut self, quote: Quote) -> Option<Str> {
        let (key, closed) = self.quoted(quote, Place::Key);
        closed.then_some(key)
    }

    /// Reads a quoted text into the side buffer; also says whether it was closed.
    fn quoted(&mut self, quote: Quote, place: Place) -> (Str, bool) {
        let opened = self.at;
        if quote.style != Style::Double {
            self.note(IssueCode::QuoteStyle, opened, opened + quote.width);
        }
        self.at += quote.width;
        let mark = self.tree.side_mark();
        let mut inner = Pairs::default();
        loop {
            let run = self.at;
            while self
                .bytes
                .get(self.at)
                .is_some_and(|byte| !quote.stops_at(*byte))
            {
                self.at += 1;
            }
            let plain = self.slice(run, self.at);
            self.tree.side().push_str(plain);
            if self.lookaheads > self.limits.lookaheads_max {
                self.at = self.bytes.len();
            }
            if self.at_end() {
                if place != Place::Key {
                    self.leave_closers(mark);
                }
                return (self.tree.side_since(mark), false);
            }
            if let Some(width) = quote.closing_at(self.rest(self.at)) {
                if place == Place::Member
                    && let Some(text) = self.closed_before(place, opened, mark)
                {
                    // With a quote inside as well, which of the two was meant to close it?
                    if inner.any {
                        self.broken = self.broken.or(Some(opened));
                    }
                    return (text, true);
                }
                if self.closes(self.at + width, place, mark) {
                    self.at += width;
                    self.check_escapes(opened, mark);
                    self.check_partner(opened, quote, place);
                    let doubled = inner.any && self.is_quoted_twice(quote, mark);
                    if doubled || !inner.are_closed() {
                        self.broken = self.broken.or(Some(opened));
                    }
                    return (self.tree.side_since(mark), true);
                }
                if place == Place::Item {
                    self.closed_before(place, opened, mark);
                }
                self.note(IssueCode::InnerQuoteEscaped, self.at, self.at + width);
                let before = self
                    .slice(opened + quote.width, self.at)
                    .chars()
                    .next_back();
                let after = self.slice(self.at + width, self.bytes.len()).chars().next();
                inner.add(before, after, quote.style);
                self.take(width);
            } else if self.byte() == b'\\' {
                self.escape(quote);
            } else {
                if self.byte() < 0x20 {
                    self.note(IssueCode::ControlChar, self.at, self.at + 1);
                }
                let width = self.character_width();
                self.take(width);
            }
        }
    }

    /// The text ended inside a quote. Closers at its end that fit what is open are not part of the
    /// text: `{"a": "b}` arrived with `b`.
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

    /// A text with an escape that JSON does not have and one that makes a control character is a
    /// path, a regular expression or a formula: which of the two was meant is a guess.
    fn check_escapes(&mut self, opened: usize, mark: usize) {
        if !self.repaired_escape {
            return;
        }
        self.repaired_escape = false;
        let text = self.tree.side().get(mark..).unwrap_or_default();
        let decoded = text.contains(['\u{8}', '\u{c}', '\n', '\r', '\t']);
        let raw = self.slice(opened, self.at);
        let escaped = ["\\b", "\\f", "\\n", "\\r", "\\t"]
            .iter()
            .any(|escape| raw.contains(escape));
        if decoded && escaped {
            self.broken = self.broken.or(Some(opened));
        }
    }

    /// A text in other quotes that holds `", "key":` of a declared key was closed there by the wrong
    /// quote.
    fn check_partner(&mut self, opened: usize, quote: Quote, place: Place) {
        if place != Place::Member || quote.style == Style::Double {
            return;
        }
        let text = self.slice(opened, self.at);
        let schema = self.stack.last().and_then(|frame| frame.schema);
        for (at, _) in text.match_indices('"').take(16) {
            let comma = self.skip_filler(opened + at + 1);
            if self.byte_at(comma) != b',' {
                continue;
            }
            let key = self.skip_filler(comma + 1);
            let key = self.quoted_key_at(key);
            if key.is_some_and(|key| schema.is_some_and(|id| self.declares_by_name(id, key))) {
                self.broken = self.broken.or(Some(opened + at));
            }
        }
    }

    /// Whether a text has the same quotes inside its quotes: `""text""`.
    fn is_quoted_twice(&mut self, quote: Quote, mark: usize) -> bool {
        let text = self.tree.side().get(mark..).unwrap_or_default().as_bytes();
        let last = text
            .len()
            .checked_sub(quote.width)
            .and_then(|at| text.get(at..));
        quote.closing_at(text).is_some()
            && last.is_some_and(|last| quote.closing_at(last).is_some())
    }

    /// Copies so many bytes as they are.
    fn take(&mut self, width: usize) {
        let piece = self.slice(self.at, self.at + width);
        self.tree.side().push_str(piece);
        self.at += width;
    }

    fn character_width(&self) -> usize {
        let rest = self.text.get(self.at..).unwrap_or_default();
        rest.chars().next().map_or(1, char::len_utf8)
    }

    /// An escape; one that JSON does not have keeps its backslash.
    fn escape(&mut self, quote: Quote) {
        if let Some((character, width)) = crate::escape::decode(self.rest(self.at)) {
            self.tree.side().push(character);
            self.at += width;
            return;
        }
        // Other languages escape every quote; only the style of this text makes that a fault.
        let quoted = Quote::at(self.rest(self.at + 1)).is_some();
        if !quoted || quote.style == Style::Double {
            self.note(IssueCode::EscapeRepaired, self.at, self.at + 1);
        }
        self.repaired_escape |= !quoted;
        self.at += usize::from(quoted);
        let width = self.character_width();
        self.take(width);
    }

    /// The text whose closing quote is missing: it ended before a comma, and the quote here opens
    /// the next key. The reader is left at that comma.
    fn closed_before(&mut self, place: Place, opened: usize, mark: usize) -> Option<Str> {
        let so_far = self.tree.side().get(mark..)?.trim_end();
        let before_comma = so_far.strip_suffix(',')?.trim_end();
        let kept = before_comma.len();
        let foreign = before_comma.ends_with(['"', '\'', '`', '”', '’']);
        if place == Place::Item && !self.byte_at(self.at + 1).is_ascii_whitespace() {
            // Either the quote before the comma is missing or this one stands inside: a guess.
            self.broken = self.broken.or(Some(self.at));
        }
        if place != Place::Member {
            return None;
        }
        let key = self.quoted_key_at(self.at)?;
        let schema = self.stack.last().and_then(|frame| frame.schema);
        if !self.declares(schema, key) {
            return None;
        }
        if foreign {
            self.broken = self.broken.or(Some(self.at));
        }
        let Some(comma) = self.comma_before(opened) else {
            // The comma was an escape: it belongs to the text, and then so does this quote.
            self.broken = self.broken.or(Some(self.at));
            return None;
        };
        self.note(IssueCode::QuoteInserted, comma, comma);
        self.tree.side().truncate(mark + kept);
        self.at = comma;
        Some(self.tree.side_since(mark))
    }

    /// The comma before this place in the text that opened there, with nothing but white space
    /// between, escaped or not.
    fn comma_before(&self, opened: usize) -> Option<usize> {
        let mut before = self.slice(opened, self.at).trim_end();
        while let Some(shorter) = ["\\n", "\\r", "\\t"]
            .iter()
            .find_map(|escape| before.strip_suffix(escape))
        {
            before = shorter.trim_end();
        }
        let text = before.strip_suffix(',')?;
        Some(opened + text.len())
    }
}

/// Quotes inside a text: they must open and close in turn, as a person would set them. Any other
/// order means that one of them was meant to end the text.
#[derive(Debug, Default)]
struct Pairs {
    any: bool,
    open: bool,
    broken: bool,
}

impl Pairs {
    fn add(&mut self, before: Option<char>, after: Option<char>, style: Style) {
        let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let apostrophe = matches!(style, Style::Single | Style::SmartSingle);
        if apostrophe && word(before) && word(after) {
            return;
        }
        self.any = true;
        let space = |c: Option<char>| c.is_none_or(char::is_whitespace);
        let opens =
            !space(after) && !word(before) && !before.is_some_and(|c| matches!(c, ',' | ';'));
        let closes = !space(before) && !word(after);
        self.broken |= if self.open { !closes } else { !opens };
        self.open = !self.open;
    }

    fn are_closed(&self) -> bool {
        !self.open && !self.broken
    }
}
