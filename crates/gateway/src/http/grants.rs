//! `/v1/grants`: standing grants of users to agents. The credential proves who gives and takes authority; nothing in a
//! request can turn an agent into a person.

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use countersign::contract::{ErrorCode, Grant, GrantState, NewGrant};
use countersign::grant::{Error, Wanted};
use serde::{Deserialize, Serialize};

use super::answer::{self, Refusal};
use super::body;
use super::query::{self, Options};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::words::Say;

/// Maximum number of grants in a list.
const LISTED_MAX: usize = 200;

/// A list, newest first.
#[derive(Serialize)]
struct Listed {
    grants: Vec<Grant>,
    /// Cursor of the next page; `None` after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// The body of a revocation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Revocation {
    #[serde(default)]
    reason: Option<String>,
}

/// `GET /v1/grants`: the grants of the caller's user; with the scope for it, of all users. An agent sees its own.
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let options = Options::read(query.as_deref(), ["user", "state", "limit", "cursor"])?;
    let limit = options.limit(Wanted::default().limit, 0, LISTED_MAX)?;
    let wanted = Wanted {
        user_id: options.get("user").map(str::to_owned),
        state: options.one_of("state", GrantState::ALL, GrantState::as_str)?,
        before: options.cursor(query::read_behind)?,
        // One more than is shown says whether there is another page.
        limit: limit.saturating_add(1),
    };
    let grants = gateway.executor().grants();
    let mut grants = grants.list(&caller.principal, &wanted).await?;
    let last = query::cut(&mut grants, limit);
    let next_cursor = last.and_then(|last| query::behind(&last.made_at, &last.id));
    Ok(answer::json(&Listed {
        grants,
        next_cursor,
    }))
}

/// `POST /v1/grants` with a new grant.
pub(super) async fn make(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, Refusal> {
    let new: NewGrant = body::json(body, gateway.settings(), malformed).await?;
    let grants = gateway.executor().grants();
    let grant = grants.make(&caller.principal, &new).await?;
    Ok(answer::json(&grant))
}

/// `GET /v1/grants/{id}`.
pub(super) async fn one(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let id = query::segment(id)?;
    let grants = gateway.executor().grants();
    Ok(answer::json(&grants.show(&id, &caller.principal).await?))
}

/// `POST /v1/grants/{id}/revoke` with `{"reason"?}`.
pub(super) async fn revoke(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
    body: Body,
) -> Result<Response, Refusal> {
    let id = query::segment(id)?;
    let given: Revocation = body::json(body, gateway.settings(), malformed_revocation).await?;
    let grants = gateway.executor().grants();
    let revoked = grants.revoke(&id, &caller.principal, given.reason.as_deref());
    Ok(answer::json(&revoked.await?))
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        error.into_body().into()
    }
}

fn malformed() -> Refusal {
    Refusal::new(ErrorCode::InvalidArgument, Say::NotAGrant).hint(Say::SendGrant)
}

fn malformed_revocation() -> Refusal {
    Refusal::new(ErrorCode::InvalidArgument, Say::NotARevocation)
        .field("/reason")
        .hint(Say::SendRevocation)
}
