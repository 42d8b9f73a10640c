//! Writes what the log keeps of a call: the record without anything personal in it, and the sealed
//! payload beside it.
//!
//! Sealing needs the user's key, salts and a nonce, all of which are in the draft. So it is pure
//! computation that a store may do wherever it likes, off the path of a caller who does not wait.

use std::sync::Arc;
use std::time::Duration;

use countersign_contract::envelope::{Client, Warning};
use countersign_contract::evidence::{
    EvidenceRecord, Link, RecordedActor, RecordedArguments, RecordedKey, RecordedReply,
    RecordedTool, Retention,
};
use countersign_contract::{
    Actor, ActorType, CallRecord, Digest, ErrorBody, RecordKind, SnapshotId, Source, canonical,
};
use countersign_evidence::seal::{self, UserKey};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::ledger::Entry;
use crate::principal::Principal;
use crate::redact::Detector;

/// A record that is not sealed yet.
pub struct Draft(Form);

enum Form {
    Ready(Box<Entry>),
    /// For a store that keeps no log.
    Plain(SnapshotId, Box<CallRecord>),
    Call(Box<CallDraft>),
}

/// Everything that is known of a call when it ends.
pub(crate) struct CallDraft {
    pub(crate) id: SnapshotId,
    pub(crate) kind: RecordKind,
    pub(crate) at: Timestamp,
    /// When the answer was made; its window counts from here.
    pub(crate) answered_at: Timestamp,
    pub(crate) record: Box<CallRecord>,
    /// Whose credential proved the call.
    pub(crate) principal: Arc<Principal>,
    pub(crate) keys: Arc<UserKey>,
    pub(crate) entropy: Entropy,
    pub(crate) definition: Option<Digest>,
    pub(crate) build: Option<Digest>,
    pub(crate) circumstances: Circumstances,
    /// What the tool was given, as JSON.
    pub(crate) arguments: Option<String>,
    /// What it answered, as canonical JSON; none where that has none.
    pub(crate) data: Option<String>,
    pub(crate) error: Option<ErrorBody>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) ttl_seconds: Option<u32>,
    pub(crate) rules: Vec<(String, String)>,
    pub(crate) links: Vec<Link>,
    pub(crate) sources: Vec<Source>,
    pub(crate) key: Option<RecordedKey>,
    pub(crate) retention: Retention,
    pub(crate) keep_payload: Option<Duration>,
}

/// What the tool could see of the request besides its arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Circumstances {
    pub(crate) session_id: Option<String>,
    pub(crate) locale: Option<String>,
    pub(crate) currency: Option<String>,
    pub(crate) timezone: Option<String>,
    pub(crate) client: Option<Client>,
    pub(crate) ran_at: Option<Timestamp>,
}

/// The randomness of one record.
pub(crate) struct Entropy {
    pub(crate) arguments_salt: [u8; 32],
    pub(crate) data_salt: [u8; 32],
    pub(crate) nonce: [u8; 12],
}

/// Above this the redacted arguments stay out of the record.
const REDACTED_BYTES_MAX: usize = 8 * 1024;

/// A leaf's length is written in 16 bits; this leaves room.
const LEAF_BYTES_MAX: usize = 60 * 1024;

impl Draft {
    pub(crate) fn call(draft: CallDraft) -> Self {
        Self(Form::Call(Box::new(draft)))
    }

    /// The record's name.
    pub fn id(&self) -> &SnapshotId {
        match &self.0 {
            Form::Ready(entry) => &entry.id,
            Form::Plain(id, _) => id,
            Form::Call(draft) => &draft.id,
        }
    }

    /// The record as it is kept.
    pub fn seal(self) -> Entry {
        match self.0 {
            Form::Ready(entry) => *entry,
            // Whoever keeps a log is never given a plain one; its name is still worth keeping.
            Form::Plain(id, record) => {
                let at = record.at.parse().unwrap_or(Timestamp::UNIX_EPOCH);
                let act = Act {
                    kind: RecordKind::Call,
                    at,
                    user_id: String::new(),
                    actor: None,
                    about: Value::Null,
                    retention: Retention::Short,
                };
                act.entry(id, None)
            }
            Form::Call(draft) => draft.seal(),
        }
    }

    /// The plain record of a call, where it is one: for stores that outlive nothing.
    pub fn into_call_record(self) -> Option<CallRecord> {
        match self.0 {
            Form::Ready(_) => None,
            Form::Plain(_, record) => Some(*record),
            Form::Call(draft) => Some(*draft.record),
        }
    }

    /// The same, while the record is still to be sealed.
    pub fn call_record(&self) -> Option<&CallRecord> {
        match &self.0 {
            Form::Ready(_) => None,
            Form::Plain(_, record) => Some(record),
            Form::Call(draft) => Some(&draft.record),
        }
    }

    /// A record for a store that keeps no log.
    pub(crate) fn plain(id: SnapshotId, record: Box<CallRecord>) -> Self {
        Self(Form::Plain(id, record))
    }
}

/// Something that was done and is no call.
#[derive(Debug, Clone)]
pub struct Act {
    /// What it is a record of.
    pub kind: RecordKind,
    /// When it was done.
    pub at: Timestamp,
    /// About whom; empty where it is about nobody.
    pub user_id: String,
    /// Who did it.
    pub actor: Option<Actor>,
    /// What it was: names and numbers, nothing personal.
    pub about: Value,
    /// For how long its payload would be kept.
    pub retention: Retention,
}

impl Act {
    /// The record of it, with the key of the user that it is about.
    pub fn entry(self, id: SnapshotId, keys: Option<&UserKey>) -> Entry {
        let subject = keys
            .filter(|_| !self.user_id.is_empty())
            .map(|keys| keys.subject(&self.user_id));
        let actor = self.actor.as_ref().map(|actor| match keys {
            Some(keys) => recorded_actor(actor, &self.user_id, keys),
            None => RecordedActor {
                kind: actor.kind,
                id: actor.id.clone(),
            },
        });
        let record = EvidenceRecord {
            subject,
            actor,
            act: self.about,
            retention: self.retention,
            ..EvidenceRecord::new(self.kind, id.clone(), self.at.to_string())
        };
        Entry {
            id,
            user_id: self.user_id,
            kind: self.kind,
            at: self.at,
            request_id: None,
            tool: None,
            code: None,
            leaf: canonical_leaf(&record),
            payload: None,
            keep_payload: None,
        }
    }
}

impl From<Entry> for Draft {
    fn from(entry: Entry) -> Self {
        Self(Form::Ready(Box::new(entry)))
    }
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Draft({})", self.id())
    }
}

impl CallDraft {
    fn seal(self) -> Entry {
        let plain = self.payload_text();
        let aad = payload_aad(&self.record.user_id, &self.id);
        let sealed = self.keys.seal(self.entropy.nonce, &aad, plain.as_bytes());
        let (leaf, redacted_too_large) = self.leaf(Digest::of_bytes(&sealed));
        if redacted_too_large {
            tracing::warn!(record = %self.id, "the redacted arguments are too large for the log");
        }
        let is_known = self.record.tool_version.is_some();
        Entry {
            id: self.id,
            kind: self.kind,
            at: self.at,
            request_id: Some(self.record.request_id),
            tool: is_known.then_some(self.record.tool),
            code: self.record.code,
            user_id: self.record.user_id,
            leaf,
            payload: Some(sealed),
            keep_payload: self.keep_payload,
        }
    }

    fn leaf(&self, payload: Digest) -> (Vec<u8>, bool) {
        let mut record = self.evidence();
        record.payload = Some(payload);
        let mut too_large = false;
        if let Some(arguments) = &mut record.arguments {
            let bytes = canonical::to_vec(&arguments.redacted).map(|text| text.len());
            if !bytes.is_ok_and(|bytes| bytes <= REDACTED_BYTES_MAX) {
                arguments.redacted = Value::Null;
                too_large = true;
            }
        }
        let mut leaf = canonical_leaf(&record);
        if leaf.len() > LEAF_BYTES_MAX {
            record.sources.clear();
            leaf = canonical_leaf(&record);
        }
        (leaf, too_large)
    }

    fn evidence(&self) -> EvidenceRecord {
        let record = &self.record;
        let subject = self.keys.subject(&record.user_id);
        let person = |actor: &Actor| recorded_actor(actor, &record.user_id, &self.keys);
        let window = self.ttl_seconds.and_then(|ttl| {
            let ttl = SignedDuration::from_secs(ttl.into());
            self.answered_at.checked_add(ttl).ok()
        });
        let committed = |domain, salt, text: &String| seal::commit(domain, salt, text.as_bytes());
        EvidenceRecord {
            subject: Some(subject),
            request_id: Some(record.request_id.clone()),
            actor: Some(person(&record.actor)),
            principal: (self.principal.actor != record.actor)
                .then(|| person(&self.principal.actor)),
            delegation: self.principal.chain.iter().map(person).collect(),
            trace_id: record
                .trace
                .as_ref()
                .and_then(|trace| trace.trace_id.clone()),
            tool: Some(RecordedTool {
                name: match record.tool_version {
                    Some(_) => record.tool.clone(),
                    // What was asked for is the caller's text, which does not belong into a log.
                    None => "unknown".to_owned(),
                },
                version: record.tool_version.clone(),
                definition: self.definition,
                build: self.build,
            }),
            policy_revision: record.policy_revision.clone(),
            arguments: self.arguments.as_ref().map(|text| RecordedArguments {
                commitment: committed(seal::DOMAIN_ARGUMENTS, &self.entropy.arguments_salt, text),
                redacted: without_free_text(record.arguments_redacted.clone()),
            }),
            binding: record.binding.status.map(|_| record.binding.clone()),
            rules: self.rules.iter().cloned().collect(),
            idempotency: self.key.clone(),
            dry_run: record.dry_run,
            reply: Some(RecordedReply {
                code: record.code,
                commitment: self
                    .data
                    .as_ref()
                    .map(|text| committed(seal::DOMAIN_DATA, &self.entropy.data_salt, text)),
                ttl_seconds: self.ttl_seconds,
                valid_until: window.map(|until| until.to_string()),
            }),
            links: self.links.clone(),
            sources: self.sources.clone(),
            phases: Some(record.phases),
            retention: self.retention,
            ..EvidenceRecord::new(self.kind, self.id.clone(), self.at.to_string())
        }
    }

    /// The payload as JSON. Arguments and data are texts already, so they are put in as they are.
    fn payload_text(&self) -> String {
        #[derive(Serialize)]
        struct Plain<'a> {
            v: u8,
            user_id: &'a str,
            actor: &'a Actor,
            #[serde(skip_serializing_if = "Option::is_none")]
            session_id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            locale: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            currency: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            timezone: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            client: Option<&'a Client>,
            #[serde(skip_serializing_if = "Option::is_none")]
            ran_at: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<&'a ErrorBody>,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            warnings: &'a [Warning],
        }
        let seen = &self.circumstances;
        let plain = Plain {
            v: 1,
            user_id: &self.record.user_id,
            actor: &self.record.actor,
            session_id: seen.session_id.as_deref(),
            locale: seen.locale.as_deref(),
            currency: seen.currency.as_deref(),
            timezone: seen.timezone.as_deref(),
            client: seen.client.as_ref(),
            ran_at: seen.ran_at.map(|at| at.to_string()),
            error: self.error.as_ref(),
            warnings: &self.warnings,
        };
        let mut text = serde_json::to_string(&plain).expect("names, texts and JSON values");
        text.pop();
        for (name, salt, value) in [
            ("arguments", &self.entropy.arguments_salt, &self.arguments),
            ("data", &self.entropy.data_salt, &self.data),
        ] {
            if let Some(value) = value {
                text.push_str(",\"");
                text.push_str(name);
                text.push_str("\":{\"salt\":\"");
                for byte in salt {
                    text.push_str(HEX_PAIRS.get(usize::from(*byte)).map_or("", String::as_str));
                }
                text.push_str("\",\"value\":");
                text.push_str(value);
                text.push('}');
            }
        }
        text.push('}');
        text
    }
}

static HEX_PAIRS: std::sync::LazyLock<Vec<String>> =
    std::sync::LazyLock::new(|| (0..=255_u8).map(|byte| format!("{byte:02x}")).collect());

/// What a payload is sealed for: the record and the user it belongs to, so that one cannot be passed
/// off as another.
pub(crate) fn payload_aad(user_id: &str, id: &SnapshotId) -> Vec<u8> {
    [b"payload", user_id.as_bytes(), id.as_str().as_bytes()].join(&0)
}

/// The log is for ever, so free text does not stand in it: nobody can tell whether it names a person. What
/// is left are numbers, and texts of one ASCII word, such as ids, codes and choices.
fn without_free_text(value: Value) -> Value {
    match value {
        Value::String(text) if !is_word(&text) => "[text]".into(),
        Value::Array(items) => items.into_iter().map(without_free_text).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, member)| {
                let name = if is_word(&name) {
                    name
                } else {
                    "[text]".to_owned()
                };
                (name, without_free_text(member))
            })
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// The longest text that counts as a word.
const WORD_BYTES_MAX: usize = 64;

fn is_word(text: &str) -> bool {
    text.len() <= WORD_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A person by subject, a program by its id, unless that may be more than the name of a program.
pub(crate) fn recorded_actor(actor: &Actor, user_id: &str, keys: &UserKey) -> RecordedActor {
    let id = match actor.kind {
        ActorType::User => keys.subject(&actor.id),
        // A program that goes by the user's name would tell it.
        ActorType::Agent | ActorType::System if actor.id == user_id => keys.subject(user_id),
        ActorType::Agent | ActorType::System
            if !is_word(&actor.id) || !Detector::new().is_clean(&actor.id) =>
        {
            keys.subject(&actor.id)
        }
        ActorType::Agent | ActorType::System => actor.id.clone(),
    };
    RecordedActor {
        kind: actor.kind,
        id,
    }
}

/// The bytes of a record's leaf.
pub(crate) fn canonical_leaf(record: &EvidenceRecord) -> Vec<u8> {
    let value = serde_json::to_value(record).expect("names, texts and JSON values");
    canonical::to_vec(&value)
        .expect("numbers are small, and what the caller sent was checked before")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A21: what may name a person stays out of a record that cannot be erased.
    #[test]
    fn free_text_stays_out_of_the_log() {
        let arguments = json!({"sku": "SKU-1042", "n": 2, "note": "Zacharias Quuxington",
            "to": ["北京", "express"], "Ann Other": {"ok": true}});
        let expected = json!({"sku": "SKU-1042", "n": 2, "note": "[text]",
            "to": ["[text]", "express"], "[text]": {"ok": true}});
        assert_eq!(without_free_text(arguments), expected);
    }
}
