//! Calls of the log as a recording, for tests and evaluations. They are opened for it, so it needs what opening needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign_args::Reading;
use countersign_contract::envelope::{CheckpointRef, Warning};
use countersign_contract::evidence::{Exact, Payload};
use countersign_contract::recording::{
    Call, Declared, Header, LogRef, Outcome, Piece, Recording, Remark, VERSION,
};
use countersign_contract::{Digest, ErrorBody, EvidenceRecord, RecordKind, SnapshotId, canonical};
use serde_json::{Value, json};

use super::act::Deed;
use super::content;
use super::{Archive, Error, SCOPE_OPEN, reason, tampered};
use crate::catalog::{Catalog, Entry};
use crate::executor::canonical_text;
use crate::ledger::{Durability, StoredRecord};
use crate::principal::Principal;
use crate::recording::{Digests, Known, Masker};
use crate::redact::{Detector, Mark as _, Redaction, marked};
use crate::scribe::Draft;

/// Request for a recording.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'a> {
    /// Principal that opens the calls.
    pub by: &'a Principal,
    /// Reason, in the operator's words.
    pub reason: &'a str,
    /// Only calls of this conversation or visit.
    pub session: Option<&'a str>,
    /// True if sensitive values are replaced by placeholders.
    pub is_masked: bool,
    /// The program that writes the recording, with its version.
    pub program: &'a str,
}

/// A recording, and what is not in it.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCalls {
    /// The recording.
    pub recording: Recording,
    /// Calls that are not in it.
    pub left_out: LeftOut,
    /// Number of values that were masked, by their kind: equal values count once.
    pub masked: BTreeMap<String, usize>,
    /// Places of masked arguments, by tool, as JSON pointers; `*` stands for every item of a list.
    pub masked_arguments: BTreeMap<String, BTreeSet<String>>,
    /// Digests of the masked arguments, for a run that matches the recorded values only. They are no part of the recording.
    pub digests: Digests,
    /// The records of the access.
    pub access: Vec<SnapshotId>,
}

/// Calls that were asked for and are not in a recording, by the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Their arguments were not bound, so the same binder refuses them again.
    pub unbound: u64,
    /// They repeat a call under its key: the answer is that of the first one.
    pub repeats: u64,
    /// Their content is no longer kept, or their user was erased.
    pub gone: u64,
    /// Their answer has no canonical form, so it was not kept.
    pub unanswered: u64,
    /// They are of another conversation.
    pub other_session: u64,
    /// Their tool is declared otherwise now, or does not exist any more.
    pub redeclared: BTreeMap<String, u64>,
}

/// Maximum number of records that one record of an access names.
const NAMED_MAX: usize = 1_000;

/// Remarks of the gateway about the envelope of a call. A run from the recording makes its own.
const OF_ENVELOPE: [&str; 3] = ["UNKNOWN_CLIENT_APP", "REQUEST_ID_REUSED", "TRACE_UNUSABLE"];

/// A call that was opened.
struct OpenCall {
    record: EvidenceRecord,
    payload: Box<Payload>,
    entry: Arc<Entry>,
    definition: Digest,
    arguments: String,
    outcome: Result<Value, ErrorBody>,
}

impl Archive {
    /// A recording of these calls in this order. The record of the access is durable before anything is opened.
    pub async fn record_calls(
        &self,
        ids: &[SnapshotId],
        catalog: &Catalog,
        wanted: Recorded<'_>,
    ) -> Result<RecordedCalls, Error> {
        let first = ids.first();
        self.needs(wanted.by, SCOPE_OPEN, "record", first).await?;
        self.reasoned(wanted.reason, wanted.by, "record", first)
            .await?;
        let (checkpoint, _) = self.signed().await?.ok_or(Error::NoCheckpoint)?;
        let mut records = Vec::new();
        for id in ids {
            let stored = self.stored(id).await?;
            let record = self.record_of_user(&stored).await?;
            records.push((stored, record));
        }
        let access = self.write_accesses(&records, wanted.by, wanted.reason, "record");
        let access = access.await?;
        let mut left_out = LeftOut::default();
        let mut open = Vec::new();
        for (stored, record) in records {
            open.extend(
                self.open_call(&stored, record, catalog, wanted, &mut left_out)
                    .await?,
            );
        }
        let installation = self.store.installation().await?;
        let header = Header {
            v: VERSION,
            program: wanted.program.to_owned(),
            made_at: self.clock.now().to_string(),
            installation: installation.map_or_else(String::new, |found| found.id),
            log: LogRef {
                origin: checkpoint.origin,
                checkpoint: CheckpointRef {
                    size: checkpoint.size,
                    root: Digest(checkpoint.root),
                },
            },
            masked: wanted.is_masked,
        };
        let tools = tools(&open);
        let mut salt = [0; 32];
        self.ids.fill(&mut salt);
        let mut digests = Digests::new(salt);
        let (masked, masked_arguments) = if wanted.is_masked {
            mask(&mut open, &mut digests)
        } else {
            Default::default()
        };
        let calls = calls(open);
        Ok(RecordedCalls {
            recording: Recording {
                header,
                tools,
                calls,
            },
            left_out,
            masked,
            masked_arguments,
            digests,
            access,
        })
    }

    async fn open_call(
        &self,
        stored: &StoredRecord,
        record: EvidenceRecord,
        catalog: &Catalog,
        wanted: Recorded<'_>,
        left_out: &mut LeftOut,
    ) -> Result<Option<OpenCall>, Error> {
        let keys = self.keys_of(stored).await?;
        let (Some(keys), Some(sealed)) = (keys, &stored.payload) else {
            left_out.gone += 1;
            return Ok(None);
        };
        content::check_sealed(&record, sealed).map_err(|what| tampered(stored, what))?;
        let opened = content::open(&record, &stored.row, sealed, &keys);
        let payload = opened.map_err(|what| tampered(stored, what))?.payload;
        if wanted.session.is_some() && payload.session_id.as_deref() != wanted.session {
            left_out.other_session += 1;
            return Ok(None);
        }
        Ok(open_call(record, payload, catalog, left_out))
    }

    /// Records that these payloads are about to be opened.
    pub(super) async fn write_accesses(
        &self,
        records: &[(StoredRecord, EvidenceRecord)],
        by: &Principal,
        reason: &str,
        event: &'static str,
    ) -> Result<Vec<SnapshotId>, Error> {
        let with_payload = records
            .iter()
            .filter(|(stored, _)| stored.payload.is_some());
        let ids: Vec<&str> = with_payload
            .map(|(stored, _)| stored.row.id.as_str())
            .collect();
        let mut access = Vec::new();
        for ids in ids.chunks(NAMED_MAX) {
            let deed = Deed {
                kind: RecordKind::Access,
                user_id: "",
                keys: None,
                by,
                about: json!({"event": event, "records": ids}),
                reason: &reason::checked(reason)?,
            };
            let entry = self.entry(&deed).await?;
            access.push(entry.id.clone());
            let draft = Draft::from(entry);
            self.store.append(draft, Durability::Committed).await?;
        }
        Ok(access)
    }
}

/// Returns `None` if there is nothing to answer from, and counts the reason.
fn open_call(
    record: EvidenceRecord,
    payload: Payload,
    catalog: &Catalog,
    left_out: &mut LeftOut,
) -> Option<OpenCall> {
    let is_repeat = record
        .idempotency
        .as_ref()
        .is_some_and(|key| key.state == "replayed");
    if is_repeat {
        left_out.repeats += 1;
        return None;
    }
    let (Some(bound), Some(tool)) = (&payload.arguments, &record.tool) else {
        left_out.unbound += 1;
        return None;
    };
    let entry = catalog.get(&tool.name);
    let entry = entry.filter(|entry| tool.definition == Some(entry.digest()));
    let Some(entry) = entry else {
        *left_out.redeclared.entry(tool.name.clone()).or_default() += 1;
        return None;
    };
    let arguments = asked_for(&payload, &entry).unwrap_or_else(|| bound.text().to_owned());
    let outcome = match (&payload.error, &payload.data) {
        (Some(error), _) => Err(error.clone()),
        (None, Some(data)) => data.value().map(Ok).ok()?,
        (None, None) => {
            left_out.unanswered += 1;
            return None;
        }
    };
    Some(OpenCall {
        definition: entry.digest(),
        entry,
        arguments,
        outcome,
        record,
        payload: Box::new(payload),
    })
}

/// The arguments that were asked for, if the approver has narrowed them.
fn asked_for(payload: &Payload, entry: &Entry) -> Option<String> {
    let is_narrowed = payload.warnings.iter().any(|it| it.code() == "NARROWED");
    let raw = payload.raw.as_deref().filter(|_| is_narrowed)?;
    let reading = Reading::new(payload.locale.as_deref(), payload.timezone.as_deref());
    let arguments = entry.binder.bind_with(raw, &reading).arguments?;
    let filled = entry.defaults.fill(&arguments).unwrap_or(arguments);
    Some(canonical_text(&filled))
}

/// Every tool once, by name.
fn tools(open: &[OpenCall]) -> Vec<Declared> {
    let tools = open.iter().map(|call| {
        let declared = Declared {
            definition: call.definition,
            spec: call.entry.spec().clone(),
        };
        (call.entry.name().to_string(), declared)
    });
    let tools: BTreeMap<String, Declared> = tools.collect();
    tools.into_values().collect()
}

fn calls(open: Vec<OpenCall>) -> Vec<Call> {
    let calls = (1..).zip(open).filter_map(|(order, call)| {
        let remarks = call.payload.warnings.into_iter();
        Some(Call {
            order,
            tool: call.entry.name().to_string(),
            version: call.entry.spec().version.clone(),
            definition: call.definition,
            at: call.record.at,
            arguments: Exact::new(call.arguments).ok()?,
            dry_run: call.record.dry_run,
            outcome: match call.outcome {
                Ok(data) => Outcome::Data(Exact::new(text_of(&data)).ok()?),
                Err(error) => Outcome::Error(Box::new(error)),
            },
            ttl_seconds: call.record.reply.and_then(|reply| reply.ttl_seconds),
            remarks: remarks.filter_map(remark).collect(),
            evidence: call.record.id,
        })
    });
    calls.collect()
}

fn remark(warning: Warning) -> Option<Remark> {
    match warning {
        Warning::Remark { code, message } if !OF_ENVELOPE.contains(&code.as_str()) => {
            Some(Remark { code, message })
        }
        Warning::Remark { .. } | Warning::Issue(_) => None,
    }
}

/// The canonical form; where a value has none, its JSON.
fn text_of(value: &Value) -> String {
    canonical::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// Replaces everything sensitive. The arguments of all calls come first: an answer may repeat what a later argument shows to
/// be sensitive, and then it has the placeholder of the argument. Returns the number of values by kind, and the places in arguments
/// by tool; the digests get what stood there.
fn mask(
    open: &mut [OpenCall],
    digests: &mut Digests,
) -> (BTreeMap<String, usize>, BTreeMap<String, BTreeSet<String>>) {
    let mut masker = Masker::for_file();
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (order, call) in (1..).zip(&mut *open) {
        let mut arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let before = arguments.clone();
        call.entry.redaction.mark(&mut arguments, &mut masker);
        if arguments != before {
            let found = digests.add(order, &call.arguments, &arguments, &masker);
            let of_tool = places.entry(call.entry.name().to_string()).or_default();
            of_tool.extend(found);
            call.arguments = text_of(&arguments);
        }
    }
    replace_known(open, &mut masker);
    for call in &mut *open {
        match &mut call.outcome {
            Ok(data) => Redaction::of_output(call.entry.spec()).mark(data, &mut masker),
            Err(error) => in_error(error, &mut |value| {
                Detector::new().mark_value(value, &mut masker);
            }),
        }
        for warning in &mut call.payload.warnings {
            if let Warning::Remark { message, .. } = warning {
                *message = marked(message, &mut masker).into_owned();
            }
        }
    }
    replace_known(open, &mut masker);
    (count(open, &masker), places)
}

/// The number of values that stand in the calls as placeholders, by kind.
fn count(open: &[OpenCall], masker: &Masker) -> BTreeMap<String, usize> {
    let mut found = BTreeSet::new();
    for call in open {
        let outcome = match &call.outcome {
            Ok(data) => data.to_string(),
            Err(error) => serde_json::to_string(error).unwrap_or_default(),
        };
        for text in [&call.arguments, &outcome] {
            for piece in masker.pieces(text) {
                if let Piece::Placeholder { kind, number } = piece
                    && masker.value(kind, number).is_some()
                {
                    found.insert((kind.to_owned(), number));
                }
            }
        }
    }
    let mut counts = BTreeMap::new();
    for (kind, _) in found {
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

/// Replaces what is known to be sensitive in everything that is no argument.
fn replace_known(open: &mut [OpenCall], masker: &mut Masker) {
    let known = Known::of(masker);
    for call in open {
        let user = Value::from(call.payload.user_id.as_str());
        let named = masker.mark("user", &user);
        let mut replace = |value: &mut Value| {
            replace_whole(value, &call.payload.user_id, &named);
            if let Some(known) = &known {
                known.replace(value);
            }
        };
        match &mut call.outcome {
            Ok(data) => replace(data),
            Err(error) => in_error(error, &mut replace),
        }
        for warning in &mut call.payload.warnings {
            if let (Warning::Remark { message, .. }, Some(known)) = (warning, &known) {
                *message = known.replaced(message);
            }
        }
    }
}

/// Works on the texts of an error. What would no longer be an error afterwards keeps its code and nothing else.
fn in_error(error: &mut ErrorBody, work: &mut dyn FnMut(&mut Value)) {
    let masked = serde_json::to_value(&*error).ok().and_then(|mut value| {
        let code = value.get("code").cloned();
        work(&mut value);
        if let (Some(members), Some(code)) = (value.as_object_mut(), code) {
            members.insert("code".to_owned(), code);
        }
        serde_json::from_value(value).ok()
    });
    *error = masked.unwrap_or_else(|| ErrorBody::new(error.code, error.code.summary()));
}

/// Replaces texts that are nothing but this one.
fn replace_whole(value: &mut Value, whole: &str, mark: &str) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            if text == whole {
                mark.clone_into(text);
            }
        }
        Value::Array(items) => {
            for item in items {
                replace_whole(item, whole, mark);
            }
        }
        Value::Object(members) => {
            for member in members.values_mut() {
                replace_whole(member, whole, mark);
            }
        }
    }
}
