//! Call objects: `{"name": …, "arguments": …}`, whole or damaged, alone or in lists and wrappers.

use std::collections::BTreeMap;

use countersign_args::{Arguments, Binder};
use countersign_contract::BindStatus;
use serde_json::Value;
use serde_json::value::RawValue;

use super::body::{is_name, is_part};
use super::format::Row;
use super::{DecodeError, Provenance, Reader, Step};
use crate::dialect::raw::Entries;

/// Members of a call object that name the tool, the usual ones first.
const NAMES: [&str; 8] = [
    "name",
    "tool_name",
    "toolName",
    "function_name",
    "tool",
    "action",
    "function",
    "recipient_name",
];

/// Members of a call object that hold its arguments.
const ARGUMENTS: [&str; 7] = [
    "arguments",
    "parameters",
    "args",
    "input",
    "params",
    "kwargs",
    "action_input",
];

/// Members of an object that holds one call, or a list of them.
const HOLDERS: [&str; 7] = [
    "function",
    "function_call",
    "functionCall",
    "tool_call",
    "toolUse",
    "tool_calls",
    "toolCalls",
];

/// Members of a call object beside its name and its arguments that say nothing about the call.
const BESIDE: [&str; 9] = [
    "id",
    "type",
    "index",
    "role",
    "call_id",
    "callId",
    "tool_call_id",
    "toolCallId",
    "tool_use_id",
];

/// Members of a message beside its calls.
const OF_MESSAGE: [&str; 3] = ["content", "refusal", "reasoning_content"];

/// States of a call that is meant to run.
const PENDING: [&str; 5] = [
    "\"completed\"",
    "\"in_progress\"",
    "\"pending\"",
    "\"queued\"",
    "\"requires_action\"",
];

/// Other members of a call object. The binder knows what they say.
const OF_CALL: [&str; 5] = ["status", "content", "method", "jsonrpc", "object"];

/// True if every call object may have this member. Any other may be one of the arguments.
fn is_of_call(name: &str) -> bool {
    [&NAMES[..], &ARGUMENTS, &BESIDE, &OF_CALL]
        .iter()
        .any(|known| known.contains(&name))
}

/// True if a member says nothing about the call that it stands in.
fn stands_beside(name: &str, value: &str) -> bool {
    BESIDE.contains(&name) || (name == "status" && PENDING.contains(&value))
}

/// Result of reading a call object.
pub(super) enum Object {
    Added,
    NoCall,
}

impl Reader<'_> {
    /// Adds the call objects that start here, up to the closing mark.
    pub(super) fn objects(&mut self, row: &Row, at: usize) -> Step {
        let start = at;
        let before = self.written.calls.len();
        let mut at = at;
        let mut any = false;
        while let Some((raw, length)) = json(self.from(at)) {
            match self.object(raw, 0)? {
                Object::Added => any = true,
                Object::NoCall if any => break,
                // It is prose; it is not read again, so that the time stays in proportion to the text.
                Object::NoCall => {
                    self.prose(at + length);
                    return Ok(Some(at + length));
                }
            }
            at += length;
            let next = self.white(at);
            let next = next + usize::from(self.from(next).starts_with([',', ';']));
            let next = self.white(next);
            if !self.from(next).starts_with(['{', '[']) {
                break;
            }
            at = next;
        }
        if any && self.ends_at(row, at) {
            return Ok(Some(self.behind_close(row, at)));
        }
        if any {
            let (end, behind) = self.region(row, at);
            self.more_than_objects(before, self.between(start, end).trim())?;
            return Ok(Some(behind));
        }
        let closed = self.closed(row, at);
        let (end, behind) = closed.unwrap_or((self.text.len(), self.text.len()));
        let is_read = self.damaged(self.between(at, end).trim(), closed.is_none())?;
        if !is_read {
            self.prose(behind);
        }
        Ok(Some(behind))
    }

    /// Takes back calls in a mark in which something else stands as well. One call is handed over with all of it, because it
    /// may be a part of the call; of several, it is unknown which.
    fn more_than_objects(&mut self, before: usize, whole: &str) -> Result<(), DecodeError> {
        match self.written.calls.get(before..) {
            Some([call]) if !call.ambiguous => {
                let name = call.name.clone();
                self.written.calls.truncate(before);
                self.add(&name, whole)
            }
            Some(_) | None => {
                self.doubt(before);
                Ok(())
            }
        }
    }

    /// Adds a call object that is not JSON: the binder reads it as a whole, and unwraps it. One without a name is prose,
    /// unless the text ends in it.
    fn damaged(&mut self, raw: &str, is_last: bool) -> Result<bool, DecodeError> {
        let bound = Binder::undeclared().bind(raw);
        let complete = bound.is_executable();
        let value = bound.arguments.as_ref().map(Arguments::to_value);
        let items = match value {
            Some(Value::Array(items)) => items,
            Some(value) => vec![value],
            None => Vec::new(),
        };
        if complete && items.len() > 1 {
            let named = items.iter().map(parts).collect::<Vec<_>>();
            if named.iter().any(|(name, _)| !is_name(name)) {
                return Ok(false);
            }
            for ((name, arguments), item) in named.into_iter().zip(&items) {
                let text = arguments.unwrap_or(item).to_string();
                self.add_as(name, &text, Provenance::Reserialised)?;
                if has_more(item) {
                    self.doubt(self.written.calls.len() - 1);
                }
            }
            return Ok(true);
        }
        let read = items.first().map_or("", |item| parts(item).0);
        let first = first_name(raw);
        let name = if read.is_empty() { first } else { read };
        let ends =
            is_last && !complete && (bound.status == BindStatus::Incomplete || items.is_empty());
        // Where the whole cannot be read, more than one name may belong to more than one call.
        let is_certain =
            is_name(name) && !items.iter().any(has_more) && (!items.is_empty() || names(raw) == 1);
        if ends {
            self.add_cut(name, raw)?;
        } else if is_certain {
            self.add(name, raw)?;
        } else if name.is_empty() && names(raw) == 0 {
            return Ok(false);
        } else {
            self.add_doubtful(name, raw)?;
        }
        Ok(true)
    }

    /// Adds the calls of one JSON value.
    pub(super) fn object(&mut self, raw: &str, depth: usize) -> Result<Object, DecodeError> {
        if raw.starts_with('[') {
            let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw) else {
                return Ok(Object::NoCall);
            };
            let before = self.written.calls.len();
            let mut is_doubtful = false;
            for item in items {
                if matches!(self.object(item.get(), depth + 1)?, Object::NoCall) {
                    if !self.is_marked {
                        self.written.calls.truncate(before);
                        return Ok(Object::NoCall);
                    }
                    is_doubtful = true;
                }
            }
            if self.written.calls.len() == before {
                return Ok(Object::NoCall);
            }
            if is_doubtful {
                self.doubt(before);
            }
            return Ok(Object::Added);
        }
        self.object_members(raw, depth)
    }

    fn object_members(&mut self, raw: &str, depth: usize) -> Result<Object, DecodeError> {
        let Ok(Entries { values, is_twice }) = serde_json::from_str(raw) else {
            return Ok(Object::NoCall);
        };
        let text = |name: &&str| {
            let value = values.get(*name)?;
            serde_json::from_str::<String>(value.get()).ok()
        };
        let mut names = NAMES.iter().filter_map(text);
        let name = names.next();
        let is_renamed = names.any(|other| Some(&other) != name.as_ref());
        let mut held = ARGUMENTS.iter().filter_map(|name| values.get(*name));
        let arguments = held.next();
        let has_more = held.next().is_some();
        match (name, arguments) {
            (Some(name), Some(arguments)) if is_name(&name) => {
                let is_beside = |(key, value): (&String, &&RawValue)| {
                    NAMES.contains(&key.as_str())
                        || ARGUMENTS.contains(&key.as_str())
                        || stands_beside(key, value.get())
                };
                if is_renamed || has_more || !values.keys().all(|key| is_of_call(key)) {
                    self.add_doubtful(&name, raw)?;
                } else if is_twice || !values.iter().all(is_beside) {
                    // The binder knows which members are parameters, and says what is wrong with them.
                    self.add(&name, raw)?;
                } else {
                    let source = arguments.get();
                    match serde_json::from_str::<String>(source) {
                        Ok(text) => self.add(&name, &text)?,
                        Err(_) => self.add(&name, source)?,
                    }
                }
                Ok(Object::Added)
            }
            (Some(name), Some(_)) if self.is_marked => {
                self.add_doubtful(&name, raw)?;
                Ok(Object::Added)
            }
            (Some(name), None) if values.len() == 1 && is_name(&name) => {
                if is_twice {
                    self.add_doubtful(&name, raw)?;
                } else {
                    self.add_as(&name, "{}", Provenance::Reserialised)?;
                }
                Ok(Object::Added)
            }
            _ if depth < 3 => self.held(&values, is_twice, depth),
            _ => Ok(Object::NoCall),
        }
    }

    /// Adds the calls in a member of an object that holds calls.
    fn held(
        &mut self,
        values: &BTreeMap<String, &RawValue>,
        is_twice: bool,
        depth: usize,
    ) -> Result<Object, DecodeError> {
        let holds = |name: &str, value: &RawValue| {
            HOLDERS.contains(&name) && value.get().starts_with(['{', '['])
        };
        let mut held = HOLDERS.iter().filter_map(|name| {
            let value = values.get(*name)?;
            holds(name, value).then_some(*value)
        });
        let Some(first) = held.next() else {
            return Ok(Object::NoCall);
        };
        let is_beside = |(name, value): (&String, &&RawValue)| {
            holds(name, value)
                || OF_MESSAGE.contains(&name.as_str())
                || stands_beside(name, value.get())
        };
        let is_certain = !is_twice && held.next().is_none() && values.iter().all(is_beside);
        let before = self.written.calls.len();
        let object = self.object(first.get(), depth + 1)?;
        if !is_certain {
            self.doubt(before);
        }
        Ok(object)
    }
}

/// Returns the JSON value at the start of a text as it is written, and the byte behind it.
pub(super) fn json(text: &str) -> Option<(&str, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let raw = values.next()?.ok()?;
    let white = text.len() - text.trim_start_matches([' ', '\n', '\r', '\t']).len();
    Some((raw.get(), white + raw.get().len()))
}

/// Returns the name and the arguments of a call object; no arguments if something else stands beside them.
fn parts(value: &Value) -> (&str, Option<&Value>) {
    let name = NAMES.iter().find_map(|name| value.get(*name)?.as_str());
    let mut arguments = ARGUMENTS.iter().filter_map(|name| value.get(*name));
    let first = arguments.next();
    let is_beside = |(key, value): (&String, &Value)| {
        NAMES.contains(&key.as_str())
            || ARGUMENTS.contains(&key.as_str())
            || stands_beside(key, &value.to_string())
    };
    let is_plain = value
        .as_object()
        .is_some_and(|members| members.iter().all(is_beside));
    let first = first.filter(|_| is_plain && arguments.next().is_none());
    match (name, HOLDERS.iter().find_map(|name| value.get(*name))) {
        (Some(name), _) => (name, first),
        (None, Some(held)) if held.is_object() => (parts(held).0, None),
        (None, _) => ("", None),
    }
}

/// True if something stands beside the name and the arguments of a call that may be one of them.
fn has_more(value: &Value) -> bool {
    let members = value.as_object().filter(|members| {
        let has = |names: &[&str]| names.iter().any(|name| members.contains_key(*name));
        has(&NAMES) && has(&ARGUMENTS)
    });
    members.is_some_and(|members| !members.keys().all(|key| is_of_call(key)))
}

/// Returns the name in a call object that starts with it.
fn first_name(raw: &str) -> &str {
    let quotes = ['"', '\''];
    let read = || {
        let key = raw
            .strip_prefix('{')?
            .trim_start()
            .trim_start_matches(quotes);
        let key = key
            .strip_prefix("name")?
            .trim_start_matches(quotes)
            .trim_start();
        let value = key
            .strip_prefix([':', '='])?
            .trim_start()
            .trim_start_matches(quotes);
        let length = value.find(|c: char| !is_part(c)).unwrap_or(value.len());
        let (name, behind) = value.split_at_checked(length)?;
        let ends = behind.trim_start_matches(quotes).trim_start();
        (ends.is_empty() || ends.starts_with([',', '}'])).then_some(name)
    };
    read().unwrap_or_default()
}

/// Returns the number of members called `name` in a text that cannot be read.
fn names(raw: &str) -> usize {
    let is_key = |(at, _): &(usize, &str)| {
        let before = raw.get(..*at).unwrap_or_default();
        let behind = raw.get(at + "name".len()..).unwrap_or_default();
        let behind = behind.trim_start_matches(['"', '\'']).trim_start();
        !before.ends_with(is_part) && behind.starts_with([':', '='])
    };
    raw.match_indices("name").filter(is_key).count()
}
