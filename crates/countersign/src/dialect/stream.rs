//! Calls joined from the deltas of a streamed message.

use serde_json::Value;

use super::call::{self, Provenance, ProviderCall, RawText};
use super::error::DecodeError;
use super::raw::Node;
use super::written::{self, TextFormat, TextStream};
use super::{CALLS_MAX, Dialect, MESSAGE_BYTES_MAX};

/// Takes the events of one streamed message and gives its calls.
///
/// Memory is bounded by the largest message. After an error the stream is of no use any more.
///
/// # Example
///
/// ```
/// use countersign::dialect::Dialect;
///
/// let mut stream = Dialect::Anthropic.stream();
/// for event in [
///     r#"{"type": "content_block_start", "index": 0, "content_block":
///         {"type": "tool_use", "id": "toolu_1", "name": "memory_search", "input": {}}}"#,
///     r#"{"type": "content_block_delta", "index": 0, "delta":
///         {"type": "input_json_delta", "partial_json": "{\"query\": \"te"}}"#,
///     r#"{"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}"#,
/// ] {
///     stream.push(event)?;
/// }
/// let end = stream.finish()?;
/// assert!(end.truncated && end.calls[0].truncated);
/// # Ok::<(), countersign::dialect::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CallStream {
    dialect: Dialect,
    joiner: Joiner,
    /// For [`Dialect::Text`], whose calls are found in the text.
    written: TextStream,
}

/// Something that one event brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// A call begins; its name is known.
    CallStarted {
        /// Its place among the calls of the message.
        index: usize,
        /// The provider's id, if it gives one.
        id: Option<String>,
        /// The tool, by its alias.
        name: String,
    },
    /// More of a call's arguments.
    ArgumentsDelta {
        /// The call.
        index: usize,
        /// The next piece of the text.
        text: String,
    },
    /// Nothing more follows for a call.
    CallFinished {
        /// The call.
        index: usize,
    },
}

/// A streamed message at its end.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEnd {
    /// The calls, in the order in which they began.
    pub calls: Vec<ProviderCall>,
    /// The provider's stop reason, in its own word.
    pub stop_reason: Option<String>,
    /// True if the message was cut off: by a limit, or because the stream ended without an end.
    pub truncated: bool,
}

impl CallStream {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            joiner: Joiner::default(),
            written: TextStream::default(),
        }
    }

    /// Takes the data of one event: its JSON, or `[DONE]`.
    pub fn push(&mut self, event: &str) -> Result<Vec<StreamEvent>, DecodeError> {
        if event.trim() == "[DONE]" {
            self.joiner.close_all();
            self.joiner.ended = true;
        } else {
            self.dialect
                .wire()
                .push(&Node::parse(event)?, &mut self.joiner)?;
        }
        if self.dialect == Dialect::Text {
            self.written.set_format(self.joiner.format);
            return Ok(self.written.advance(&self.joiner.text));
        }
        Ok(std::mem::take(&mut self.joiner.events))
    }

    /// The calls. A call without a name cannot be looked up and is an error.
    pub fn finish(self) -> Result<StreamEnd, DecodeError> {
        match self.dialect {
            Dialect::Text => self.joiner.finish_text(),
            _ => self.joiner.finish(),
        }
    }
}

/// Joins pieces of calls; the dialect decides which call a piece belongs to.
#[derive(Debug, Clone, Default)]
pub(super) struct Joiner {
    slots: Vec<Slot>,
    events: Vec<StreamEvent>,
    bytes: usize,
    stop_reason: Option<String>,
    ended: bool,
    /// The text of a message whose calls are written in it.
    text: String,
    /// The format of that text, if an event names it.
    pub(super) format: Option<TextFormat>,
}

/// The dialect's name for the call that an event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) place: Option<u64>,
    pub(super) item: Option<String>,
}

#[derive(Debug, Clone)]
struct Slot {
    key: Key,
    /// The call; `None` for an item that is not a call of ours but takes deltas too.
    call: Option<ProviderCall>,
    started: bool,
    finished: bool,
    /// The arguments if no delta brings any.
    fallback: Option<RawText>,
}

impl Joiner {
    /// The latest slot of that key, by item first.
    pub(super) fn find(&self, key: &Key) -> Option<usize> {
        let fits = |slot: &Slot| match (&key.item, &slot.key.item) {
            (Some(wanted), Some(item)) => wanted == item,
            _ => key.place.is_some() && key.place == slot.key.place,
        };
        self.slots.iter().rposition(fits)
    }

    /// The slot of a call by its id.
    pub(super) fn find_id(&self, id: &str) -> Option<usize> {
        let fits = |slot: &Slot| {
            slot.call
                .as_ref()
                .is_some_and(|call| call.id.as_deref() == Some(id))
        };
        self.slots.iter().rposition(fits)
    }

    /// The slot that was opened last.
    pub(super) fn last(&self) -> Option<usize> {
        self.slots.len().checked_sub(1)
    }

    pub(super) fn key(&self, slot: usize) -> Option<&Key> {
        self.slots.get(slot).map(|slot| &slot.key)
    }

    pub(super) fn call(&self, slot: usize) -> Option<&ProviderCall> {
        self.slots.get(slot).and_then(|slot| slot.call.as_ref())
    }

    /// Opens an item that takes deltas and is not a call of ours.
    pub(super) fn skip(&mut self, key: Key) -> Result<(), DecodeError> {
        self.add(key, None).map(drop)
    }

    /// Opens a call; it starts as soon as its name is known.
    pub(super) fn open(
        &mut self,
        key: Key,
        id: Option<String>,
        name: Option<String>,
        opaque: Value,
    ) -> Result<usize, DecodeError> {
        let text = RawText {
            text: String::new(),
            provenance: Provenance::AsSent,
        };
        let mut call = ProviderCall::new(id, name.unwrap_or_default(), text).with_opaque(opaque);
        call.index = self.slots.iter().filter(|slot| slot.call.is_some()).count();
        let slot = self.add(key, Some(call))?;
        self.start(slot);
        Ok(slot)
    }

    /// Sets the name of a call, or checks it against the known one.
    pub(super) fn name(&mut self, slot: usize, name: &Node<'_>) -> Result<(), DecodeError> {
        let text = name.string()?;
        let Some(call) = self.slots.get_mut(slot).and_then(|slot| slot.call.as_mut()) else {
            return Ok(());
        };
        if call.name.is_empty() {
            call.name = text;
            self.start(slot);
        } else if !text.is_empty() && call.name != text {
            return Err(contradiction(name, "the call has another name already"));
        }
        Ok(())
    }

    /// Sets the arguments that are used if no delta brings any.
    pub(super) fn fallback(&mut self, slot: usize, arguments: RawText) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.fallback = Some(arguments);
        }
    }

    /// Adds to the arguments.
    pub(super) fn append(&mut self, slot: usize, delta: &Node<'_>) -> Result<(), DecodeError> {
        let text = delta.arguments()?.text;
        self.append_text(slot, delta, &text)
    }

    pub(super) fn append_text(
        &mut self,
        slot: usize,
        delta: &Node<'_>,
        text: &str,
    ) -> Result<(), DecodeError> {
        let Some(slot) = self.slots.get_mut(slot) else {
            return Ok(());
        };
        let Some(call) = &mut slot.call else {
            return Ok(());
        };
        if text.is_empty() {
            return Ok(());
        }
        if slot.finished {
            return Err(contradiction(delta, "the call was finished already"));
        }
        self.bytes += text.len();
        if self.bytes > MESSAGE_BYTES_MAX {
            return Err(DecodeError::TooLarge { bytes: self.bytes });
        }
        call.arguments.text.push_str(text);
        if slot.started {
            self.events.push(StreamEvent::ArgumentsDelta {
                index: call.index,
                text: text.to_owned(),
            });
        }
        Ok(())
    }

    /// Sets the whole arguments if no delta brought any; otherwise they must agree.
    pub(super) fn settle(&mut self, slot: usize, whole: &Node<'_>) -> Result<(), DecodeError> {
        let text = whole.arguments()?.text;
        match self.call(slot) {
            None => Ok(()),
            Some(call) if call.arguments.text == text => Ok(()),
            Some(call) if call.arguments.text.is_empty() => self.append_text(slot, whole, &text),
            Some(_) => Err(contradiction(
                whole,
                "the whole arguments differ from their deltas",
            )),
        }
    }

    /// Ends a call: nothing more follows for it.
    pub(super) fn close(&mut self, slot: usize) {
        let Some(slot) = self.slots.get_mut(slot) else {
            return;
        };
        if slot.finished {
            return;
        }
        slot.finished = true;
        let Some(call) = &mut slot.call else { return };
        if call.arguments.text.is_empty()
            && let Some(fallback) = slot.fallback.take()
        {
            call.arguments = fallback;
            self.events.push(StreamEvent::ArgumentsDelta {
                index: call.index,
                text: call.arguments.text.clone(),
            });
        }
        self.events
            .push(StreamEvent::CallFinished { index: call.index });
    }

    /// Ends all calls: the message is whole.
    pub(super) fn close_all(&mut self) {
        for slot in 0..self.slots.len() {
            self.close(slot);
        }
    }

    /// Takes a call that came in one piece.
    pub(super) fn whole(&mut self, call: ProviderCall) -> Result<(), DecodeError> {
        let slot = self.open(Key::default(), call.id, Some(call.name), call.opaque)?;
        self.bytes += call.arguments.text.len();
        if self.bytes > MESSAGE_BYTES_MAX {
            return Err(DecodeError::TooLarge { bytes: self.bytes });
        }
        self.fallback(slot, call.arguments);
        self.close(slot);
        Ok(())
    }

    /// Sets the provider's stop reason.
    pub(super) fn stop(&mut self, reason: impl Into<String>) {
        self.stop_reason = Some(reason.into());
        self.ended = true;
    }

    fn add(&mut self, key: Key, call: Option<ProviderCall>) -> Result<usize, DecodeError> {
        if self.slots.len() == CALLS_MAX {
            return Err(DecodeError::TooManyCalls);
        }
        self.slots.push(Slot {
            key,
            call,
            started: false,
            finished: false,
            fallback: None,
        });
        Ok(self.slots.len() - 1)
    }

    fn start(&mut self, slot: usize) {
        let Some(slot) = self.slots.get_mut(slot) else {
            return;
        };
        let Some(call) = &slot.call else { return };
        if slot.started || call.name.is_empty() {
            return;
        }
        slot.started = true;
        self.events.push(StreamEvent::CallStarted {
            index: call.index,
            id: call.id.clone(),
            name: call.name.clone(),
        });
        if !call.arguments.text.is_empty() {
            self.events.push(StreamEvent::ArgumentsDelta {
                index: call.index,
                text: call.arguments.text.clone(),
            });
        }
    }

    /// Adds to the text.
    pub(super) fn write(&mut self, text: &str) -> Result<(), DecodeError> {
        let bytes = self.text.len() + text.len();
        if bytes > MESSAGE_BYTES_MAX {
            return Err(DecodeError::TooLarge { bytes });
        }
        self.text.push_str(text);
        Ok(())
    }

    fn finish_text(self) -> Result<StreamEnd, DecodeError> {
        let cut = self.stop_reason.as_deref().is_some_and(call::is_cut);
        let mut written = written::read_stopped(&self.text, self.format, cut)?;
        call::mark_cut(&mut written.calls, self.stop_reason.as_deref());
        written::identify(&mut written.calls, &self.text);
        Ok(StreamEnd {
            calls: written.calls,
            stop_reason: self.stop_reason,
            truncated: cut || written.truncated || !self.ended,
        })
    }

    fn finish(self) -> Result<StreamEnd, DecodeError> {
        let cut = self.stop_reason.as_deref().is_some_and(call::is_cut);
        let mut calls = Vec::new();
        for slot in self.slots {
            let Some(mut call) = slot.call else { continue };
            if call.name.is_empty() {
                return Err(DecodeError::Missing {
                    path: format!("/{}/name", call.index),
                });
            }
            call.truncated = !slot.finished;
            calls.push(call);
        }
        call::mark_cut(&mut calls, self.stop_reason.as_deref());
        let unfinished = calls.iter().any(|call| call.truncated);
        Ok(StreamEnd {
            calls,
            stop_reason: self.stop_reason,
            truncated: cut || unfinished || !self.ended,
        })
    }
}

pub(super) fn contradiction(node: &Node<'_>, what: &'static str) -> DecodeError {
    DecodeError::Contradiction {
        path: node.path().to_owned(),
        what,
    }
}

/// The error that a provider sends in the middle of a stream, or instead of an answer.
pub(super) fn provider_error(node: &Node<'_>) -> DecodeError {
    let read = || -> Result<(Option<String>, Option<String>), DecodeError> {
        let members = node.object()?;
        // A text names the failure; a number only repeats the HTTP status.
        let named = |name: &str| members.text(name).ok().flatten();
        let code = named("code")
            .or_else(|| named("status"))
            .or_else(|| named("type"));
        Ok((code, members.text("message")?))
    };
    let (code, message) = read().unwrap_or_default();
    DecodeError::Provider {
        code,
        message: message.unwrap_or_else(|| "it gave no reason".to_owned()),
    }
}
