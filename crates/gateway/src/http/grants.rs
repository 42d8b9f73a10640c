//! `/v1/grants`: standing grants of users to agents. The credential proves who gives and takes authority; nothing in a
//! request can turn an agent into a person.

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use countersign::contract::{ErrorCode, Grant, GrantState, NewGrant};
use countersign::grant::{Error, Wanted};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::answer::{self, Refusal};
use super::query::{self, Options};
use super::{body, headers};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::strict;

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
#[derive(Default, Deserialize)]
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
    let states = GrantState::ALL.map(GrantState::as_str).join(", ");
    let state = match options.get("state") {
        None => None,
        Some(name) => match GrantState::from_name(name) {
            Some(state) => Some(state),
            None => return Err(query::wrong("state", &format!("one of {states}"))),
        },
    };
    let form = format!("a number up to {LISTED_MAX}");
    let limit: Option<usize> = options.parsed("limit", &form)?;
    if limit.is_some_and(|limit| limit > LISTED_MAX) {
        return Err(query::wrong("limit", &form));
    }
    let before = options.get("cursor").map(|cursor| {
        let wrong = || query::wrong("cursor", "the next_cursor of an earlier page");
        read_cursor(cursor).ok_or_else(wrong)
    });
    let limit = limit.unwrap_or(Wanted::default().limit);
    let wanted = Wanted {
        user_id: options.get("user").map(str::to_owned),
        state,
        before: before.transpose()?,
        // One more than is shown says whether there is another page.
        limit: limit.saturating_add(1),
    };
    let grants = gateway.executor().grants();
    let mut grants = grants.list(&caller.principal, &wanted).await?;
    let has_more = grants.len() > limit;
    grants.truncate(limit);
    let last = grants.last().filter(|_| has_more);
    Ok(answer::json(&Listed {
        next_cursor: last.and_then(cursor),
        grants,
    }))
}

/// Builds the cursor behind a grant. It is opaque to callers.
fn cursor(last: &Grant) -> Option<String> {
    let at: Timestamp = last.made_at.parse().ok()?;
    Some(format!("{}.{}", at.as_nanosecond(), last.id))
}

fn read_cursor(text: &str) -> Option<(Timestamp, String)> {
    let (at, id) = text.split_once('.')?;
    let at = Timestamp::from_nanosecond(at.parse().ok()?).ok()?;
    Some((at, id.to_owned()))
}

/// `POST /v1/grants` with a new grant.
pub(super) async fn make(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, Refusal> {
    let body = body::read(body, gateway.settings()).await?;
    let new: NewGrant = strict::from_str(headers::utf8(&body)?).map_err(|_| malformed())?;
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
    let body = body::read(body, gateway.settings()).await?;
    let given: Revocation = if body.is_empty() {
        Revocation::default()
    } else {
        strict::from_str(headers::utf8(&body)?).map_err(|_| malformed_revocation())?
    };
    let grants = gateway.executor().grants();
    let revoked = grants.revoke(&id, &caller.principal, given.reason.as_deref());
    Ok(answer::json(&revoked.await?))
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        error.into_body().into()
    }
}

/// Refuses a malformed grant. It is not quoted, because a condition may be personal.
fn malformed() -> Refusal {
    Refusal::new(ErrorCode::InvalidArgument, "the body is not a grant").hint(
        "send {\"to\": {\"type\": \"agent\", \"id\": …}, \"tools\": […], \"until\": …}, with \"when\", \"calls\", \"amount\" and \"parent\" if there are such bounds",
    )
}

fn malformed_revocation() -> Refusal {
    Refusal::new(
        ErrorCode::InvalidArgument,
        "the body is not a revocation of a grant",
    )
    .field("/reason")
    .hint("send nothing, or {\"reason\": …}")
}
