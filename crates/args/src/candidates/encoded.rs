//! Documents inside a string literal, with or without its quotes.

use countersign_contract::IssueCode;

use super::{Finder, Place};
use crate::escape;
use crate::fault::Fault;
use crate::tolerant::{NoRead, Shape, SyntaxLog};

impl Finder<'_, '_> {
    /// Reads the document at `start` as the content of a string, if it is written as one; `from` is
    /// the byte behind the document before it.
    pub(super) fn encoded(
        &mut self,
        text: &str,
        from: usize,
        start: usize,
        nesting: usize,
    ) -> Option<Place> {
        if nesting >= self.limits.decode_nesting_max {
            return None;
        }
        let open = start.checked_sub(1).filter(|open| *open >= from);
        let quote = open.and_then(|open| text.as_bytes().get(open).copied());
        if let (Some(open), Some(quote @ (b'"' | b'\''))) = (open, quote)
            && stands_alone(text.get(..open).unwrap_or_default())
        {
            let read = self.literal(text, open, quote);
            if let Some(place) = read.or_else(|| self.in_stray_quotes(text, start, quote)) {
                return Some(place);
            }
        }
        if self.entities_left > 0 && starts_with_entity(text, start) {
            // Looking at the whole text once is enough to know.
            self.entities_left -= 1;
            if text.get(start..).unwrap_or_default().contains('"') {
                return None;
            }
            return Some(self.entities(text, start, nesting));
        }
        is_escaped(text, start).then(|| self.unescaped(text, start, nesting))
    }

    /// Reads a document in which every quote is an entity of HTML: the text went through a page.
    fn entities(&mut self, text: &str, start: usize, nesting: usize) -> Place {
        let rest = text.get(start..).unwrap_or_default();
        let decoded = decode_entities(rest);
        self.decoded(&decoded, (start, text.len()), nesting)
    }

    /// Reads a quoted literal around one whole document, decoded by the rules of its language.
    fn literal(&mut self, text: &str, open: usize, quote: u8) -> Option<Place> {
        let inside = text.get(open + 1..)?;
        let length = end_of_literal(inside.as_bytes(), quote)?;
        let end = open + 1 + length + 1;
        let decoded = decode(inside.get(..length)?, quote == b'\'')?;
        let span = self.span(open, end);
        let origin = self.origin.replace(span);
        let read = self.read(&decoded, 0, Shape::Bracketed);
        let whole = read.ok().filter(|(read, _)| {
            let behind = decoded.get(read.end..).unwrap_or_default();
            read.complete && behind.trim().is_empty()
        });
        let place = whole.map(|(read, mut log)| {
            log.whole(IssueCode::RootDecoded, span);
            self.add(&decoded, 0, Shape::Bracketed, read, log)
        });
        self.origin = origin;
        place.map(|mut place| {
            place.start = open;
            place.end = end;
            place.shape = Shape::Call;
            place
        })
    }

    /// Reads strict JSON between two quotes that escape nothing: they only surround it.
    fn in_stray_quotes(&mut self, text: &str, start: usize, quote: u8) -> Option<Place> {
        let read = self.read_strictly(text, start).ok()??;
        let inside = text.get(start..read.end)?;
        if text.as_bytes().get(read.end) != Some(&quote) || inside.contains('\\') {
            return None;
        }
        let mut log = SyntaxLog::default();
        log.whole(IssueCode::StrayText, self.span(start - 1, start));
        let mut place = self.add(text, start, Shape::Bracketed, read, log);
        place.start = start - 1;
        place.end = read.end + 1;
        place.shape = Shape::Call;
        Some(place)
    }

    /// Reads a document in which every quote is escaped: the content of a string without its own quotes. A
    /// quote that is not escaped ends that string.
    fn unescaped(&mut self, text: &str, start: usize, nesting: usize) -> Place {
        let rest = text.get(start..).unwrap_or_default();
        let length = end_of_literal(rest.as_bytes(), b'"').unwrap_or(rest.len());
        let end = start + length;
        let decoded = decode(rest.get(..length).unwrap_or_default(), false);
        if decoded.is_none() {
            self.stopped(NoRead::Broken(start, Fault::Escape));
        }
        self.decoded(&decoded.unwrap_or_default(), (start, end), nesting)
    }

    /// Reads a text that was decoded from this range.
    fn decoded(&mut self, decoded: &str, (start, end): (usize, usize), nesting: usize) -> Place {
        let span = self.span(start, end);
        let origin = self.origin.replace(span);
        let before = self.found.candidates.len();
        self.text(decoded, nesting + 1);
        self.origin = origin;
        let found = self.found.candidates.iter_mut().skip(before);
        let (mut complete, mut known) = (true, false);
        for candidate in found {
            candidate.log.whole(IssueCode::RootDecoded, span);
            complete &= candidate.complete;
            known |= candidate.known;
        }
        Place {
            start,
            end,
            shape: Shape::Bracketed,
            complete,
            known,
            called: false,
        }
    }
}

/// True if a literal behind this text is a value of its own, not a word of a command.
fn stands_alone(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    let assigned = line.strip_suffix('=').is_some_and(|name| {
        name.trim_end()
            .chars()
            .all(|c| c.is_alphanumeric() || c == '_')
    });
    line.is_empty() || assigned || line.ends_with([':', '：', '(', '`', '>'])
}

/// Returns the length of the content before the quote that ends a literal.
fn end_of_literal(inside: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = inside.get(at..)?;
        at += memchr::memchr2(b'\\', quote, rest)?;
        if inside.get(at) == Some(&quote) {
            return Some(at);
        }
        at += 2;
    }
}

/// Decodes the content of a literal. An escape that its language does not have keeps its backslash. `None` if
/// a `\u` escape is broken.
fn decode(inside: &str, single_quoted: bool) -> Option<String> {
    let mut decoded = String::with_capacity(inside.len());
    let mut at = 0;
    while let Some(tail) = inside.get(at..).filter(|tail| !tail.is_empty()) {
        let plain = memchr::memchr(b'\\', tail.as_bytes()).unwrap_or(tail.len());
        decoded.push_str(tail.get(..plain).unwrap_or_default());
        at += plain;
        let Some(rest) = tail.get(plain..).filter(|rest| !rest.is_empty()) else {
            break;
        };
        let rest = rest.as_bytes();
        let foreign = || escape::decode_foreign(rest).filter(|_| single_quoted);
        let (character, width) = match escape::decode(rest).or_else(foreign) {
            Some(known) => known,
            None if single_quoted && rest.get(1) == Some(&b'\'') => ('\'', 2),
            None if escape::is_broken(rest) => return None,
            None => ('\\', 1),
        };
        decoded.push(character);
        at += width;
    }
    Some(decoded)
}

/// Entities that stand for a character of JSON or of markup.
const ENTITIES: [(&str, char); 12] = [
    ("&quot;", '"'),
    ("&#34;", '"'),
    ("&#x22;", '"'),
    ("&#X22;", '"'),
    ("&apos;", '\''),
    ("&#39;", '\''),
    ("&#x27;", '\''),
    ("&lt;", '<'),
    ("&gt;", '>'),
    ("&amp;", '&'),
    ("&#38;", '&'),
    ("&#x26;", '&'),
];

/// True if the first thing inside a container is a quote that is written as an entity.
fn starts_with_entity(text: &str, start: usize) -> bool {
    let inside = text.get(start + 1..).unwrap_or_default().trim_start();
    let mut quotes = ENTITIES.iter().take(4);
    inside.starts_with('&') && quotes.any(|(entity, _)| inside.starts_with(entity))
}

fn decode_entities(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (plain, here) = rest.split_at(at);
        decoded.push_str(plain);
        let known = ENTITIES.iter().find(|(entity, _)| here.starts_with(entity));
        let (width, character) = known.map_or((1, '&'), |(entity, c)| (entity.len(), *c));
        decoded.push(character);
        rest = here.get(width..).unwrap_or_default();
    }
    decoded.push_str(rest);
    decoded
}

/// True if the first quote inside a container is escaped.
fn is_escaped(text: &str, start: usize) -> bool {
    let inside = text.get(start + 1..).unwrap_or_default();
    if !inside.starts_with(|c: char| c == '\\' || c.is_whitespace()) {
        return false;
    }
    let inside = inside
        .trim_start_matches("\\n")
        .trim_start_matches("\\t")
        .trim_start();
    inside.starts_with("\\\"")
}
