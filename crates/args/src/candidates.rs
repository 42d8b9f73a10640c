//! The documents in a text: whatever stands around them is skipped, whatever could be one is read.
//!
//! Finding decides nothing. Which candidate is meant is decided by what the declaration makes of
//! each: taking the first would run what an injected prefix says, taking the last would run an
//! example.

use countersign_contract::IssueCode;

use crate::limits::Limits;
use crate::schema::{Schema, Types};
use crate::tolerant::{NoRead, Read, Reader, Shape, SyntaxLog};
use crate::tree::{NodeId, Span, Tree};

/// A document that a text may mean.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) node: NodeId,
    pub(crate) complete: bool,
    pub(crate) span: Span,
    pub(crate) log: SyntaxLog,
    /// Whether it is a document whatever its names are: it has the form of a call, or it breaks off
    /// behind a name.
    pub(crate) certain: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) candidates: Vec<Candidate>,
    /// The limit that ended the search.
    pub(crate) limit: Option<&'static str>,
    /// Whether a document left something out (`...`).
    pub(crate) elided: bool,
    /// Whether a document has a name that no call may have.
    pub(crate) reserved: bool,
    /// Where a document cannot be read on without guessing.
    pub(crate) broken: Option<usize>,
}

/// How much is read again when a document turns out to be none: twice the text, and a little more so
/// that short texts with many braces are searched to their end.
const WORK_MAX: (usize, usize) = (2, 64 * 1024);

/// Finds the documents in a text.
pub(crate) fn find(tree: &mut Tree<'_>, raw: &str, schema: &Schema, limits: &Limits) -> Found {
    let mut finder = Finder {
        tree,
        raw,
        schema,
        limits,
        found: Found::default(),
        work: 0,
        origin: None,
    };
    finder.text(raw, 0);
    finder.found
}

struct Finder<'f, 'r> {
    tree: &'f mut Tree<'r>,
    raw: &'f str,
    schema: &'f Schema,
    limits: &'f Limits,
    found: Found,
    work: usize,
    /// Set while a decoded text is searched.
    origin: Option<Span>,
}

impl Finder<'_, '_> {
    fn text(&mut self, text: &str, nesting: usize) {
        let lead = lead(text);
        let before = self.found.candidates.len();
        let mut from = self.calls(text, lead);
        if from == 0 {
            from = self.members(text, lead);
        }
        self.containers(text, from, nesting);
        let container = text.get(lead..).unwrap_or_default().starts_with(['{', '[']);
        if self.found.candidates.len() == before && !container && self.takes_scalars() {
            self.scalar(text);
        }
    }

    /// Every container at the outermost level.
    fn containers(&mut self, text: &str, from: usize, nesting: usize) {
        let mut at = from;
        while let Some(offset) = text
            .as_bytes()
            .get(at..)
            .and_then(|rest| memchr::memchr2(b'{', b'[', rest))
        {
            let start = at + offset;
            if is_escaped(text, start) {
                if nesting < self.limits.decode_nesting_max {
                    self.unescaped(text, start, nesting);
                }
                return;
            }
            if !self.could_be_arguments(text, start) {
                at = start + 1;
                continue;
            }
            match self.read(text, start, Shape::Bracketed) {
                Ok((read, log)) => {
                    at = read.end;
                    self.add(read, start, log);
                }
                Err(NoRead::Implausible(_)) => at = start + 1,
                Err(stop) => {
                    self.stopped(stop);
                    return;
                }
            }
            if self.found.candidates.len() >= self.limits.candidates_max {
                self.found.limit = Some("candidates_max");
                return;
            }
            let (times, more) = WORK_MAX;
            if self.work > times * self.raw.len() + more {
                self.found.limit = Some("candidates_max");
                return;
            }
        }
    }

    /// A list is looked at only where lists are wanted, or where it starts with an object.
    fn could_be_arguments(&self, text: &str, start: usize) -> bool {
        let rest = text.get(start..).unwrap_or_default();
        rest.starts_with('{')
            || self.schema.rules(self.schema.root).types.has(Types::ARRAY)
            || rest
                .get(1..)
                .unwrap_or_default()
                .trim_start()
                .starts_with('{')
    }

    /// Every `name(a=1, b=2)` before the first container; gives back where the search goes on.
    fn calls(&mut self, text: &str, lead: usize) -> usize {
        let bytes = text.as_bytes();
        let mut at = lead;
        let mut end = 0;
        for _ in 0..self.limits.candidates_max {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(offset) = memchr::memchr3(b'(', b'{', b'[', rest) else {
                break;
            };
            let open = at + offset;
            if bytes.get(open) != Some(&b'(') {
                break;
            }
            at = open + 1;
            let named = open > 0
                && bytes
                    .get(open - 1)
                    .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
            if !named {
                continue;
            }
            let inside = text.get(at..).unwrap_or_default();
            if !starts_with_assignment(inside) {
                // A call by position does not say which parameter is meant.
                if inside.trim_start().starts_with(['"', '\'', '-'])
                    || inside
                        .trim_start()
                        .starts_with(|c: char| c.is_ascii_digit())
                {
                    self.stopped(NoRead::Broken(open));
                }
                continue;
            }
            match self.read(text, open, Shape::Call) {
                Ok((read, mut log)) => {
                    log.whole(IssueCode::CallSyntax, self.span(open, read.end));
                    end = read.end;
                    at = read.end;
                    let empty = self.tree.node(read.node).count == 0;
                    self.add(read, open, log);
                    if let Some(candidate) = self.found.candidates.last_mut() {
                        candidate.certain = !empty;
                    }
                }
                Err(stop) => self.stopped(stop),
            }
        }
        end
    }

    /// `"a": 1, "b": 2}`: the members without their opening brace.
    fn members(&mut self, text: &str, lead: usize) -> usize {
        let mut log = SyntaxLog::default();
        let mut reader = Reader::new(self.tree, &mut log, text, self.schema, self.limits);
        if !reader.starts_member(lead) {
            return 0;
        }
        match self.read(text, lead, Shape::Members) {
            Ok((read, mut log)) => {
                log.whole(IssueCode::BracesAdded, self.span(lead, lead));
                self.add(read, lead, log);
                read.end
            }
            Err(stop) => {
                self.stopped(stop);
                0
            }
        }
    }

    /// Keeps why a document could not be read; what was no document at all is none.
    fn stopped(&mut self, stop: NoRead) {
        match stop {
            NoRead::Implausible(_) => {}
            // A place in a decoded text is no place in the raw one.
            NoRead::Broken(at) => self.found.broken = Some(self.span(at, at).range().start),
            NoRead::Elided => self.found.elided = true,
            NoRead::Limit(limit) => self.found.limit = Some(limit),
            NoRead::Reserved => self.found.reserved = true,
        }
    }

    /// A document in which every quote is escaped: the content of a text without its own quotes.
    fn unescaped(&mut self, text: &str, start: usize, nesting: usize) {
        let mut decoded = String::with_capacity(text.len() - start);
        let rest = text.get(start..).unwrap_or_default();
        let mut at = 0;
        while let Some(tail) = rest.get(at..).filter(|tail| !tail.is_empty()) {
            let plain = memchr::memchr(b'\\', tail.as_bytes()).unwrap_or(tail.len());
            decoded.push_str(tail.get(..plain).unwrap_or_default());
            at += plain;
            let Some(escape) = tail.get(plain..).filter(|escape| !escape.is_empty()) else {
                break;
            };
            let (character, width) = crate::escape::decode(escape.as_bytes()).unwrap_or(('\\', 1));
            decoded.push(character);
            at += width;
        }
        let origin = self.origin;
        let span = self.span(start, text.len());
        self.origin = Some(span);
        let before = self.found.candidates.len();
        self.text(&decoded, nesting + 1);
        for candidate in self.found.candidates.iter_mut().skip(before) {
            candidate.log.whole(IssueCode::RootDecoded, span);
        }
        self.origin = origin;
    }

    fn scalar(&mut self, text: &str) {
        let mut log = SyntaxLog::default();
        let mut reader = Reader::new(self.tree, &mut log, text, self.schema, self.limits);
        match reader.read_scalar() {
            Ok(read) => self.add(read, 0, log),
            Err(stop) => self.stopped(stop),
        }
    }

    fn takes_scalars(&self) -> bool {
        let types = self.schema.rules(self.schema.root).types;
        [Types::TEXT, Types::INTEGER, Types::BOOLEAN, Types::NULL]
            .iter()
            .any(|t| types.has(*t))
    }

    fn read(
        &mut self,
        text: &str,
        start: usize,
        shape: Shape,
    ) -> Result<(Read, SyntaxLog), NoRead> {
        let mut log = SyntaxLog::default();
        let mut reader = Reader::new(self.tree, &mut log, text, self.schema, self.limits);
        if let Some(origin) = self.origin {
            reader = reader.decoded_from(origin, 0);
        }
        let read = reader.read(start, shape, Some(self.schema.root));
        self.work += match &read {
            Ok(read) => read.end - start,
            Err(NoRead::Implausible(end)) => end.saturating_sub(start),
            Err(_) => text.len() - start,
        };
        read.map(|read| (read, log))
    }

    /// Where something stands in the raw text; of a decoded text, where that stands.
    fn span(&self, start: usize, end: usize) -> Span {
        self.origin.unwrap_or(Span::new(start, end))
    }

    fn add(&mut self, read: Read, start: usize, mut log: SyntaxLog) {
        let span = self.span(start, read.end);
        if self.origin.is_none() {
            skipped(self.raw, start, read.end, &mut log);
        }
        self.found.candidates.push(Candidate {
            node: read.node,
            complete: read.complete,
            span,
            log,
            certain: read.named && !read.complete,
        });
    }
}

/// Where the content starts behind white space, fences and quotes that surround a whole document.
fn lead(text: &str) -> usize {
    let mut rest = text;
    loop {
        let before = rest.len();
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        if let Some(fence) = rest.strip_prefix("```") {
            rest = fence.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        } else {
            rest = rest.trim_start_matches('`');
        }
        if rest.len() == before {
            return text.len() - rest.len();
        }
    }
}

fn starts_with_assignment(text: &str) -> bool {
    let text = text.trim_start();
    let word = text
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
        .count();
    let rest = text.get(word..).unwrap_or_default().trim_start();
    (word > 0 && rest.starts_with('=') && !rest.starts_with("=="))
        || (word == 0 && rest.starts_with(')'))
}

/// Notes what was skipped around a document.
fn skipped(raw: &str, start: usize, end: usize, log: &mut SyntaxLog) {
    for (text, from) in [
        (raw.get(..start).unwrap_or_default(), 0),
        (raw.get(end..).unwrap_or_default(), end),
    ] {
        if text.trim().is_empty() {
            continue;
        }
        let span = Span::new(from, from + text.len());
        let code = if text.contains("```") {
            IssueCode::FenceStripped
        } else if text.trim().starts_with('<') && text.trim().ends_with('>') {
            IssueCode::TagStripped
        } else if text.contains(|c: char| c.is_alphanumeric()) {
            IssueCode::ProseSkipped
        } else if text.contains(['}', ']']) {
            IssueCode::ExtraCloser
        } else {
            IssueCode::StrayText
        };
        log.whole(code, span);
    }
}

/// Whether the first quote inside a container is escaped.
fn is_escaped(text: &str, start: usize) -> bool {
    let inside = text.get(start + 1..).unwrap_or_default();
    let inside = inside
        .trim_start_matches("\\n")
        .trim_start_matches("\\t")
        .trim_start();
    inside.starts_with("\\\"")
}
