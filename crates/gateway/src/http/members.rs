//! Body of a call: the members of the envelope, and the arguments as they were written.
//!
//! The arguments are never parsed here. Their text reaches the binder byte for byte, so that numbers, duplicate
//! members and everything else that a parser would normalize are still there.

use std::borrow::Cow;
use std::fmt;

use countersign::contract::{ErrorCode, RequestEnvelope};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::answer::Refusal;
use crate::nearest::nearest;
use crate::strict;
use crate::words::Say;

/// A call as its body describes it.
pub(super) struct Asked<'b> {
    pub(super) envelope: RequestEnvelope,
    pub(super) arguments: Cow<'b, str>,
}

/// Members, each with its required form.
const MEMBERS: [(&str, &str); 12] = [
    ("arguments", "an object, or a string with its text"),
    (
        "request_id",
        "a string of 1 to 128 visible ASCII characters",
    ),
    ("actor", "an object of type (user, agent or system) and id"),
    ("user_id", "a string"),
    ("session_id", "a string"),
    ("locale", "a string such as \"en-US\""),
    ("currency", "a string such as \"USD\""),
    ("timezone", "a string such as \"Europe/Berlin\""),
    ("client", "an object of app and version"),
    ("dry_run", "true or false"),
    ("idempotency_key", "a string"),
    ("trace", "an object of trace_id, span_id and parent_span_id"),
];

/// True if a call has such a member besides its arguments.
pub(super) fn is_of_envelope(name: &str) -> bool {
    name != "arguments" && MEMBERS.iter().any(|(known, _)| *known == name)
}

/// Arguments of a call that sends none.
const NO_ARGUMENTS: &str = "{}";

impl<'b> Asked<'b> {
    /// Reads a bare call: the body is the argument text.
    pub(super) fn bare(text: &'b str) -> Self {
        let is_blank = text.trim_ascii().is_empty();
        Self {
            envelope: RequestEnvelope::default(),
            arguments: Cow::Borrowed(if is_blank { NO_ARGUMENTS } else { text }),
        }
    }

    /// Reads a call with members; an empty body is a call without any.
    pub(super) fn read(text: &'b str) -> Result<Self, Refusal> {
        if text.trim_ascii().is_empty() {
            return Ok(Self::bare(NO_ARGUMENTS));
        }
        let members: Members<'b> = serde_json::from_str(text).map_err(|error| not_json(&error))?;
        members.check()?;
        let envelope = members.envelope()?;
        let arguments = match members.get("arguments") {
            None => Cow::Borrowed(NO_ARGUMENTS),
            Some(raw) if raw.starts_with('"') => {
                let text = serde_json::from_str(raw);
                Cow::Owned(text.map_err(|error| not_json(&error))?)
            }
            Some(raw) => Cow::Borrowed(raw),
        };
        Ok(Self {
            envelope,
            arguments,
        })
    }
}

/// Reads the envelope from an object that has no other members.
pub(super) fn envelope(text: &str) -> Result<RequestEnvelope, Refusal> {
    let members: Members<'_> = serde_json::from_str(text).map_err(|error| not_json(&error))?;
    members.check()?;
    if members.get("arguments").is_some() {
        let message = Say::NotAMember;
        return Err(Refusal::new(ErrorCode::InvalidArgument, message).field("/arguments"));
    }
    members.envelope()
}

/// Raw text of each member.
#[derive(Default)]
struct Members<'b> {
    found: [Option<&'b RawValue>; MEMBERS.len()],
    unknown: Option<String>,
    twice: Option<&'static str>,
}

impl<'b> Members<'b> {
    /// Returns the text of a member that is present and not null.
    fn get(&self, name: &str) -> Option<&'b str> {
        let at = MEMBERS.iter().position(|(known, _)| *known == name)?;
        let raw = self.found.get(at).copied().flatten()?.get();
        (raw != "null").then_some(raw)
    }

    /// Refuses unknown and duplicate members: dropping one silently would hide a mistake.
    fn check(&self) -> Result<(), Refusal> {
        if let Some(name) = self.twice {
            let message = Say::OccursTwice {
                name: name.to_string(),
            };
            return Err(Refusal::new(ErrorCode::InvalidArgument, message)
                .field(format!("/{name}"))
                .hint(Say::SendItOnce));
        }
        let Some(unknown) = &self.unknown else {
            return Ok(());
        };
        let shown: String = unknown.chars().take(80).collect();
        let pointer = shown.replace('~', "~0").replace('/', "~1");
        let message = Say::UnknownMember { name: shown };
        let near = nearest(unknown, MEMBERS.iter().map(|(name, _)| *name));
        Err(Refusal::new(ErrorCode::InvalidArgument, message)
            .field(format!("/{pointer}"))
            .hint(Say::PutIntoArguments)
            .did_you_mean(near))
    }

    fn envelope(&self) -> Result<RequestEnvelope, Refusal> {
        Ok(RequestEnvelope {
            request_id: self.member("request_id")?,
            actor: self.member("actor")?,
            user_id: self.member("user_id")?,
            session_id: self.member("session_id")?,
            locale: self.member("locale")?,
            currency: self.member("currency")?,
            timezone: self.member("timezone")?,
            client: self.member("client")?,
            dry_run: self.member("dry_run")?.unwrap_or_default(),
            idempotency_key: self.member("idempotency_key")?,
            trace: self.member("trace")?,
        })
    }

    fn member<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let Some(raw) = self.get(name) else {
            return Ok(None);
        };
        // The value is not quoted: it may be personal.
        strict::from_str(raw).map(Some).map_err(|_| {
            let form = MEMBERS.iter().find(|(known, _)| *known == name);
            let form = form.map_or("of its type", |(_, form)| form);
            Refusal::new(ErrorCode::InvalidArgument, format!("{name} is not {form}"))
                .field(format!("/{name}"))
                .hint(Say::CorrectOrNull)
        })
    }
}

fn not_json(error: &serde_json::Error) -> Refusal {
    let (line, column) = (error.line().to_string(), error.column().to_string());
    let message = match error.classify() {
        serde_json::error::Category::Data => Say::NotAnObject,
        serde_json::error::Category::Eof => Say::JsonEndsEarly { line, column },
        serde_json::error::Category::Io | serde_json::error::Category::Syntax => {
            Say::JsonInvalid { line, column }
        }
    };
    Refusal::new(ErrorCode::InvalidArgument, message).hint(Say::TextGoesInto)
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
        while let Some(key) = map.next_key()? {
            let value: &'de RawValue = map.next_value()?;
            match key {
                Key::Known(at) => {
                    let Some(place) = members.found.get_mut(at) else {
                        continue;
                    };
                    if place.replace(value).is_some() {
                        members.twice = MEMBERS.get(at).map(|(name, _)| *name);
                    }
                }
                Key::Unknown(name) => {
                    members.unknown.get_or_insert(name);
                }
            }
        }
        Ok(members)
    }
}

/// Name of a member; a known one needs no string of its own.
enum Key {
    Known(usize),
    Unknown(String),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E>(self, name: &str) -> Result<Key, E> {
        let known = MEMBERS.iter().position(|(known, _)| *known == name);
        Ok(known.map_or_else(|| Key::Unknown(name.to_owned()), Key::Known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn arguments(body: &str) -> String {
        let asked = Asked::read(body).unwrap_or_else(|refusal| panic!("{refusal:?}"));
        asked.arguments.into_owned()
    }

    /// B7: whatever the arguments look like, the binder sees what was sent.
    #[test]
    fn arguments_reach_the_binder_byte_for_byte() {
        for raw in [
            r#"{"a": 1.10, "a": 2, "n": 123456789012345678901234567890, "t": "\u0041"}"#,
            "{ \"a\" :\n [ ] }",
            "[1]",
            "7",
        ] {
            assert_eq!(arguments(&format!("{{\"arguments\":  {raw} }}")), raw);
        }
        assert_eq!(
            arguments(r#"{"arguments": "{query: 'x',}"}"#),
            "{query: 'x',}"
        );
        assert_eq!(arguments(r#"{"arguments": "say \"hi\""}"#), "say \"hi\"");
        for nothing in ["", "  \n", "{}", r#"{"arguments": null}"#] {
            assert_eq!(arguments(nothing), "{}", "{nothing:?}");
        }
    }

    #[test]
    fn depth_is_the_binders_business() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(arguments(&format!("{{\"arguments\":{deep}}}")), deep);
    }

    /// The table of members and the envelope of the contract name the same members.
    #[test]
    fn every_member_of_the_envelope_is_known() {
        let whole = serde_json::json!({
            "request_id": "r", "actor": {"type": "agent", "id": "a"}, "user_id": "u",
            "session_id": "s", "locale": "l", "currency": "c", "timezone": "t",
            "client": {"app": "a", "version": "1"}, "dry_run": true, "idempotency_key": "k",
            "trace": {"trace_id": "1", "span_id": "2", "parent_span_id": "3"},
        });
        let text = whole.to_string();
        let asked = Asked::read(&text).unwrap_or_else(|refusal| panic!("{refusal:?}"));
        assert_eq!(serde_json::to_value(&asked.envelope).unwrap(), whole);
        assert_eq!(whole.as_object().unwrap().len() + 1, MEMBERS.len());
    }
}
