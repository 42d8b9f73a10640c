//! The single pass: at the start of each word and each number the scanners are tried in turn, and a match is not looked
//! at again.

use super::fold::{CITY, DISTRICT, LETTER, PROVINCE, STREET};
use super::{Kind, address, identity, mail, number, secret};

/// A place in the folded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

/// The folded text. Beyond its ends it reads as a byte that matches nothing.
#[derive(Clone, Copy)]
pub(super) struct Text<'t>(pub(super) &'t [u8]);

impl<'t> Text<'t> {
    pub(super) fn at(self, place: usize) -> u8 {
        self.0.get(place).copied().unwrap_or(0)
    }

    pub(super) fn before(self, place: usize) -> u8 {
        place.checked_sub(1).map_or(0, |before| self.at(before))
    }

    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    pub(super) fn slice(self, start: usize, end: usize) -> &'t [u8] {
        self.0.get(start..end).unwrap_or_default()
    }

    /// True if this ASCII text stands here, in any case.
    pub(super) fn has(self, place: usize, word: &str) -> bool {
        self.slice(place, place + word.len())
            .eq_ignore_ascii_case(word.as_bytes())
    }

    /// End of the characters of one sort that start here.
    pub(super) fn while_at(self, place: usize, sort: impl Fn(u8) -> bool) -> usize {
        self.some_at(place, self.len(), sort)
    }

    /// The same, for a maximum number of characters.
    pub(super) fn some_at(self, place: usize, most: usize, sort: impl Fn(u8) -> bool) -> usize {
        let end = self.len().min(place.saturating_add(most));
        let rest = self.slice(place, end);
        let count = rest.iter().take_while(|byte| sort(**byte)).count();
        place + count
    }
}

/// True if a byte belongs to a word: a number beside one is part of a name.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | LETTER)
}

/// All matches, in order, without overlaps.
pub(super) fn spans(bytes: &[u8]) -> Vec<Span> {
    let text = Text(bytes);
    // Most texts have nothing that could be found: no digit, no `@`, no long word.
    let mut mails = mail::spans(text).into_iter().peekable();
    let mut found: Vec<Span> = Vec::new();
    let mut place = 0;
    while place < text.len() {
        let (span, next) = match mails.peek() {
            Some(mail) if mail.start <= place => (Some(*mail), mail.end),
            Some(_) | None => look(text, place),
        };
        place = next;
        let Some(mut span) = span else { continue };
        while let Some(mail) = mails.next_if(|mail| mail.start < span.end) {
            span.end = span.end.max(mail.end);
        }
        // An address is known by its later words only, so it may reach back.
        let floor = found.last().map_or(0, |last| last.end);
        span.start = span.start.max(floor);
        place = span.end;
        found.push(span);
    }
    found
}

/// The match that starts here, and the place to go on from if there is none.
fn look(text: Text<'_>, place: usize) -> (Option<Span>, usize) {
    match text.at(place) {
        byte if byte.is_ascii_digit() => {
            if is_word(text.before(place)) {
                return (None, text.while_at(place, is_word));
            }
            if let Some(end) = uuid_end(text, place) {
                return (None, end);
            }
            let found = address::american(text, place).or_else(|| number::find(text, place));
            let digits = text.while_at(place, |byte| byte.is_ascii_digit());
            let end = match found {
                None if is_word(text.at(digits)) => text.while_at(digits, is_word),
                Some(_) | None => digits,
            };
            (found, end)
        }
        byte if is_word(byte) => {
            if let Some(end) = uuid_end(text, place) {
                return (None, end);
            }
            let found = secret::find(text, place)
                .or_else(|| identity::iban(text, place))
                .or_else(|| identity::lettered(text, place))
                .or_else(|| address::post_box(text, place));
            (found, text.while_at(place, is_word))
        }
        b'+' | b'(' => (number::find(text, place), place + 1),
        b'-' => (secret::private_key(text, place), place + 1),
        b':' => (mail::user_info(text, place), place + 1),
        PROVINCE | CITY | DISTRICT | STREET => (address::chinese(text, place), place + 1),
        _ => (None, place + 1),
    }
}

/// The end of a UUID, which is an id, whatever its digits look like.
fn uuid_end(text: Text<'_>, place: usize) -> Option<usize> {
    let groups = [8, 4, 4, 4, 12];
    if text.at(place + 8) != b'-' {
        return None;
    }
    let mut at = place;
    for (index, length) in groups.into_iter().enumerate() {
        if index > 0 {
            if text.at(at) != b'-' {
                return None;
            }
            at += 1;
        }
        let end = at + length;
        if !text.slice(at, end).iter().all(u8::is_ascii_hexdigit) || text.len() < end {
            return None;
        }
        at = end;
    }
    (!is_word(text.at(at))).then_some(at)
}
