//! Keys: quoted, bare, or only looked ahead for; and their declarations in the schema.

use countersign_contract::IssueCode;

use super::quote::Quote;
use super::{Closer, NoRead, Reader, Step};
use crate::fault::Fault;
use crate::names::Names;
use crate::schema::{Additional, SchemaId};
use crate::tree::Str;

/// Maximum length of a bare key; anything longer is prose.
const BARE_KEY_MAX: usize = 128;

/// Names under which models wrap the arguments, or the whole call, once more.
pub(crate) const WRAPPERS: Names = Names::new(&[
    "arguments",
    "args",
    "parameters",
    "params",
    "input",
    "inputs",
    "kwargs",
    "tool_input",
    "toolInput",
    "tool_args",
    "action_input",
    "function_args",
    "function",
    "function_call",
    "functionCall",
    "function_calls",
    "functionCalls",
    "tool_call",
    "toolCall",
    "tool_calls",
    "toolCalls",
    "tool_use",
    "toolUse",
    "properties",
    "call",
]);

/// Wrappers whose content may be a list of calls.
pub(crate) const LISTS_OF_CALLS: Names =
    Names::new(&["function_calls", "functionCalls", "tool_calls", "toolCalls"]);

/// Members that may stand beside wrapped arguments: the rest of a provider's call object.
pub(crate) const CALL_MEMBERS: Names = Names::new(&[
    "name",
    "type",
    "id",
    "function",
    "function_name",
    "functionName",
    "tool",
    "tool_name",
    "toolName",
    "tool_call_id",
    "toolCallId",
    "tool_use_id",
    "toolUseId",
    "call_id",
    "callId",
    "index",
    "recipient_name",
    "role",
    "content",
    "action",
    "method",
    "jsonrpc",
    "status",
    "object",
    "call",
]);

impl<'s> Reader<'_, '_, 's> {
    /// Reads a key, or the end of the object.
    pub(super) fn key(&mut self) -> Result<Step, NoRead> {
        self.filler();
        let call = self
            .stack
            .last()
            .is_some_and(|frame| frame.closer == Closer::Parenthesis);
        match self.byte() {
            0 if self.at_end() => return Ok(self.ended()),
            b'}' | b']' => return Ok(self.close()),
            b')' if call || self.in_parentheses() => return Ok(self.close()),
            b',' => {
                self.stray_comma();
                return Ok(Step::Key);
            }
            _ => {}
        }
        if self.is_ellipsis() {
            return Err(NoRead::Elided);
        }
        let start = self.at;
        let quote = self.quote_here();
        self.check_style(start, quote);
        let key = match quote {
            Some(quote) => match self.quoted_key(quote) {
                Some(key) => key,
                None => return Ok(self.ended()),
            },
            None => match self.bare_key(call) {
                Some(key) => key,
                None if self.at_end() && !self.is_first_member() => return Ok(self.ended()),
                None => return Err(NoRead::Implausible(self.at.max(start + 1))),
            },
        };
        self.named = true;
        self.filler();
        let (separator, width) = self.punctuation(self.at);
        match separator {
            b'=' if self.byte_at(self.at + 1) == b'>' => self.at += 2,
            b':' | b'=' => self.at += width,
            0 if self.at_end() => {
                self.dangling = quote.is_some();
                return Ok(self.ended());
            }
            _ => self.restructure(IssueCode::StrayText, self.at, self.at),
        }
        Ok(Step::Value(key))
    }

    /// Checks that the keys of an object, or the items of a list, next to a string without quotes are all
    /// written alike: otherwise one may be a part of that string.
    pub(super) fn check_style(&mut self, at: usize, quote: Option<Quote>) {
        let Some(frame) = self.stack.last_mut() else {
            return;
        };
        let first = self.tree.node(frame.node).count == 0;
        let uncertain = !frame.closer.is_list() && !frame.comma && !first;
        let other = frame.keys.quote.is_some_and(|last| Some(last) != quote);
        frame.keys.quoted |= quote.is_some();
        frame.keys.unquoted |= quote.is_none();
        frame.keys.quote = quote;
        let Styles {
            quoted, unquoted, ..
        } = frame.keys;
        if quoted && unquoted && frame.keys.bare_text {
            self.breaks(at, Fault::Bare);
        }
        // Without a comma before it, a key in other quotes may be a part of the value.
        if uncertain && other {
            self.breaks(at, Fault::Quotes);
        }
    }

    fn is_first_member(&self) -> bool {
        self.stack.len() == 1
            && self
                .stack
                .first()
                .is_some_and(|frame| self.tree.node(frame.node).count == 0)
    }

    /// Reads a key without quotes.
    fn bare_key(&mut self, call: bool) -> Option<Str> {
        let start = self.at;
        let mut end = start;
        loop {
            match self.punctuation(end).0 {
                b':' => break,
                b'=' if call || self.byte_at(end + 1) == b'>' => break,
                0 if end >= self.bytes.len() => {
                    self.at = end;
                    return None;
                }
                b'{' | b'}' | b'[' | b']' | b',' | b'\n' | b'(' | b')' => {
                    self.at = end;
                    return None;
                }
                _ if end - start >= BARE_KEY_MAX => {
                    self.at = end;
                    return None;
                }
                _ => end += 1,
            }
        }
        let key = self.slice(start, end).trim();
        self.at = end;
        if key.is_empty() {
            return None;
        }
        // A quote has lost its partner here, or something else is misplaced.
        let odd = ['"', '\'', '`', '\\', '“', '”', '<', '>', ' ', '\t'];
        if key.contains(odd) || key.starts_with(['-', '.', '/', '*', '#']) {
            self.breaks(start, Fault::Quotes);
        }
        if !call {
            self.note(IssueCode::KeyUnquoted, start, end);
        }
        Some(self.tree.intern(key))
    }

    /// Returns the key of a member that starts here, if a quoted key and its colon stand here.
    pub(super) fn quoted_key_at(&mut self, at: usize) -> Option<&'s str> {
        let quote = Quote::at(self.rest(at))?;
        let start = at + quote.width;
        let window = self.limits.lookahead_bytes_max;
        let mut end = start;
        while end - start < window {
            let byte = self.byte_at(end);
            if quote.stops_at(byte)
                && let Some(closing) = quote.closing_at(self.rest(end))
            {
                let colon = self.skip_filler(end + closing);
                let is_key = self.punctuation(colon).0 == b':' || self.is_arrow(colon);
                return (is_key && end > start).then(|| self.slice(start, end));
            }
            match byte {
                b'\n' | b'{' | b'}' => return None,
                0 if end >= self.bytes.len() => return None,
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        None
    }

    fn is_arrow(&self, at: usize) -> bool {
        self.rest(at).starts_with(b"=>")
    }

    /// Returns the key of a member that starts here without quotes: a word and a colon.
    pub(super) fn bare_key_at(&mut self, at: usize) -> Option<&'s str> {
        let rest = self.rest(at);
        let window = self.limits.lookahead_bytes_max.min(rest.len());
        let is_word = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$') || *byte >= 0x80
        };
        let length = rest
            .get(..window)?
            .iter()
            .take_while(|byte| is_word(byte))
            .count();
        if length == 0 {
            return None;
        }
        let word = self.slice(at, at + length);
        let separator = self.skip_filler(at + length);
        let call = self
            .stack
            .last()
            .is_some_and(|frame| frame.closer == Closer::Parenthesis);
        match self.punctuation(separator).0 {
            b':' => Some(word),
            b'=' if call && self.byte_at(separator + 1) != b'=' => Some(word),
            _ => None,
        }
    }

    /// True if a member starts here. Behind a comma any key counts, even a misspelt one, which is then refused
    /// by its name; without a comma it must be declared.
    pub(super) fn member_follows(&mut self, at: usize, comma: bool) -> bool {
        let schema = self.stack.last().and_then(|frame| frame.schema);
        match self.quoted_key_at(at).or_else(|| self.bare_key_at(at)) {
            Some(key) => comma || self.declares(schema, key),
            None => comma && self.key_breaks_off(at),
        }
    }

    /// True if a quoted key starts here and the text ends inside it, or right behind it.
    fn key_breaks_off(&mut self, at: usize) -> bool {
        let Some(quote) = Quote::at(self.rest(at)) else {
            return false;
        };
        let start = at + quote.width;
        if self.bytes.len().saturating_sub(start) > self.limits.lookahead_bytes_max {
            return false;
        }
        let closing = (start..self.bytes.len())
            .find_map(|end| quote.closing_at(self.rest(end)).map(|width| end + width));
        closing.is_none_or(|behind| self.skip_filler(behind) >= self.bytes.len())
    }

    /// True if the object that is being read declares this name. An object that declares nothing may have any.
    pub(super) fn declares(&self, schema: Option<SchemaId>, key: &str) -> bool {
        schema.is_none_or(|id| match self.declared(id, key) {
            Declared::Yes | Declared::Open => true,
            Declared::No => false,
        })
    }

    /// True if a name without a place may belong to an object: the object declares the name, or declares
    /// nothing.
    pub(super) fn may_belong(&self, schema: Option<SchemaId>, key: &str) -> bool {
        schema.is_none_or(|id| {
            self.declares_by_name(id, key) || self.schema.rules(id).object.is_none()
        })
    }

    /// True if a schema has a property of this name, in any spelling.
    pub(super) fn declares_by_name(&self, id: SchemaId, key: &str) -> bool {
        matches!(self.declared(id, key), Declared::Yes)
    }

    fn declared(&self, id: SchemaId, key: &str) -> Declared {
        let rules = self.schema.rules(id);
        let mut answer = Declared::Open;
        if let Some(object) = &rules.object {
            if object.knows(key) || object.respelt(key).is_some() {
                return Declared::Yes;
            }
            match object.additional {
                Additional::Unexpected | Additional::Refused | Additional::Unevaluated => {
                    answer = Declared::No;
                }
                Additional::Welcome | Additional::Elsewhere | Additional::Typed(_) => {}
            }
        }
        let parts = rules.parts();
        for part in parts {
            match self.declared(*part, key) {
                Declared::Yes => return Declared::Yes,
                Declared::No => answer = Declared::No,
                Declared::Open => {}
            }
        }
        answer
    }

    /// Returns the schema of the value under a key, or of the next item.
    pub(super) fn child_schema(&self, key: Str) -> Option<SchemaId> {
        let frame = self.stack.last()?;
        let id = frame.schema?;
        if frame.closer.is_list() {
            let index = self.tree.node(frame.node).count as usize;
            return match self.item_schema(id, index) {
                // The only object in a list at the root.
                None if self.stack.len() == 1 => Some(id),
                item => item,
            };
        }
        let key = self.tree.str(key);
        match self.member_schema(id, key) {
            None if self.stack.len() <= 2 && WRAPPERS.has(key) => Some(self.schema.root),
            child => child,
        }
    }

    /// Returns the schema of a member of the root object, in any spelling of its name.
    pub(crate) fn member_of_root(&self, key: &str) -> Option<SchemaId> {
        self.member_schema(self.schema.root, key)
    }

    fn member_schema(&self, id: SchemaId, key: &str) -> Option<SchemaId> {
        let rules = self.schema.rules(id);
        if let Some(object) = &rules.object {
            if let Some(schema) = object.member_schema(key) {
                return Some(schema);
            }
            if let Some((property, _)) = object.respelt(key) {
                return Some(property.schema);
            }
        }
        let mut parts = rules.parts();
        parts.find_map(|part| self.member_schema(*part, key))
    }

    fn item_schema(&self, id: SchemaId, index: usize) -> Option<SchemaId> {
        let rules = self.schema.rules(id);
        if let Some(item) = rules.list.as_ref().and_then(|list| list.item(index)) {
            return Some(item);
        }
        let mut parts = rules.parts();
        parts.find_map(|part| self.item_schema(*part, index))
    }
}

/// Spellings of the members of one object so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Styles {
    pub(super) quoted: bool,
    pub(super) unquoted: bool,
    /// Quote of the last key.
    quote: Option<Quote>,
    /// True if a member is a string without quotes.
    pub(super) bare_text: bool,
}

/// Declaration of a name by a schema.
enum Declared {
    Yes,
    No,
    /// Nothing is declared there.
    Open,
}
