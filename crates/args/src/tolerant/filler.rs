//! Filler between tokens: white space, comments, and white space that was escaped once too often.

use countersign_contract::IssueCode;

use super::Reader;
use crate::fault::Fault;

/// Maximum length of a comment that a look-ahead follows; a longer one hides what follows.
const COMMENT_LOOKAHEAD: usize = 256;

/// The last run of white space that was scanned, so that no run is scanned twice.
#[derive(Debug, Default)]
pub(super) struct WhiteCache {
    start: usize,
    end: usize,
}

impl Reader<'_, '_, '_> {
    /// Skips filler before a value: there a `#` or `//` without a space behind it is a part of the value.
    pub(super) fn value_filler(&mut self) {
        self.at = self.skip_white(self.at);
        let value = match self.rest(self.at) {
            [b'#', next, ..] | [b'/', b'/', next, ..] => !next.is_ascii_whitespace(),
            _ => false,
        };
        if !value {
            self.filler();
        }
    }

    /// Skips filler, and logs everything but plain white space.
    pub(super) fn filler(&mut self) {
        self.commented = false;
        if self.byte() == b' ' {
            self.at += 1;
        }
        if !is_filler(self.byte()) {
            return;
        }
        loop {
            let start = self.at;
            self.at = self.skip_white(self.at);
            if let Some(end) = self.comment_end(self.at, usize::MAX) {
                self.note(IssueCode::CommentRemoved, self.at, end);
                self.commented = true;
                // A quote without its partner: the comment may be the rest of a string.
                let comment = self.slice(self.at, end).trim_end();
                if comment.matches('"').count() % 2 == 1 || comment.ends_with('\'') {
                    self.breaks(self.at, Fault::Quotes);
                }
                self.at = end;
            } else if let Some(width) = self.escaped_white(self.at) {
                self.note(IssueCode::StrayText, self.at, self.at + width);
                self.at += width;
            }
            if self.at == start {
                return;
            }
        }
    }

    /// Returns the first byte at or behind `at` that is not filler; looks ahead without moving.
    pub(super) fn skip_filler(&mut self, at: usize) -> usize {
        let mut at = at + usize::from(self.byte_at(at) == b' ');
        if !is_filler(self.byte_at(at)) {
            return at;
        }
        for _ in 0..8 {
            let start = at;
            at = self.skip_white(at);
            if let Some(end) = self.comment_end(at, COMMENT_LOOKAHEAD) {
                at = end;
            } else if let Some(width) = self.escaped_white(at) {
                at += width;
            }
            if at == start {
                break;
            }
        }
        at
    }

    fn skip_white(&mut self, at: usize) -> usize {
        if (self.white.start..self.white.end).contains(&at) {
            return self.white.end;
        }
        let mut end = at;
        loop {
            end += match self.byte_at(end) {
                b' ' | b'\n' | b'\r' | b'\t' | 0x0b | 0x0c => 1,
                0xc2 | 0xe2 | 0xe3 | 0xef => match self.wide_white(end) {
                    0 => break,
                    width => width,
                },
                _ => break,
            };
        }
        if end - at > 16 {
            self.white = WhiteCache { start: at, end };
        }
        end
    }

    /// Returns the length of white space beyond ASCII, including the byte order mark and zero-width spaces.
    fn wide_white(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        match rest.chars().next() {
            Some(c) if c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}' | '\u{2060}') => {
                c.len_utf8()
            }
            _ => 0,
        }
    }

    /// Recognizes `\n`, `\r` or `\t` written as two characters outside a string.
    fn escaped_white(&self, at: usize) -> Option<usize> {
        let escape =
            self.byte_at(at) == b'\\' && matches!(self.byte_at(at + 1), b'n' | b'r' | b't');
        escape.then_some(2)
    }

    /// Returns the end of the comment that starts here.
    pub(super) fn comment_end(&self, at: usize, most: usize) -> Option<usize> {
        // Right behind a value it may be the rest of that value.
        let before = at
            .checked_sub(1)
            .map_or(b' ', |before| self.byte_at(before));
        if !before.is_ascii_whitespace() && !b",;:{[(".contains(&before) {
            return None;
        }
        let rest = self.rest(at);
        let window = rest.get(..most.min(rest.len())).unwrap_or(rest);
        match rest {
            [b'#', ..] | [b'/', b'/', ..] => {
                let length = memchr::memchr(b'\n', window).unwrap_or(window.len());
                Some(at + length)
            }
            [b'/', b'*', ..] => {
                let length =
                    memchr::memmem::find(window, b"*/").map_or(window.len(), |end| end + 2);
                Some(at + length)
            }
            _ => None,
        }
    }

    /// True for `...` or `…`, with which models leave something out.
    pub(super) fn is_ellipsis(&self) -> bool {
        let rest = self.rest(self.at);
        rest.starts_with(b"...") || rest.starts_with("…".as_bytes())
    }
}

/// True if a byte can start filler; most tokens follow each other with a single space or nothing.
const fn is_filler(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t'..=b'\r' | b'#' | b'/' | b'\\' | 0xc2 | 0xe2 | 0xe3 | 0xef
    )
}
