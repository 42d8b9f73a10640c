//! `GET /v1/calls`: past calls, newest first, page by page.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use countersign::contract::{ErrorCode, RecordKind, RequestId, SnapshotId};
use countersign::ledger::{LogQuery, LogRow};
use jiff::Timestamp;
use serde::Serialize;

use super::answer::{self, Refusal};
use super::evidence::ShownRecord;
use super::query::{self, Options};
use super::sight;
use crate::caller::Caller;
use crate::gateway::Gateway;

/// Default number of calls on a page.
const LIMIT: usize = 20;

/// Maximum number of calls on a page.
const LIMIT_MAX: usize = 200;

/// Maximum number of records that are read for one page: some belong to no call.
const SCANNED_MAX: usize = 2_000;

/// Maximum number of records of one call that are shown.
const RECORDS_MAX: usize = 100;

/// A page of calls.
#[derive(Serialize)]
struct Page {
    calls: Vec<ShownCall>,
    /// Cursor of the next page; `None` after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A call of a list.
#[derive(Serialize)]
struct ShownCall {
    at: String,
    user_id: String,
    tool: Option<String>,
    code: &'static str,
    /// `call`, `dry_run` or `replay`.
    manner: &'static str,
    evidence: SnapshotId,
    request_id: RequestId,
}

/// Records of one call.
#[derive(Serialize)]
struct Records {
    records: Vec<ShownRecord>,
}

pub(super) async fn list(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let known = [
        "user", "tool", "code", "since", "until", "key", "limit", "cursor",
    ];
    let options = Options::read(query.as_deref(), known)?;
    if let Some(key) = options.get("key") {
        let others = ["tool", "code", "since", "until", "cursor"];
        if others.iter().any(|name| options.get(name).is_some()) {
            let message = "a key is looked for with nothing but its user";
            return Err(Refusal::new(ErrorCode::InvalidArgument, message).field("/key"));
        }
        let user = sight::whose(&caller.principal, options.get("user"))?;
        return Ok(answer::json(&of_key(&gateway, key, user.as_deref()).await?));
    }
    let time = "a time such as 2026-11-15T12:00:00Z";
    let code = options.get("code").filter(|code| *code != "OK");
    let code = code.map(str::parse::<ErrorCode>);
    let wanted = options.limit(LIMIT, 1, LIMIT_MAX)?;
    let query = LogQuery {
        user_id: sight::whose(&caller.principal, options.get("user"))?,
        tool: options.get("tool").map(str::to_owned),
        code: code
            .transpose()
            .map_err(|_| query::wrong("code", "OK or one of the error codes"))?,
        ok_only: options.get("code") == Some("OK"),
        since: options.parsed("since", time)?,
        until: options.parsed("until", time)?,
        before: options.cursor(read_cursor)?,
        ..LogQuery::default()
    };
    Ok(answer::json(&page(&gateway, query, wanted).await?))
}

/// Finds the calls that took an idempotency key. The store has no key, only what the user's own key makes of it.
async fn of_key(gateway: &Gateway, key: &str, user: Option<&str>) -> Result<Page, Refusal> {
    let archive = gateway.archive();
    let mut rows = Vec::new();
    for claim in archive.of_key(key, user).await? {
        let user_id = Some(claim.scope.user_id.as_str());
        let of_call = archive.of_request(&claim.request_id, user_id, RECORDS_MAX);
        rows.extend(of_call.await?);
        if rows.len() >= LIMIT_MAX {
            break;
        }
    }
    rows.sort_by(|left, right| (right.at, &right.id).cmp(&(left.at, &left.id)));
    rows.truncate(LIMIT_MAX);
    Ok(Page {
        calls: shown(gateway, rows).await?,
        next_cursor: None,
    })
}

/// Reads a page. A record belongs to a call if it has the call's id, which the store cannot filter by.
async fn page(gateway: &Gateway, mut query: LogQuery, wanted: usize) -> Result<Page, Refusal> {
    let mut calls: Vec<LogRow> = Vec::new();
    let mut scanned = 0;
    loop {
        query.limit = wanted.max(LIMIT);
        let rows = gateway.archive().list(&query).await?;
        let is_last = rows.len() < query.limit;
        scanned += rows.len();
        for row in rows {
            query.before = Some((row.at, row.id.clone()));
            let is_call = row.request_id.is_some() && row.kind != RecordKind::Intent;
            calls.extend(is_call.then_some(row));
            if calls.len() == wanted {
                break;
            }
        }
        if calls.len() == wanted || scanned >= SCANNED_MAX {
            let next_cursor = query.before.map(|(at, id)| cursor(at, &id));
            let calls = shown(gateway, calls).await?;
            return Ok(Page { calls, next_cursor });
        }
        if is_last {
            return Ok(Page {
                calls: shown(gateway, calls).await?,
                next_cursor: None,
            });
        }
    }
}

async fn shown(gateway: &Gateway, rows: Vec<LogRow>) -> Result<Vec<ShownCall>, Refusal> {
    let manners = gateway.archive().manners(&rows).await?;
    let calls = rows.into_iter().zip(manners);
    let calls = calls.filter_map(|(row, manner)| {
        Some(ShownCall {
            at: row.at.to_string(),
            user_id: row.user_id,
            tool: row.tool,
            code: row.code.map_or("OK", ErrorCode::as_str),
            manner: manner.as_str(),
            evidence: row.id,
            request_id: row.request_id?,
        })
    });
    Ok(calls.collect())
}

/// Builds the cursor at the end of a page. It is opaque to callers.
pub(super) fn cursor(at: Timestamp, id: &SnapshotId) -> String {
    format!("{}.{id}", at.as_microsecond())
}

pub(super) fn read_cursor(text: &str) -> Option<(Timestamp, SnapshotId)> {
    let (at, id) = text.split_once('.')?;
    let at = Timestamp::from_microsecond(at.parse().ok()?).ok()?;
    Some((at, SnapshotId::new(id).ok()?))
}

/// `GET /v1/calls/{id}`: all records of one call, by the id of its reply or of its record; a repeat under the
/// same id has a record of its own.
pub(super) async fn one(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    request_id: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let request_id = query::segment(request_id)?;
    let options = Options::read(query.as_deref(), ["user"])?;
    let hidden =
        || answer::not_found("call", &request_id).hint("GET /v1/calls lists the newest ones");
    let user = sight::whose(&caller.principal, options.get("user"))?;
    let id = RequestId::new(&request_id).map_err(|_| hidden())?;
    let rows = gateway
        .archive()
        .of_request(&id, user.as_deref(), RECORDS_MAX);
    let mut records = Vec::new();
    for row in rows.await? {
        records.push(gateway.archive().show(&row.id).await?.into());
    }
    if records.is_empty() {
        return Err(hidden());
    }
    Ok(answer::json(&Records { records }))
}
