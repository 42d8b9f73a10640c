//! The text of a call's arguments, taken out of the message before it is parsed.
//!
//! Typed parsing loses what the binder needs: doubled members, `1.10`, integers beyond 2^53, and every
//! argument that is not an object at all, such as the JSON text that many models send. So the text goes
//! to the binder as it stands, and the protocol is given an empty object in its place.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The arguments of a `tools/call`, as they were sent.
#[derive(Clone)]
pub(super) struct RawArguments(pub(super) Arc<str>);

/// A message, ready for the protocol.
pub(super) struct Message {
    /// Message for the protocol library, without the arguments.
    pub(super) bytes: Bytes,
    /// Arguments for the binder; only of a `tools/call`.
    pub(super) arguments: Option<RawArguments>,
    /// Kind of the request.
    pub(super) kind: Kind,
}

/// Kind of a request, as far as it matters before parsing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It runs a tool.
    Call,
    /// It opens a connection of the older eras.
    Initialize,
    /// Anything else.
    Other,
}

/// Reason why a text isn't a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("the message is not JSON")]
    NotJson,
    #[error("the message is not one JSON object: send one request at a time")]
    NotAnObject,
    #[error("a member of the message, of its params or of their _meta is there twice")]
    Twice,
}

impl Malformed {
    /// The code that JSON-RPC has for it.
    pub(super) fn code(self) -> i32 {
        match self {
            Self::NotJson => -32700,
            Self::NotAnObject | Self::Twice => -32600,
        }
    }
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// Takes the arguments out of a message. `needs_arguments` says of a tool whether the protocol has to
/// see them too, because some of them travel in headers as well.
///
/// Nothing here recurses, so the depth of the text does not matter.
pub(super) fn take_arguments(
    bytes: Bytes,
    needs_arguments: impl FnOnce(&str) -> bool,
) -> Result<Message, Malformed> {
    let as_sent = |bytes, kind| Message {
        bytes,
        arguments: None,
        kind,
    };
    let whole: &RawValue = serde_json::from_slice(&bytes).map_err(|_| Malformed::NotJson)?;
    if !whole.get().starts_with('{') {
        return Err(Malformed::NotAnObject);
    }
    if is_said_twice(whole) {
        return Err(Malformed::Twice);
    }
    // Odd members of an object are the protocol's to refuse.
    let Ok(head) = serde_json::from_str::<Head<'_>>(whole.get()) else {
        return Ok(as_sent(bytes, Kind::Other));
    };
    match head.method.as_deref() {
        Some("tools/call") => {}
        Some("initialize") => return Ok(as_sent(bytes, Kind::Initialize)),
        Some(_) | None => return Ok(as_sent(bytes, Kind::Other)),
    }
    let params = head
        .params
        .filter(|params| params.get().starts_with('{'))
        .and_then(|params| serde_json::from_str::<Params<'_>>(params.get()).ok());
    let Some(params) = params else {
        return Ok(as_sent(bytes, Kind::Call));
    };
    let Some(arguments) = params.arguments else {
        return Ok(Message {
            arguments: Some(RawArguments("{}".into())),
            ..as_sent(bytes, Kind::Call)
        });
    };
    let text = text_of(arguments);
    let is_object = arguments.get().starts_with('{');
    let is_shown = is_object && params.name.as_deref().is_some_and(needs_arguments);
    let shown = if is_shown {
        None
    } else {
        without(&bytes, arguments.get())
    };
    Ok(Message {
        bytes: shown.unwrap_or(bytes),
        arguments: Some(RawArguments(text)),
        kind: Kind::Call,
    })
}

/// True if a member of a message, of its parameters or of their `_meta` is there twice: a proxy on the way may have
/// read the other one.
fn is_said_twice(message: &RawValue) -> bool {
    let mut object = Some(message);
    for inner in ["params", "_meta", ""] {
        let Some(members) =
            object.and_then(|it| serde_json::from_str::<Members<'_>>(it.get()).ok())
        else {
            return false;
        };
        if members.is_twice {
            return true;
        }
        object = members.named.get(inner).copied();
    }
    false
}

/// The members of an object by their names.
#[derive(Default)]
struct Members<'a> {
    named: HashMap<String, &'a RawValue>,
    is_twice: bool,
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Members::default();
        while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
            members.is_twice |= members.named.insert(name, value).is_some();
        }
        Ok(members)
    }
}

/// Returns the text that the model wrote: the content of a string, or the source of any other value.
fn text_of(arguments: &RawValue) -> Arc<str> {
    let source = arguments.get();
    if source.starts_with('"')
        && let Ok(content) = serde_json::from_str::<Cow<'_, str>>(source)
    {
        return content.into();
    }
    source.into()
}

/// The message with an empty object in the place of its arguments.
fn without(bytes: &Bytes, arguments: &str) -> Option<Bytes> {
    // The arguments are a slice of the message, so their place is a difference of addresses.
    let start = (arguments.as_ptr() as usize).checked_sub(bytes.as_ptr() as usize)?;
    let end = start.checked_add(arguments.len())?;
    let (before, after) = (bytes.get(..start)?, bytes.get(end..)?);
    let mut shown = Vec::with_capacity(before.len() + 2 + after.len());
    shown.extend_from_slice(before);
    shown.extend_from_slice(b"{}");
    shown.extend_from_slice(after);
    Some(shown.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &str, expected: &str) {
        let call = |arguments: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t", "arguments" : {arguments} ,"_meta":{{}}}}}}"#
            )
        };
        let message = take_arguments(call(arguments).into(), |_| false).unwrap();
        assert_eq!(&*message.arguments.unwrap().0, expected);
        assert_eq!(message.bytes, call("{}").as_bytes());
    }

    #[test]
    fn arguments_are_taken_as_they_were_sent() {
        check("{\"a\": 1.10, \"a\": 1.10}", "{\"a\": 1.10, \"a\": 1.10}");
        check(
            "{\"n\":123456789012345678901}",
            "{\"n\":123456789012345678901}",
        );
        check(r#""{\"limit\": \"3\",}""#, r#"{"limit": "3",}"#);
        check("[1, 2]", "[1, 2]");
        check("7", "7");
        let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
        check(&deep, &deep);
    }

    #[test]
    fn what_is_no_single_message_is_refused() {
        let check = |text: &'static str, expected| {
            let refused = take_arguments(Bytes::from_static(text.as_bytes()), |_| false);
            assert_eq!(refused.err(), expected, "{text}");
        };
        check("{\"method\":", Some(Malformed::NotJson));
        check("", Some(Malformed::NotJson));
        check("[]", Some(Malformed::NotAnObject));
        check("7", Some(Malformed::NotAnObject));
        check("{\"method\": 7}", None);
        check(
            "{\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\"arguments\":null}}",
            None,
        );
        check("{\"method\":\"tools/call\",\"params\":[]}", None);
        for twice in [
            r#"{"method":"tools/list","method":"tools/call"}"#,
            r#"{"id":1,"i\u0064":2}"#,
            r#"{"params":{"name":"a","name":"b"}}"#,
            r#"{"params":{"_meta":{"a":1,"a":1}}}"#,
        ] {
            check(twice, Some(Malformed::Twice));
        }
        // What is in the arguments is the binder's.
        check(r#"{"params":{"arguments":{"a":1,"a":2}}}"#, None);
    }

    #[test]
    fn a_tool_with_arguments_in_headers_shows_them() {
        let text = r#"{"method":"tools/call","params":{"name":"t","arguments":{"a":1}}}"#;
        let message = take_arguments(text.into(), |name| name == "t").unwrap();
        assert_eq!(message.bytes, text.as_bytes());
        assert_eq!(&*message.arguments.unwrap().0, r#"{"a":1}"#);
    }
}
