//! The records of what operators do.

use countersign_contract::evidence::RecordedActor;
use countersign_contract::{EvidenceRecord, RecordKind, SnapshotId};
use countersign_evidence::seal::UserKey;
use serde_json::Value;

use super::Archive;
use crate::ledger::Entry;
use crate::principal::Principal;
use crate::scribe::canonical_leaf;

/// Something that an operator does.
pub(super) struct Deed<'a> {
    pub(super) kind: RecordKind,
    /// About whom; empty where it is about nobody.
    pub(super) user_id: &'a str,
    pub(super) keys: Option<&'a UserKey>,
    pub(super) by: &'a Principal,
    pub(super) about: Value,
}

impl Archive {
    pub(super) fn entry(&self, deed: &Deed<'_>) -> Entry {
        let record = self.blank(deed, self.ids.snapshot_id());
        self.entry_of(&record, deed.user_id)
    }

    /// The record of a deed.
    pub(super) fn blank(&self, deed: &Deed<'_>, id: SnapshotId) -> EvidenceRecord {
        let subject = deed
            .keys
            .filter(|_| !deed.user_id.is_empty())
            .map(|keys| keys.subject(deed.user_id));
        let actor = &deed.by.actor;
        // Whoever opens what others said answers for it by name, also when the user is erased; only a
        // user who does it to themselves is named as they are named everywhere.
        let by = match &subject {
            Some(subject) if actor.id == deed.user_id => subject.clone(),
            Some(_) | None => actor.id.clone(),
        };
        EvidenceRecord {
            subject,
            actor: Some(RecordedActor {
                kind: actor.kind,
                id: by,
            }),
            act: deed.about.clone(),
            ..EvidenceRecord::new(deed.kind, id, self.clock.now().to_string())
        }
    }

    /// What the store keeps of it.
    pub(super) fn entry_of(&self, record: &EvidenceRecord, user_id: &str) -> Entry {
        Entry {
            id: record.id.clone(),
            user_id: user_id.to_owned(),
            kind: record.kind,
            // The record holds the text of a time that was one.
            at: record.at.parse().unwrap_or_else(|_| self.clock.now()),
            request_id: None,
            tool: record.tool.as_ref().map(|tool| tool.name.clone()),
            code: None,
            leaf: canonical_leaf(record),
            payload: None,
            keep_payload: None,
        }
    }
}
