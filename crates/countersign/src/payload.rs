//! The sealed payload of a record: written in the current version, read in every version.
//!
//! Commitments are over texts, so texts are written and read: a number that went through a double would differ from
//! what the record commits to.

use countersign_contract::envelope::{Client, Warning};
use countersign_contract::evidence::{EvidenceRecord, Exact, Opening, Payload, VERSION};
use countersign_contract::trace::Trace;
use countersign_contract::{Actor, Digest, ErrorBody, RequestId, SnapshotId, Source, canonical};
use countersign_evidence::bundle::{self, Value};
use countersign_evidence::seal::{self, UserKey};
use serde::{Deserialize, Serialize};

use crate::scribe::Entropy;

/// Everything of a payload that isn't committed to by itself.
#[derive(Default, Serialize)]
pub(crate) struct Plain<'a> {
    pub(crate) user_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<&'a Actor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<&'a RequestId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jti: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) locale: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) currency: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timezone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<&'a Client>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<&'a Trace>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ran_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) raw: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) redacted: Option<&'a serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<&'a ErrorBody>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) warnings: &'a [Warning],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) sources: &'a [Source],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'a str>,
}

/// A payload as JSON. `exact` are members that are JSON texts already; they are put in as they are.
pub(crate) fn text_of(plain: &Plain<'_>, salt: &[u8; 32], exact: &[(&str, &str)]) -> String {
    let rest = serde_json::to_string(plain).expect("names, strings and JSON values");
    let values: usize = exact.iter().map(|(_, value)| value.len() + 16).sum();
    let mut text = String::with_capacity(rest.len() + values + 96);
    text.push_str("{\"v\":");
    text.push_str(&VERSION.to_string());
    text.push_str(",\"salt\":\"");
    push_hex(&mut text, salt);
    text.push_str("\",");
    text.push_str(rest.get(1..rest.len() - 1).unwrap_or_default());
    for (name, value) in exact {
        text.push_str(",\"");
        text.push_str(name);
        text.push_str("\":");
        text.push_str(value);
    }
    text.push('}');
    text
}

/// Seals a payload for its record, which from here on names the sealed bytes.
pub(crate) fn seal(
    plain: &Plain<'_>,
    entropy: &Entropy,
    keys: &UserKey,
    record: &mut EvidenceRecord,
    exact: &[(&str, &str)],
) -> Vec<u8> {
    let text = text_of(plain, &entropy.salt, exact);
    let aad = aad(plain.user_id, &record.id);
    let sealed = keys.seal(entropy.nonce, &aad, text.as_bytes());
    record.payload = Some(Digest::of_bytes(&sealed));
    sealed
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            let digit = DIGITS.get(usize::from(nibble)).copied();
            text.push(char::from(digit.unwrap_or(b'0')));
        }
    }
}

/// The additional data of a payload's seal: the record and the user it belongs to, so that one cannot be
/// passed off as another.
pub(crate) fn aad(user_id: &str, id: &SnapshotId) -> Vec<u8> {
    [b"payload", user_id.as_bytes(), id.as_str().as_bytes()].join(&0)
}

/// A payload that was opened, of any version.
pub(crate) struct Opened {
    pub(crate) payload: Payload,
    salts: Salts,
}

enum Salts {
    /// Version 1 has a salt for each of two values.
    Own {
        arguments: Option<[u8; 32]>,
        data: Option<[u8; 32]>,
    },
    Derived([u8; 32]),
}

/// The reason why sealed bytes are not the payload of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The key does not open them.
    Sealed,
    /// The opened bytes are not a payload.
    NotAPayload,
}

impl Opened {
    /// Opens the payload of a record with its user's key.
    pub(crate) fn open(
        keys: &UserKey,
        user_id: &str,
        id: &SnapshotId,
        sealed: &[u8],
    ) -> Result<Self, Unreadable> {
        let plain = keys.open(&aad(user_id, id), sealed);
        let plain = plain.map_err(|_| Unreadable::Sealed)?;
        Self::read(&plain).ok_or(Unreadable::NotAPayload)
    }

    fn read(plain: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Head {
            v: u8,
        }
        let Head { v } = serde_json::from_slice(plain).ok()?;
        if v == 1 {
            return serde_json::from_slice::<First>(plain)
                .ok()
                .map(First::opened);
        }
        let payload: Payload = serde_json::from_slice(plain).ok()?;
        let salt = bytes_of(&payload.salt)?;
        Some(Self {
            payload,
            salts: Salts::Derived(salt),
        })
    }

    /// The text of a value that the record may commit to.
    fn text(&self, value: Value) -> Option<&str> {
        match value {
            Value::Arguments => self.payload.arguments.as_ref().map(Exact::text),
            Value::Data => self.payload.data.as_ref().map(Exact::text),
            Value::Raw => self.payload.raw.as_deref(),
            Value::Shown => self.payload.shown.as_ref().map(Exact::text),
        }
    }

    fn salt(&self, value: Value) -> Option<[u8; 32]> {
        match &self.salts {
            Salts::Derived(salt) => Some(seal::salt_of(salt, value.domain())),
            Salts::Own { arguments, data } => match value {
                Value::Arguments => *arguments,
                Value::Data => *data,
                Value::Raw | Value::Shown => None,
            },
        }
    }

    /// The values that differ from what the record commits to.
    pub(crate) fn differing(&self, record: &EvidenceRecord) -> Vec<Value> {
        let differs = |value: &Value| {
            let expected = value.commitment(record);
            match (self.text(*value), self.salt(*value)) {
                (None, _) => expected.is_some(),
                (Some(_), None) => true,
                (Some(text), Some(salt)) => {
                    Some(seal::commit(value.domain(), &salt, text.as_bytes())) != expected
                }
            }
        };
        Value::ALL.into_iter().filter(differs).collect()
    }

    /// The content for a bundle: the committed values, each with its own salt.
    pub(crate) fn for_bundle(&self) -> bundle::Opened {
        let opening = |value: Value| {
            let text = self.text(value)?;
            let mut salt = String::with_capacity(64);
            push_hex(&mut salt, &self.salt(value)?);
            // The raw text of a call is a text, whatever it looks like.
            let is_canonical = value != Value::Raw
                && canonical::from_json_text(text).is_ok_and(|canonical| canonical == text);
            let value = is_canonical
                .then(|| serde_json::from_str(text).ok())
                .flatten();
            let text = value.is_none().then(|| text.to_owned());
            Some(Opening { salt, value, text })
        };
        bundle::Opened {
            arguments: opening(Value::Arguments),
            data: opening(Value::Data),
            raw: opening(Value::Raw),
            shown: opening(Value::Shown),
        }
    }
}

/// The payload of version 1.
#[derive(Deserialize)]
struct First {
    user_id: String,
    actor: Option<Actor>,
    session_id: Option<String>,
    locale: Option<String>,
    currency: Option<String>,
    timezone: Option<String>,
    client: Option<Client>,
    ran_at: Option<String>,
    arguments: Option<Salted>,
    data: Option<Salted>,
    error: Option<ErrorBody>,
    #[serde(default)]
    warnings: Vec<Warning>,
}

#[derive(Deserialize)]
struct Salted {
    salt: String,
    value: Exact,
}

impl First {
    fn opened(self) -> Opened {
        let salt = |salted: &Option<Salted>| bytes_of(&salted.as_ref()?.salt);
        let salts = Salts::Own {
            arguments: salt(&self.arguments),
            data: salt(&self.data),
        };
        let payload = Payload {
            v: 1,
            user_id: self.user_id,
            actor: self.actor,
            session_id: self.session_id,
            locale: self.locale,
            currency: self.currency,
            timezone: self.timezone,
            client: self.client,
            ran_at: self.ran_at,
            arguments: self.arguments.map(|salted| salted.value),
            data: self.data.map(|salted| salted.value),
            error: self.error,
            warnings: self.warnings,
            ..Payload::default()
        };
        Opened { payload, salts }
    }
}

/// 32 bytes in lower-case hexadecimal.
fn bytes_of(hex: &str) -> Option<[u8; 32]> {
    // A digest has the one spelling of 32 bytes that the contract reads.
    let digest: Digest = format!("sha256:{hex}").parse().ok()?;
    Some(*digest.as_bytes())
}
