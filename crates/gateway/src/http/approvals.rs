//! `/v1/approvals`: questions for users to confirm, and their answers (A13).
//!
//! The credential proves the identity of the approver. Nothing in a request can turn an agent into a person.

use std::collections::BTreeMap;

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use countersign::approve::{Error, Response as Answer, Wanted};
use countersign::contract::{
    Approval, ApprovalDecision, ApprovalState, Digest, ErrorCode, Language,
};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{self, Refusal};
use super::query::{self, Options};
use super::{body, headers};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::strict;

/// Maximum number of approvals in a list.
const LISTED_MAX: usize = 1_000;

/// A list, newest first.
#[derive(Serialize)]
struct Listed {
    approvals: Vec<Approval>,
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
    let options = Options::read(query.as_deref(), ["user", "state", "limit"])?;
    let states = ApprovalState::ALL.map(ApprovalState::as_str).join(", ");
    let state = match options.get("state") {
        None => None,
        Some(name) => match ApprovalState::from_name(name) {
            Some(state) => Some(state),
            None => return Err(query::wrong("state", &format!("one of {states}"))),
        },
    };
    let form = format!("a number up to {LISTED_MAX}");
    let limit: Option<usize> = options.parsed("limit", &form)?;
    if limit.is_some_and(|limit| limit > LISTED_MAX) {
        return Err(query::wrong("limit", &form));
    }
    let wanted = Wanted {
        user_id: options.get("user").map(str::to_owned),
        state,
        limit: limit.unwrap_or(Wanted::default().limit),
        language: language(&headers),
    };
    let approvals = gateway.executor().approvals();
    let approvals = approvals.list(&caller.principal, &wanted).await?;
    Ok(answer::json(&Listed { approvals }))
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
        .show_in(&id, &caller.principal, language(&headers))
        .await?;
    Ok(answer::json(&approval))
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
    let body = body::read(body, gateway.settings()).await?;
    let given: Given = strict::from_str(headers::utf8(&body)?).map_err(|_| malformed())?;
    let approvals = gateway.executor().approvals();
    let given = Answer {
        language: language(&headers),
        narrowed: given.narrowed,
        ..Answer::new(given.decision)
            .because(given.reason.as_deref())
            .to(given.shown_digest)
    };
    let approval = approvals.decide(&id, &caller.principal, &given).await?;
    Ok(answer::json(&approval))
}

/// Returns the language of the reader or approver.
fn language(headers: &HeaderMap) -> Language {
    Language::of(headers::language(headers).as_deref())
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        error.into_body().into()
    }
}

/// Refuses a malformed body. It is not quoted, because a reason may be personal.
fn malformed() -> Refusal {
    Refusal::new(
        ErrorCode::InvalidArgument,
        "the body is not an answer to an approval",
    )
    .field("/decision")
    .hint("send {\"decision\": \"approve\"} or {\"decision\": \"deny\"}, with the \"shown_digest\" of the approval and a \"reason\" if there is one")
}
