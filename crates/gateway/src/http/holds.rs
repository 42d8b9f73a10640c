//! `/v1/holds` and `/v1/erasures`: longer retention, and erasure of a user. Both are the operations of the command line: the archive asks
//! for the scope and the reason, and keeps a record of both.

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use countersign::archive::Coverage;
use countersign::contract::{ErrorCode, SnapshotId};
use serde::{Deserialize, Serialize};

use super::answer::{self, Kind, Refusal};
use super::body;
use super::query::Options;
use super::sight::{self, Sight};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::words::Say;

/// Maximum number of holds in a list.
const LIMIT: usize = 1_000;

#[derive(Serialize)]
struct Listed {
    holds: Vec<Shown>,
    /// True if there may be more holds than are listed.
    is_cut: bool,
}

/// A hold of the list. Its reason is sealed.
#[derive(Serialize)]
struct Shown {
    user_id: String,
    /// The order that the record is held for, if one was named.
    order: Option<String>,
    /// `None` if everything of the user is held.
    record: Option<SnapshotId>,
}

/// `GET /v1/holds`, for callers who may see what operators see.
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let options = Options::read(query.as_deref(), ["user"])?;
    sight::operators_only(&caller)?;
    let holds = gateway.archive().holds(LIMIT).await?;
    let is_cut = holds.len() == LIMIT;
    let user = options.get("user");
    let holds = holds
        .into_iter()
        .filter(|hold| user.is_none_or(|user| hold.user_id == user))
        .map(|hold| Shown {
            user_id: hold.user_id,
            order: hold.of,
            record: hold.record,
        });
    Ok(answer::json(&Listed {
        holds: holds.collect(),
        is_cut,
    }))
}

/// Body of a hold and of its release: a user, or the id of an order, a call or a record.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    #[serde(default)]
    user_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    reason: String,
}

/// Result of a change of a hold.
#[derive(Serialize)]
struct Done {
    user_id: String,
    /// Held records; empty if everything of the user is held.
    records: Vec<SnapshotId>,
    /// The records of the act.
    evidence: Vec<SnapshotId>,
}

/// `POST /v1/holds`.
pub(super) async fn hold(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, Refusal> {
    let (covered, reason) = target("hold", &gateway, &caller, body).await?;
    let archive = gateway.archive();
    let evidence = archive.hold_all(&covered, &caller.principal, &reason);
    let evidence = evidence.await?;
    Ok(done(covered, evidence))
}

/// `POST /v1/holds/release`.
pub(super) async fn release(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, Refusal> {
    let (covered, reason) = target("release_hold", &gateway, &caller, body).await?;
    let archive = gateway.archive();
    let evidence = archive.release_all(&covered, &caller.principal, &reason);
    let evidence = evidence.await?;
    if evidence.is_empty() {
        return Err(Refusal::new(ErrorCode::NotFound, Say::NoHold).hint(Say::ListOfHolds));
    }
    Ok(done(covered, evidence))
}

fn done(covered: Coverage, evidence: Vec<SnapshotId>) -> Response {
    answer::json(&Done {
        user_id: covered.user_id,
        records: covered.records,
        evidence,
    })
}

/// The records that are meant, and the reason.
async fn target(
    event: &'static str,
    gateway: &Gateway,
    caller: &Caller,
    body: Body,
) -> Result<(Coverage, String), Refusal> {
    sight::operators_only(caller)?;
    let target: Target = body::json(body, gateway.settings(), malformed).await?;
    let archive = gateway.archive();
    let name = match (target.user_id, target.name) {
        (Some(user_id), None) => return Ok((Coverage::of_user(user_id), target.reason)),
        (None, Some(name)) => name,
        (Some(_), Some(_)) | (None, None) => return Err(malformed()),
    };
    let ids = match sight::look_for(event, gateway, &caller.principal, &name).await? {
        Sight::Seen(id) => vec![id],
        Sight::Several(ids) => ids,
        Sight::NotTheirs(_) | Sight::Nothing => {
            return Err(answer::not_found(Kind::Record, &name).hint(Say::NameForHold));
        }
    };
    let mut rows = Vec::new();
    for id in &ids {
        rows.push(archive.show(id).await?.row);
    }
    let covered = archive.coverage(&name, &rows).await?;
    Ok((covered, target.reason))
}

/// Body of an erasure.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    user_id: String,
    reason: String,
}

/// Counts of what was removed.
#[derive(Serialize)]
struct Erased {
    evidence: SnapshotId,
    keys: usize,
    payloads: usize,
    documents: usize,
    claims: usize,
    api_keys: usize,
}

/// `POST /v1/erasures`: erases a user. This cannot be undone.
pub(super) async fn erase(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, Refusal> {
    sight::operators_only(&caller)?;
    let wanted: Wanted = body::json(body, gateway.settings(), malformed).await?;
    let archive = gateway.archive();
    let erasure = archive.erase(&wanted.user_id, &caller.principal, &wanted.reason);
    let erasure = erasure.await?;
    let Some(evidence) = erasure.record else {
        let message = Say::NoUserData;
        return Err(Refusal::new(ErrorCode::NotFound, message).hint(Say::UserMayBeErased));
    };
    Ok(answer::json(&Erased {
        evidence,
        keys: erasure.erased.keys,
        payloads: erasure.erased.payloads,
        documents: erasure.erased.documents,
        claims: erasure.erased.claims,
        api_keys: erasure.belongings,
    }))
}

fn malformed() -> Refusal {
    let message = Say::NotATarget;
    Refusal::new(ErrorCode::InvalidArgument, message).hint(Say::SendTarget)
}
