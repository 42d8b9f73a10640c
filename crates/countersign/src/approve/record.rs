//! The records of questions, answers and uses. The display that the person saw is sealed beside each of them.

use countersign_contract::evidence::{Link, RecordedActor, RecordedTool};
use countersign_contract::{
    Actor, EvidenceRecord, Language, RecordKind, Retention, SnapshotId, canonical,
};
use countersign_evidence::seal::UserKey;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::narrow::Cut;
use super::question::Question;
use crate::consent::{self, recorded_decider};
use crate::ids::IdSource;
use crate::ledger::{Entry, KeyDigest};
use crate::retention::RetentionPlan;
use crate::scribe::{Act, canonical_leaf, recorded_actor};
use crate::state::document::{Stamp, stamped};

/// Event of a question.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    Asked,
    /// The first of two approvers has approved.
    Confirmed,
    Approved,
    Denied,
    Used,
    Removed,
}

impl Event {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Confirmed => "confirmed",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Used => "used",
            Self::Removed => "removed",
        }
    }
}

/// The rendering of a question that the approver saw.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shown {
    pub(super) language: Language,
    /// True if the answer named the digest of what was rendered.
    pub(super) is_checked: bool,
}

/// The parts that the record of an event is made from.
pub(super) struct Deed<'a> {
    pub(super) question: &'a Question,
    pub(super) event: Event,
    pub(super) by: &'a Actor,
    pub(super) at: Timestamp,
    pub(super) keys: &'a UserKey,
    pub(super) ids: &'a dyn IdSource,
    pub(super) retention: &'a RetentionPlan,
    pub(super) shown: Shown,
    /// Parameters that the answer has made smaller.
    pub(super) narrowed: &'a [Cut],
    /// Documents that are committed with the record.
    pub(super) stamps: &'a [Stamp],
}

/// The record of an event, and the link by which later records name it. The display that the person saw is sealed
/// beside it, and kept as long as the evidence of the call.
pub(super) fn entry(deed: &Deed<'_>) -> (Entry, Link) {
    let Deed {
        question,
        event,
        by,
        at,
        keys,
        ids,
        retention,
        shown: how,
        narrowed,
        stamps,
    } = *deed;
    let shown = shown_text(question, event, at, how.language);
    let record = EvidenceRecord {
        actor: Some(actor_of(question, event, by, keys)),
        tool: Some(tool_of(question)),
        policy_revision: Some(question.policy_revision.clone()),
        retention: question.retention,
        act: about(question, event, &shown, how, narrowed, keys),
        ..EvidenceRecord::new(RecordKind::Approval, ids.snapshot_id(), at.to_string())
    };
    let deed = consent::Deed {
        user_id: &question.user_id,
        by,
        reason: None,
        shown: &shown,
        at,
        keys,
        ids,
        retention,
        stamps,
    };
    deed.entry(record)
}

/// The members of the record about an event: names, and digests under the user's own key, because a bare one of few
/// arguments could be guessed.
fn about(
    question: &Question,
    event: Event,
    shown: &str,
    how: Shown,
    narrowed: &[Cut],
    keys: &UserKey,
) -> Value {
    let mut about = Map::from_iter([
        ("event".to_owned(), json!(event.as_str())),
        ("approval".to_owned(), json!(question.id)),
        (
            "request".to_owned(),
            json!(question.recorded_request_id(keys).as_str()),
        ),
        ("call".to_owned(), json!(question.place(keys).id)),
    ]);
    match event {
        Event::Confirmed | Event::Approved | Event::Denied => {
            let digest = keys.index(["approval shown", shown].join("\0").as_bytes());
            about.insert("shown".to_owned(), KeyDigest(digest).to_string().into());
            about.insert("shown_checked".to_owned(), how.is_checked.into());
            about.insert("asked_at".to_owned(), question.asked_at.to_string().into());
            if !narrowed.is_empty() {
                // The names of declared parameters, and no value.
                let pointers = narrowed.iter().map(Cut::pointer).collect();
                about.insert("narrowed".to_owned(), pointers);
            }
        }
        Event::Asked | Event::Used | Event::Removed => {}
    }
    Value::Object(about)
}

fn actor_of(question: &Question, event: Event, by: &Actor, keys: &UserKey) -> RecordedActor {
    let user_id = &question.user_id;
    match event {
        Event::Confirmed | Event::Approved | Event::Denied => recorded_decider(by, user_id, keys),
        Event::Asked | Event::Used | Event::Removed => {
            recorded_actor(by, user_id, keys, *by == question.principal)
        }
    }
}

fn tool_of(question: &Question) -> RecordedTool {
    RecordedTool {
        name: question.tool.to_string(),
        version: Some(question.tool_version.clone()),
        definition: Some(question.definition),
        build: None,
    }
}

/// The question as the approver sees it, as canonical JSON. For an answer, the `shown_digest` is the digest of this
/// text; the answer itself is the record.
fn shown_text(question: &Question, event: Event, at: Timestamp, language: Language) -> String {
    let shown = match event {
        Event::Asked | Event::Confirmed | Event::Approved | Event::Denied => {
            return question.rendered(language);
        }
        Event::Used | Event::Removed => question.clone().shown_whole(at, language),
    };
    let value = serde_json::to_value(&shown).expect("names, strings and JSON values");
    let text = canonical::to_string(&value);
    text.unwrap_or_else(|_| serde_json::to_string(&value).expect("a JSON value"))
}

/// The record of an attempt to answer that was refused.
pub(super) fn refusal(
    question: &Question,
    by: &Actor,
    reason: &str,
    at: Timestamp,
    id: SnapshotId,
    keys: &UserKey,
    stamps: &[Stamp],
) -> Entry {
    let act = json!({"event": "refused", "approval": question.id, "reason": reason});
    let record = EvidenceRecord {
        subject: Some(keys.subject(&question.user_id)),
        actor: Some(recorded_actor(by, &question.user_id, keys, true)),
        tool: Some(tool_of(question)),
        policy_revision: Some(question.policy_revision.clone()),
        act: stamped(act, stamps),
        ..EvidenceRecord::new(RecordKind::Approval, id.clone(), at.to_string())
    };
    Entry {
        id,
        user_id: question.user_id.clone(),
        sealed_under: Some(keys.id()),
        kind: RecordKind::Approval,
        at,
        request_id: None,
        tool: Some(question.tool.to_string()),
        code: None,
        leaf: canonical_leaf(&record),
        payload: None,
        keep_payload: None,
    }
}

/// The record of a question that is removed because its user was erased.
pub(super) fn orphan(
    approval_id: &str,
    by: &Actor,
    at: Timestamp,
    id: SnapshotId,
    stamps: &[Stamp],
) -> Entry {
    let about = json!({"event": Event::Removed.as_str(), "approval": approval_id});
    let act = Act {
        kind: RecordKind::Approval,
        at,
        user_id: String::new(),
        actor: Some(by.clone()),
        about: stamped(about, stamps),
        retention: Retention::Short,
    };
    act.entry(id, None)
}
