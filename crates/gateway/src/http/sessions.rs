//! `GET /v1/sessions/{id}`: the calls of one session, oldest first, while it runs and after.
//!
//! A record has a digest of the session's name under the user's key. Which calls belong together is known in memory, of the newest
//! calls ([`Strands`](crate::strands::Strands)); after a start they are recalled from the log.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use countersign::archive;
use countersign::contract::evidence::LinkRole;
use countersign::contract::record::PhaseTimes;
use countersign::contract::{ErrorCode, EvidenceRecord, RequestId, SnapshotId};
use serde::Serialize;

use super::answer::{self, Kind, Refusal};
use super::decision::{self, Decision};
use super::query::{self, Options};
use super::sight;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::strands::Strand;
use crate::words::Say;

/// Maximum number of calls that are shown of a session, the newest.
const CALLS_MAX: usize = 200;

#[derive(Serialize)]
struct Shown {
    /// Name of the session in addresses.
    session: String,
    calls: Vec<ShownCall>,
    /// True if there were more calls than are shown.
    is_cut: bool,
    /// Calls before this time are not known to belong here.
    known_since: String,
}

/// A call of a session.
#[derive(Serialize)]
struct ShownCall {
    at: String,
    user_id: String,
    tool: Option<String>,
    code: &'static str,
    dry_run: bool,
    evidence: SnapshotId,
    request_id: Option<RequestId>,
    phases: PhaseTimes,
    /// Records that this call rests on.
    rests_on: Vec<SnapshotId>,
    /// The decision of a person that it rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
}

/// Shows a session by the name that its calls gave, by its name in addresses, or by the evidence of one of its calls.
pub(super) async fn show(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(options): RawQuery,
) -> Result<Response, Refusal> {
    let name = query::segment(name)?;
    let options = Options::read(options.as_deref(), ["limit", "user"])?;
    let limit = options.limit(CALLS_MAX, 1, CALLS_MAX)?;
    let hidden = || answer::not_found(Kind::Session, &name).hint(Say::SessionsKnown);
    let strands = gateway.pulse().strands();
    let user = options.get("user");
    let asked = asked(&gateway, &caller, &name, user).await?;
    let session = asked.first().ok_or_else(hidden)?.to_string();
    let (known, is_cut) = strands.calls(&asked, limit);
    // What was answered a moment ago is in the store by then.
    let flushed = gateway.executor().store().flush().await;
    flushed.map_err(archive::Error::Store)?;
    // A call that was answered and could not be kept has no record.
    let mut found = gateway.archive().at_hand(&known).await?;
    // A record that this caller may not see is of somebody else's session of the same name.
    found.retain(|(row, _)| sight::sees(&caller.principal, row));
    let decisions = decision::of(&gateway, found.iter().map(|(_, record)| record)).await?;
    let calls = found.into_iter().zip(decisions);
    let calls = calls.map(|((row, record), decision)| call(record, row.user_id, decision));
    let calls: Vec<ShownCall> = calls.collect();
    if calls.is_empty() {
        return Err(hidden());
    }
    Ok(answer::json(&Shown {
        // Sessions of several users may have one name.
        session: if asked.len() == 1 { session } else { name },
        calls,
        is_cut,
        known_since: gateway.counted_since().to_string(),
    }))
}

/// The known sessions that a name leads to.
pub(super) async fn asked(
    gateway: &Gateway,
    caller: &Caller,
    name: &str,
    user: Option<&str>,
) -> Result<Vec<Strand>, Refusal> {
    let strands = gateway.pulse().strands();
    if let Some(strand) = Strand::read(name) {
        return Ok(strands.known(vec![strand]));
    }
    if let Ok(id) = SnapshotId::new(name)
        && name.starts_with("ev_")
    {
        return Ok(strands.of(&id).into_iter().collect());
    }
    let principal = &caller.principal;
    let named = |user: Option<String>| async move {
        let archive = gateway.archive();
        archive.sessions_named(name, user.as_deref()).await
    };
    let is_backend = user.is_none() && principal.may_act_for_others;
    let named = match sight::whose(principal, user)? {
        // A backend looks through the users that it may name; records of others are left out below.
        Some(_) if is_backend => named(None).await?,
        user => named(user).await?,
    };
    let named = named.iter().filter_map(|session| Strand::read(session));
    Ok(strands.known(named.collect()))
}

fn call(record: EvidenceRecord, user_id: String, decision: Option<Decision>) -> ShownCall {
    let links = record.links.iter();
    let rests_on = links.filter(|link| match link.role {
        Some(LinkRole::RestsOn) | None => true,
        Some(LinkRole::LookedAt) => false,
    });
    let code = record.reply.as_ref().and_then(|reply| reply.code);
    ShownCall {
        rests_on: rests_on.map(|link| link.id.clone()).collect(),
        at: record.at,
        user_id,
        tool: record.tool.map(|tool| tool.name),
        code: code.map_or("OK", ErrorCode::as_str),
        dry_run: record.dry_run,
        evidence: record.id,
        request_id: record.request_id,
        phases: record.phases.unwrap_or_default(),
        decision,
    }
}
