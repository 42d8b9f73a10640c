//! A call while it still arrives: a push parser that takes deltas and shows only what no later byte can change.
//!
//! It follows strict JSON. At the first byte that is not, it stops showing anything: what it has shown stays
//! true, and [`Stream::finish`] binds the whole text with every repair. A value is shown when the declaration
//! accepts it as it is; a plain text is shown as far as it has arrived.

use std::collections::HashSet;

use countersign_contract::{BindStatus, IssueCode};
use serde_json::Value;

use crate::binder::Binder;
use crate::bound::Bound;
use crate::escape;
use crate::reading::Reading;
use crate::render::quote;
use crate::report::Finding;
use crate::schema::{Schema, SchemaId, Types};
use crate::words::Say;

/// Maximum length of a path that is shown. Every event has its path, so a long name around many values would be
/// written once for each.
const PATH_BYTES_MAX: usize = 1024;

/// A part of the call that no later byte can change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// A member's name is complete.
    KeyReady {
        /// JSON pointer of the member.
        path: String,
    },
    /// A string has grown.
    TextAppended {
        /// JSON pointer of the string.
        path: String,
        /// The added part.
        text: String,
    },
    /// A value is complete and the declaration accepts it.
    ValueReady {
        /// JSON pointer of the value.
        path: String,
        /// JSON text of the value.
        json: String,
    },
    /// A container is closed.
    Closed {
        /// JSON pointer of the container.
        path: String,
    },
}

/// Reason why a model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The model was done.
    Complete,
    /// The model ran out of tokens: whatever the text looks like, a part of it is missing.
    Truncated,
}

/// The arguments of one call while they arrive.
///
/// # Example
///
/// ```
/// use countersign_args::{Binder, StopReason};
/// use countersign_contract::BindStatus;
/// use serde_json::json;
///
/// let schema = json!({
///     "type": "object",
///     "properties": { "city": { "type": "string" }, "days": { "type": "integer" } },
/// });
/// let mut stream = Binder::from_schema(&schema, Default::default())?.stream();
/// stream.push(r#"{"city": "Par"#);
/// assert_eq!(stream.snapshot(), Some(json!({ "city": "Par" })));
/// stream.push(r#"is", "days": 1"#);
/// // 1 may still become 10: it is not shown.
/// assert_eq!(stream.snapshot(), Some(json!({ "city": "Paris" })));
/// stream.push("0}");
/// assert_eq!(stream.snapshot(), Some(json!({ "city": "Paris", "days": 10 })));
/// assert_eq!(stream.finish(StopReason::Complete).status, BindStatus::Exact);
/// # Ok::<(), countersign_args::SchemaError>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    binder: Binder,
    reading: Reading,
    raw: String,
    /// Number of bytes of `raw` that have been read.
    at: usize,
    state: State,
    stack: Vec<Frame>,
    /// The string that is being read, as far as it is decoded.
    text: String,
    /// JSON that no later byte can change; its containers are still open.
    shown: String,
    /// Closers of the containers that are open in `shown`, innermost last.
    open: Vec<char>,
    /// A string that has ended but may still turn out to go on.
    pending: Option<Pending>,
    events: Vec<StreamEvent>,
}

/// A value that is complete in strict JSON. If what follows is not strict JSON, a string's closing quote may
/// have been an inner one, so a value is complete only when a key, an item or a closer follows.
#[derive(Debug)]
struct Pending {
    json: String,
    key: String,
    path: String,
    /// True if the declaration accepts the value as it is.
    certain: bool,
    /// True if it may already be shown as the start of a string.
    as_text: bool,
}

/// Grammar position of the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the document.
    Start,
    /// A value, or the end of an empty list.
    Value,
    /// A key, or the end of an empty object.
    KeyOrEnd,
    /// A key must follow, because a comma did.
    Key,
    Colon,
    /// Inside a key.
    KeyText,
    /// Inside a string.
    Text,
    /// Inside a number or a literal that began at this byte.
    Token(usize),
    /// A comma or the end of the container.
    AfterValue,
    /// The document is closed; only white space may follow.
    Done,
    /// The text is not strict JSON, or is beyond a limit: nothing more is shown.
    Silent,
}

/// A container that is still open.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; no two exclude a third"
)]
struct Frame {
    object: bool,
    schema: Option<SchemaId>,
    /// True if the container is in the shown JSON.
    opened: bool,
    /// True if more of it may be shown: a list stops at the first item that is not certain.
    shown: bool,
    /// True if all of it is shown.
    whole: bool,
    count: usize,
    /// True if a part of it is shown, so that the next one needs a comma.
    any_shown: bool,
    key: String,
    keys: HashSet<String>,
    path: String,
}

impl Binder {
    /// Starts reading a call that arrives in pieces.
    pub fn stream(&self) -> Stream {
        self.stream_with(Reading::default())
    }

    /// Starts reading a call whose author has a locale and a time zone.
    pub fn stream_with(&self, reading: Reading) -> Stream {
        Stream {
            binder: self.clone(),
            reading,
            raw: String::new(),
            at: 0,
            state: State::Start,
            stack: Vec::new(),
            text: String::new(),
            shown: String::new(),
            open: Vec::new(),
            pending: None,
            events: Vec::new(),
        }
    }
}

impl Stream {
    /// Adds the next piece. Returns the events that became certain with it.
    pub fn push(&mut self, delta: &str) -> Vec<StreamEvent> {
        let most = self.binder.limits().raw_bytes();
        let room = (most + 1).saturating_sub(self.raw.len());
        // One byte beyond the limit is kept, so that `finish()` refuses; the rest is not stored.
        let mut end = delta.len().min(room);
        while !delta.is_char_boundary(end) {
            end += 1;
        }
        self.raw.push_str(delta.get(..end).unwrap_or(delta));
        if self.raw.len() > most {
            self.state = State::Silent;
        }
        while self.at < self.raw.len() && self.state != State::Silent {
            if !self.step() {
                break;
            }
        }
        std::mem::take(&mut self.events)
    }

    /// Returns the part that no later byte can change; `None` before the document has started.
    pub fn snapshot(&self) -> Option<Value> {
        if self.shown.is_empty() {
            return None;
        }
        let mut json = self.shown.clone();
        if let Some(pending) = self.pending.as_ref().filter(|pending| pending.as_text) {
            self.lead_in(&pending.key, &mut json);
            json.push_str(&pending.json);
        } else if self.state == State::Text && self.shows_text() {
            if let Some(frame) = self.stack.last() {
                self.lead_in(&frame.key, &mut json);
            }
            quote(&self.text, &mut json);
        }
        json.extend(self.open.iter().rev());
        serde_json::from_str(&json).ok()
    }

    /// Returns the raw text so far, byte for byte.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Binds the whole text: the authoritative result. A text that was cut off is incomplete, whatever it looks
    /// like.
    pub fn finish(self, reason: StopReason) -> Bound {
        let mut bound = self.binder.bind_with(&self.raw, &self.reading);
        if reason == StopReason::Truncated && bound.status.is_executable() {
            bound.status = BindStatus::Incomplete;
            let finding = Finding {
                message: Some(Say::OutOfTokens),
                suggestion: Some(Say::RaiseTokens),
                ..Finding::new(IssueCode::Incomplete)
            };
            bound
                .issues
                .insert(0, finding.issue(self.reading.language()));
        }
        bound
    }

    /// Reads one token or a part of one. False if more bytes are needed.
    fn step(&mut self) -> bool {
        match self.state {
            State::Text | State::KeyText => return self.string(),
            State::Token(start) => return self.token(start),
            State::Silent => return false,
            State::Start
            | State::Value
            | State::KeyOrEnd
            | State::Key
            | State::Colon
            | State::AfterValue
            | State::Done => {}
        }
        let byte = self.raw.as_bytes().get(self.at).copied().unwrap_or(0);
        if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
            return true;
        }
        if self.state == State::Value {
            self.commit();
        }
        match (self.state, byte) {
            (State::Start | State::Value, b'{') => self.open(true),
            (State::Value, b'[') => self.open(false),
            (State::Value, b'"') => self.begin(State::Text),
            (State::Value, b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.state = State::Token(self.at);
            }
            (State::Value, b']') if self.is_empty_list() => self.close(),
            (State::KeyOrEnd | State::Key, b'"') => self.begin(State::KeyText),
            (State::KeyOrEnd, b'}') => self.close(),
            (State::Colon, b':') => {
                self.at += 1;
                self.commit();
                self.key_ready();
                self.state = State::Value;
            }
            (State::AfterValue, b',') => {
                self.at += 1;
                let object = self.stack.last().is_some_and(|frame| frame.object);
                self.state = if object { State::Key } else { State::Value };
            }
            (State::AfterValue, b'}' | b']') if self.closes(byte) => self.close(),
            _ => self.state = State::Silent,
        }
        true
    }

    fn begin(&mut self, state: State) {
        self.at += 1;
        self.text.clear();
        self.state = state;
    }

    /// Reads the inside of a string, up to its end or to the last certain byte.
    fn string(&mut self) -> bool {
        let added_from = self.text.len();
        loop {
            let rest = self.raw.as_bytes().get(self.at..).unwrap_or_default();
            let plain = rest
                .iter()
                .take_while(|b| !matches!(b, b'"' | b'\\' | 0..0x20))
                .count();
            self.text
                .push_str(self.raw.get(self.at..self.at + plain).unwrap_or_default());
            self.at += plain;
            match rest.get(plain) {
                Some(b'"') => {
                    self.at += 1;
                    self.appended(added_from);
                    self.string_ended();
                    return true;
                }
                Some(b'\\') => {
                    let escape = rest.get(plain..).unwrap_or_default();
                    match escape::decode(escape) {
                        Some((character, width)) => {
                            self.text.push(character);
                            self.at += width;
                        }
                        // A surrogate pair takes twelve bytes; with fewer, the rest may still come.
                        None if escape.len() < 12 => {
                            self.appended(added_from);
                            return false;
                        }
                        None => {
                            self.state = State::Silent;
                            return false;
                        }
                    }
                }
                Some(_) => {
                    self.state = State::Silent;
                    return false;
                }
                None => {
                    self.appended(added_from);
                    return false;
                }
            }
        }
    }

    fn appended(&mut self, from: usize) {
        let added = self.text.get(from..).unwrap_or_default();
        if self.state == State::Text && !added.is_empty() && self.shows_text() {
            let (path, text) = (self.value_path(), added.to_owned());
            self.events.push(StreamEvent::TextAppended { path, text });
        }
    }

    fn string_ended(&mut self) {
        if self.state == State::KeyText {
            let key = std::mem::take(&mut self.text);
            match self.stack.last_mut() {
                // A name that occurs twice has no certain value.
                Some(frame) if frame.keys.contains(&key) => self.state = State::Silent,
                Some(frame) => {
                    frame.key.clone_from(&key);
                    frame.keys.insert(key);
                    self.state = State::Colon;
                }
                None => self.state = State::Silent,
            }
            return;
        }
        let mut json = String::new();
        quote(&self.text, &mut json);
        let as_text = self.shows_text();
        let mut pending = self.ready(json);
        pending.as_text = as_text;
        self.pending = Some(pending);
        self.text.clear();
        self.state = State::AfterValue;
    }

    /// Reads a number or a literal: it is certain only when something else follows it.
    fn token(&mut self, start: usize) -> bool {
        let rest = self.raw.get(self.at..).unwrap_or_default();
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
        let length = rest.bytes().take_while(is_part).count();
        self.at += length;
        if self.at >= self.raw.len() {
            return false;
        }
        let token = self.raw.get(start..self.at).unwrap_or_default().to_owned();
        let known = matches!(token.as_str(), "true" | "false" | "null")
            || serde_json::from_str::<serde_json::Number>(&token).is_ok();
        if known {
            self.value_ended(&token);
        } else {
            self.state = State::Silent;
        }
        true
    }

    /// Ends a number or a literal.
    fn value_ended(&mut self, json: &str) {
        self.pending = Some(self.ready(json.to_owned()));
        self.commit();
        self.state = State::AfterValue;
    }

    fn ready(&self, json: String) -> Pending {
        let certain = self.shows_value()
            && self
                .value_schema()
                .is_none_or(|id| self.binder.accepts_json(&json, id));
        let key = self
            .stack
            .last()
            .map_or_else(String::new, |frame| frame.key.clone());
        Pending {
            json,
            key,
            path: self.value_path(),
            certain,
            as_text: false,
        }
    }

    /// Shows the value that has become certain.
    fn commit(&mut self) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        if pending.certain {
            let mut shown = std::mem::take(&mut self.shown);
            self.lead_in(&pending.key, &mut shown);
            shown.push_str(&pending.json);
            self.shown = shown;
            let Pending { path, json, .. } = pending;
            self.events.push(StreamEvent::ValueReady { path, json });
        }
        self.counted(pending.certain, pending.certain);
    }

    /// Counts one more value of the innermost container, shown or not, and complete or not.
    fn counted(&mut self, shown: bool, whole: bool) {
        let Some(frame) = self.stack.last_mut() else {
            return;
        };
        frame.count += 1;
        frame.any_shown |= shown;
        frame.whole &= whole;
        if !whole && !frame.object {
            frame.shown = false;
        }
    }

    fn open(&mut self, object: bool) {
        if self.stack.len() >= self.binder.limits().depth() {
            self.state = State::Silent;
            return;
        }
        let root = self.stack.is_empty();
        let schema = if root {
            Some(self.binder.schema().root)
        } else {
            self.value_schema()
        };
        let kind = if object { Types::OBJECT } else { Types::ARRAY };
        let fits = schema.is_none_or(|id| {
            let rules = self.binder.schema().rules(id);
            rules.types.has(kind) && !rules.is_composed() && rules.allowed.is_none()
        });
        let shown = fits && (root || self.shows_value()) && !self.may_vanish();
        let path = self.value_path();
        if shown {
            let mut json = std::mem::take(&mut self.shown);
            if let Some(frame) = self.stack.last() {
                self.lead_in(&frame.key, &mut json);
            }
            json.push(if object { '{' } else { '[' });
            self.shown = json;
            self.open.push(if object { '}' } else { ']' });
        }
        self.stack.push(Frame {
            object,
            schema: schema.filter(|_| fits),
            opened: shown,
            shown,
            whole: shown,
            count: 0,
            any_shown: false,
            key: String::new(),
            keys: HashSet::new(),
            path,
        });
        self.at += 1;
        self.state = if object {
            State::KeyOrEnd
        } else {
            State::Value
        };
    }

    fn close(&mut self) {
        self.at += 1;
        self.commit();
        let Some(frame) = self.stack.pop() else {
            return;
        };
        if frame.opened {
            self.shown.extend(self.open.pop());
        }
        if frame.whole {
            self.events.push(StreamEvent::Closed { path: frame.path });
        }
        self.counted(frame.opened, frame.whole);
        self.state = if self.stack.is_empty() {
            State::Done
        } else {
            State::AfterValue
        };
    }

    fn key_ready(&mut self) {
        if self.shows_value() {
            let path = self.value_path();
            self.events.push(StreamEvent::KeyReady { path });
        }
    }

    fn is_empty_list(&self) -> bool {
        self.stack
            .last()
            .is_some_and(|frame| !frame.object && frame.count == 0)
    }

    fn closes(&self, byte: u8) -> bool {
        self.stack
            .last()
            .is_some_and(|frame| (byte == b'}') == frame.object)
    }

    /// True if the value that is being read may be shown: its container is shown, its name is declared exactly
    /// or the container accepts any name, and its path is not too long.
    fn shows_value(&self) -> bool {
        let Some(frame) = self.stack.last() else {
            return false;
        };
        frame.shown
            && frame.path.len() + frame.key.len() <= PATH_BYTES_MAX
            && (!frame.object || self.binder.schema().takes_name(frame.schema, &frame.key))
    }

    /// True if a string may be shown before it is complete: strings are allowed, and no other rule applies.
    fn shows_text(&self) -> bool {
        self.shows_value()
            && self.value_schema().is_none_or(|id| {
                let rules = self.binder.schema().rules(id);
                rules.types.has(Types::TEXT)
                    && rules.allowed.is_none()
                    && rules.text.is_none()
                    && !rules.is_composed()
            })
    }

    /// True if the value counts as absent in case a later byte of it cannot be read.
    fn may_vanish(&self) -> bool {
        let frame = self.stack.last().filter(|frame| frame.object);
        let Some((frame, id)) = frame.and_then(|frame| Some((frame, frame.schema?))) else {
            return false;
        };
        let object = self.binder.schema().rules(id).object.as_ref();
        let property = object.and_then(|object| object.property(&frame.key));
        property.is_some_and(|property| property.tells(*self.binder.policy()))
    }

    fn value_schema(&self) -> Option<SchemaId> {
        let frame = self.stack.last()?;
        let rules = self.binder.schema().rules(frame.schema?);
        if frame.object {
            rules
                .object
                .as_ref()
                .and_then(|object| object.member_schema(&frame.key))
        } else {
            rules.list.as_ref().and_then(|list| list.item(frame.count))
        }
    }

    fn value_path(&self) -> String {
        match self.stack.last() {
            None => String::new(),
            Some(frame) if frame.object => {
                format!("{}/{}", frame.path, crate::schema::escape(&frame.key))
            }
            Some(frame) => format!("{}/{}", frame.path, frame.count),
        }
    }

    /// Writes what precedes the next shown value: a comma, and the key of a member.
    fn lead_in(&self, key: &str, json: &mut String) {
        let Some(frame) = self.stack.last() else {
            return;
        };
        if frame.any_shown {
            json.push(',');
        }
        if frame.object {
            quote(key, json);
            json.push(':');
        }
    }
}

impl Schema {
    /// True if an object accepts a member of exactly this name, neither renamed nor refused.
    fn takes_name(&self, id: Option<SchemaId>, name: &str) -> bool {
        let Some(object) = id.and_then(|id| self.rules(id).object.as_ref()) else {
            return true;
        };
        object.property(name).is_some()
            || (object.properties.is_empty() && object.member_schema(name).is_some())
            || (object.properties.is_empty()
                && object.additional == crate::schema::Additional::Welcome)
    }
}
