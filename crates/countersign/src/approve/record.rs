//! The records of questions, answers and uses: names, numbers and digests, nothing personal.

use countersign_contract::evidence::{Link, RecordedActor, RecordedTool};
use countersign_contract::{Actor, Digest, EvidenceRecord, RecordKind, Retention, SnapshotId};
use countersign_evidence::seal::UserKey;
use countersign_evidence::tree::leaf_hash;
use jiff::Timestamp;
use serde_json::json;

use super::question::Question;
use crate::ledger::Entry;
use crate::scribe::{Act, canonical_leaf, recorded_actor};

/// What happened to a question.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    Asked,
    Approved,
    Denied,
    Used,
    Removed,
}

impl Event {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Used => "used",
            Self::Removed => "removed",
        }
    }
}

/// The record of an event, and how later records name it.
pub(super) fn entry(
    question: &Question,
    event: Event,
    by: &Actor,
    at: Timestamp,
    id: SnapshotId,
    keys: &UserKey,
) -> (Entry, Link) {
    let mut about = json!({
        "event": event.as_str(),
        "approval": question.id,
        "request": question.request_id.as_str(),
        // A digest under the user's own key: a bare one of few arguments could be guessed.
        "call": question.place(keys).id,
    });
    if let (Some(ceiling), Some(about)) = (&question.ceiling, about.as_object_mut()) {
        about.insert("ceiling".to_owned(), json!(ceiling));
    }
    let record = EvidenceRecord {
        subject: Some(keys.subject(&question.user_id)),
        actor: Some(match event {
            // Whoever answers for others answers by name.
            Event::Approved | Event::Denied if by.id != question.user_id => RecordedActor {
                kind: by.kind,
                id: by.id.clone(),
            },
            Event::Asked | Event::Approved | Event::Denied | Event::Used | Event::Removed => {
                recorded_actor(by, &question.user_id, keys)
            }
        }),
        tool: Some(RecordedTool {
            name: question.tool.to_string(),
            version: Some(question.tool_version.clone()),
            definition: Some(question.definition),
            build: None,
        }),
        policy_revision: Some(question.policy_revision.clone()),
        act: about,
        ..EvidenceRecord::new(RecordKind::Approval, id.clone(), at.to_string())
    };
    let leaf = canonical_leaf(&record);
    let link = Link {
        id: id.clone(),
        leaf: Digest(leaf_hash(&leaf)),
    };
    let entry = Entry {
        id,
        user_id: question.user_id.clone(),
        kind: RecordKind::Approval,
        at,
        request_id: None,
        tool: Some(question.tool.to_string()),
        code: None,
        leaf,
        payload: None,
        keep_payload: None,
    };
    (entry, link)
}

/// The record of what is removed because its user was erased.
pub(super) fn orphan(approval_id: &str, by: &Actor, at: Timestamp, id: SnapshotId) -> Entry {
    let act = Act {
        kind: RecordKind::Approval,
        at,
        user_id: String::new(),
        actor: Some(by.clone()),
        about: json!({"event": Event::Removed.as_str(), "approval": approval_id}),
        retention: Retention::Short,
    };
    act.entry(id, None)
}
