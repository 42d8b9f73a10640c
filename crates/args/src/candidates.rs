//! Candidates: finds the documents in a text, and checks that only prose stands around them.
//!
//! Finding does not choose. The declaration decides which candidate is meant: taking the first would run what
//! an injected prefix says, taking the last would run an example.

mod elements;
mod encoded;

use countersign_contract::IssueCode;

use crate::fault::Fault;
use crate::limits::Limits;
use crate::outside::{self, Side, Trouble, thinking, turn};
use crate::schema::{Schema, Types};
use crate::strict::{self, Stop};
use crate::tolerant::{NoRead, Read, Reader, Shape, SyntaxLog, WRAPPERS};
use crate::tree::{Kind, NodeId, Span, Tree};

/// A document in the text that may be the call.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact about the document, and none excludes another"
)]
pub(crate) struct Candidate {
    pub(crate) node: NodeId,
    pub(crate) complete: bool,
    /// True if the text ends behind a whole name.
    pub(crate) dangling: bool,
    pub(crate) span: Span,
    pub(crate) log: SyntaxLog,
    /// True if it has a name of the declaration, has the form of a call, or breaks off behind a name.
    pub(crate) known: bool,
    /// True if it stands in a mark for calls, such as `<tool_call>`.
    pub(crate) marked: bool,
}

/// Result of the search.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) candidates: Vec<Candidate>,
    /// Name of the limit that ended the search.
    pub(crate) limit: Option<&'static str>,
    /// True if a document left something out (`...`).
    pub(crate) elided: bool,
    /// True if a document has a reserved name.
    pub(crate) reserved: bool,
    /// First place where the text cannot be read without guessing.
    pub(crate) broken: Option<(usize, Fault)>,
    /// Place of a thinking block that does not end.
    pub(crate) unfinished: Option<usize>,
}

/// Maximum work on rejected documents, as a multiple of the text's length plus a constant: each byte may be
/// read again about twice, and short texts with many braces are searched to their end.
const WORK_MAX: (usize, usize) = (3, 64 * 1024);

/// Functions around a call that only show its result.
const SHOWING: [&str; 3] = ["print", "console.log", "json.dumps"];

/// Finds the documents in a text. `damage` is the byte at which the document that it starts with is not JSON.
pub(crate) fn find(
    tree: &mut Tree<'_>,
    (raw, damage): (&str, Option<usize>),
    schema: &Schema,
    limits: &Limits,
) -> Found {
    let mut finder = Finder {
        tree,
        raw,
        damage,
        schema,
        limits,
        found: Found::default(),
        work: 0,
        origin: None,
        entities_left: 4,
    };
    finder.text(raw, 0);
    finder.found
}

/// A document and its range in a text, including the brackets that belong to it.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: usize,
    end: usize,
    shape: Shape,
    complete: bool,
    known: bool,
    /// True if it is written as a call: `name(…)`.
    called: bool,
}

impl Place {
    /// Returns the side behind the document: a surplus closing bracket may follow brackets, but not a call.
    const fn behind(&self) -> Side {
        match self.shape {
            Shape::Bracketed | Shape::Members => Side::Behind,
            Shape::Call => Side::BehindCall,
        }
    }
}

struct Finder<'f, 'r> {
    tree: &'f mut Tree<'r>,
    raw: &'f str,
    /// Byte at which the document that the raw text starts with is not JSON.
    damage: Option<usize>,
    schema: &'f Schema,
    limits: &'f Limits,
    found: Found,
    work: usize,
    /// Range in the raw text; set while a decoded text is searched.
    origin: Option<Span>,
    /// Remaining searches of a text for entities.
    entities_left: usize,
}

impl Finder<'_, '_> {
    fn text(&mut self, text: &str, nesting: usize) {
        let from = match thinking::skip(text) {
            Ok(from) => from,
            Err(at) => {
                self.found.unfinished = Some(self.span(at, at).range().start);
                return;
            }
        };
        let schema = self.schema;
        let declares = |name: &str| schema.has_property(schema.root, name);
        if let Some(places) = self.elements(text, from) {
            self.check_outside(text, from, &places);
            return;
        }
        let behind = text.get(from..).unwrap_or_default();
        if outside::is_markup(behind, &declares) {
            self.stopped(NoRead::Broken(from, Fault::Markup));
            return;
        }
        let lead = from + lead(behind);
        let mut places = self.calls(text, lead);
        if places.is_empty() {
            places.extend(self.members(text, lead));
        }
        let next = places.last().map_or(from, |place| place.end);
        self.containers(text, next, nesting, &mut places);
        let container = text.get(lead..).unwrap_or_default().starts_with(['{', '[']);
        if places.is_empty() && !container && self.takes_scalars() {
            self.scalar(text);
            return;
        }
        self.check_outside(text, from, &places);
    }

    /// Checks that only prose stands around the documents. A document that is cut off does not run, whatever
    /// stands around it.
    fn check_outside(&mut self, text: &str, from: usize, places: &[Place]) {
        let alone = places.len() <= 1;
        if places.is_empty()
            || places
                .iter()
                .any(|place| !place.complete && (place.known || alone))
        {
            return;
        }
        let mut at = from;
        let mut last = None;
        for place in places {
            let side = last.map_or(Side::Before, Place::behind);
            self.check_gap(text, at, place.start, side);
            if place.known || alone {
                self.check_turn(text, at, place);
            }
            if last.is_some() && !place.known {
                self.stopped(NoRead::Broken(place.start, Fault::Second));
            }
            last = last.or(Some(place).filter(|place| place.known));
            at = place.end;
        }
        let side = places.last().map_or(Side::Before, Place::behind);
        self.check_gap(text, at, text.len(), side);
    }

    /// Checks that the model itself wrote a document, and that it is meant to run.
    fn check_turn(&mut self, text: &str, from: usize, place: &Place) {
        let before = text.get(from..place.start).unwrap_or_default();
        if before.trim().is_empty() {
            return;
        }
        if let Some(at) = turn::of_another(before) {
            self.stopped(NoRead::Broken(from + at, Fault::Turn));
        } else if let Some(at) = turn::idle(before, place.called) {
            self.stopped(NoRead::Broken(from + at, Fault::Code));
        }
    }

    fn check_gap(&mut self, text: &str, start: usize, end: usize, side: Side) {
        let schema = self.schema;
        let declares = |name: &str| schema.has_property(schema.root, name);
        let gap = text.get(start..end).unwrap_or_default();
        if gap.trim().is_empty() {
            return;
        }
        match outside::check(gap, side, &declares) {
            Ok(()) => {}
            Err(Trouble::Fault(at, fault)) => self.stopped(NoRead::Broken(start + at, fault)),
            Err(Trouble::Unfinished(at)) => {
                let at = self.span(start + at, end).range().start;
                self.found.unfinished.get_or_insert(at);
            }
        }
    }

    /// Finds every container at the outermost level.
    fn containers(&mut self, text: &str, from: usize, nesting: usize, places: &mut Vec<Place>) {
        let mut at = from;
        while let Some(offset) = text
            .as_bytes()
            .get(at..)
            .and_then(|rest| memchr::memchr2(b'{', b'[', rest))
        {
            let start = at + offset;
            if let Some(place) = self.encoded(text, at, start, nesting) {
                at = place.end;
                places.push(place);
            } else if !self.could_be_arguments(text, start) {
                at = start + 1;
            } else {
                match self.read(text, start, Shape::Bracketed) {
                    Ok((read, log)) => {
                        at = read.end;
                        places.push(self.add(text, start, Shape::Bracketed, read, log));
                    }
                    Err(NoRead::Implausible(_)) => at = start + 1,
                    Err(stop) => {
                        self.stopped(stop);
                        return;
                    }
                }
            }
            if self.is_worked_out() || self.found.candidates.len() >= self.limits.candidates_max {
                self.found.limit = Some("candidates_max");
                return;
            }
        }
    }

    /// True if rejected documents have taken as much work as they may.
    const fn is_worked_out(&self) -> bool {
        let (times, more) = WORK_MAX;
        self.work > times * self.raw.len() + more
    }

    /// True if the container may be arguments. A list only is if lists are wanted, or if it starts with an
    /// object.
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

    /// Finds every `name(a=1, b=2)` before the first container.
    fn calls(&mut self, text: &str, lead: usize) -> Vec<Place> {
        let bytes = text.as_bytes();
        let mut places = Vec::new();
        let mut at = lead;
        for _ in 0..self.limits.candidates_max {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(offset) = memchr::memchr3(b'(', b'{', b'[', rest) else {
                break;
            };
            if self.is_worked_out() {
                self.found.limit = Some("candidates_max");
                break;
            }
            let open = at + offset;
            at = open + 1;
            match bytes.get(open) {
                Some(b'(') => {}
                // `[name(a=1)]` is a list of calls.
                Some(b'[') if starts_with_call(text.get(at..).unwrap_or_default()) => continue,
                _ => break,
            }
            if name_before(text, open) == open {
                continue;
            }
            let inside = text.get(at..).unwrap_or_default();
            if !starts_with_assignment(inside) {
                // A call with positional arguments does not say which parameter is meant.
                if inside.trim_start().starts_with(['"', '\'', '-'])
                    || inside
                        .trim_start()
                        .starts_with(|c: char| c.is_ascii_digit())
                {
                    self.stopped(NoRead::Broken(open, Fault::Code));
                }
                continue;
            }
            match self.read(text, open, Shape::Call) {
                Ok((read, mut log)) => {
                    log.whole(IssueCode::CallSyntax, self.span(open, read.end));
                    at = read.end;
                    let mut place = self.add(text, open, Shape::Call, read, log);
                    // `today()` may also be a remark.
                    place.known = self.tree.node(read.node).count > 0;
                    if let Some(candidate) = self.found.candidates.last_mut() {
                        candidate.known = place.known;
                    }
                    places.push(place);
                }
                Err(stop) => self.stopped(stop),
            }
        }
        places
    }

    /// Finds `"a": 1, "b": 2}`: members without their opening brace.
    fn members(&mut self, text: &str, lead: usize) -> Option<Place> {
        let mut log = SyntaxLog::default();
        let mut reader = Reader::new(self.tree, &mut log, text, self.schema, self.limits);
        if !reader.starts_member(lead) {
            return None;
        }
        match self.read(text, lead, Shape::Members) {
            Ok((read, mut log)) => {
                log.whole(IssueCode::BracesAdded, self.span(lead, lead));
                Some(self.add(text, lead, Shape::Members, read, log))
            }
            Err(stop) => {
                self.stopped(stop);
                None
            }
        }
    }

    /// Keeps the reason why a document could not be read; text that is not a document needs no reason.
    fn stopped(&mut self, stop: NoRead) {
        match stop {
            NoRead::Implausible(_) => {}
            // An offset in a decoded text is not an offset in the raw one.
            NoRead::Broken(at, fault) => {
                let at = self.span(at, at).range().start;
                self.found.broken.get_or_insert((at, fault));
            }
            NoRead::Elided => self.found.elided = true,
            NoRead::Limit(limit) => self.found.limit = Some(limit),
            NoRead::Reserved => self.found.reserved = true,
        }
    }

    fn scalar(&mut self, text: &str) {
        let mut log = SyntaxLog::default();
        let mut reader = Reader::new(self.tree, &mut log, text, self.schema, self.limits);
        match reader.read_scalar() {
            Ok(read) => {
                self.add(text, 0, Shape::Bracketed, read, log);
            }
            Err(stop) => self.stopped(stop),
        }
    }

    fn takes_scalars(&self) -> bool {
        let types = self.schema.rules(self.schema.root).types;
        [Types::TEXT, Types::INTEGER, Types::BOOLEAN, Types::NULL]
            .iter()
            .any(|t| types.has(*t))
    }

    /// Reads one document, strictly first.
    fn read(
        &mut self,
        text: &str,
        start: usize,
        shape: Shape,
    ) -> Result<(Read, SyntaxLog), NoRead> {
        let mut log = SyntaxLog::default();
        if shape == Shape::Bracketed
            && let Some(read) = self.read_strictly(text, start)?
        {
            return Ok((read, log));
        }
        let in_call = text
            .get(..start)
            .unwrap_or_default()
            .trim_end()
            .strip_suffix('(')
            .is_some_and(|before| name_before(before, before.len()) < before.len());
        let mut reader =
            Reader::new(self.tree, &mut log, text, self.schema, self.limits).inside_call(in_call);
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

    /// Reads strict JSON, unless the document goes on behind it.
    fn read_strictly(&mut self, text: &str, start: usize) -> Result<Option<Read>, NoRead> {
        if let Some(at) = self
            .damage
            .filter(|at| *at > start && self.starts_raw(text, start))
        {
            self.work += at.saturating_sub(start);
            return Ok(None);
        }
        let origin = self.origin.map(|span| (span, 0));
        match strict::container(self.tree, text, start, origin, self.limits) {
            Ok((node, end)) => {
                self.work += end - start;
                let mut log = SyntaxLog::default();
                let mut reader = Reader::new(self.tree, &mut log, text, self.schema, self.limits);
                if reader.members_go_on(end) {
                    return Ok(None);
                }
                let named = self.tree.node(node).count > 0;
                Ok(Some(Read {
                    node,
                    end,
                    complete: true,
                    named,
                    dangling: false,
                }))
            }
            Err(Stop::NotJson(at) | Stop::Behind(at)) => {
                self.work += at.saturating_sub(start);
                Ok(None)
            }
            Err(Stop::Limit(limit)) => Err(NoRead::Limit(limit)),
            Err(Stop::Reserved) => Err(NoRead::Reserved),
        }
    }

    /// True if the raw text starts with the document at this byte.
    fn starts_raw(&self, text: &str, start: usize) -> bool {
        let before = text.as_bytes().get(..start).unwrap_or_default();
        self.origin.is_none() && before.trim_ascii().is_empty()
    }

    /// Returns the range in the raw text; for a decoded text, the range of the string it was decoded from.
    fn span(&self, start: usize, end: usize) -> Span {
        self.origin.unwrap_or(Span::new(start, end))
    }

    fn add(
        &mut self,
        text: &str,
        start: usize,
        shape: Shape,
        read: Read,
        mut log: SyntaxLog,
    ) -> Place {
        let span = self.span(start, read.end);
        skipped(text, start, read.end, self.origin, &mut log);
        // A string that ends at a wrong place leaves a part of the document outside it.
        let has = |code| !log.is_new(code);
        let behind = text.get(read.end..).unwrap_or_default().trim_start();
        let closer = has(IssueCode::ExtraCloser) || behind.starts_with(['}', ']']);
        if has(IssueCode::InnerQuoteEscaped) && (closer || has(IssueCode::ProseSkipped)) {
            self.stopped(NoRead::Broken(start, Fault::Quotes));
        }
        if has(IssueCode::ValueUnquoted) && closer {
            self.stopped(NoRead::Broken(start, Fault::Bare));
        }
        let mut unused = SyntaxLog::default();
        let reader = Reader::new(self.tree, &mut unused, text, self.schema, self.limits);
        if closer && !reader.is_one_thing(read.node) {
            self.stopped(NoRead::Broken(read.end, Fault::Unreadable));
        }
        // Prose outside of a fence says nothing about where a string ends, so it is logged after those checks.
        prose_beside_fences(text, start, read.end, self.origin, &mut log);
        let known =
            read.named && !read.complete || shares_a_name(self.tree, self.schema, read.node);
        let before = text.get(..start).unwrap_or_default();
        self.found.candidates.push(Candidate {
            node: read.node,
            complete: read.complete,
            dangling: read.dangling,
            span,
            log,
            known,
            marked: outside::ends_with_call_mark(before),
        });
        let place = Place {
            start,
            end: read.end,
            shape,
            complete: read.complete,
            known,
            called: false,
        };
        Self::enclosed(text, place)
    }

    /// Extends the range of a document by the name of its call and by brackets that hold nothing else.
    fn enclosed(text: &str, mut place: Place) -> Place {
        if place.shape == Shape::Call {
            place.start = name_before(text, place.start);
        }
        let mut call = place.shape == Shape::Call;
        loop {
            place.called = call;
            let before = text.get(..place.start).unwrap_or_default().trim_end();
            let behind = text.get(place.end..).unwrap_or_default();
            let blank = behind.len() - behind.trim_start().len();
            let (open, close) = (
                before.bytes().next_back(),
                behind.trim_start().bytes().next(),
            );
            let start = match (open, close) {
                (Some(b'('), Some(b')')) => {
                    let name = name_before(before, before.len() - 1);
                    let named = before.get(name..before.len() - 1).unwrap_or_default();
                    if call && !named.is_empty() && !SHOWING.contains(&named) {
                        return place;
                    }
                    call |= !named.is_empty();
                    name
                }
                (Some(b'['), Some(b']')) if call => before.len() - 1,
                (Some(b'{'), Some(b'}')) if !call => before.len() - 1,
                _ => return place,
            };
            place.start = start;
            place.end += blank + 1;
        }
    }
}

/// True if a document has a name that the declaration knows, or a wrapper around such a document.
fn shares_a_name(tree: &Tree<'_>, schema: &Schema, node: NodeId) -> bool {
    match tree.kind(node) {
        Kind::Object => tree.children(node).any(|member| {
            let name = tree.key(member);
            WRAPPERS.has(name) || schema.knows(schema.root, name)
        }),
        Kind::Array => tree
            .children(node)
            .any(|item| tree.kind(item) == Kind::Object && shares_a_name(tree, schema, item)),
        Kind::Null | Kind::False | Kind::True | Kind::Number | Kind::Text => false,
    }
}

/// Returns the start of the content, behind white space, fences and quotes that surround a whole document.
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

/// True if a text starts with a call's name and parenthesis.
fn starts_with_call(text: &str) -> bool {
    let text = text.trim_start();
    let name = text.find(|c: char| !is_name(c)).unwrap_or(text.len());
    name > 0 && text.get(name..).unwrap_or_default().starts_with('(')
}

const fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.')
}

/// Returns the start of the call's name that ends here.
fn name_before(text: &str, end: usize) -> usize {
    let before = text.get(..end).unwrap_or_default();
    before.trim_end_matches(is_name).len()
}

/// Logs what was skipped around a document.
fn skipped(text: &str, start: usize, end: usize, origin: Option<Span>, log: &mut SyntaxLog) {
    for (text, from) in [
        (text.get(..start).unwrap_or_default(), 0),
        (text.get(end..).unwrap_or_default(), end),
    ] {
        if text.trim().is_empty() {
            continue;
        }
        let mut span = origin.unwrap_or(Span::new(from, from + text.len()));
        let code = if let Some((open, close)) = fences(text) {
            // Prose beside the fences has an issue of its own.
            if beside_fences(text, (open, close)).any(|(_, part)| is_prose(part)) {
                span = origin.unwrap_or(Span::new(from + open, from + close));
            }
            IssueCode::FenceStripped
        } else if text.trim().starts_with('<') && text.trim().ends_with('>') {
            IssueCode::TagStripped
        } else if is_prose(text) {
            IssueCode::ProseSkipped
        } else if text.contains(['}', ']']) {
            IssueCode::ExtraCloser
        } else {
            IssueCode::StrayText
        };
        log.whole(code, span);
    }
}

/// Logs prose before or behind the fences around a document.
fn prose_beside_fences(
    text: &str,
    start: usize,
    end: usize,
    origin: Option<Span>,
    log: &mut SyntaxLog,
) {
    for (text, from) in [
        (text.get(..start).unwrap_or_default(), 0),
        (text.get(end..).unwrap_or_default(), end),
    ] {
        let Some(fences) = fences(text) else {
            continue;
        };
        for (at, part) in beside_fences(text, fences).filter(|(_, part)| is_prose(part)) {
            let at = from + at;
            let span = origin.unwrap_or(Span::new(at, at + part.len()));
            log.whole(IssueCode::ProseSkipped, span);
        }
    }
}

/// Returns the parts before and behind the fences of a text, each with its start.
fn beside_fences(text: &str, (open, close): (usize, usize)) -> impl Iterator<Item = (usize, &str)> {
    let before = text.get(..open).unwrap_or_default();
    let behind = text.get(close..).unwrap_or_default();
    [(0, before), (close, behind)].into_iter()
}

fn is_prose(text: &str) -> bool {
    text.contains(|c: char| c.is_alphanumeric())
}

/// Returns the range from the first fence to the end of the last one, the word behind it included; `None` if there is no fence.
fn fences(text: &str) -> Option<(usize, usize)> {
    const FENCE: &[u8] = b"```";
    let bytes = text.as_bytes();
    let is_fence = |at: &usize| bytes.get(*at..).is_some_and(|rest| rest.starts_with(FENCE));
    let first = memchr::memchr_iter(b'`', bytes).find(is_fence)?;
    let last = memchr::memrchr_iter(b'`', bytes).find(is_fence)? + FENCE.len();
    let behind = text.get(last..).unwrap_or_default();
    let word = behind.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    Some((first, text.len() - word.len()))
}
