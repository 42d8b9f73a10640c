//! The tolerant reader: one pass over text as models write it, with an explicit stack and a capped look-ahead,
//! so that it is linear in its input.
//!
//! It does not change the meaning: every repair is logged as a syntax event. Text that cannot be read as a
//! container at all is reported as implausible and left to the caller.

mod ahead;
mod bare;
mod filler;
mod key;
mod log;
mod quote;
mod word;

use crate::fault::Fault;
use crate::limits::Limits;
use crate::schema::{Schema, SchemaId, Types};
use crate::strict::is_reserved;
use crate::tree::{Kind, NONE, NodeId, Span, Str, Tree};

use countersign_contract::IssueCode;
pub(crate) use key::{CALL_MEMBERS, LISTS_OF_CALLS, WRAPPERS};
pub(crate) use log::{SyntaxEvent, SyntaxLog};
use quote::Quote;

/// A container that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) node: NodeId,
    /// Offset of the byte behind it.
    pub(crate) end: usize,
    /// True if it was closed; otherwise the text ended inside it.
    pub(crate) complete: bool,
    /// True if a name was read, even without a value.
    pub(crate) named: bool,
    /// True if the text ends behind a whole name: its value may have been left out.
    pub(crate) dangling: bool,
}

/// Reason why there is no container here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRead {
    /// The text here is not a container; it was examined up to this byte.
    Implausible(usize),
    /// It began as a container and cannot be read on from this byte without guessing.
    Broken(usize, Fault),
    /// A part was left out on purpose (`...`), so the document is not complete.
    Elided,
    /// It exceeds this limit.
    Limit(&'static str),
    /// It has a reserved name.
    Reserved,
}

/// Outer form of a container's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `{…}` or `[…]`.
    Bracketed,
    /// `"a": 1, …` without the braces.
    Members,
    /// `(a=1, …)`.
    Call,
}

/// A container that is still open.
#[derive(Debug, Clone, Copy)]
struct Frame {
    node: NodeId,
    last: NodeId,
    closer: Closer,
    schema: Option<SchemaId>,
    /// True if a comma stands before the next token.
    comma: bool,
    /// True if the last value is a string without quotes.
    after_bare: bool,
    keys: key::Styles,
}

/// Closing token of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closer {
    Brace,
    Bracket,
    Parenthesis,
    /// The parenthesis of a tuple.
    Tuple,
    /// The end of the text, or a brace that nothing opened.
    End,
}

impl Closer {
    const fn is_list(self) -> bool {
        matches!(self, Self::Bracket | Self::Tuple)
    }
}

/// Next step of the reader.
enum Step {
    Value(Str),
    Key,
    /// Anything that may follow a value. It is a step of its own, so that closers without an opener do not nest
    /// calls.
    Behind,
    Done(Read),
}

/// Reads containers of one text into a tree.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact about the text so far, and none excludes another"
)]
pub(crate) struct Reader<'t, 'r, 's> {
    pub(crate) tree: &'t mut Tree<'r>,
    text: &'s str,
    bytes: &'s [u8],
    schema: &'s Schema,
    limits: &'s Limits,
    pub(crate) log: &'t mut SyntaxLog,
    /// Set if `text` is not the raw text but was decoded from this part of it.
    origin: Option<Span>,
    at: usize,
    stack: Vec<Frame>,
    /// Nesting depth of the text inside containers.
    base_depth: usize,
    white: filler::WhiteCache,
    lookaheads: usize,
    /// First place where a choice between two readings would have been a guess.
    broken: Option<(usize, Fault)>,
    /// First quote that was kept inside a string.
    inner_quote: Option<usize>,
    /// True if a comma, a colon or a bracket was missing, or there was one too many.
    restructured: bool,
    /// True inside a call: there an identifier is a variable.
    call: bool,
    /// True once a string in single quotes was read: escapes are then those of Python.
    single_quoted: bool,
    escapes: quote::Escapes,
    /// True if the value that was just read is a string without quotes.
    bare_text: bool,
    /// True if a comment was skipped right before this place.
    commented: bool,
    named: bool,
    dangling: bool,
}

impl<'t, 'r, 's> Reader<'t, 'r, 's> {
    pub(crate) fn new(
        tree: &'t mut Tree<'r>,
        log: &'t mut SyntaxLog,
        text: &'s str,
        schema: &'s Schema,
        limits: &'s Limits,
    ) -> Self {
        Self {
            tree,
            text,
            bytes: text.as_bytes(),
            schema,
            limits,
            log,
            origin: None,
            at: 0,
            stack: Vec::with_capacity(8),
            base_depth: 0,
            white: filler::WhiteCache::default(),
            lookaheads: 0,
            broken: None,
            inner_quote: None,
            restructured: false,
            call: false,
            single_quoted: false,
            escapes: quote::Escapes::default(),
            bare_text: false,
            commented: false,
            named: false,
            dangling: false,
        }
    }

    /// Sets that the document stands inside the parentheses of a call.
    pub(crate) fn inside_call(mut self, call: bool) -> Self {
        self.call = call;
        self
    }

    /// Sets the part of the raw text that the text was decoded from, and its depth.
    pub(crate) fn decoded_from(mut self, origin: Span, base_depth: usize) -> Self {
        self.origin = Some(origin);
        self.base_depth = base_depth;
        self
    }

    /// Reads the container that starts at `start`.
    pub(crate) fn read(
        &mut self,
        start: usize,
        shape: Shape,
        schema: Option<SchemaId>,
    ) -> Result<Read, NoRead> {
        self.at = start;
        self.stack.clear();
        self.broken = None;
        (self.named, self.dangling) = (false, false);
        let mut step = match shape {
            Shape::Bracketed => self.open(Str::EMPTY, schema)?,
            Shape::Members => self.enter(Kind::Object, Closer::End, Str::EMPTY, schema)?,
            Shape::Call => {
                self.at += 1;
                self.call = true;
                self.enter(Kind::Object, Closer::Parenthesis, Str::EMPTY, schema)?
            }
        };
        loop {
            if self.lookaheads > self.limits.lookaheads_max {
                return Err(NoRead::Limit("lookaheads_max"));
            }
            if let Some((at, fault)) = self.broken {
                return Err(NoRead::Broken(at, fault));
            }
            step = match step {
                Step::Value(key) => self.value(key),
                Step::Key => self.key(),
                Step::Behind => Ok(self.after_value()),
                Step::Done(read) => return self.done(read, shape),
            }
            .map_err(|stop| self.began(stop))?;
        }
    }

    /// Checks the result. A string with a quote inside it, or without quotes, is read only if nothing else was
    /// repaired: if it ends at a wrong place, a comma, a bracket or prose is missing or surplus there.
    fn done(&self, read: Read, shape: Shape) -> Result<Read, NoRead> {
        match self.inner_quote {
            Some(at) if read.complete && (self.restructured || shape == Shape::Members) => {
                Err(NoRead::Broken(at, Fault::Quotes))
            }
            None if read.complete && self.restructured && !self.is_one_thing(read.node) => {
                Err(NoRead::Broken(read.end, Fault::Unreadable))
            }
            None if read.complete && self.restructured && self.has_bare_text() => {
                Err(NoRead::Broken(read.end, Fault::Bare))
            }
            Some(_) | None => Ok(read),
        }
    }

    /// Reads the whole text as one value of any kind, for schemas whose root is not an object.
    pub(crate) fn read_scalar(&mut self) -> Result<Read, NoRead> {
        self.at = 0;
        self.stack.clear();
        self.broken = None;
        self.filler();
        let (node, complete) = match self.quote_here() {
            // A quote that is not closed was cut off.
            Some(quote) => self.whole_string(quote)?,
            None => (self.bare_value()?, true),
        };
        self.filler();
        if let Some((at, fault)) = self.broken {
            return Err(NoRead::Broken(at, fault));
        }
        match node {
            Some(_) if !self.at_end() => Err(NoRead::Implausible(self.at)),
            Some(node) => Ok(Read {
                node,
                end: self.at,
                complete,
                named: self.named,
                dangling: false,
            }),
            None => Err(NoRead::Implausible(self.at)),
        }
    }

    /// Adjusts the reason for a container that already has members: then it is not prose with a brace in it.
    fn began(&self, stop: NoRead) -> NoRead {
        let empty = self.stack.len() <= 1
            && self
                .stack
                .first()
                .is_none_or(|root| self.tree.node(root.node).count == 0);
        match stop {
            NoRead::Implausible(at) if !empty => NoRead::Broken(at, Fault::Unreadable),
            NoRead::Elided if empty => NoRead::Implausible(self.at + 1),
            stop => stop,
        }
    }

    /// True if a member of the root object starts here.
    pub(crate) fn starts_member(&mut self, at: usize) -> bool {
        let root = Some(self.schema.root);
        self.quoted_key_at(at)
            .is_some_and(|key| self.declares(root, key))
    }

    /// Reads the value that starts here.
    fn value(&mut self, key: Str) -> Result<Step, NoRead> {
        self.value_filler();
        let list = self.in_list();
        if list && self.quoted_key_at(self.at).is_some() {
            return self.list_ends_before_key();
        }
        match self.byte() {
            0 if self.at_end() => return Ok(self.ended()),
            byte @ (b'{' | b'[' | b'(') if byte != b'(' || self.is_tuple() => {
                let schema = self.child_schema(key);
                return self.open(key, schema);
            }
            b'}' | b']' if list => return Ok(self.close()),
            // `[1,,2]`: an item may be missing, or a comma too many.
            b',' if list => {
                self.breaks(self.at, Fault::Unreadable);
                self.stray_comma();
                return Ok(Step::Value(Str::EMPTY));
            }
            b')' if list && self.in_parentheses() => return Ok(self.close()),
            _ => {}
        }
        if self.is_ellipsis() {
            return Err(NoRead::Elided);
        }
        let start = self.at;
        let quote = self.quote_here();
        let node = match quote {
            Some(quote) => self.quoted_value(quote)?,
            None => self.bare_value()?,
        };
        let node = match node {
            Some(node) => node,
            // No value stands here: a list skips it, a member has no value.
            None if list => {
                self.at = self.at.max(start + 1);
                self.note(IssueCode::StrayText, start, self.at);
                return Ok(Step::Value(Str::EMPTY));
            }
            None => return Err(NoRead::Broken(start, Fault::Unreadable)),
        };
        self.check_number_form(node, key, start);
        self.attach(node, key)?;
        let bare = std::mem::take(&mut self.bare_text);
        if let Some(frame) = self.stack.last_mut() {
            frame.after_bare = bare;
            frame.keys.bare_text |= bare;
        }
        if list {
            self.check_style(start, quote);
        }
        Ok(Step::Behind)
    }

    /// Refuses `007` or `+49…` where a string is wanted as well as a number: JSON has no such number, so the digits
    /// may be the string.
    fn check_number_form(&mut self, node: NodeId, key: Str, start: usize) {
        let is_number = self.tree.kind(node) == Kind::Number;
        if !is_number || self.tree.spelt(node) == self.tree.text(node) {
            return;
        }
        let Some(id) = self.child_schema(key) else {
            return;
        };
        let takes = |types| self.schema.takes(id, types);
        let number = takes(Types::INTEGER) || takes(Types::NUMBER) || takes(Types::FRACTION);
        if number && takes(Types::TEXT) {
            self.breaks(start, Fault::Bare);
        }
    }

    /// True if the parenthesis here opens a tuple and not a remark in a bare string.
    fn is_tuple(&mut self) -> bool {
        let inside = self.skip_filler(self.at + 1);
        matches!(
            self.byte_at(inside),
            b'-' | b'0'..=b'9' | b'{' | b'[' | b'(' | b')'
        ) || Quote::at(self.rest(inside)).is_some()
    }

    /// Handles a key in place of an item: the list was not closed, or the object not opened.
    fn list_ends_before_key(&mut self) -> Result<Step, NoRead> {
        let key = self.quoted_key_at(self.at).unwrap_or_default();
        let parent = self
            .stack
            .len()
            .checked_sub(2)
            .and_then(|at| self.stack.get(at));
        let belongs = parent.is_some_and(|frame| {
            !frame.closer.is_list()
                && frame
                    .schema
                    .is_some_and(|id| self.declares_by_name(id, key))
        });
        if !belongs {
            return Err(NoRead::Broken(self.at, Fault::Unreadable));
        }
        self.restructure(IssueCode::CloserInserted, self.at, self.at);
        self.stack.pop();
        Ok(Step::Key)
    }

    /// Reads what follows a value: a comma, a closer, or a member or item without its comma.
    fn after_value(&mut self) -> Step {
        let list = self.in_list();
        self.filler();
        match self.byte() {
            0 if self.at_end() => return self.ended(),
            _ if self.punctuation(self.at).0 == b',' => {
                let (_, width) = self.punctuation(self.at);
                if width > 1 {
                    self.note(IssueCode::StrayText, self.at, self.at + width);
                }
                self.at += width;
                if let Some(frame) = self.stack.last_mut() {
                    frame.comma = true;
                }
            }
            b';' => {
                self.note(IssueCode::StrayText, self.at, self.at + 1);
                self.at += 1;
            }
            b'}' | b']' => return self.close(),
            b')' if self.in_parentheses() => return self.close(),
            _ => self.missing_comma(),
        }
        if list {
            Step::Value(Str::EMPTY)
        } else {
            Step::Key
        }
    }

    /// Opens a container at a bracket.
    fn open(&mut self, key: Str, schema: Option<SchemaId>) -> Result<Step, NoRead> {
        let (kind, closer) = match self.byte() {
            b'{' => (Kind::Object, Closer::Brace),
            b'(' => (Kind::Array, Closer::Tuple),
            _ => (Kind::Array, Closer::Bracket),
        };
        self.at += 1;
        self.enter(kind, closer, key, schema)
    }

    fn enter(
        &mut self,
        kind: Kind,
        closer: Closer,
        key: Str,
        schema: Option<SchemaId>,
    ) -> Result<Step, NoRead> {
        if self.base_depth + self.stack.len() >= self.limits.depth() {
            return Err(NoRead::Limit("depth_max"));
        }
        // Members without a brace start where they stand.
        let bracket = usize::from(closer != Closer::End);
        let start = self.at.saturating_sub(bracket);
        let node = self.push(kind, Str::EMPTY, start)?;
        if !self.stack.is_empty() {
            self.attach(node, key)?;
        }
        self.stack.push(Frame {
            node,
            last: NONE,
            closer,
            schema,
            comma: false,
            after_bare: false,
            keys: key::Styles::default(),
        });
        Ok(if closer.is_list() {
            Step::Value(Str::EMPTY)
        } else {
            Step::Key
        })
    }

    /// Handles a closing bracket: it ends the container it fits, and those inside it.
    fn close(&mut self) -> Step {
        let closer = match self.byte() {
            b'}' => Closer::Brace,
            b']' => Closer::Bracket,
            _ => Closer::Parenthesis,
        };
        let start = self.at;
        let ends = |frame: &Frame| match closer {
            Closer::Brace => matches!(frame.closer, Closer::Brace | Closer::End),
            Closer::Parenthesis => matches!(frame.closer, Closer::Parenthesis | Closer::Tuple),
            Closer::Bracket | Closer::Tuple | Closer::End => frame.closer == closer,
        };
        let found = self.stack.iter().rposition(ends);
        // A closer that would end the document although its members go on is surplus, or of the wrong kind:
        // then it ends the innermost container.
        let innermost = self.stack.len() - 1;
        let goes_on = found.is_none_or(|depth| depth == 0) && self.members_go_on(self.at + 1);
        let depth = match found {
            Some(depth) if !goes_on => depth,
            _ if innermost > 0 && goes_on => innermost,
            _ => {
                self.at += 1;
                self.restructure(IssueCode::ExtraCloser, start, self.at);
                return Step::Behind;
            }
        };
        if found != Some(depth) {
            self.restructure(IssueCode::CloserInserted, start, start);
        }
        if depth + 1 < self.stack.len() {
            self.restructure(IssueCode::CloserInserted, start, start);
        }
        self.at += 1;
        while self.stack.len() > depth {
            if self.stack.last().is_some_and(|frame| frame.comma) {
                self.note(IssueCode::TrailingComma, start, start);
            }
            let Some(frame) = self.stack.pop() else { break };
            self.check_placeholder(&frame, start);
            // An object that another bracket closes may lack more than its own bracket.
            if frame.closer == Closer::Brace && closer != Closer::Brace {
                self.breaks(start, Fault::Unreadable);
            }
            let end = self.span(start, self.at).end;
            self.tree.node_mut(frame.node).span.end = end;
            if self.stack.is_empty() {
                return Step::Done(Read {
                    node: frame.node,
                    end: self.at,
                    complete: true,
                    named: self.named,
                    dangling: false,
                });
            }
        }
        Step::Behind
    }

    /// Refuses `[your name]` where no list is wanted: it is a placeholder, not a list of one item.
    fn check_placeholder(&mut self, frame: &Frame, at: usize) {
        let lone = frame.closer.is_list() && frame.after_bare;
        let wanted = frame
            .schema
            .is_none_or(|id| self.schema.takes(id, Types::ARRAY));
        if lone && !wanted && self.tree.node(frame.node).count == 1 {
            self.breaks(at, Fault::Bare);
        }
    }

    /// Ends the read because the text ended inside something.
    fn ended(&self) -> Step {
        let node = self.stack.first().map_or(NONE, |root| root.node);
        Step::Done(Read {
            node,
            end: self.at,
            complete: false,
            named: self.named,
            dangling: self.dangling,
        })
    }

    /// True if members of the document follow its closer, which ends before this byte.
    pub(crate) fn members_go_on(&mut self, behind: usize) -> bool {
        let mut next = self.skip_filler(behind);
        let comma = self.byte_at(next) == b',';
        if comma {
            next = self.skip_filler(next + 1);
        }
        let root = self.stack.first();
        let schema = root.map_or(Some(self.schema.root), |frame| frame.schema);
        match self.quoted_key_at(next) {
            Some(key) => self.may_belong(schema, key),
            None => self.bare_key_at(next).is_some_and(|key| match schema {
                Some(id) => self.declares_by_name(id, key),
                None => comma,
            }),
        }
    }

    fn push(&mut self, kind: Kind, text: Str, start: usize) -> Result<NodeId, NoRead> {
        if self.tree.len() >= self.limits.nodes() {
            return Err(NoRead::Limit("nodes_max"));
        }
        let span = self.span(start, self.at);
        Ok(self.tree.push(kind, text, span))
    }

    fn attach(&mut self, node: NodeId, key: Str) -> Result<(), NoRead> {
        let Some(frame) = self.stack.last_mut() else {
            return Ok(());
        };
        if self.tree.bytes(key).first() == Some(&b'$') && is_reserved(self.tree.str(key)) {
            return Err(NoRead::Reserved);
        }
        self.tree.node_mut(node).key = key;
        let count = self.tree.append(frame.node, &mut frame.last, node);
        frame.comma = false;
        frame.after_bare = false;
        if !frame.closer.is_list() && count > self.limits.members_max {
            return Err(NoRead::Limit("members_max"));
        }
        Ok(())
    }

    /// Logs a missing comma. Behind a string without quotes it is a guess: what follows may be a part of the
    /// string.
    fn missing_comma(&mut self) {
        self.restructure(IssueCode::MissingComma, self.at, self.at);
        // `"a," "b"`: comma and quote are swapped. A comment may be the rest of a string, and contain the
        // comma.
        let before = self.slice(0, self.at).trim_end();
        let swapped = before.strip_suffix(['"', '\'']);
        if self.commented || swapped.is_some_and(|text| text.ends_with(',')) {
            self.breaks(self.at, Fault::Quotes);
        }
        if self.stack.last().is_some_and(|frame| frame.after_bare) {
            self.breaks(self.at, Fault::Bare);
        }
    }

    /// Logs a repair of the structure.
    fn restructure(&mut self, code: IssueCode, start: usize, end: usize) {
        self.restructured = true;
        self.note(code, start, end);
    }

    /// True if every member of a document is declared, or it is a call whose arguments are: if the structure
    /// was repaired, others may have lost their place.
    pub(crate) fn is_one_thing(&self, document: NodeId) -> bool {
        let declared = |node: NodeId| {
            let mut members = self.tree.children(node);
            members.all(|member| self.may_belong(Some(self.schema.root), self.tree.key(member)))
        };
        let part_of_call = |member: NodeId| {
            let name = self.tree.key(member);
            CALL_MEMBERS.has(name) || (WRAPPERS.has(name) && declared(member))
        };
        declared(document) || self.tree.children(document).all(part_of_call)
    }

    fn has_bare_text(&self) -> bool {
        !self.log.is_new(IssueCode::ValueUnquoted)
    }

    /// Records that the text is refused; the first reason counts.
    fn breaks(&mut self, at: usize, fault: Fault) {
        self.broken.get_or_insert((at, fault));
    }

    fn stray_comma(&mut self) {
        self.note(IssueCode::TrailingComma, self.at, self.at + 1);
        self.at += 1;
    }

    /// Returns a range in the raw text.
    fn span(&self, start: usize, end: usize) -> Span {
        self.origin.unwrap_or(Span::new(start, end))
    }

    fn note(&mut self, code: IssueCode, start: usize, end: usize) {
        let span = self.span(start, end);
        if self.log.is_new(code) {
            let path = self.path();
            self.log.first(code, span, path);
        } else {
            self.log.again(code, span);
        }
    }

    /// Returns the JSON pointer of the innermost open container.
    fn path(&self) -> String {
        let mut path = String::new();
        for pair in self.stack.windows(2) {
            let [parent, child] = pair else { continue };
            path.push('/');
            if parent.closer.is_list() {
                let index = self.tree.node(parent.node).count.saturating_sub(1);
                path.push_str(&index.to_string());
            } else {
                path.push_str(&crate::schema::escape(self.tree.key(child.node)));
            }
        }
        path
    }

    fn in_list(&self) -> bool {
        self.stack
            .last()
            .is_some_and(|frame| frame.closer.is_list())
    }

    fn has_open(&self, closer: Closer) -> bool {
        self.stack.iter().any(|frame| frame.closer == closer)
    }

    fn in_parentheses(&self) -> bool {
        self.has_open(Closer::Parenthesis) || self.has_open(Closer::Tuple)
    }

    fn in_brackets(&self) -> bool {
        self.has_open(Closer::Bracket)
    }

    fn byte(&self) -> u8 {
        self.byte_at(self.at)
    }

    /// Returns the punctuation at an offset and its width; full-width forms of Chinese text are read as their
    /// ASCII equivalents.
    fn punctuation(&self, at: usize) -> (u8, usize) {
        match self.rest(at) {
            [0xef, 0xbc, 0x9a, ..] => (b':', 3),
            [0xef, 0xbc, 0x8c, ..] => (b',', 3),
            _ => (self.byte_at(at), 1),
        }
    }

    /// Returns the byte at an offset; 0 behind the end.
    fn byte_at(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    fn at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn rest(&self, at: usize) -> &'s [u8] {
        self.bytes.get(at..).unwrap_or_default()
    }

    /// Returns a piece of the text; an empty one if the range does not fit it.
    fn slice(&self, start: usize, end: usize) -> &'s str {
        self.text.get(start..end).unwrap_or_default()
    }
}
