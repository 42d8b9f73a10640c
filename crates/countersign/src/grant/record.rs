//! The records of grants: that one was made, and that one was revoked. What it allows is sealed beside the record of its
//! making, and the reason beside that of its revocation.

use countersign_contract::evidence::Link;
use countersign_contract::{
    Actor, EvidenceRecord, Grant, RecordKind, Retention, SnapshotId, canonical,
};
use countersign_evidence::seal::UserKey;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::consent::{self, recorded_decider};
use crate::ids::IdSource;
use crate::ledger::Entry;
use crate::retention::RetentionPlan;
use crate::state::document::Stamp;

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
    /// Documents that are committed with the record.
    pub(super) stamps: &'a [Stamp],
}

/// The record of an event, and the link by which later records name it.
pub(super) fn entry(deed: &Deed<'_>) -> (Entry, Link) {
    let value = serde_json::to_value(deed.grant).expect("names, strings and numbers");
    let shown = canonical::to_string(&value).unwrap_or_else(|_| value.to_string());
    let user_id = &deed.grant.user_id;
    let record = EvidenceRecord {
        actor: Some(recorded_decider(deed.by, user_id, deed.keys)),
        retention: Retention::Long,
        act: about(deed),
        ..EvidenceRecord::new(RecordKind::Approval, deed.id.clone(), deed.at.to_string())
    };
    let deed = consent::Deed {
        user_id,
        by: deed.by,
        reason: deed.reason,
        shown: &shown,
        at: deed.at,
        keys: deed.keys,
        ids: deed.ids,
        retention: deed.retention,
        stamps: deed.stamps,
    };
    deed.entry(record)
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
