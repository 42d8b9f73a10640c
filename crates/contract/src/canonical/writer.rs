//! The one writer behind both ways in: it escapes, places commas, and puts the members of each
//! object into order when the object closes.
//!
//! Members are written as they come and moved afterwards, so no tree and no copy of a key is made.

use std::cmp::Ordering;

use super::number::Refused;
use super::{DEPTH_MAX, Error, RESERVED_KEY};

pub(super) struct Writer<'o> {
    out: &'o mut Vec<u8>,
    open: Vec<Frame>,
    /// The members of every open object, those of the innermost last.
    members: Vec<Member>,
}

/// Kind of an open container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Array,
    Object,
}

struct Frame {
    container: Container,
    /// Items written so far, of an array.
    items: usize,
    /// Index of the first member, of an object.
    first_member: usize,
}

/// One member in the output: `"key":value`, without the comma.
#[derive(Clone, Copy)]
struct Member {
    start: usize,
    /// Behind the key's closing quote; 0 until the key is complete.
    key_end: usize,
    /// Behind the value; set when the next member starts or the object closes.
    end: usize,
    /// True if the keys can be compared as bytes instead of as UTF-16 code units.
    plain: bool,
}

impl<'o> Writer<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        Self {
            out,
            open: Vec::new(),
            members: Vec::new(),
        }
    }

    /// The innermost open container.
    pub(super) fn inside(&self) -> Option<Container> {
        self.open.last().map(|frame| frame.container)
    }

    pub(super) fn literal(&mut self, literal: &str) {
        self.before_value();
        self.out.extend_from_slice(literal.as_bytes());
    }

    pub(super) fn string(&mut self, text: &str) {
        self.before_value();
        self.quoted(text);
    }

    /// A number; `spelt` gives its text where it is refused.
    pub(super) fn number(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Refused>,
        spelt: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        const SHOWN_MAX: usize = 40;

        self.before_value();
        write(self.out).map_err(|refused| {
            let path = self.path();
            let number = spelt().chars().take(SHOWN_MAX).collect();
            match refused {
                Refused::TooLarge => Error::IntegerTooLarge { path, number },
                Refused::NotFinite => Error::NotFinite { path, number },
            }
        })
    }

    pub(super) fn key(&mut self, key: &str) -> Result<(), Error> {
        self.begin_key();
        self.quoted(key);
        self.end_key()
    }

    /// A string value that the caller writes piece by piece, between two quotes.
    pub(super) fn begin_string(&mut self) {
        self.before_value();
        self.out.push(b'"');
    }

    pub(super) fn end_string(&mut self) {
        self.out.push(b'"');
    }

    /// A key that the caller writes piece by piece, its two quotes included.
    pub(super) fn begin_key(&mut self) {
        let first_member = self.open.last().map_or(0, |frame| frame.first_member);
        if self.members.len() > first_member {
            self.end_member();
            self.out.push(b',');
        }
        self.members.push(Member {
            start: self.out.len(),
            key_end: 0,
            end: 0,
            plain: false,
        });
    }

    pub(super) fn end_key(&mut self) -> Result<(), Error> {
        let end = self.out.len();
        if let Some(member) = self.members.last_mut() {
            member.key_end = end;
            let key = key_of(self.out, member);
            // UTF-8 and UTF-16 disagree only on U+E000…U+FFFF (lead bytes EE and EF) against what
            // lies beyond (F0 and up); an escape hides the code unit that it stands for.
            member.plain = key.iter().all(|b| *b < 0xee && *b != b'\\');
            if key.starts_with(RESERVED_KEY.as_bytes()) {
                return Err(Error::ReservedKey { path: self.path() });
            }
        }
        self.out.push(b':');
        Ok(())
    }

    /// Text that needs no escape.
    pub(super) fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Writes one character, escaped if necessary.
    pub(super) fn char(&mut self, c: char) {
        match u8::try_from(c).ok().filter(|byte| needs_escape(*byte)) {
            Some(byte) => self.escape(byte),
            None => self.raw(c.encode_utf8(&mut [0; 4])),
        }
    }

    pub(super) fn open_array(&mut self) -> Result<(), Error> {
        self.open(Container::Array, b'[')
    }

    pub(super) fn open_object(&mut self) -> Result<(), Error> {
        self.open(Container::Object, b'{')
    }

    pub(super) fn close_array(&mut self) {
        self.open.pop();
        self.out.push(b']');
    }

    /// Puts the members into order; refuses a key that is there twice.
    pub(super) fn close_object(&mut self) -> Result<(), Error> {
        self.end_member();
        let first = self.open.pop().map_or(0, |frame| frame.first_member);
        let members = self.members.get_mut(first..).unwrap_or_default();
        let out = &*self.out;
        let ordered = |pair: &[Member]| match pair {
            [a, b] => compare(out, a, b).is_lt(),
            _ => true,
        };
        if !members.windows(2).all(ordered) {
            let start = members.first().map_or(0, |member| member.start);
            members.sort_unstable_by(|a, b| compare(out, a, b));
            if let Some(twice) = members.windows(2).find(|pair| !ordered(pair)) {
                let twice = twice.first().copied();
                self.members.truncate(first);
                return Err(self.duplicate(twice));
            }
            let sorted = joined(out, members);
            self.out.truncate(start);
            self.out.extend_from_slice(&sorted);
        }
        self.members.truncate(first);
        self.out.push(b'}');
        Ok(())
    }

    /// Returns the position of the writer as a JSON pointer. Only errors ask for it.
    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        for (depth, frame) in self.open.iter().enumerate() {
            match frame.container {
                Container::Array => {
                    if let Some(index) = frame.items.checked_sub(1) {
                        path.push('/');
                        path.push_str(&index.to_string());
                    }
                }
                Container::Object => {
                    // The current member of an outer object is the last one before the next frame's.
                    let end = self
                        .open
                        .get(depth + 1)
                        .map_or(self.members.len(), |inner| inner.first_member);
                    let own = self.members.get(frame.first_member..end);
                    if let Some(member) = own.and_then(<[_]>::last) {
                        push_token(&mut path, self.out, member);
                    }
                }
            }
        }
        path
    }

    fn duplicate(&self, member: Option<Member>) -> Error {
        let mut path = self.path();
        if let Some(member) = member {
            push_token(&mut path, self.out, &member);
        }
        Error::DuplicateKey { path }
    }

    fn open(&mut self, container: Container, bracket: u8) -> Result<(), Error> {
        self.before_value();
        if self.open.len() == DEPTH_MAX {
            return Err(Error::TooDeep { path: self.path() });
        }
        self.open.push(Frame {
            container,
            items: 0,
            first_member: self.members.len(),
        });
        self.out.push(bracket);
        Ok(())
    }

    fn before_value(&mut self) {
        if let Some(frame) = self.open.last_mut()
            && frame.container == Container::Array
        {
            if frame.items > 0 {
                self.out.push(b',');
            }
            frame.items += 1;
        }
    }

    fn end_member(&mut self) {
        let first_member = self.open.last().map_or(0, |frame| frame.first_member);
        if let Some(member) = self
            .members
            .get_mut(first_member..)
            .and_then(<[_]>::last_mut)
        {
            member.end = self.out.len();
        }
    }

    fn quoted(&mut self, text: &str) {
        self.out.push(b'"');
        let mut rest = text;
        while let Some(at) = rest.bytes().position(needs_escape) {
            // What needs an escape is ASCII, so both cuts are between characters.
            let (run, tail) = rest.split_at(at);
            self.raw(run);
            self.escape(tail.as_bytes().first().copied().unwrap_or_default());
            rest = tail.get(1..).unwrap_or_default();
        }
        self.raw(rest);
        self.out.push(b'"');
    }

    fn escape(&mut self, byte: u8) {
        let short = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            0x09 => b't',
            0x0a => b'n',
            0x0c => b'f',
            0x0d => b'r',
            _ => {
                let digit = |nibble: u8| nibble + if nibble < 10 { b'0' } else { b'a' - 10 };
                let (high, low) = (digit(byte >> 4), digit(byte & 0xf));
                self.out
                    .extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
                return;
            }
        };
        self.out.extend_from_slice(&[b'\\', short]);
    }
}

/// RFC 8785 §3.2.2.2: the two that end a text or start an escape, and the control characters.
pub(super) const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// RFC 8785 §3.2.3: keys are compared by their UTF-16 code units.
fn compare(out: &[u8], a: &Member, b: &Member) -> Ordering {
    let (key_a, key_b) = (key_of(out, a), key_of(out, b));
    if a.plain && b.plain {
        key_a.cmp(key_b)
    } else {
        unescaped(key_a)
            .encode_utf16()
            .cmp(unescaped(key_b).encode_utf16())
    }
}

/// The key between its quotes, escaped as it was written.
fn key_of<'o>(out: &'o [u8], member: &Member) -> &'o [u8] {
    let content = member.start + 1..member.key_end.saturating_sub(1);
    out.get(content).unwrap_or_default()
}

fn joined(out: &[u8], members: &[Member]) -> Vec<u8> {
    let bytes = members
        .iter()
        .map(|member| member.end - member.start + 1)
        .sum();
    let mut sorted = Vec::with_capacity(bytes);
    for member in members {
        if !sorted.is_empty() {
            sorted.push(b',');
        }
        sorted.extend_from_slice(out.get(member.start..member.end).unwrap_or_default());
    }
    sorted
}

/// Undoes the writer's own escapes. Keys with an escape are rare, so this may allocate.
fn unescaped(key: &[u8]) -> String {
    let key = std::str::from_utf8(key).unwrap_or_default();
    let mut text = String::with_capacity(key.len());
    let mut chars = key.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('b') => text.push('\u{8}'),
            Some('t') => text.push('\t'),
            Some('n') => text.push('\n'),
            Some('f') => text.push('\u{c}'),
            Some('r') => text.push('\r'),
            Some('u') => {
                let code = chars.by_ref().take(4).filter_map(|c| c.to_digit(16));
                text.extend(char::from_u32(
                    code.fold(0, |code, digit| code * 16 + digit),
                ));
            }
            Some(c) => text.push(c),
            None => {}
        }
    }
    text
}

/// Appends a key to a JSON pointer; does nothing if the key is not complete yet.
fn push_token(path: &mut String, out: &[u8], member: &Member) {
    if member.key_end > 0 {
        path.push('/');
        path.push_str(
            &unescaped(key_of(out, member))
                .replace('~', "~0")
                .replace('/', "~1"),
        );
    }
}
