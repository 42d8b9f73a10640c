//! Read access to records: a caller sees their own. A person or a program with [`SCOPE_CALLS`] sees all
//! records, and a backend that acts for others sees those of the users that it may name. No other scope gives
//! access to more records.

use countersign::Principal;
use countersign::contract::{ActorType, Digest, ErrorCode, SnapshotId};
use countersign::ledger::LogRow;
use countersign::realm::Realm;

use super::SCOPE_CALLS;
use super::answer::{self, Kind, Refusal};
use crate::caller::{Caller, Proof};
use crate::gateway::Gateway;
use crate::words::Say;

/// True if the caller may see all records.
pub(super) fn sees_all(principal: &Principal) -> bool {
    let is_granted = match principal.actor.kind {
        ActorType::User | ActorType::System => principal.holds(SCOPE_CALLS),
        // An agent acts for one user, whatever its scopes.
        ActorType::Agent => false,
    };
    is_granted || principal.may_act_for_others && principal.realm == Realm::Any
}

/// True if the caller runs the server, or may see what its operators see.
pub(super) fn is_operator(caller: &Caller) -> bool {
    match (caller.proof, caller.principal.actor.kind) {
        // Programs on the machine of an open server may do everything there.
        (Proof::Operator | Proof::Loopback, _) => true,
        (Proof::ApiKey | Proof::Token, ActorType::User | ActorType::System) => {
            caller.principal.holds(SCOPE_CALLS)
        }
        (Proof::ApiKey | Proof::Token, ActorType::Agent) => false,
    }
}

/// Refuses callers who may not see what operators see.
pub(super) fn operators_only(caller: &Caller) -> Result<(), Refusal> {
    if is_operator(caller) {
        return Ok(());
    }
    let message = Say::ForOperators;
    Err(
        Refusal::new(ErrorCode::Forbidden, message).hint(Say::UseScope {
            scope: SCOPE_CALLS.to_string(),
        }),
    )
}

/// True if the caller may see this record.
pub(super) fn sees(principal: &Principal, row: &LogRow) -> bool {
    let may_name = principal.may_act_for_others && principal.realm.has(&row.user_id);
    // A record without a user belongs to no caller, not even to one without a user.
    let is_theirs = !row.user_id.is_empty() && (row.user_id == principal.user_id || may_name);
    sees_all(principal) || is_theirs
}

/// Returns the user whose records a query is about; `None` for all users.
pub(super) fn whose(principal: &Principal, asked: Option<&str>) -> Result<Option<String>, Refusal> {
    match asked {
        asked if sees_all(principal) => Ok(asked.map(str::to_owned)),
        Some(user) if principal.may_act_for_others && principal.realm.has(user) => {
            Ok(Some(user.to_owned()))
        }
        Some(user) if user != principal.user_id => {
            let message = Say::OtherUsersCalls;
            Err(Refusal::new(ErrorCode::Forbidden, message)
                .field("/user")
                .hint(Say::LeaveOutOrScope {
                    scope: SCOPE_CALLS.to_string(),
                }))
        }
        Some(_) | None => Ok(Some(principal.user_id.clone())),
    }
}

/// Result of looking up a record's name for one caller.
pub(super) enum Sight {
    /// A record that the caller may see.
    Seen(SnapshotId),
    /// A record that exists, but that the caller may not see.
    NotTheirs(SnapshotId),
    /// Several records of one call, which the caller may see, newest first.
    Several(Vec<SnapshotId>),
    /// No record.
    Nothing,
}

/// Maximum number of records of one call that are read.
const RECORDS_MAX: usize = 100;

/// Maximum number of records that a hint names.
const NAMED_MAX: usize = 5;

/// Looks up records by a name: the id of one, the request id of its call, the id of what the call made, and,
/// for callers that see all records, the hash of a leaf.
pub(super) async fn look(
    gateway: &Gateway,
    principal: &Principal,
    name: &str,
) -> Result<Sight, Refusal> {
    let archive = gateway.archive();
    let sees_all = sees_all(principal);
    let rows = match name.parse::<Digest>() {
        Ok(hash) if sees_all => archive.of_leaf(hash).await?.into_iter().collect(),
        Ok(_) => Vec::new(),
        // A record's own id finds it whoever its user is, so that an attempt to read another user's record can
        // be recognized.
        Err(_) if sees_all || name.starts_with("ev_") => {
            archive.locate(name, None, RECORDS_MAX).await?
        }
        Err(_) => {
            let user_id = Some(principal.user_id.as_str());
            archive.locate(name, user_id, RECORDS_MAX).await?
        }
    };
    let (seen, hidden): (Vec<LogRow>, Vec<LogRow>) =
        rows.into_iter().partition(|row| sees(principal, row));
    let mut seen: Vec<SnapshotId> = seen.into_iter().map(|row| row.id).collect();
    Ok(match (seen.len(), hidden.into_iter().next()) {
        (0, Some(row)) => Sight::NotTheirs(row.id),
        (0, None) => Sight::Nothing,
        (1, _) => seen.pop().map_or(Sight::Nothing, Sight::Seen),
        (_, _) => Sight::Several(seen),
    })
}

/// Returns the id of a record that the caller may see. A record that they may not see is answered exactly like
/// a missing one.
pub(super) async fn find(
    gateway: &Gateway,
    principal: &Principal,
    name: &str,
) -> Result<SnapshotId, Refusal> {
    seen(look(gateway, principal, name).await?, name)
}

/// Same as `find`, for operations that need more than read access: a denial is recorded.
pub(super) async fn find_for(
    event: &'static str,
    gateway: &Gateway,
    principal: &Principal,
    name: &str,
) -> Result<SnapshotId, Refusal> {
    seen(look_for(event, gateway, principal, name).await?, name)
}

/// Same as `look`, for operations that need more than read access: a denial is recorded.
pub(super) async fn look_for(
    event: &'static str,
    gateway: &Gateway,
    principal: &Principal,
    name: &str,
) -> Result<Sight, Refusal> {
    let sight = look(gateway, principal, name).await?;
    let archive = gateway.archive();
    match &sight {
        Sight::NotTheirs(id) => archive.deny_sight(event, principal, id).await,
        Sight::Nothing if !sees_all(principal) => archive.deny_nothing(event, principal).await,
        Sight::Nothing | Sight::Seen(_) | Sight::Several(_) => {}
    }
    Ok(sight)
}

fn seen(sight: Sight, name: &str) -> Result<SnapshotId, Refusal> {
    match sight {
        Sight::Seen(id) => Ok(id),
        Sight::Several(ids) => {
            let named: Vec<&str> = ids.iter().take(NAMED_MAX).map(SnapshotId::as_str).collect();
            let message = Say::SeveralRecords {
                count: ids.len().to_string(),
            };
            Err(
                Refusal::new(ErrorCode::InvalidArgument, message).hint(Say::NameOneOf {
                    names: named.join(", "),
                }),
            )
        }
        Sight::NotTheirs(_) | Sight::Nothing => {
            Err(answer::not_found(Kind::Record, name).hint(Say::NewestCallsWithEvidence))
        }
    }
}
