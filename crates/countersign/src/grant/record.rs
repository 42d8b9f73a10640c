//! The records of grants: that one was made, and that one was revoked. What it allows is sealed beside the record of its
//! making, and the reason beside that of its revocation.

use countersign_contract::evidence::{Link, RecordedActor};
use countersign_contract::{
    Actor, Digest, EvidenceRecord, Grant, RecordKind, Retention, SnapshotId, canonical,
};
use countersign_evidence::seal::{self, UserKey};
use countersign_evidence::tree::leaf_hash;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::ids::IdSource;
use crate::ledger::Entry;
use crate::payload::{self, Plain};
use crate::retention::RetentionPlan;
use crate::scribe::{canonical_leaf, recorded_actor};

/// Event of a grant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    Granted,
    Revoked,
}

/// The parts that the record of an event is made from.
pub(super) struct Deed<'a> {
    pub(super) event: Event,
    pub(super) grant: &'a Grant,
    pub(super) by: &'a Actor,
    pub(super) reason: Option<&'a str>,
    pub(super) at: Timestamp,
    pub(super) id: SnapshotId,
    pub(super) keys: &'a UserKey,
    pub(super) ids: &'a dyn IdSource,
    pub(super) retention: &'a RetentionPlan,
}

/// The record of an event, and the link by which later records name it.
pub(super) fn entry(deed: &Deed<'_>) -> (Entry, Link) {
    let (grant, keys) = (deed.grant, deed.keys);
    let (mut salt, mut nonce) = ([0; 32], [0; 12]);
    deed.ids.fill(&mut salt);
    deed.ids.fill(&mut nonce);
    let value = serde_json::to_value(grant).expect("names, strings and numbers");
    let shown = canonical::to_string(&value).unwrap_or_else(|_| value.to_string());
    let plain = Plain {
        user_id: &grant.user_id,
        actor: Some(deed.by),
        reason: deed.reason,
        ..Plain::default()
    };
    let text = payload::text_of(&plain, &salt, &[("shown", &shown)]);
    let aad = payload::aad(&grant.user_id, &deed.id);
    let sealed = keys.seal(nonce, &aad, text.as_bytes());
    let salt = seal::salt_of(&salt, seal::DOMAIN_SHOWN);
    let record = EvidenceRecord {
        subject: Some(keys.subject(&grant.user_id)),
        actor: Some(actor_of(deed)),
        shown: Some(seal::commit(seal::DOMAIN_SHOWN, &salt, shown.as_bytes())),
        payload: Some(Digest::of_bytes(&sealed)),
        retention: Retention::Long,
        act: about(deed),
        ..EvidenceRecord::new(RecordKind::Approval, deed.id.clone(), deed.at.to_string())
    };
    let leaf = canonical_leaf(&record);
    let link = Link::rests_on(deed.id.clone(), Digest(leaf_hash(&leaf)));
    let entry = Entry {
        id: deed.id.clone(),
        user_id: grant.user_id.clone(),
        sealed_under: Some(keys.id()),
        kind: RecordKind::Approval,
        at: deed.at,
        request_id: None,
        tool: None,
        code: None,
        leaf,
        payload: Some(sealed),
        keep_payload: deed.retention.of(Retention::Long),
    };
    (entry, link)
}

/// The members of the record about an event: ids, names of tools and numbers. The agent and the condition are sealed.
fn about(deed: &Deed<'_>) -> Value {
    let grant = deed.grant;
    let mut about = Map::from_iter([("grant".to_owned(), json!(grant.id))]);
    match deed.event {
        Event::Granted => {
            about.insert("event".to_owned(), "granted".into());
            about.insert("tools".to_owned(), json!(grant.tools));
            about.insert("until".to_owned(), json!(grant.until));
            if let Some(calls) = grant.calls {
                about.insert("calls".to_owned(), calls.into());
            }
            if let Some(parent) = &grant.parent {
                about.insert("parent".to_owned(), json!(parent));
            }
        }
        Event::Revoked => {
            about.insert("event".to_owned(), "grant_revoked".into());
        }
    }
    Value::Object(about)
}

/// The actor for the record. An approver who acts for other users is recorded by name.
fn actor_of(deed: &Deed<'_>) -> RecordedActor {
    let by = deed.by;
    if by.id != deed.grant.user_id {
        return RecordedActor {
            kind: by.kind,
            id: by.id.clone(),
        };
    }
    recorded_actor(by, &deed.grant.user_id, deed.keys, true)
}
