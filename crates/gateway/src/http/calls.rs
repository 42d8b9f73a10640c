//! `GET /v1/calls`: the calls that there were, newest first, page by page.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use countersign::contract::{ErrorCode, RequestId, SnapshotId};
use countersign::ledger::{LogQuery, LogRow};
use jiff::Timestamp;
use serde::Serialize;

use super::answer::{self, Refusal};
use super::evidence::ShownRecord;
use super::query::{self, Options};
use super::sight;
use crate::caller::Caller;
use crate::gateway::Gateway;

/// How many calls a page has where nobody says.
const LIMIT: usize = 20;

/// How many it may have.
const LIMIT_MAX: usize = 200;

/// How many records are looked through for one page: some are of no call.
const SCANNED_MAX: usize = 2_000;

/// How many records of one call are shown.
const RECORDS_MAX: usize = 100;

/// A page of calls.
#[derive(Serialize)]
struct Page {
    calls: Vec<ShownCall>,
    /// Where the next page begins; none after the last.
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
    evidence: SnapshotId,
    request_id: RequestId,
}

/// What is recorded of one call.
#[derive(Serialize)]
struct Records {
    records: Vec<ShownRecord>,
}

pub(super) async fn list(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let known = ["user", "tool", "code", "since", "until", "limit", "cursor"];
    let options = Options::read(query.as_deref(), known)?;
    let time = "a time such as 2026-11-15T12:00:00Z";
    let code = options.get("code").filter(|code| *code != "OK");
    let code = code.map(str::parse::<ErrorCode>);
    let limit = options.parsed("limit", "a number from 1 to 200")?;
    let wanted = limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&wanted) {
        return Err(query::wrong("limit", "a number from 1 to 200"));
    }
    let query = LogQuery {
        user_id: sight::whose(&caller.principal, options.get("user"))?,
        tool: options.get("tool").map(str::to_owned),
        code: code
            .transpose()
            .map_err(|_| query::wrong("code", "OK or one of the error codes"))?,
        ok_only: options.get("code") == Some("OK"),
        since: options.parsed("since", time)?,
        until: options.parsed("until", time)?,
        before: options
            .get("cursor")
            .map(|cursor| read_cursor(cursor).ok_or_else(wrong_cursor))
            .transpose()?,
        ..LogQuery::default()
    };
    Ok(answer::json(&page(&gateway, query, wanted).await?))
}

/// A record is of a call where it has the call's id; the store cannot be asked for that.
async fn page(gateway: &Gateway, mut query: LogQuery, wanted: usize) -> Result<Page, Refusal> {
    let mut calls = Vec::new();
    let mut scanned = 0;
    loop {
        query.limit = wanted.max(LIMIT);
        let rows = gateway.archive().list(&query).await?;
        let is_last = rows.len() < query.limit;
        scanned += rows.len();
        for row in rows {
            query.before = Some((row.at, row.id.clone()));
            calls.extend(shown(row));
            if calls.len() == wanted {
                break;
            }
        }
        if calls.len() == wanted || scanned >= SCANNED_MAX {
            let next_cursor = query.before.map(|(at, id)| cursor(at, &id));
            return Ok(Page { calls, next_cursor });
        }
        if is_last {
            return Ok(Page {
                calls,
                next_cursor: None,
            });
        }
    }
}

fn shown(row: LogRow) -> Option<ShownCall> {
    Some(ShownCall {
        at: row.at.to_string(),
        user_id: row.user_id,
        tool: row.tool,
        code: row.code.map_or("OK", ErrorCode::as_str),
        evidence: row.id,
        request_id: row.request_id?,
    })
}

/// Where a page ended. Callers get it as it is and give it back as it is.
fn cursor(at: Timestamp, id: &SnapshotId) -> String {
    format!("{}.{id}", at.as_microsecond())
}

fn read_cursor(text: &str) -> Option<(Timestamp, SnapshotId)> {
    let (at, id) = text.split_once('.')?;
    let at = Timestamp::from_microsecond(at.parse().ok()?).ok()?;
    Some((at, SnapshotId::new(id).ok()?))
}

fn wrong_cursor() -> Refusal {
    query::wrong("cursor", "the next_cursor of an earlier page")
}

/// Everything that is recorded of one call, by the id of its reply or of its record; a repeat under the same id has
/// a record of its own.
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
