//! `GET /v1/calls`: past calls, newest first, page by page.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use countersign::archive;
use countersign::contract::{ErrorCode, RequestId, SnapshotId};
use countersign::ledger::LogQuery;
use jiff::Timestamp;
use serde::Serialize;

use super::answer::{self, Kind, Refusal};
use super::evidence::ShownRecord;
use super::query::{self, Options};
use super::{sessions, sight};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::words::Say;

mod scan;

use scan::{Marks, Page, Scan, ShownCall};

/// Default number of calls on a page.
const LIMIT: usize = 20;

/// Maximum number of calls on a page.
const LIMIT_MAX: usize = 200;

/// Options beside an idempotency key.
const OF_KEY: [&str; 3] = ["key", "user", "limit"];

/// Maximum number of records of one call that are shown.
const RECORDS_MAX: usize = 100;

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
        "user", "tool", "code", "since", "until", "session", "actor", "replayed", "repaired",
        "slow_ms", "version", "key", "limit", "cursor",
    ];
    let options = Options::read(query.as_deref(), known)?;
    if let Some(key) = options.get("key") {
        let mut others = known.iter().filter(|name| !OF_KEY.contains(*name));
        if others.any(|name| options.get(name).is_some()) {
            let message = Say::KeyAlone;
            return Err(Refusal::new(ErrorCode::InvalidArgument, message).field("/key"));
        }
        let user = sight::whose(&caller.principal, options.get("user"))?;
        return Ok(answer::json(&of_key(&gateway, key, user.as_deref()).await?));
    }
    let now = gateway.executor().now();
    let code = options.get("code").filter(|code| *code != "OK");
    let code = code.map(str::parse::<ErrorCode>);
    let yes_or_no = "true or false";
    let marks = Marks {
        actor: options.get("actor").map(str::to_owned),
        replayed: options.parsed("replayed", yes_or_no)?,
        repaired: options.parsed("repaired", yes_or_no)?,
        slow_ms: options.parsed("slow_ms", "a number of milliseconds")?,
        version: options.get("version").map(str::to_owned),
    };
    let wanted = options.limit(LIMIT, 1, LIMIT_MAX)?;
    let query = LogQuery {
        user_id: sight::whose(&caller.principal, options.get("user"))?,
        tool: options.get("tool").map(str::to_owned),
        code: code
            .transpose()
            .map_err(|_| query::wrong("code", "OK or one of the error codes"))?,
        ok_only: options.get("code") == Some("OK"),
        since: options.time("since", now)?,
        until: options.time("until", now)?,
        before: options.cursor(read_cursor)?,
        ..LogQuery::default()
    };
    let scan = Scan {
        gateway: &gateway,
        query,
        marks,
        wanted,
    };
    let page = match options.get("session") {
        Some(name) => {
            let strands = sessions::asked(&gateway, &caller, name, options.get("user")).await?;
            // What was answered a moment ago is in the store by then.
            let flushed = gateway.executor().store().flush().await;
            flushed.map_err(archive::Error::Store)?;
            scan.of_sessions(&strands, &caller.principal).await?
        }
        None => scan.page().await?,
    };
    Ok(answer::json(&page))
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
    let records = archive.behind(&rows).await?;
    let calls = rows.into_iter().zip(records);
    let calls = calls.filter_map(|(row, record)| ShownCall::of(row, record.as_ref()));
    Ok(Page::whole(calls.collect()))
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
    let hidden = || answer::not_found(Kind::Call, &request_id).hint(Say::NewestCalls);
    let user = sight::whose(&caller.principal, options.get("user"))?;
    let id = RequestId::new(&request_id).map_err(|_| hidden())?;
    let rows = gateway
        .archive()
        .of_request(&id, user.as_deref(), RECORDS_MAX);
    let mut records = Vec::new();
    for row in rows.await? {
        records.push(gateway.archive().show(&row.id).await?);
    }
    if records.is_empty() {
        return Err(hidden());
    }
    let records = ShownRecord::all(&gateway, records).await?;
    Ok(answer::json(&Records { records }))
}
