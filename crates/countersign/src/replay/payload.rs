//! A recorded call, opened. Every opening is written down before it is done (A22).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use countersign_args::Arguments;
use countersign_contract::envelope::Client;
use countersign_contract::{
    Actor, ConflictReason, Digest, ErrorBody, ErrorCode, EvidenceRecord, FaultSource, RecordKind,
    RequestId, Retention,
};
use countersign_evidence::seal::{self, UserKey};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Breach, Error, Replayer};
use crate::ledger::{Durability, StoredRecord};
use crate::scribe::{Act, Draft, payload_aad};

/// A call as it was made: what a tool needs to compute it again.
#[derive(Clone, PartialEq)]
pub struct RecordedCall {
    /// The canonical name of the tool.
    pub tool: String,
    /// The call.
    pub request_id: Option<RequestId>,
    /// On whose behalf.
    pub user_id: String,
    /// Who triggered it.
    pub actor: Option<Actor>,
    /// The conversation or visit.
    pub session_id: Option<String>,
    /// BCP 47.
    pub locale: Option<String>,
    /// ISO 4217.
    pub currency: Option<String>,
    /// IANA.
    pub timezone: Option<String>,
    /// The application in front of the user.
    pub client: Option<Client>,
    /// What the clock said.
    pub ran_at: Timestamp,
    /// What the tool was given.
    pub arguments: Arguments,
    /// The rule sets that it asked for: name and version.
    pub rules: BTreeMap<String, String>,
    /// Whether nothing was to be changed.
    pub dry_run: bool,
    /// What it answered; none where it failed, or where that has no canonical form.
    pub data: Option<Value>,
    /// None where it worked.
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

/// What is left of a recorded call.
pub(super) enum Found {
    Call(Box<RecordedCall>),
    NotRun,
    Erased,
    Gone,
    Broken(Breach),
}

/// The payload with its texts as they were committed to.
#[derive(Deserialize)]
pub(super) struct Texts {
    user_id: String,
    actor: Option<Actor>,
    session_id: Option<String>,
    locale: Option<String>,
    currency: Option<String>,
    timezone: Option<String>,
    client: Option<Client>,
    ran_at: Option<String>,
    pub(super) arguments: Option<Text>,
    pub(super) data: Option<Text>,
    error: Option<ErrorBody>,
}

#[derive(Deserialize)]
pub(super) struct Text {
    salt: String,
    value: Box<RawValue>,
}

impl Text {
    /// Whether this is what was committed to.
    pub(super) fn opens(&self, domain: &str, commitment: Digest) -> bool {
        let salt = salt_of(&self.salt);
        salt.is_some_and(|salt| {
            seal::commit(domain, &salt, self.value.get().as_bytes()) == commitment
        })
    }
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
        let texts = match self.open(stored, sealed, &keys).await? {
            Ok(texts) => texts,
            Err(breach) => return Ok(Found::Broken(breach)),
        };
        if let Some(breach) = texts.breaches(record).into_iter().next() {
            return Ok(Found::Broken(breach));
        }
        Ok(match texts.into_call(record) {
            Some(call) => Found::Call(Box::new(call)),
            None => Found::NotRun,
        })
    }

    /// Opens a payload, after that was written down.
    pub(super) async fn open(
        &self,
        stored: &StoredRecord,
        sealed: &[u8],
        keys: &Arc<UserKey>,
    ) -> Result<Result<Texts, Breach>, Error> {
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
        let Ok(opened) = keys.open(&payload_aad(user_id, id), sealed) else {
            return Ok(Err(Breach::Unopenable));
        };
        Ok(serde_json::from_slice(&opened).map_err(|_| Breach::Unopenable))
    }
}

impl Texts {
    /// Where the texts are not those of the record.
    pub(super) fn breaches(&self, record: &EvidenceRecord) -> Vec<Breach> {
        let arguments = record.arguments.as_ref().map(|given| given.commitment);
        let data = record.reply.as_ref().and_then(|reply| reply.commitment);
        let is_opened =
            |domain, text: Option<&Text>, commitment: Option<Digest>| match (text, commitment) {
                (Some(text), Some(commitment)) => text.opens(domain, commitment),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
        let mut breaches = Vec::new();
        if !is_opened(seal::DOMAIN_ARGUMENTS, self.arguments.as_ref(), arguments) {
            breaches.push(Breach::OtherArguments);
        }
        if !is_opened(seal::DOMAIN_DATA, self.data.as_ref(), data) {
            breaches.push(Breach::OtherData);
        }
        breaches
    }

    /// None where the tool was not run, or where it was the gateway that refused after the run.
    fn into_call(self, record: &EvidenceRecord) -> Option<RecordedCall> {
        if self.error.as_ref().is_some_and(is_of_gateway) {
            return None;
        }
        let code = record.reply.as_ref().and_then(|reply| reply.code);
        let data = self.data.map(|text| serde_json::from_str(text.value.get()));
        Some(RecordedCall {
            tool: record.tool.as_ref()?.name.clone(),
            request_id: record.request_id.clone(),
            user_id: self.user_id,
            actor: self.actor,
            session_id: self.session_id,
            locale: self.locale,
            currency: self.currency,
            timezone: self.timezone,
            client: self.client,
            ran_at: self.ran_at?.parse().ok()?,
            arguments: Arguments::from_json(self.arguments?.value.get()).ok()?,
            rules: record.rules.clone(),
            dry_run: record.dry_run,
            data: data.transpose().ok()?,
            code,
        })
    }
}

fn is_of_gateway(error: &ErrorBody) -> bool {
    let is_about_the_call = match error.details.reason {
        Some(ConflictReason::Version | ConflictReason::InDoubt | ConflictReason::InFlight) => true,
        Some(ConflictReason::KeyReused | ConflictReason::KeyExpired | ConflictReason::Stock)
        | None => false,
    };
    is_about_the_call || error.details.source == Some(FaultSource::Gateway)
}

fn salt_of(text: &str) -> Option<[u8; 32]> {
    let mut salt = [0; 32];
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    if pairs.len() != salt.len() {
        return None;
    }
    for (byte, pair) in salt.iter_mut().zip(pairs) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(salt)
}
