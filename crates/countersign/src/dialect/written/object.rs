//! Call objects: `{"name": …, "arguments": …}`, whole or damaged, alone or in lists and wrappers.

use std::collections::BTreeMap;
use std::fmt;

use countersign_args::{Arguments, Binder};
use countersign_contract::BindStatus;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::body::{is_name, is_part};
use super::format::Row;
use super::{DecodeError, Provenance, Reader, Step};

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

/// The members of an object, as they are written.
struct Members<'m> {
    values: BTreeMap<String, &'m RawValue>,
    /// True if a name stands there more than once.
    is_twice: bool,
}

impl<'de: 'm, 'm> Deserialize<'de> for Members<'m> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = (BTreeMap<String, &'de RawValue>, bool);

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut values, mut is_twice) = (BTreeMap::new(), false);
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    is_twice |= values.insert(name, value).is_some();
                }
                Ok((values, is_twice))
            }
        }

        let (values, is_twice) = deserializer.deserialize_map(Each)?;
        Ok(Self { values, is_twice })
    }
}

/// Result of reading a call object.
pub(super) enum Object {
    Added,
    NoCall,
}

impl Reader<'_> {
    /// Adds the call objects that start here, up to the closing mark.
    pub(super) fn objects(&mut self, row: &Row, at: usize) -> Step {
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
        if any {
            return Ok(Some(self.behind_close(row, at)));
        }
        let closed = self.closed(row, at);
        let (end, behind) = closed.unwrap_or((self.text.len(), self.text.len()));
        let is_read = self.damaged(self.between(at, end).trim(), closed.is_none())?;
        if !is_read {
            self.prose(behind);
        }
        Ok(Some(behind))
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
            }
            return Ok(true);
        }
        let read = items.first().map_or("", |item| parts(item).0).to_owned();
        let name = if is_name(&read) {
            read
        } else {
            first_name(raw)
        };
        let ends =
            is_last && !complete && (bound.status == BindStatus::Incomplete || items.is_empty());
        match (ends, is_name(&name)) {
            (true, _) => self.add_cut(&name, raw)?,
            (false, true) => self.add(&name, raw)?,
            (false, false) => return Ok(false),
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
            for item in items {
                if matches!(self.object(item.get(), depth + 1)?, Object::NoCall) {
                    self.written.calls.truncate(before);
                    return Ok(Object::NoCall);
                }
            }
            return Ok(if self.written.calls.len() > before {
                Object::Added
            } else {
                Object::NoCall
            });
        }
        self.object_members(raw, depth)
    }

    fn object_members(&mut self, raw: &str, depth: usize) -> Result<Object, DecodeError> {
        let Ok(Members { values, is_twice }) = serde_json::from_str(raw) else {
            return Ok(Object::NoCall);
        };
        let text = |name: &&str| {
            let value = values.get(*name)?;
            serde_json::from_str::<String>(value.get()).ok()
        };
        let name = NAMES.iter().find_map(text).filter(|name| is_name(name));
        let mut held = ARGUMENTS.iter().filter_map(|name| values.get(*name));
        let arguments = held.next();
        match (name, arguments) {
            // Two candidates: the binder says what is wrong with them.
            (Some(name), Some(_)) if is_twice || held.next().is_some() => {
                self.add(&name, raw)?;
                Ok(Object::Added)
            }
            (Some(name), Some(arguments)) => {
                let source = arguments.get();
                match serde_json::from_str::<String>(source) {
                    Ok(text) => self.add(&name, &text)?,
                    Err(_) => self.add(&name, source)?,
                }
                Ok(Object::Added)
            }
            (Some(name), None) if values.len() == 1 => {
                self.add_as(&name, "{}", Provenance::Reserialised)?;
                Ok(Object::Added)
            }
            _ if depth < 3 => {
                let held = HOLDERS.iter().find_map(|name| values.get(*name));
                match held {
                    Some(held) => self.object(held.get(), depth + 1),
                    None => Ok(Object::NoCall),
                }
            }
            _ => Ok(Object::NoCall),
        }
    }
}

/// Returns the JSON value at the start of a text as it is written, and the byte behind it.
pub(super) fn json(text: &str) -> Option<(&str, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let raw = values.next()?.ok()?;
    let white = text.len() - text.trim_start_matches([' ', '\n', '\r', '\t']).len();
    Some((raw.get(), white + raw.get().len()))
}

/// Returns the name and the arguments of a call object.
fn parts(value: &Value) -> (&str, Option<&Value>) {
    let name = NAMES.iter().find_map(|name| value.get(*name)?.as_str());
    let arguments = ARGUMENTS.iter().find_map(|name| value.get(*name));
    match (name, HOLDERS.iter().find_map(|name| value.get(*name))) {
        (Some(name), _) => (name, arguments),
        (None, Some(held)) if held.is_object() => parts(held),
        (None, _) => ("", arguments),
    }
}

/// Returns the name in a call object that cannot be read otherwise.
fn first_name(raw: &str) -> String {
    let behind = raw.split_once("name").map_or("", |(_, behind)| behind);
    let separators = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ':' | '=');
    let name = behind.trim_start_matches(separators);
    let length = name.find(|c: char| !is_part(c)).unwrap_or(name.len());
    name.get(..length).unwrap_or_default().to_owned()
}
