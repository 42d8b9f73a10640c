//! From JSON text: a strict reader (RFC 8259) that writes as it reads, without a tree between.
//!
//! It has its own stack inside the writer, so no nesting can exhaust the thread's.

use super::writer::{Container, Writer, needs_escape};
use super::{Error, number};

pub(super) fn scan(text: &str, out: &mut Vec<u8>) -> Result<(), Error> {
    let writer = Writer::new(out);
    let mut scanner = Scanner {
        text,
        at: 0,
        writer,
    };
    loop {
        let opened = scanner.value()?;
        if !opened && scanner.after_value()? {
            return Ok(());
        }
    }
}

struct Scanner<'t, 'o> {
    text: &'t str,
    at: usize,
    writer: Writer<'o>,
}

impl Scanner<'_, '_> {
    /// Reads a scalar or an empty container (false), or opens one and stands before its first
    /// value (true).
    fn value(&mut self) -> Result<bool, Error> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => {
                self.writer.open_object()?;
                self.at += 1;
                if self.next_is(b'}') {
                    self.writer.close_object()?;
                    return Ok(false);
                }
                self.key("a key or }")?;
                return Ok(true);
            }
            Some(b'[') => {
                self.writer.open_array()?;
                self.at += 1;
                if self.next_is(b']') {
                    self.writer.close_array();
                    return Ok(false);
                }
                return Ok(true);
            }
            Some(b'"') => {
                self.writer.begin_string();
                self.string()?;
                self.writer.end_string();
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.literal("true")?,
            Some(b'f') => self.literal("false")?,
            Some(b'n') => self.literal("null")?,
            _ => return Err(self.expected("a value")),
        }
        Ok(false)
    }

    /// Closes what ends behind a value; true where that was the whole text.
    fn after_value(&mut self) -> Result<bool, Error> {
        loop {
            self.skip_space();
            let next = self.peek();
            match (self.writer.inside(), next) {
                (None, None) => return Ok(true),
                (Some(Container::Array), Some(b',')) => {
                    self.at += 1;
                    return Ok(false);
                }
                (Some(Container::Object), Some(b',')) => {
                    self.at += 1;
                    self.skip_space();
                    self.key("a key")?;
                    return Ok(false);
                }
                (Some(Container::Array), Some(b']')) => self.writer.close_array(),
                (Some(Container::Object), Some(b'}')) => self.writer.close_object()?,
                (None, Some(_)) => return Err(self.expected("the end of the text")),
                (Some(Container::Array), _) => return Err(self.expected("a comma or ]")),
                (Some(Container::Object), _) => return Err(self.expected("a comma or }")),
            }
            self.at += 1;
        }
    }

    fn key(&mut self, expected: &'static str) -> Result<(), Error> {
        if self.peek() != Some(b'"') {
            return Err(self.expected(expected));
        }
        self.writer.begin_key();
        self.writer.raw("\"");
        self.string()?;
        self.writer.raw("\"");
        self.writer.end_key()?;
        if !self.next_is(b':') {
            return Err(self.expected("a colon"));
        }
        Ok(())
    }

    /// The content of a string; the scanner stands on its opening quote.
    fn string(&mut self) -> Result<(), Error> {
        self.at += 1;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let run = rest.bytes().position(needs_escape).unwrap_or(rest.len());
            self.writer.raw(rest.get(..run).unwrap_or_default());
            self.at += run;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    let c = self.escape()?;
                    self.writer.char(c);
                }
                Some(_) => return Err(self.expected("an escape in place of a control character")),
                None => return Err(self.expected("a closing quote")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let start = self.at;
        self.at += 1;
        let c = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.escaped_char(start);
            }
            _ => return Err(self.expected("one of \" \\ / b f n r t u")),
        };
        self.at += 1;
        Ok(c)
    }

    /// Reads one `\uXXXX`, or two that are a surrogate pair; the scanner stands behind the first `\u`.
    fn escaped_char(&mut self, start: usize) -> Result<char, Error> {
        let first = self.hex4()?;
        let is_high = (0xd800..0xdc00).contains(&first);
        let rest = self.text.get(self.at..).unwrap_or_default();
        let second = if is_high && rest.starts_with("\\u") {
            self.at += 2;
            Some(self.hex4()?)
        } else {
            None
        };
        let mut decoded = char::decode_utf16([first].into_iter().chain(second));
        match (decoded.next(), decoded.next()) {
            (Some(Ok(c)), None) => Ok(c),
            _ => Err(Error::LoneSurrogate {
                path: self.writer.path(),
                offset: start,
            }),
        }
    }

    fn hex4(&mut self) -> Result<u16, Error> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|b| char::from(b).to_digit(16));
            let digit = digit.ok_or_else(|| self.expected("four hexadecimal digits"))?;
            code = code * 16 + digit as u16;
            self.at += 1;
        }
        Ok(code)
    }

    fn number(&mut self) -> Result<(), Error> {
        let start = self.at;
        self.skip_if(|b| b == b'-');
        if !self.skip_if(|b| b == b'0') {
            self.digits()?;
        }
        if self.skip_if(|b| b == b'.') {
            self.digits()?;
        }
        if self.skip_if(|b| matches!(b, b'e' | b'E')) {
            self.skip_if(|b| matches!(b, b'+' | b'-'));
            self.digits()?;
        }
        let spelt = self.text.get(start..self.at).unwrap_or_default();
        self.writer
            .number(|out| number::write_text(spelt, out), || spelt.to_owned())
    }

    fn digits(&mut self) -> Result<(), Error> {
        if !self.skip_if(|b| b.is_ascii_digit()) {
            return Err(self.expected("a digit"));
        }
        while self.skip_if(|b| b.is_ascii_digit()) {}
        Ok(())
    }

    fn literal(&mut self, literal: &'static str) -> Result<(), Error> {
        if !self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(literal))
        {
            return Err(self.expected("a value"));
        }
        self.at += literal.len();
        self.writer.literal(literal);
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.skip_if(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')) {}
    }

    fn skip_if(&mut self, accept: impl Fn(u8) -> bool) -> bool {
        let accepted = self.peek().is_some_and(accept);
        self.at += usize::from(accepted);
        accepted
    }

    /// Skips space, and then `byte` if it is there.
    fn next_is(&mut self, byte: u8) -> bool {
        self.skip_space();
        self.skip_if(|b| b == byte)
    }

    fn expected(&self, expected: &'static str) -> Error {
        Error::Syntax {
            path: self.writer.path(),
            offset: self.at,
            expected,
        }
    }
}
