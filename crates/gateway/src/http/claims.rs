//! `/v1/claims`: calls in doubt: their effect may or may not have happened, and what an operator found out.

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use countersign::archive::{Resolution, Resolved};
use countersign::contract::{ErrorCode, RequestId, SnapshotId, ToolName};
use countersign::ledger::{ClaimQuery, ClaimRow, ClaimState, KeyDigest, Scope};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{self, Refusal};
use super::query::{self, Options};
use super::{body, sight};
use crate::caller::Caller;
use crate::gateway::Gateway;

/// Default and maximum number of claims in a list.
const LIMIT: usize = 100;
const LIMIT_MAX: usize = 1_000;

/// A list, oldest first.
#[derive(Serialize)]
struct Listed {
    claims: Vec<Shown>,
    /// Cursor of the next page; `None` after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A claim of the list.
#[derive(Serialize)]
struct Shown {
    user_id: String,
    tool: String,
    /// Digest of the key.
    key: String,
    attempt: u32,
    state: &'static str,
    request_id: RequestId,
    claimed_at: String,
}

impl From<&ClaimRow> for Shown {
    fn from(row: &ClaimRow) -> Self {
        Self {
            user_id: row.scope.user_id.clone(),
            tool: row.scope.tool.to_string(),
            key: row.scope.key.to_string(),
            attempt: row.attempt,
            state: row.state.as_str(),
            request_id: row.request_id.clone(),
            claimed_at: row.claimed_at.to_string(),
        }
    }
}

/// `GET /v1/claims`: claims in doubt, for callers who may see what operators see.
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let known = ["user", "tool", "state", "until", "limit", "cursor"];
    let options = Options::read(query.as_deref(), known)?;
    sight::operators_only(&caller)?;
    let state = options.one_of("state", ClaimState::ALL, ClaimState::as_str)?;
    let limit = options.limit(LIMIT, 1, LIMIT_MAX)?;
    let query = ClaimQuery {
        state: state.or(Some(ClaimState::InDoubt)),
        user_id: options.get("user").map(str::to_owned),
        tool: options.parsed("tool", "the name of a tool")?,
        until: options.parsed("until", "a time such as 2026-11-15T12:00:00Z")?,
        after: options.cursor(read_cursor)?,
        // One more than is shown says whether there is another page.
        limit: limit.saturating_add(1),
        ..ClaimQuery::default()
    };
    let mut rows = gateway.archive().claims(&query).await?;
    Ok(answer::json(&Listed {
        next_cursor: query::cut(&mut rows, limit).map(cursor),
        claims: rows.iter().map(Shown::from).collect(),
    }))
}

/// Builds the cursor behind a claim. It is opaque to callers. No name of a tool has a tilde.
fn cursor(last: &ClaimRow) -> String {
    let Scope { user_id, tool, key } = &last.scope;
    let at = last.claimed_at.as_microsecond();
    format!("{at}.{key}.{tool}~{user_id}")
}

fn read_cursor(text: &str) -> Option<(Timestamp, Scope)> {
    let (at, rest) = text.split_once('.')?;
    let (key, rest) = rest.split_once('.')?;
    let (tool, user_id) = rest.split_once('~')?;
    let scope = Scope {
        user_id: user_id.to_owned(),
        tool: ToolName::new(tool).ok()?,
        key: KeyDigest::from_hex(key)?,
    };
    let at = Timestamp::from_microsecond(at.parse().ok()?).ok()?;
    Some((at, scope))
}

/// The body of a settlement: the claim that was looked at, and what was found out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Found {
    user_id: String,
    tool: String,
    key: String,
    attempt: u32,
    outcome: FoundOutcome,
    /// Answer for every repeat of the call, where its effect happened.
    #[serde(default)]
    answer: Option<Value>,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FoundOutcome {
    Happened,
    DidNotHappen,
}

/// A settled claim.
#[derive(Serialize)]
struct Settled {
    evidence: SnapshotId,
}

/// `POST /v1/claims/settle`. The archive asks for the scope and the reason, and keeps a record of both.
pub(super) async fn settle(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, Refusal> {
    sight::operators_only(&caller)?;
    let found: Found = body::json(body, gateway.settings(), malformed).await?;
    let resolution = match (found.outcome, found.answer) {
        (FoundOutcome::Happened, Some(answer)) => Resolution::Happened(answer),
        (FoundOutcome::DidNotHappen, None) => Resolution::DidNotHappen,
        (FoundOutcome::Happened, None) | (FoundOutcome::DidNotHappen, Some(_)) => {
            let message = "an effect that happened has an answer, and one that did not has none";
            return Err(Refusal::new(ErrorCode::InvalidArgument, message).field("/answer"));
        }
    };
    let query = ClaimQuery {
        state: Some(ClaimState::InDoubt),
        user_id: Some(found.user_id.clone()),
        tool: Some(ToolName::new(&found.tool).map_err(|_| not_in_doubt())?),
        key: Some(KeyDigest::from_hex(&found.key).ok_or_else(not_in_doubt)?),
        limit: 1,
        ..ClaimQuery::default()
    };
    let rows = gateway.archive().claims(&query).await?;
    let row = rows.first().ok_or_else(not_in_doubt)?;
    let by = &caller.principal;
    let archive = gateway.archive();
    let resolved = archive.resolve_claim(&row.scope, found.attempt, resolution, by, &found.reason);
    match resolved.await? {
        Resolved::Settled(evidence) => Ok(answer::json(&Settled { evidence })),
        Resolved::Fenced(_) | Resolved::NotInDoubt(_) | Resolved::NoClaim => Err(not_in_doubt()),
    }
}

fn not_in_doubt() -> Refusal {
    Refusal::new(ErrorCode::Conflict, "this call is not in doubt any more")
        .hint("GET /v1/claims lists those that are")
}

fn malformed() -> Refusal {
    let message = "the body does not say which call it settles, and how";
    Refusal::new(ErrorCode::InvalidArgument, message).hint(
        "send user_id, tool, key and attempt as GET /v1/claims lists them, an outcome (happened or did_not_happen) and a reason",
    )
}
