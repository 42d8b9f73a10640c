//! `GET /v1/evidence`: what was done with the log itself, by kind of record, newest first.

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use countersign::contract::{RecordKind, SnapshotId};
use countersign::ledger::LogQuery;
use serde::Serialize;

use super::answer::{self, Refusal};
use super::query::{self, Options};
use super::sight;
use crate::caller::Caller;
use crate::gateway::Gateway;

/// Default and maximum number of records in a list.
const LIMIT: usize = 50;
const LIMIT_MAX: usize = 200;

#[derive(Serialize)]
struct Listed {
    records: Vec<Shown>,
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
}

/// Lists records of one kind, for callers who may see what operators see.
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let options = Options::read(query.as_deref(), ["kind", "user", "limit"])?;
    sight::operators_only(&caller)?;
    let asked = options.get("kind").unwrap_or(RecordKind::Access.as_str());
    let kind = RecordKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == asked);
    let Some(kind) = kind else {
        let kinds = RecordKind::ALL.map(RecordKind::as_str).join(", ");
        return Err(query::wrong("kind", &format!("one of {kinds}")));
    };
    let form = format!("a number from 1 to {LIMIT_MAX}");
    let limit = options.parsed("limit", &form)?.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(query::wrong("limit", &form));
    }
    let query = LogQuery {
        kind: Some(kind),
        user_id: options.get("user").map(str::to_owned),
        limit,
        ..LogQuery::default()
    };
    let rows = gateway.archive().list(&query).await?;
    let records = rows.into_iter().map(|row| Shown {
        at: row.at.to_string(),
        kind: row.kind.as_str(),
        evidence: row.id,
        user_id: row.user_id,
        tool: row.tool,
    });
    Ok(answer::json(&Listed {
        records: records.collect(),
    }))
}
