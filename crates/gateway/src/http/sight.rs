//! Whose records a caller may see: their own; with a scope, or as a backend that acts for others, everybody's.

use countersign::Principal;
use countersign::contract::{ErrorCode, SnapshotId};
use countersign::ledger::LogRow;

use super::SCOPE_CALLS;
use super::answer::{self, Refusal};
use crate::gateway::Gateway;

/// Whether the caller may see the records of everybody.
fn sees_all(principal: &Principal) -> bool {
    principal.holds(SCOPE_CALLS) || principal.may_act_for_others
}

/// Whether the caller may see this record.
pub(super) fn sees(principal: &Principal, row: &LogRow) -> bool {
    // What belongs to nobody is nobody's, also for a caller without a name.
    sees_all(principal) || !row.user_id.is_empty() && row.user_id == principal.user_id
}

/// Whose records a question is about: everybody's where there is no name.
pub(super) fn whose(principal: &Principal, asked: Option<&str>) -> Result<Option<String>, Refusal> {
    match asked {
        asked if sees_all(principal) => Ok(asked.map(str::to_owned)),
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

/// The name of a record that the caller may see, or may see with this scope. One that they may not see is
/// like one that there is not.
pub(super) async fn find(
    gateway: &Gateway,
    principal: &Principal,
    id: &str,
    scope: Option<&str>,
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
    let is_granted = scope.is_some_and(|scope| principal.holds(scope));
    if is_granted || sees(principal, &row) {
        return Ok(known);
    }
    Err(hidden())
}
