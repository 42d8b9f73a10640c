//! The scribe: writes the record of a call and seals its payload.
//!
//! A record is permanent, so nothing gets into it by default: it has commitments, ids that the gateway made, keyed
//! digests of values that others chose, and values that the declaration marks as harmless. Everything else is in the
//! payload.
//!
//! Sealing needs the user's key, salts and a nonce, all of which are in the draft. So it is pure computation that a
//! store may do off the path of a caller who does not wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use countersign_contract::envelope::{Client, Warning};
use countersign_contract::evidence::{
    EvidenceRecord, Link, LinkRole, RecordedActor, RecordedArguments, RecordedCredential,
    RecordedKey, RecordedReply, RecordedTool, Retention,
};
use countersign_contract::{
    Actor, ActorType, CallRecord, Digest, ErrorBody, RecordKind, RequestId, SnapshotId, Source,
    canonical,
};
use countersign_evidence::seal::{self, KeyId, UserKey};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use crate::budget::spent::{self, Spent};
use crate::ledger::Entry;
use crate::payload::{self, Plain};
use crate::principal::{Credential, Principal};
use crate::redact::Detector;
use crate::state::document::{Stamp, stamped};

/// A record that is not sealed yet.
pub struct Draft(Form);

enum Form {
    Ready(Box<Entry>),
    /// For a store that keeps no log.
    Plain(SnapshotId, Box<CallRecord>),
    Call(Box<CallDraft>),
}

/// The digest of the running program, computed when a record first needs it.
#[derive(Clone)]
#[expect(clippy::type_complexity, reason = "it is named here, and nowhere else")]
pub struct Build(Arc<LazyLock<Option<Digest>, Box<dyn FnOnce() -> Option<Digest> + Send>>>);

impl Build {
    /// A digest that this function computes, once, when a record first needs it; `None` if it cannot be computed.
    pub fn lazily(compute: impl FnOnce() -> Option<Digest> + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(compute))))
    }

    /// The digest; the first caller waits until it is computed.
    pub fn digest(&self) -> Option<Digest> {
        **self.0
    }
}

impl From<Digest> for Build {
    fn from(digest: Digest) -> Self {
        Self::lazily(move || Some(digest))
    }
}

impl std::fmt::Debug for Build {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Build(..)")
    }
}

/// Everything that is known of a call when it ends.
pub(crate) struct CallDraft {
    pub(crate) id: SnapshotId,
    pub(crate) kind: RecordKind,
    pub(crate) at: Timestamp,
    /// Time of the answer; its window counts from here.
    pub(crate) answered_at: Timestamp,
    pub(crate) record: Box<CallRecord>,
    /// The principal whose credential proved the call.
    pub(crate) principal: Arc<Principal>,
    pub(crate) keys: Arc<UserKey>,
    pub(crate) entropy: Entropy,
    pub(crate) definition: Option<Digest>,
    pub(crate) build: Option<Build>,
    pub(crate) circumstances: Circumstances,
    /// True if the caller chose the request id.
    pub(crate) is_id_chosen: bool,
    /// The tool name that was asked for, if there is no such tool.
    pub(crate) asked_tool: Option<String>,
    /// The arguments as they were sent; `None` if the user isn't known, because no user's key would seal them.
    pub(crate) raw: Option<Arc<str>>,
    /// The arguments that the tool was given, as canonical JSON if they have such a form.
    pub(crate) arguments: Option<String>,
    /// The harmless arguments, by the declaration.
    pub(crate) public: Value,
    /// True if something in the arguments was replaced for their redacted form.
    pub(crate) is_redacted: bool,
    /// The answer as canonical JSON; `None` if it has no such form.
    pub(crate) data: Option<String>,
    pub(crate) error: Option<ErrorBody>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) ttl_seconds: Option<u32>,
    pub(crate) rules: Vec<(String, String)>,
    pub(crate) inherited: BTreeMap<String, BTreeSet<String>>,
    pub(crate) links: Vec<Link>,
    pub(crate) sources: Vec<Source>,
    /// The recording that answered in the tool's place; null where the tool was asked.
    pub(crate) act: Value,
    pub(crate) key: Option<RecordedKey>,
    /// Documents that are committed with the record.
    pub(crate) stamps: Vec<Stamp>,
    /// Amounts that are spent with the record.
    pub(crate) spent: Vec<Spent>,
    pub(crate) retention: Retention,
    pub(crate) keep_payload: Option<Duration>,
}

/// Members of the request that the tool could see besides its arguments.
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
#[derive(Default)]
pub(crate) struct Entropy {
    pub(crate) salt: [u8; 32],
    pub(crate) nonce: [u8; 12],
}

/// Member of `act` with the session of a call, by its pseudonym.
pub const SESSION: &str = "session";

/// Maximum size of a leaf: its length is written in 16 bits, and this leaves room.
const LEAF_BYTES_MAX: usize = 60 * 1024;

impl Draft {
    pub(crate) fn call(draft: CallDraft) -> Self {
        Self(Form::Call(Box::new(draft)))
    }

    /// The record's id.
    pub fn id(&self) -> &SnapshotId {
        match &self.0 {
            Form::Ready(entry) => &entry.id,
            Form::Plain(id, _) => id,
            Form::Call(draft) => &draft.id,
        }
    }

    /// The user that it is about; empty if it is about no user.
    pub fn user_id(&self) -> &str {
        match &self.0 {
            Form::Ready(entry) => &entry.user_id,
            Form::Plain(_, record) => &record.user_id,
            Form::Call(draft) => &draft.record.user_id,
        }
    }

    /// The bytes that it takes while it waits, about.
    pub fn bytes(&self) -> usize {
        /// Estimated size of a record without its texts, in bytes.
        const FRAME: usize = 2_048;
        let texts = match &self.0 {
            Form::Ready(entry) => entry.leaf.len() + entry.payload.as_ref().map_or(0, Vec::len),
            Form::Plain(..) => 0,
            Form::Call(draft) => {
                let raw = draft.raw.as_ref().map_or(0, |raw| raw.len());
                let arguments = draft.arguments.as_ref().map_or(0, String::len);
                raw + arguments + draft.data.as_ref().map_or(0, String::len)
            }
        };
        texts.saturating_add(FRAME)
    }

    /// The user's key that it is sealed under.
    pub fn sealed_under(&self) -> Option<KeyId> {
        match &self.0 {
            Form::Ready(entry) => entry.sealed_under,
            Form::Plain(..) => None,
            Form::Call(draft) => Some(draft.keys.id()),
        }
    }

    /// The record in the form that is stored.
    pub fn seal(self) -> Entry {
        self.seal_for_commit(false).0
    }

    /// The record of a commit, in the form that is stored; and the one in its place if the commit may be fenced, and then
    /// writes nothing but its record.
    pub fn seal_for_commit(self, may_be_fenced: bool) -> (Entry, Option<FencedRecord>) {
        let entry = match self.0 {
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
            Form::Call(draft) => return draft.seal(may_be_fenced),
        };
        (entry, None)
    }

    /// The plain record, if it is of a call: for stores whose data ends with the process.
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

/// State of a key whose owner was overtaken: the call wrote nothing but its record.
pub(crate) const FENCED: &str = "fenced";

/// The record of a call whose owner was overtaken.
#[derive(Debug)]
pub struct FencedRecord(Box<EvidenceRecord>);

impl FencedRecord {
    /// The bytes of its leaf.
    pub fn leaf(&self) -> Vec<u8> {
        bounded_leaf(&self.0)
    }
}

/// An event that is not a call.
#[derive(Debug, Clone)]
pub struct Act {
    /// Kind of the record.
    pub kind: RecordKind,
    /// Time of the event.
    pub at: Timestamp,
    /// The user that it is about; empty if it is about no user.
    pub user_id: String,
    /// The actor.
    pub actor: Option<Actor>,
    /// Details of the event: names and numbers, nothing personal.
    pub about: Value,
    /// Retention of its payload.
    pub retention: Retention,
}

impl Act {
    /// The record of it, with the key of the user that it is about.
    pub fn entry(self, id: SnapshotId, keys: Option<&UserKey>) -> Entry {
        self.entry_of_call(id, keys, None)
    }

    /// The record of an event within a call, which is found by the request id of the call. The id is the one that the
    /// log has: a digest if the caller chose it.
    pub(crate) fn entry_of_call(
        self,
        id: SnapshotId,
        keys: Option<&UserKey>,
        request_id: Option<RequestId>,
    ) -> Entry {
        let record = self.record(id, keys, request_id);
        self.entry_with(&record, keys)
    }

    /// The record of the event, before it is kept: more may be written into it.
    pub(crate) fn record(
        &self,
        id: SnapshotId,
        keys: Option<&UserKey>,
        request_id: Option<RequestId>,
    ) -> EvidenceRecord {
        let subject = keys
            .filter(|_| !self.user_id.is_empty())
            .map(|keys| keys.subject(&self.user_id));
        let actor = self.actor.as_ref().map(|actor| match keys {
            Some(keys) => recorded_actor(actor, &self.user_id, keys, true),
            None => RecordedActor {
                kind: actor.kind,
                id: actor.id.clone(),
            },
        });
        EvidenceRecord {
            request_id,
            subject,
            actor,
            act: self.about.clone(),
            retention: self.retention,
            ..EvidenceRecord::new(self.kind, id, self.at.to_string())
        }
    }

    /// The entry that the store keeps of the event's [record](Self::record).
    pub(crate) fn entry_with(self, record: &EvidenceRecord, keys: Option<&UserKey>) -> Entry {
        Entry {
            id: record.id.clone(),
            sealed_under: keys.map(UserKey::id),
            user_id: self.user_id,
            kind: self.kind,
            at: self.at,
            request_id: record.request_id.clone(),
            tool: None,
            code: None,
            leaf: canonical_leaf(record),
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
    fn seal(self, may_be_fenced: bool) -> (Entry, Option<FencedRecord>) {
        let raw = self.raw_beside_arguments();
        let plain = self.payload_text(raw);
        let aad = payload::aad(&self.record.user_id, &self.id);
        let sealed = self.keys.seal(self.entropy.nonce, &aad, plain.as_bytes());
        let record = self.evidence(raw, Digest::of_bytes(&sealed));
        let leaf = bounded_leaf(&record);
        let request_id = record.request_id.clone();
        let fenced = may_be_fenced.then(|| {
            FencedRecord(Box::new(EvidenceRecord {
                act: self.act_in_session(),
                idempotency: record.idempotency.clone().map(|key| RecordedKey {
                    state: FENCED.to_owned(),
                    ..key
                }),
                ..record
            }))
        });
        let is_known = self.record.tool_version.is_some();
        let entry = Entry {
            id: self.id,
            sealed_under: Some(self.keys.id()),
            kind: self.kind,
            at: self.at,
            request_id,
            tool: is_known.then_some(self.record.tool),
            code: self.record.code,
            user_id: self.record.user_id,
            leaf,
            payload: Some(sealed),
            keep_payload: self.keep_payload,
        };
        (entry, fenced)
    }

    /// The text that was sent, unless it is the same as the arguments: then it is stored once.
    fn raw_beside_arguments(&self) -> Option<&str> {
        let raw = self.raw.as_deref()?;
        (self.arguments.as_deref() != Some(raw)).then_some(raw)
    }

    fn evidence(&self, raw: Option<&str>, payload: Digest) -> EvidenceRecord {
        let record = &self.record;
        let person = |actor: &Actor, is_proved: bool| {
            recorded_actor(actor, &record.user_id, &self.keys, is_proved)
        };
        let proved = &self.principal.actor;
        let window = self.ttl_seconds.and_then(|ttl| {
            let ttl = SignedDuration::from_secs(ttl.into());
            self.answered_at.checked_add(ttl).ok()
        });
        let commit = |domain, text: Option<&str>| {
            let salt = || seal::salt_of(&self.entropy.salt, domain);
            text.map(|text| seal::commit(domain, &salt(), text.as_bytes()))
        };
        let has_arguments = raw.is_some() || self.arguments.is_some();
        EvidenceRecord {
            subject: Some(self.keys.subject(&record.user_id)),
            request_id: Some(recorded_request_id(
                &record.request_id,
                self.is_id_chosen,
                &self.keys,
            )),
            actor: Some(person(&record.actor, record.actor == *proved)),
            principal: (*proved != record.actor).then(|| person(proved, true)),
            delegation: self
                .principal
                .chain
                .iter()
                .map(|it| person(it, true))
                .collect(),
            credential: self.credential(),
            tool: Some(self.tool()),
            policy_revision: record.policy_revision.clone(),
            arguments: has_arguments.then(|| RecordedArguments {
                commitment: commit(seal::DOMAIN_ARGUMENTS, self.arguments.as_deref()),
                raw: commit(seal::DOMAIN_RAW, raw),
                public: self.public.clone(),
                redacted: Value::Null,
            }),
            binding: record.binding.status.map(|_| record.binding.clone()),
            rules: self.rules.iter().cloned().collect(),
            inherited_rules: self.inherited(),
            idempotency: self.key.clone(),
            dry_run: record.dry_run,
            reply: Some(RecordedReply {
                code: record.code,
                commitment: commit(seal::DOMAIN_DATA, self.data.as_deref()),
                ttl_seconds: self.ttl_seconds,
                valid_until: window.map(|until| until.to_string()),
            }),
            links: self.links(),
            phases: Some(record.phases),
            payload: Some(payload),
            retention: self.retention,
            act: spent::stamped(stamped(self.act_in_session(), &self.stamps), &self.spent),
            ..EvidenceRecord::new(self.kind, self.id.clone(), self.at.to_string())
        }
    }

    /// The act with the session, by its pseudonym. A call whose user isn't known has none: its key is shared by all such.
    fn act_in_session(&self) -> Value {
        let name = self.circumstances.session_id.as_deref();
        let Some(name) = name.filter(|_| !self.record.user_id.is_empty()) else {
            return self.act.clone();
        };
        let mut members = match &self.act {
            Value::Object(members) => members.clone(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        };
        members.insert(SESSION.to_owned(), self.keys.session(name).into());
        Value::Object(members)
    }

    fn credential(&self) -> Option<RecordedCredential> {
        Some(match self.principal.credential.as_ref()? {
            Credential::ApiKey { id } => RecordedCredential::ApiKey { id: id.clone() },
            Credential::Token { issuer, jti } => RecordedCredential::Token {
                issuer: issuer.clone(),
                id: jti.as_ref().map(|jti| self.keys.chosen("jti", jti)),
            },
        })
    }

    fn tool(&self) -> RecordedTool {
        let record = &self.record;
        RecordedTool {
            name: match record.tool_version {
                Some(_) => record.tool.clone(),
                // The name that was asked for is the caller's text; the payload has it.
                None => "unknown".to_owned(),
            },
            version: record.tool_version.clone(),
            definition: self.definition,
            build: self.build.as_ref().and_then(Build::digest),
        }
    }

    fn has_failed(&self) -> bool {
        self.record.code.is_some()
    }

    /// The rule sets of the answers that a call rests on; a failed call rests on nothing.
    fn inherited(&self) -> BTreeMap<String, BTreeSet<String>> {
        if self.has_failed() {
            return BTreeMap::new();
        }
        self.inherited.clone()
    }

    /// The links of a call. A failed call rests on nothing: it only looked.
    fn links(&self) -> Vec<Link> {
        let has_failed = self.has_failed();
        let links = self.links.iter().cloned();
        links
            .map(|link| match link.role {
                Some(LinkRole::RestsOn) if has_failed => Link::looked_at(link.id, link.leaf),
                Some(LinkRole::RestsOn | LinkRole::LookedAt) | None => link,
            })
            .collect()
    }

    /// The payload as JSON. Arguments and data are texts already, so they are put in as they are.
    fn payload_text(&self, raw: Option<&str>) -> String {
        let record = &self.record;
        let seen = &self.circumstances;
        let jti = match &self.principal.credential {
            Some(Credential::Token { jti, .. }) => jti.as_deref(),
            Some(Credential::ApiKey { .. }) | None => None,
        };
        let redacted = &record.arguments_redacted;
        let plain = Plain {
            user_id: &record.user_id,
            actor: Some(&record.actor),
            request_id: self.is_id_chosen.then_some(&record.request_id),
            tool: self.asked_tool.as_deref(),
            jti,
            session_id: seen.session_id.as_deref(),
            locale: seen.locale.as_deref(),
            currency: seen.currency.as_deref(),
            timezone: seen.timezone.as_deref(),
            client: seen.client.as_ref(),
            trace: record.trace.as_ref(),
            ran_at: seen.ran_at.map(|at| at.to_string()),
            raw,
            redacted: self.is_redacted.then_some(redacted),
            error: self.error.as_ref(),
            warnings: &self.warnings,
            sources: &self.sources,
            reason: None,
        };
        let texts = [("arguments", &self.arguments), ("data", &self.data)];
        let texts = texts
            .into_iter()
            .filter_map(|(name, text)| Some((name, text.as_deref()?)));
        payload::text_of(&plain, &self.entropy.salt, &texts.collect::<Vec<_>>())
    }
}

/// The request id as the record names it: unchanged if the gateway made it, a keyed digest if the caller chose it.
pub(crate) fn recorded_request_id(id: &RequestId, is_chosen: bool, keys: &UserKey) -> RequestId {
    if is_chosen {
        keys.request_id(id)
    } else {
        id.clone()
    }
}

/// The leaf within its maximum size. Harmless arguments are there for convenience only, so they are dropped if a leaf
/// grows too long.
fn bounded_leaf(record: &EvidenceRecord) -> Vec<u8> {
    let leaf = canonical_leaf(record);
    if leaf.len() <= LEAF_BYTES_MAX {
        return leaf;
    }
    let mut shorter = record.clone();
    if let Some(arguments) = &mut shorter.arguments {
        arguments.public = Value::Null;
    }
    canonical_leaf(&shorter)
}

/// An actor as the log names it. A person is a digest under the user's key, and so is a program that only the envelope
/// names, that has the user's own name, or whose name looks personal.
pub(crate) fn recorded_actor(
    actor: &Actor,
    user_id: &str,
    keys: &UserKey,
    is_proved: bool,
) -> RecordedActor {
    let is_program = match actor.kind {
        ActorType::User => false,
        ActorType::Agent | ActorType::System => true,
    };
    let is_plain = is_program
        && is_proved
        && actor.id != user_id
        && actor.id.len() <= PROGRAM_BYTES_MAX
        && actor.id.bytes().all(|byte| byte.is_ascii_graphic())
        && Detector::new().is_clean(&actor.id);
    RecordedActor {
        kind: actor.kind,
        id: if is_plain {
            actor.id.clone()
        } else {
            keys.subject(&actor.id)
        },
    }
}

/// Maximum length of a program name in a record.
const PROGRAM_BYTES_MAX: usize = 64;

/// The bytes of a record's leaf.
pub(crate) fn canonical_leaf(record: &EvidenceRecord) -> Vec<u8> {
    let value = serde_json::to_value(record).expect("names, texts and JSON values");
    canonical::to_vec(&value)
        .expect("numbers are small, and what the caller sent was checked before")
}
