//! A recorded call, opened. Every opening is recorded before it is done (A22).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use countersign_args::Arguments;
use countersign_contract::envelope::Client;
use countersign_contract::evidence::{Exact, Payload};
use countersign_contract::{
    Actor, ConflictReason, Digest, ErrorBody, ErrorCode, EvidenceRecord, FaultSource, RecordKind,
    RequestId, Retention,
};
use countersign_evidence::bundle::Value;
use countersign_evidence::seal::UserKey;
use jiff::Timestamp;
use serde_json::json;

use super::{Breach, Error, Replayer};
use crate::ledger::{Durability, StoredRecord};
use crate::payload::Opened;
use crate::scribe::{Act, Draft};

/// A recorded call: everything that a tool needs to compute it again.
#[derive(Clone, PartialEq)]
pub struct RecordedCall {
    /// The canonical name of the tool.
    pub tool: String,
    /// Request id of the call.
    pub request_id: Option<RequestId>,
    /// The user on whose behalf it ran.
    pub user_id: String,
    /// The actor who triggered it.
    pub actor: Option<Actor>,
    /// The conversation or visit.
    pub session_id: Option<String>,
    /// Locale, BCP 47.
    pub locale: Option<String>,
    /// Currency, ISO 4217.
    pub currency: Option<String>,
    /// Time zone, IANA.
    pub timezone: Option<String>,
    /// The application in front of the user.
    pub client: Option<Client>,
    /// The tool's clock at the time of the call.
    pub ran_at: Timestamp,
    /// The arguments as they were sent, byte for byte; in records of version 1 what the tool was given.
    pub raw: String,
    /// The arguments that the tool was given.
    pub arguments: Arguments,
    /// The rule sets that it asked for: name and version.
    pub rules: BTreeMap<String, String>,
    /// True if it was a dry run.
    pub dry_run: bool,
    /// The tool's answer; `None` if it failed, or if the answer has no canonical form.
    pub data: Option<serde_json::Value>,
    /// The error code; `None` if the call succeeded.
    pub code: Option<ErrorCode>,
}

/// Names the call only: everything else is personal data.
impl fmt::Debug for RecordedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedCall")
            .field("tool", &self.tool)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

/// Result of opening a recorded call.
pub(super) enum Found {
    Call(Box<RecordedCall>),
    NotRun,
    Erased,
    Gone,
    Broken(Breach),
}

impl Replayer {
    /// The call of a record, with everything in it checked against the record.
    pub(super) async fn found(
        &self,
        stored: &StoredRecord,
        record: &EvidenceRecord,
    ) -> Result<Found, Error> {
        if record.kind != RecordKind::Call {
            return Ok(Found::NotRun);
        }
        let Some(sealed) = &stored.payload else {
            return Ok(if stored.row.user_id.is_empty() {
                Found::Erased
            } else {
                Found::Gone
            });
        };
        if record.payload != Some(Digest::of_bytes(sealed)) {
            return Ok(Found::Broken(Breach::OtherPayload));
        }
        let Some(keys) = self.vault.existing_key(&stored.row.user_id).await? else {
            return Ok(Found::Erased);
        };
        let opened = match self.open(stored, sealed, &keys).await? {
            Ok(opened) => opened,
            Err(breach) => return Ok(Found::Broken(breach)),
        };
        if let Some(breach) = breaches(&opened, record).into_iter().next() {
            return Ok(Found::Broken(breach));
        }
        Ok(match call_of(opened.payload, record) {
            Some(call) => Found::Call(Box::new(call)),
            None => Found::NotRun,
        })
    }

    /// Opens a payload, after the access was recorded.
    pub(super) async fn open(
        &self,
        stored: &StoredRecord,
        sealed: &[u8],
        keys: &Arc<UserKey>,
    ) -> Result<Result<Opened, Breach>, Error> {
        let (id, user_id) = (&stored.row.id, &stored.row.user_id);
        let act = Act {
            kind: RecordKind::Access,
            at: self.clock.now(),
            user_id: user_id.clone(),
            actor: Some(self.by.actor.clone()),
            about: json!({"event": "open", "record": id.as_str(), "reason": "replay"}),
            retention: Retention::Standard,
        };
        let entry = act.entry(self.ids.snapshot_id(), Some(keys));
        let draft = Draft::from(entry);
        self.store.append(draft, Durability::Committed).await?;
        Ok(Opened::open(keys, user_id, id, sealed).map_err(|_| Breach::Unopenable))
    }
}

/// The values in a payload that differ from what its record commits to.
pub(super) fn breaches(opened: &Opened, record: &EvidenceRecord) -> Vec<Breach> {
    let differing = opened.differing(record).into_iter();
    differing
        .map(|value| match value {
            Value::Arguments => Breach::OtherArguments,
            Value::Data => Breach::OtherData,
            Value::Raw => Breach::OtherText,
            Value::Shown => Breach::OtherQuestion,
        })
        .collect()
}

/// The call; `None` if the tool was not run, or if the gateway refused after the run.
fn call_of(payload: Payload, record: &EvidenceRecord) -> Option<RecordedCall> {
    if payload.error.as_ref().is_some_and(is_of_gateway) {
        return None;
    }
    let code = record.reply.as_ref().and_then(|reply| reply.code);
    let data = payload.data.as_ref().map(Exact::value);
    let arguments = payload.arguments.as_ref()?.text();
    Some(RecordedCall {
        tool: record.tool.as_ref()?.name.clone(),
        request_id: payload.request_id.or_else(|| record.request_id.clone()),
        user_id: payload.user_id,
        actor: payload.actor,
        session_id: payload.session_id,
        locale: payload.locale,
        currency: payload.currency,
        timezone: payload.timezone,
        client: payload.client,
        ran_at: payload.ran_at?.parse().ok()?,
        raw: payload.raw.unwrap_or_else(|| arguments.to_owned()),
        arguments: Arguments::from_json(arguments).ok()?,
        rules: record.rules.clone(),
        dry_run: record.dry_run,
        data: data.transpose().ok()?,
        code,
    })
}

fn is_of_gateway(error: &ErrorBody) -> bool {
    let is_about_the_call = match error.details.reason {
        Some(ConflictReason::Version | ConflictReason::InDoubt | ConflictReason::InFlight) => true,
        Some(ConflictReason::KeyReused | ConflictReason::KeyExpired | ConflictReason::Stock)
        | None => false,
    };
    is_about_the_call || error.details.source == Some(FaultSource::Gateway)
}
