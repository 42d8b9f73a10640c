//! `GET /v1/sessions/{id}`: the calls of one session, oldest first, while it runs and after.
//!
//! Records hold no session: its name is the caller's own text. Which calls belong together is known in memory, of the newest calls since
//! the process began ([`Strands`](crate::strands::Strands)).

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use countersign::archive;
use countersign::contract::evidence::LinkRole;
use countersign::contract::record::PhaseTimes;
use countersign::contract::{ErrorCode, EvidenceRecord, RequestId, SnapshotId};
use serde::Serialize;

use super::answer::{self, Refusal};
use super::query::{self, Options};
use super::sight;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::strands::Strand;

/// Maximum number of calls that are shown of a session, the newest.
const CALLS_MAX: usize = 200;

#[derive(Serialize)]
struct Shown {
    /// Name of the session in addresses.
    session: String,
    calls: Vec<ShownCall>,
    /// True if there were more calls than are shown.
    is_cut: bool,
    /// Calls that this process answered before are not known to belong here.
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
}

/// Shows a session by the name that its calls gave, by its name in addresses, or by the evidence of one of its calls.
pub(super) async fn show(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(options): RawQuery,
) -> Result<Response, Refusal> {
    let name = query::segment(name)?;
    let options = Options::read(options.as_deref(), ["limit"])?;
    let form = format!("a number from 1 to {CALLS_MAX}");
    let limit = options.parsed("limit", &form)?.unwrap_or(CALLS_MAX);
    if !(1..=CALLS_MAX).contains(&limit) {
        return Err(query::wrong("limit", &form));
    }
    let hidden = || {
        answer::not_found("session", &name)
            .hint("sessions are known for the newest calls since the server was started")
    };
    let strands = gateway.pulse().strands();
    let strand = match SnapshotId::new(&name) {
        Ok(id) if name.starts_with("ev_") => strands.of(&id),
        Ok(_) | Err(_) => Some(Strand::named(&name)),
    };
    let strand = strand.ok_or_else(hidden)?;
    let (known, is_cut) = strands.calls(&strand, limit);
    // What was answered a moment ago is in the store by then.
    let flushed = gateway.executor().store().flush().await;
    flushed.map_err(archive::Error::Store)?;
    let mut calls = Vec::new();
    for id in known {
        let shown = match gateway.archive().show(&id).await {
            Ok(shown) => shown,
            // It was answered, and could not be kept.
            Err(archive::Error::NoRecord { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        // A record that this caller may not see is of somebody else's session of the same name.
        if sight::sees(&caller.principal, &shown.row) {
            calls.push(call(shown.record, shown.row.user_id));
        }
    }
    if calls.is_empty() {
        return Err(hidden());
    }
    Ok(answer::json(&Shown {
        session: strand.to_string(),
        calls,
        is_cut,
        known_since: gateway.started_at().to_string(),
    }))
}

fn call(record: EvidenceRecord, user_id: String) -> ShownCall {
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
    }
}
