//! The text around a document. Prose, fences and tags are skipped; structure never is: it is a part of the call
//! that was not read.

pub(crate) mod tag;
pub(crate) mod thinking;
pub(crate) mod turn;

use crate::fault::Fault;
use tag::{Kind, Tag};

/// Position of a text relative to the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Before the document.
    Before,
    /// Behind a document.
    Behind,
    /// Behind a call, or a literal with a document in it.
    BehindCall,
}

/// Reason why a text around a document cannot be skipped, with the byte where it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    Fault(usize, Fault),
    /// A thinking block does not end.
    Unfinished(usize),
}

/// Maximum length of a `{word}` or `[1]` that counts as a mention.
const MENTION_BYTES_MAX: usize = 64;

/// Languages of a fence that only a call stands in.
const CALL_FENCES: [&str; 4] = ["tool_call", "tool_calls", "tool_code", "function_call"];

/// Words that continue an expression.
const OPERATORS: [&str; 8] = ["if", "or", "and", "for", "else", "is", "in", "not"];

/// Checks that a text beside a document can be skipped; `declares` knows the names of parameters.
pub(crate) fn check(
    text: &str,
    side: Side,
    declares: &dyn Fn(&str) -> bool,
) -> Result<(), Trouble> {
    let mut scanner = Scanner {
        text,
        side,
        declares,
        at: 0,
        quotes: None,
        odd_quotes: false,
        odd_ticks: false,
        tags: Vec::new(),
    };
    if side != Side::Before {
        scanner.end_of_document()?;
    }
    while let Some(c) = scanner.rest().chars().next() {
        scanner.character(c)?;
    }
    scanner.finish()
}

/// True if a text ends with a mark that only a call stands in: `<tool_call>`, `<|python_tag|>`, a fence `tool_call`.
pub(crate) fn ends_with_call_mark(before: &str) -> bool {
    let end = before.trim_end();
    let line = end.rsplit('\n').next().unwrap_or_default().trim();
    if let Some(info) = line.strip_prefix("```") {
        return CALL_FENCES.contains(&info.trim());
    }
    let Some(open) = end.rfind('<').filter(|_| end.ends_with('>')) else {
        return end.ends_with("[TOOL_CALLS]");
    };
    tag::read(end.get(open..).unwrap_or_default()).is_some_and(|tag| tag.marks_call())
}

/// True if the text before the first document has elements for single parameters.
pub(crate) fn is_markup(text: &str, declares: &dyn Fn(&str) -> bool) -> bool {
    let head = text
        .find(['{', '('])
        .map_or(text, |at| text.get(..at).unwrap_or_default());
    head.match_indices('<').any(|(at, _)| {
        tag::read(head.get(at..).unwrap_or_default())
            .is_some_and(|tag| tag.is_parameter() || (!tag.is_token() && declares(tag.name)))
    })
}

struct Scanner<'s> {
    text: &'s str,
    side: Side,
    declares: &'s dyn Fn(&str) -> bool,
    at: usize,
    /// Offset of the last double quote.
    quotes: Option<usize>,
    odd_quotes: bool,
    odd_ticks: bool,
    /// Open elements, each with the byte behind its tag.
    tags: Vec<(Tag<'s>, usize)>,
}

impl<'s> Scanner<'s> {
    fn rest(&self) -> &'s str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn fault<T>(&self, fault: Fault) -> Result<T, Trouble> {
        Err(Trouble::Fault(self.at, fault))
    }

    fn character(&mut self, c: char) -> Result<(), Trouble> {
        match c {
            '{' | '[' => return self.mention(c),
            '}' | ']' => return self.fault(Fault::Second),
            '<' | '◁' => return self.tag(),
            '\\' if self.rest().starts_with("\\\"") => return self.fault(Fault::Quotes),
            '"' => {
                self.quotes = Some(self.at);
                self.odd_quotes = !self.odd_quotes;
                if self
                    .rest()
                    .get(1..)
                    .unwrap_or_default()
                    .trim_start()
                    .starts_with(':')
                {
                    return self.fault(Fault::Outside);
                }
            }
            '`' | '~' if self.rest().starts_with("```") || self.rest().starts_with("~~~") => {
                self.at += 2;
            }
            '`' => self.odd_ticks = !self.odd_ticks,
            c if c.is_alphanumeric() || c == '_' => return self.word(),
            _ => {}
        }
        self.at += c.len_utf8();
        Ok(())
    }

    /// Skips `{docs}`, `[1]`, `[TOOL_CALLS]`: a bracket with a few plain words is only a mention.
    fn mention(&mut self, open: char) -> Result<(), Trouble> {
        if thinking::opens(self.rest()).is_some() {
            return self.skip_thinking();
        }
        let (close, plain): (char, &[char]) = match open {
            '{' => ('}', &['{', '"', '\'', ':', '=', '\n', '<']),
            _ => (']', &['{', '[', '"', '\'', ':', '=', '\n', ',', '(', '<']),
        };
        let Some(end) = self
            .rest()
            .find(close)
            .filter(|end| *end <= MENTION_BYTES_MAX)
        else {
            return self.fault(Fault::Second);
        };
        let inside = self.rest().get(1..end).unwrap_or_default();
        if (self.declares)(inside.trim()) {
            return self.fault(Fault::Outside);
        }
        let marker = open == '[' && ["TOOL_CALLS", "ARGS", "CALL_ID"].contains(&inside);
        if inside.contains(plain) || (self.side != Side::Before && (marker || open == '{')) {
            return self.fault(Fault::Second);
        }
        // `x[0]` is not a remark.
        let before = self.text.get(..self.at).unwrap_or_default();
        let indexes = before.ends_with(|c: char| c.is_alphanumeric() || "_)]}".contains(c));
        if open == '[' && indexes && !marker && !before.ends_with("[TOOL_CALLS]") {
            return self.fault(Fault::Code);
        }
        self.at += end + 1;
        Ok(())
    }

    /// Reads a word: the name of a call, the name of a parameter, or prose.
    fn word(&mut self) -> Result<(), Trouble> {
        let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let rest = self.rest();
        let length = rest.find(|c| !part(c)).unwrap_or(rest.len());
        let word = rest
            .get(..length)
            .unwrap_or_default()
            .trim_end_matches(['.', '-']);
        let behind = rest.get(word.len()..).unwrap_or_default();
        if let Some(inside) = behind.strip_prefix('(') {
            let mentioned = [")", "...", "…", "s)", "es)"]
                .iter()
                .any(|end| inside.starts_with(end));
            if !mentioned {
                return self.fault(Fault::Code);
            }
        }
        let separator = behind
            .trim_start_matches(['"', '\'', '`', '*'])
            .trim_start();
        // `to=functions.name` addresses a call.
        let addressed = word == "to" && separator.starts_with("=functions.");
        let quoted =
            behind.starts_with('"') && self.text.get(..self.at).unwrap_or_default().ends_with('"');
        let names = quoted
            || separator.starts_with([':', '=', '：'])
            || (separator.is_empty() && self.side == Side::Before);
        if names && !addressed && (self.declares)(word) {
            return self.fault(Fault::Outside);
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_thinking(&mut self) -> Result<(), Trouble> {
        match thinking::end_of_block(self.rest()) {
            Some(end) => {
                self.at += end;
                Ok(())
            }
            None => Err(Trouble::Unfinished(self.at)),
        }
    }

    fn tag(&mut self) -> Result<(), Trouble> {
        if thinking::opens(self.rest()).is_some() {
            return self.skip_thinking();
        }
        let Some(tag) = tag::read(self.rest()) else {
            self.at += self.rest().chars().next().map_or(1, char::len_utf8);
            return Ok(());
        };
        match tag.kind {
            Kind::Token if self.side != Side::Before && tag.starts_something() => {
                return self.fault(Fault::Second);
            }
            Kind::Token => {}
            _ if tag.is_parameter() || (self.declares)(tag.name) => {
                return self.fault(Fault::Markup);
            }
            Kind::Opens if self.side != Side::Before => return self.fault(Fault::Second),
            Kind::Opens => self.tags.push((tag, self.at + tag.width)),
            Kind::Closes => self.element_ends(tag)?,
        }
        self.at += tag.width;
        Ok(())
    }

    /// Checks an element that ends before the document: it must be empty, because its content would be lost.
    fn element_ends(&mut self, tag: Tag<'s>) -> Result<(), Trouble> {
        let Some(open) = self
            .tags
            .iter()
            .rposition(|(open, _)| open.name == tag.name)
        else {
            return Ok(());
        };
        let start = self.tags.get(open).map_or(self.at, |(_, behind)| *behind);
        let inside = self.text.get(start..self.at).unwrap_or_default();
        if !inside.trim().is_empty() {
            return self.fault(Fault::Markup);
        }
        self.tags.truncate(open);
        Ok(())
    }

    /// Checks the bytes right behind a document: closers and full stops are garbage; anything that continues an
    /// expression or closes a string is not.
    fn end_of_document(&mut self) -> Result<(), Trouble> {
        let closers = if self.side == Side::Behind { "}]" } else { "" };
        let stops = ");,.`。";
        let garbage = |c: char| {
            let invisible = matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}');
            let blank = c.is_whitespace() || c.is_control() || invisible;
            blank || stops.contains(c) || closers.contains(c)
        };
        let rest = self.text.trim_start_matches(garbage);
        let run = self.text.len() - rest.len();
        let skipped = self.text.get(..run).unwrap_or_default();
        self.at = run;
        if rest.is_empty() {
            return Ok(());
        }
        if rest.starts_with(['"', '\'', '”', '’']) {
            return self.fault(Fault::Quotes);
        }
        if skipped.contains(['\n', '`']) || rest.starts_with("//") || rest.starts_with("/*") {
            return Ok(());
        }
        let word = rest
            .split(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or_default();
        let adjacent = skipped.is_empty();
        let continues = skipped.contains(',')
            || rest.starts_with(['+', '*', '/', '%', '&', '|', '^', '=', '?', '@'])
            || (adjacent && !rest.starts_with(['<', '~', '◁']))
            || (skipped.ends_with('.') && rest.starts_with(|c: char| c.is_alphabetic()))
            || OPERATORS.contains(&word);
        if continues {
            return self.fault(Fault::Code);
        }
        Ok(())
    }

    fn finish(&self) -> Result<(), Trouble> {
        if self.odd_quotes {
            return Err(Trouble::Fault(
                self.quotes.unwrap_or_default(),
                Fault::Quotes,
            ));
        }
        let end = self.text.trim_end();
        if self.side != Side::Before {
            // The quote opened before the document ended.
            if end.ends_with(['\'', '’']) {
                return self.fault(Fault::Quotes);
            }
            return Ok(());
        }
        if self.text.ends_with(['\'', '"']) || (self.odd_ticks && !end.ends_with('`')) {
            return self.fault(Fault::Quotes);
        }
        if end.len() > 1 && end.ends_with(',') {
            return self.fault(Fault::Second);
        }
        // `<function=name>` must hold the document and nothing else. One unknown tag may be the name of the
        // tool; two are elements of an unknown markup language.
        let (mut unknown, mut called) = (0, None);
        for (tag, behind) in &self.tags {
            unknown += usize::from(!tag.is_wrapper());
            if tag.is_call() {
                called = Some(*behind);
            }
        }
        let apart = called.is_some_and(|behind| {
            !self
                .text
                .get(behind..)
                .unwrap_or_default()
                .trim()
                .is_empty()
        });
        if unknown > 1 || apart {
            return self.fault(Fault::Markup);
        }
        Ok(())
    }
}
