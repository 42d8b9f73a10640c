//! `GET /v1/evidence`: what was done with the log itself, by kind of record, newest first; `POST /v1/evidence/reasons`: why.

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use countersign::contract::evidence::RecordedActor;
use countersign::contract::{ErrorCode, EvidenceRecord, RecordKind, SnapshotId};
use countersign::ledger::{LogQuery, LogRow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{self, Refusal};
use super::calls::{cursor, read_cursor};
use super::query::{self, Options};
use super::{body, sight};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::strict;
use crate::words::Say;

/// Default and maximum number of records in a list.
const LIMIT: usize = 50;
const LIMIT_MAX: usize = 200;

#[derive(Serialize)]
struct Listed {
    records: Vec<Shown>,
    /// Cursor of the next page; `None` after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A record of the list.
#[derive(Serialize)]
struct Shown {
    at: String,
    kind: &'static str,
    evidence: SnapshotId,
    /// User that it is about; empty if it is about none.
    user_id: String,
    tool: Option<String>,
    /// The person who did it; `None` if no person is named.
    by: Option<RecordedActor>,
    /// Kind of the act, in one word: `open`, `export`, `erase`.
    event: Option<String>,
    /// Record or records that it was done to.
    about: Vec<String>,
    /// True if a reason was sealed with it.
    has_reason: bool,
}

/// Maximum number of records that an act is shown to be about.
const ABOUT_MAX: usize = 20;

impl Shown {
    fn of(row: LogRow, record: EvidenceRecord) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let one = record.act.get("record").into_iter();
        let many = record.act.get("records").and_then(Value::as_array);
        let about = one.chain(many.into_iter().flatten()).filter_map(text);
        Self {
            at: row.at.to_string(),
            kind: row.kind.as_str(),
            evidence: row.id,
            user_id: row.user_id,
            tool: row.tool,
            event: record.act.get("event").and_then(text),
            about: about.take(ABOUT_MAX).collect(),
            has_reason: record.payload.is_some() && is_act(record.kind),
            by: record.actor,
        }
    }
}

/// True if a record of this kind tells of an act of an operator, with the reason.
fn is_act(kind: RecordKind) -> bool {
    match kind {
        RecordKind::Access | RecordKind::Erasure | RecordKind::Config | RecordKind::Resolution => {
            true
        }
        RecordKind::Call
        | RecordKind::Denial
        | RecordKind::Approval
        | RecordKind::Intent
        | RecordKind::Checkpoint => false,
    }
}

/// Lists records of one kind, for callers who may see what operators see.
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let options = Options::read(query.as_deref(), ["kind", "user", "limit", "cursor"])?;
    sight::operators_only(&caller)?;
    let kind = options.one_of("kind", RecordKind::ALL, RecordKind::as_str)?;
    let limit = options.limit(LIMIT, 1, LIMIT_MAX)?;
    let query = LogQuery {
        kind: kind.or(Some(RecordKind::Access)),
        user_id: options.get("user").map(str::to_owned),
        before: options.cursor(read_cursor)?,
        // One more than is shown says whether there is another page.
        limit: limit.saturating_add(1),
        ..LogQuery::default()
    };
    let archive = gateway.archive();
    let mut rows = archive.list(&query).await?;
    let next_cursor = query::cut(&mut rows, limit).map(|row| cursor(row.at, &row.id));
    let records = archive.records(&rows).await?;
    Ok(answer::json(&Listed {
        next_cursor,
        records: rows
            .into_iter()
            .zip(records)
            .map(|(row, record)| Shown::of(row, record))
            .collect(),
    }))
}

/// Body of a request for reasons: the records of acts, and why their reasons are read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    records: Vec<SnapshotId>,
    reason: String,
}

/// Reasons of acts.
#[derive(Serialize)]
struct Reasons {
    reasons: Vec<Given>,
}

/// The reason of an act.
#[derive(Serialize)]
struct Given {
    evidence: SnapshotId,
    /// `None` if it is no longer kept.
    reason: Option<String>,
}

/// Opens the reasons of acts, for callers who may see what operators see and may open records. One record says who read them and why, and
/// is in the log before anything is shown.
pub(super) async fn reasons(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, Refusal> {
    sight::operators_only(&caller)?;
    let body = body::read(body, gateway.settings()).await?;
    let asked: Result<Asked, _> = strict::from_slice(&body);
    let Ok(Asked { records, reason }) = asked else {
        let message = Say::NotRecordsAndReason;
        return Err(
            Refusal::new(ErrorCode::InvalidArgument, message).hint(Say::SendRecordsAndReason)
        );
    };
    if records.is_empty() || records.len() > LIMIT_MAX {
        let form = format!("a list of 1 to {LIMIT_MAX} records");
        return Err(query::wrong("records", &form));
    }
    let archive = gateway.archive();
    for id in &records {
        if !is_act(archive.row(id).await?.kind) {
            return Err(query::wrong(
                "records",
                "a list of acts, as GET /v1/evidence lists them",
            ));
        }
    }
    let opened = archive.open_many(&records, &caller.principal, &reason, "read_reasons");
    let reasons = opened.await?.into_iter().map(|opened| Given {
        evidence: opened.record.id,
        reason: opened.payload.and_then(|payload| payload.reason),
    });
    Ok(answer::json(&Reasons {
        reasons: reasons.collect(),
    }))
}
