//! The records of operators' acts. The operator's own words are sealed: they may name a person.

use countersign_contract::evidence::RecordedActor;
use countersign_contract::{EvidenceRecord, RecordKind, Retention, SnapshotId};
use countersign_evidence::seal::UserKey;
use serde_json::Value;

use super::{Archive, Error};
use crate::ledger::Entry;
use crate::payload::{self, Plain};
use crate::principal::Principal;
use crate::retention::RetentionPlan;
use crate::scribe::{Entropy, canonical_leaf};
use crate::vault::SHARED;

/// An operator's act.
pub(super) struct Deed<'a> {
    pub(super) kind: RecordKind,
    /// The user that it is about; empty if it is about no user.
    pub(super) user_id: &'a str,
    pub(super) keys: Option<&'a UserKey>,
    pub(super) by: &'a Principal,
    pub(super) about: Value,
    /// The reason, in the operator's words.
    pub(super) reason: &'a str,
}

impl Archive {
    /// The record of an act, with its reason sealed under the key of the user that it is about. The reason of an
    /// erasure has no such key any more: it is sealed under the key for data without a user, and its retention is
    /// short.
    pub(super) async fn entry(&self, deed: &Deed<'_>) -> Result<Entry, Error> {
        let id = self.ids.snapshot_id();
        let mut record = self.blank(deed, id);
        let is_erasure = deed.kind == RecordKind::Erasure;
        let shared;
        let (owner, keys) = match deed.keys {
            Some(keys) if !is_erasure => (deed.user_id, Some(keys)),
            Some(_) | None if is_erasure || deed.user_id.is_empty() => {
                shared = self.vault.key(SHARED).await?;
                (SHARED, Some(&*shared))
            }
            Some(_) | None => (deed.user_id, None),
        };
        record.retention = if is_erasure {
            Retention::Short
        } else {
            Retention::Long
        };
        let entropy = self.entropy();
        let sealed =
            keys.map(|keys| Self::seal(&entropy, (owner, keys), deed.reason, &mut record, &[]));
        let mut entry = self.entry_of(&record, deed.user_id);
        // An erasure destroys the key that names its user, in the very commit that keeps its record.
        entry.sealed_under = deed.keys.filter(|_| !is_erasure).map(UserKey::id);
        entry.payload = sealed;
        entry.keep_payload = RetentionPlan::default().of(record.retention);
        Ok(entry)
    }

    /// Seals the reason and these members for the record, which from here on names the sealed bytes.
    pub(super) fn seal(
        entropy: &Entropy,
        (owner, keys): (&str, &UserKey),
        reason: &str,
        record: &mut EvidenceRecord,
        exact: &[(&str, &str)],
    ) -> Vec<u8> {
        let plain = Plain {
            user_id: owner,
            reason: Some(reason),
            ..Plain::default()
        };
        payload::seal(&plain, entropy, keys, record, exact)
    }

    pub(super) fn entropy(&self) -> Entropy {
        let mut entropy = Entropy::default();
        self.ids.fill(&mut entropy.salt);
        self.ids.fill(&mut entropy.nonce);
        entropy
    }

    /// The record of a deed, before anything is sealed.
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

    /// The entry that the store keeps of a record.
    pub(super) fn entry_of(&self, record: &EvidenceRecord, user_id: &str) -> Entry {
        Entry {
            id: record.id.clone(),
            user_id: user_id.to_owned(),
            sealed_under: None,
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
