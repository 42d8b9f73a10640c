//! `/v1/approvals`: questions for users to confirm, and their answers (A13).
//!
//! The credential proves the identity of the approver. Nothing in a request can turn an agent into a person.

use std::collections::BTreeMap;

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use countersign::approve::{Error, Response as Answer, SCOPE_ANSWER, Wanted};
use countersign::contract::{
    Approval, ApprovalDecision, ApprovalState, Digest, ErrorCode, SnapshotId,
};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{self, Refusal};
use super::query::{self, Options};
use super::{body, headers, reasons, sight};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::policy::{Explained, Explanation};
use crate::words::Say;

/// Maximum number of approvals in a list.
const LISTED_MAX: usize = 1_000;

/// Maximum number of records of the asking call that are looked through.
const RECORDS_MAX: usize = 100;

/// A list, newest first.
#[derive(Serialize)]
struct Listed {
    approvals: Vec<Approval>,
    /// Cursor of the next page; `None` after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// The body of an answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    decision: ApprovalDecision,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    shown_digest: Option<Digest>,
    #[serde(default)]
    narrowed: BTreeMap<String, Value>,
}

/// `GET /v1/approvals`: the questions of the caller's user; with the scope for it, of all users.
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let options = Options::read(
        query.as_deref(),
        ["user", "state", "tool", "actor", "limit", "cursor"],
    )?;
    let limit = options.limit(Wanted::default().limit, 0, LISTED_MAX)?;
    let wanted = Wanted {
        user_id: options.get("user").map(str::to_owned),
        state: options.one_of("state", ApprovalState::ALL, ApprovalState::as_str)?,
        tool: options.get("tool").map(str::to_owned),
        actor: options.get("actor").map(str::to_owned),
        before: options.cursor(query::read_behind)?,
        // One more than is shown says whether there is another page.
        limit: limit.saturating_add(1),
        language: headers::reader(&headers),
    };
    let approvals = gateway.executor().approvals();
    let mut approvals = approvals.list(&caller.principal, &wanted).await?;
    let last = query::cut(&mut approvals, limit);
    let next_cursor = last.and_then(|last| query::behind(&last.asked_at, &last.id));
    Ok(answer::json(&Listed {
        approvals,
        next_cursor,
    }))
}

/// `GET /v1/approvals/{id}`.
pub(super) async fn one(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let id = query::segment(id)?;
    let approvals = gateway.executor().approvals();
    let approval = approvals
        .show_in(&id, &caller.principal, headers::reader(&headers))
        .await?;
    Ok(answer::json(&approval))
}

/// Persons who may answer an approval, and the rule that asked.
#[derive(Serialize)]
struct Authority {
    /// User who is asked.
    user_id: String,
    /// Scope with which a person or a program answers for others. An agent never answers.
    scope: &'static str,
    /// Number of different approvers who have to say yes.
    approvers: u8,
    /// Name of the policy in records.
    policy: String,
    /// Record of the call that asked; `None` while that call still waits for its answer.
    record: Option<SnapshotId>,
    /// Entries that want a confirmation, the one that decided first; empty if they are not known.
    because: Vec<Explained>,
}

/// `GET /v1/approvals/{id}/authority`: who may answer, and which rule of which policy asked. Lines of the file are for callers who may see what
/// operators see, or may answer for others.
pub(super) async fn authority(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let id = query::segment(id)?;
    let principal = &caller.principal;
    let approval = gateway.executor().approvals().show(&id, principal).await?;
    let archive = gateway.archive();
    let user_id = Some(approval.user_id.as_str());
    let rows = archive.of_request(&approval.request_id, user_id, RECORDS_MAX);
    let mut asking = rows.await?;
    asking.retain(|row| row.code == Some(ErrorCode::NeedsUserConfirmation));
    let mut because = Vec::new();
    // The first call has asked; later ones under its id have found the question.
    let row = asking.pop();
    if let Some(row) = &row {
        let records = archive.records(std::slice::from_ref(row)).await?;
        let may_see = sight::is_operator(&caller) || principal.holds(SCOPE_ANSWER);
        let live = gateway.identity().policy().clone();
        let revision = approval.policy_revision.clone();
        let policy = tokio::task::spawn_blocking(move || live.of_revision(&revision));
        let policy = policy.await.ok().flatten();
        let entry = gateway.executor().catalog().get(approval.tool.as_str());
        let spec = entry.as_ref().map(|entry| entry.spec());
        because.extend(records.iter().flat_map(|record| {
            Explanation::of_record(record, &row.user_id, policy.as_deref(), spec).because
        }));
        if !may_see {
            for entry in &mut because {
                entry.line = None;
            }
        }
    }
    reasons::tell(&mut because, headers::reader(&headers));
    Ok(answer::json(&Authority {
        user_id: approval.user_id,
        scope: SCOPE_ANSWER,
        approvers: if approval.four_eyes { 2 } else { 1 },
        policy: approval.policy_revision,
        record: row.map(|row| row.id),
        because,
    }))
}

/// `POST /v1/approvals/{id}` with `{"decision": "approve" | "deny", "reason"?, "shown_digest"?, "narrowed"?}`.
pub(super) async fn answer(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    id: Result<Path<String>, PathRejection>,
    body: Body,
) -> Result<Response, Refusal> {
    let id = query::segment(id)?;
    let given: Given = body::json(body, gateway.settings(), malformed).await?;
    let approvals = gateway.executor().approvals();
    let given = Answer {
        language: headers::reader(&headers),
        narrowed: given.narrowed,
        ..Answer::new(given.decision)
            .because(given.reason.as_deref())
            .to(given.shown_digest)
    };
    let approval = approvals.decide(&id, &caller.principal, &given).await?;
    Ok(answer::json(&approval))
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        error.into_body().into()
    }
}

fn malformed() -> Refusal {
    Refusal::new(ErrorCode::InvalidArgument, Say::NotAnAnswer)
        .field("/decision")
        .hint(Say::SendDecision)
}
