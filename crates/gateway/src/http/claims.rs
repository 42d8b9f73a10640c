//! `/v1/claims`: calls in doubt: their effect may or may not have happened, and what an operator found out.

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use countersign::archive::{Resolution, Resolved};
use countersign::contract::{ErrorCode, RequestId, SnapshotId, ToolName};
use countersign::ledger::{ClaimQuery, ClaimRow, ClaimState, KeyDigest, Scope};
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{self, Refusal};
use super::query::{self, Options};
use super::{body, sight};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::words::Say;

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
        until: options.time("until", gateway.executor().now())?,
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

impl FoundOutcome {
    /// The outcome with the answer for repeats.
    fn with(self, answer: Option<Value>) -> Result<Resolution, Refusal> {
        match (self, answer) {
            (Self::Happened, Some(answer)) => Ok(Resolution::Happened(answer)),
            (Self::DidNotHappen, None) => Ok(Resolution::DidNotHappen),
            (Self::Happened, None) | (Self::DidNotHappen, Some(_)) => {
                let message = Say::AnswerByOutcome;
                Err(Refusal::new(ErrorCode::InvalidArgument, message).field("/answer"))
            }
        }
    }
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
    let resolution = found.outcome.with(found.answer)?;
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

/// Maximum number of calls that one request settles.
const SETTLED_MAX: usize = 1_000;

/// Number of settlements that are committed at the same time.
const AT_ONCE: usize = 16;

/// The body of a settlement of all calls in doubt that match a filter.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FoundOfAll {
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    tool: Option<String>,
    /// Only calls that were claimed at this time or before: the newest one that was looked at.
    until: String,
    /// Number of calls that were looked at.
    count: usize,
    outcome: FoundOutcome,
    #[serde(default)]
    answer: Option<Value>,
    reason: String,
}

/// Result of settling many calls.
#[derive(Default, Serialize)]
struct SettledOfAll {
    settled: usize,
    not_settled: Vec<NotSettled>,
    /// True if more calls match than one request settles.
    more: bool,
}

/// A call that is as it was.
#[derive(Serialize)]
struct NotSettled {
    user_id: String,
    tool: String,
    key: String,
    attempt: u32,
    /// `not_in_doubt` if the call or another operator was faster, `failed` if the store did not take it.
    why: &'static str,
}

impl SettledOfAll {
    fn add(&mut self, row: &ClaimRow, why_not: Option<&'static str>) {
        let Some(why) = why_not else {
            self.settled += 1;
            return;
        };
        self.not_settled.push(NotSettled {
            user_id: row.scope.user_id.clone(),
            tool: row.scope.tool.to_string(),
            key: row.scope.key.to_string(),
            attempt: row.attempt,
            why,
        });
    }
}

/// The reason why a call is as it was; `None` if it is settled.
fn why_not(resolved: &Resolved) -> Option<&'static str> {
    match resolved {
        Resolved::Settled(_) => None,
        Resolved::Fenced(_) | Resolved::NotInDoubt(_) | Resolved::NoClaim => Some("not_in_doubt"),
    }
}

/// `POST /v1/claims/settle/all`: settles the calls in doubt that match, the oldest first, each as `settle` does, with a record of its
/// own. If more match than were looked at, none is settled.
pub(super) async fn settle_all(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, Refusal> {
    sight::operators_only(&caller)?;
    let found: FoundOfAll = body::json(body, gateway.settings(), malformed_all).await?;
    let resolution = found.outcome.with(found.answer)?;
    if !(1..=SETTLED_MAX).contains(&found.count) {
        let form = format!("a number from 1 to {SETTLED_MAX}");
        return Err(query::wrong("count", &form));
    }
    let until = found.until.parse();
    let until = until.map_err(|_| query::wrong("until", "a time such as 2026-11-15T12:00:00Z"))?;
    let tool = found.tool.map(ToolName::new).transpose();
    let query = ClaimQuery {
        state: Some(ClaimState::InDoubt),
        user_id: found.user,
        tool: tool.map_err(|_| query::wrong("tool", "the name of a tool"))?,
        until: Some(until),
        // One more says whether there are more.
        limit: found.count + 1,
        ..ClaimQuery::default()
    };
    let archive = gateway.archive();
    let mut rows = archive.claims(&query).await?;
    let more = rows.len() > found.count;
    if more && found.count < SETTLED_MAX {
        let message = Say::MoreInDoubt;
        return Err(Refusal::new(ErrorCode::Conflict, message).hint(Say::LookAgain));
    }
    rows.truncate(found.count);
    let (by, reason) = (&caller.principal, found.reason.as_str());
    let settle = |row: ClaimRow| {
        let resolution = resolution.clone();
        async move {
            let (scope, attempt) = (&row.scope, row.attempt);
            let resolved = archive.resolve_claim(scope, attempt, resolution, by, reason);
            (resolved.await, row)
        }
    };
    let mut told = SettledOfAll {
        more,
        ..SettledOfAll::default()
    };
    let mut rows = rows.into_iter();
    // A missing right or reason is refused with the first, and leaves one record.
    if let Some(first) = rows.next() {
        let (resolved, row) = settle(first).await;
        told.add(&row, why_not(&resolved?));
    }
    let settling: Vec<_> = rows.map(settle).collect();
    let mut settling = stream::iter(settling).buffered(AT_ONCE);
    while let Some((resolved, row)) = settling.next().await {
        let why = match &resolved {
            Ok(resolved) => why_not(resolved),
            Err(error) => {
                tracing::warn!(%error, "a call in doubt could not be settled");
                Some("failed")
            }
        };
        told.add(&row, why);
    }
    Ok(answer::json(&told))
}

fn not_in_doubt() -> Refusal {
    Refusal::new(ErrorCode::Conflict, Say::NotInDoubt).hint(Say::ListOfClaims)
}

fn malformed() -> Refusal {
    let message = Say::NotASettlement;
    Refusal::new(ErrorCode::InvalidArgument, message).hint(Say::SendSettlement)
}

fn malformed_all() -> Refusal {
    let message = Say::NotSettlements;
    Refusal::new(ErrorCode::InvalidArgument, message).hint(Say::SendSettlements)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a call that this request has settled is counted as settled.
    #[test]
    fn what_another_has_settled_is_told_of() {
        let id = || SnapshotId::new("ev_1").unwrap();
        for (resolved, why) in [
            (Resolved::Settled(id()), None),
            (Resolved::Fenced(id()), Some("not_in_doubt")),
            (
                Resolved::NotInDoubt(ClaimState::Succeeded),
                Some("not_in_doubt"),
            ),
            (Resolved::NoClaim, Some("not_in_doubt")),
        ] {
            assert_eq!(why_not(&resolved), why, "{resolved:?}");
        }
    }
}
