//! Whose records a caller may see: their own. A person or a program with [`SCOPE_CALLS`] sees everybody's, and a backend that
//! acts for others those of the users that it may name. No other scope shows anybody more records.

use countersign::Principal;
use countersign::contract::{ActorType, ErrorCode, SnapshotId};
use countersign::ledger::LogRow;
use countersign::realm::Realm;

use super::SCOPE_CALLS;
use super::answer::{self, Refusal};
use crate::gateway::Gateway;

/// Whether the caller may see the records of everybody.
pub(super) fn sees_all(principal: &Principal) -> bool {
    let is_granted = match principal.actor.kind {
        ActorType::User | ActorType::System => principal.holds(SCOPE_CALLS),
        // It acts for one user, whatever it holds.
        ActorType::Agent => false,
    };
    is_granted || principal.may_act_for_others && principal.realm == Realm::Any
}

/// Whether the caller may see this record.
pub(super) fn sees(principal: &Principal, row: &LogRow) -> bool {
    let may_name = principal.may_act_for_others && principal.realm.has(&row.user_id);
    // What belongs to nobody is nobody's, also for a caller without a name.
    let is_theirs = !row.user_id.is_empty() && (row.user_id == principal.user_id || may_name);
    sees_all(principal) || is_theirs
}

/// Whose records a question is about: everybody's where there is no name.
pub(super) fn whose(principal: &Principal, asked: Option<&str>) -> Result<Option<String>, Refusal> {
    match asked {
        asked if sees_all(principal) => Ok(asked.map(str::to_owned)),
        Some(user) if principal.may_act_for_others && principal.realm.has(user) => {
            Ok(Some(user.to_owned()))
        }
        Some(user) if user != principal.user_id => {
            let message = "the calls of others may not be seen with this credential";
            Err(Refusal::new(ErrorCode::Forbidden, message)
                .field("/user")
                .hint(format!(
                    "leave it out, or use a credential with the scope {SCOPE_CALLS}"
                )))
        }
        Some(_) | None => Ok(Some(principal.user_id.clone())),
    }
}

/// The name of a record that the caller may see. One that they may not see is like one that there is not.
pub(super) async fn find(
    gateway: &Gateway,
    principal: &Principal,
    id: &str,
) -> Result<SnapshotId, Refusal> {
    let hidden = || {
        answer::not_found("record", id)
            .hint("GET /v1/calls lists the newest calls with their evidence")
    };
    let known = SnapshotId::new(id).map_err(|_| hidden())?;
    let row = match gateway.archive().row(&known).await {
        Ok(row) => row,
        Err(countersign::archive::Error::NoRecord { .. }) => return Err(hidden()),
        Err(error) => return Err(error.into()),
    };
    if sees(principal, &row) {
        return Ok(known);
    }
    Err(hidden())
}
