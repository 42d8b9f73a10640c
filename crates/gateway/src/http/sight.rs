//! Whose records a caller may see: their own. A person or a program with [`SCOPE_CALLS`] sees everybody's, and a backend that
//! acts for others those of the users that it may name. No other scope shows anybody more records.

use countersign::Principal;
use countersign::contract::{ActorType, Digest, ErrorCode, SnapshotId};
use countersign::ledger::LogRow;
use countersign::realm::Realm;

use super::SCOPE_CALLS;
use super::answer::{self, Refusal};
use crate::caller::{Caller, Proof};
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

/// True if the caller runs the server, or may see what those who do see.
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

/// What the name of a record leads to, for one caller.
pub(super) enum Sight {
    /// A record that they may see.
    Seen(SnapshotId),
    /// A record that there is, and that is not theirs to see.
    NotTheirs(SnapshotId),
    /// Several records of one call, which they may see, newest first.
    Several(Vec<SnapshotId>),
    /// No record.
    Nothing,
}

/// How many records of one call are looked at.
const RECORDS_MAX: usize = 100;

/// How many records a hint names.
const NAMED_MAX: usize = 5;

/// Looks for records by a name: the id of one, the request id of its call, the id of what the call made, and for
/// whoever sees all records the hash of a leaf.
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
        // The own name of a record finds it whosever it is, so that it can be told whether somebody else's was asked for.
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

/// The name of a record that the caller may see. One that they may not see is like one that there is not.
pub(super) async fn find(
    gateway: &Gateway,
    principal: &Principal,
    name: &str,
) -> Result<SnapshotId, Refusal> {
    seen(look(gateway, principal, name).await?, name)
}

/// The same for what needs more than sight: that somebody was denied it is recorded.
pub(super) async fn find_for(
    event: &'static str,
    gateway: &Gateway,
    principal: &Principal,
    name: &str,
) -> Result<SnapshotId, Refusal> {
    let sight = look(gateway, principal, name).await?;
    let archive = gateway.archive();
    match &sight {
        Sight::NotTheirs(id) => archive.deny_sight(event, principal, id).await,
        Sight::Nothing if !sees_all(principal) => archive.deny_nothing(event, principal).await,
        Sight::Nothing | Sight::Seen(_) | Sight::Several(_) => {}
    }
    seen(sight, name)
}

fn seen(sight: Sight, name: &str) -> Result<SnapshotId, Refusal> {
    match sight {
        Sight::Seen(id) => Ok(id),
        Sight::Several(ids) => {
            let named: Vec<&str> = ids.iter().take(NAMED_MAX).map(SnapshotId::as_str).collect();
            let message = format!("the call has {} records", ids.len());
            Err(Refusal::new(ErrorCode::InvalidArgument, message)
                .hint(format!("name one of them: {}", named.join(", "))))
        }
        Sight::NotTheirs(_) | Sight::Nothing => Err(answer::not_found("record", name)
            .hint("GET /v1/calls lists the newest calls with their evidence")),
    }
}
