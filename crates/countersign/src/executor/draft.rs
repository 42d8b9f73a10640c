//! Hands everything that is known of a call to the scribe, which writes its record.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_contract::evidence::Retention;
use countersign_contract::{CallRecord, RecordKind, canonical};
use countersign_evidence::seal::UserKey;
use serde_json::{Map, Value};

use super::Executor;
use super::record::Recorded;
use super::trail::Facts;
use crate::authorize::Ruled;
use crate::budget::spent::Spent;
use crate::catalog::Entry;
use crate::context::Notes;
use crate::ledger::DocumentWrite;
use crate::scribe::{CallDraft, Draft, Entropy};
use crate::state::document::stamps;

/// State that is committed with a record.
#[derive(Default)]
pub(super) struct Written<'a> {
    pub(super) documents: &'a [DocumentWrite],
    pub(super) spent: Vec<Spent>,
}

impl Executor {
    /// The record of a call that has run.
    pub(super) fn draft(
        &self,
        recorded: &Recorded,
        keys: &Arc<UserKey>,
        record: Box<CallRecord>,
        facts: &Facts,
        written: &Written<'_>,
    ) -> Draft {
        let Notes {
            rules,
            links,
            inherited,
            sources,
            ..
        } = &recorded.notes;
        // A call that was barred after its key was claimed has not reached its tool.
        let kind = match facts.circumstances.ran_at {
            Some(_) => RecordKind::Call,
            None => RecordKind::Denial,
        };
        let blank = self.blank(kind, keys, record, facts);
        Draft::call(CallDraft {
            id: recorded.id.clone(),
            answered_at: recorded.at,
            data: recorded.data.clone(),
            error: recorded.reply.error.clone(),
            warnings: recorded.reply.warnings.clone(),
            ttl_seconds: recorded.reply.ttl_seconds,
            rules: rules.clone(),
            inherited: inherited.clone(),
            links: facts.links.iter().chain(links).cloned().collect(),
            sources: sources.clone(),
            stamps: stamps(written.documents),
            spent: written.spent.clone(),
            ..blank
        })
    }

    /// A draft with the fields that every record of a call has.
    pub(super) fn blank(
        &self,
        kind: RecordKind,
        keys: &Arc<UserKey>,
        record: Box<CallRecord>,
        facts: &Facts,
    ) -> CallDraft {
        let parts = &self.parts;
        let retention = match kind {
            RecordKind::Denial => Retention::Short,
            RecordKind::Call
            | RecordKind::Approval
            | RecordKind::Access
            | RecordKind::Erasure
            | RecordKind::Config
            | RecordKind::Intent
            | RecordKind::Resolution
            | RecordKind::Checkpoint => {
                let entry = facts.entry.as_ref();
                entry.map_or(Retention::Standard, |entry| {
                    entry.spec().behaviour.retention
                })
            }
        };
        let (raw, arguments) = kept_arguments(facts);
        let entry = facts.entry.as_deref();
        CallDraft {
            id: parts.ids.snapshot_id(),
            kind,
            at: facts.at,
            answered_at: facts.at,
            record,
            principal: facts.principal.clone(),
            keys: keys.clone(),
            entropy: self.entropy(),
            definition: entry.map(Entry::digest),
            build: parts.build.clone(),
            circumstances: facts.circumstances.clone(),
            is_id_chosen: facts.is_id_chosen,
            asked_tool: facts.asked_tool.clone(),
            raw,
            arguments,
            public: facts.public.clone(),
            is_redacted: facts.is_redacted,
            data: None,
            error: None,
            warnings: Vec::new(),
            ttl_seconds: None,
            rules: Vec::new(),
            inherited: BTreeMap::new(),
            links: Vec::new(),
            sources: entry.map_or_else(Vec::new, |entry| self.fixed_sources(entry, facts.at)),
            act: acted(self.played_from(facts.order), facts),
            key: facts.key.clone(),
            stamps: Vec::new(),
            spent: Vec::new(),
            retention,
            keep_payload: parts.retention.of(retention),
        }
    }

    fn entropy(&self) -> Entropy {
        let mut entropy = Entropy::default();
        let ids = &self.parts.ids;
        ids.fill(&mut entropy.salt);
        ids.fill(&mut entropy.nonce);
        entropy
    }
}

/// The member `act` with the conditional rules that hold for the call, the grant that answered for it, and the limit or budget
/// that refused it, if there are any. All of these are names of the policy, or ids.
fn acted(act: Value, facts: &Facts) -> Value {
    let [limit, budget] = &facts.refused_by;
    if facts.ruled.is_empty() && facts.grant_id.is_none() && limit.is_none() {
        return act;
    }
    let mut members = match act {
        Value::Object(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    if !facts.ruled.is_empty() {
        let recorded = facts.ruled.iter().map(Ruled::recorded).collect();
        members.insert("rules".to_owned(), recorded);
    }
    if let Some(id) = &facts.grant_id {
        members.insert("grant_id".to_owned(), (&**id).into());
    }
    for (name, value) in [("limit", limit), ("budget", budget)] {
        if let Some(value) = value {
            members.insert(name.to_owned(), value.as_str().into());
        }
    }
    Value::Object(members)
}

/// The text that was sent and the arguments that the tool is given, as the payload keeps them. A secret is in neither: a person who may open a
/// record may not use what others have entrusted to a tool. The text has no declared place for one, so it is left out.
fn kept_arguments(facts: &Facts) -> (Option<Arc<str>>, Option<String>) {
    let redaction = facts.entry.as_ref().map(|entry| &entry.redaction);
    let Some(redaction) = redaction.filter(|redaction| redaction.has_secrets()) else {
        return (facts.raw.clone(), facts.given.clone());
    };
    let given = facts.given.as_deref();
    let given = given.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let given = given.map(|mut value| {
        redaction.apply_to_secrets(&mut value);
        let text = value.to_string();
        canonical::from_json_text(&text).unwrap_or(text)
    });
    (None, given)
}
