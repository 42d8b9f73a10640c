//! Plain HTTP: one call is one `POST`, and earlier calls are read with `GET`. The contract for callers is in
//! `docs/http.md`.
//!
//! | module | content |
//! |---|---|
//! | `edge` | the middleware around all routes |
//! | `call` | `POST /v1/tools/{name}` |
//! | `members` | the body of a call: the members of the envelope, and the arguments as they were written |
//! | `headers` | the headers of a call |
//! | `approvals` | `/v1/approvals`: questions for users to confirm, and their answers |
//! | `grants` | `/v1/grants`: standing grants of users to agents |
//! | `tools` | `GET /v1/tools`: the tools that the caller may call, in the requested format |
//! | `providers` | `POST /v1/providers/{provider}/calls`: a model's message in, its tool messages out |
//! | `calls` | `GET /v1/calls`: past calls |
//! | `sessions` | `GET /v1/sessions/{id}`: the calls of one session |
//! | `claims` | `/v1/claims`: calls in doubt, and their settlement |
//! | `holds` | `/v1/holds`, `/v1/erasures`: longer retention, and erasure of a user |
//! | `acts` | `GET /v1/evidence`: what was done with the log itself |
//! | `notifications` | `GET /v1/notifications`: the outbox of notifications |
//! | `policy` | `GET /v1/policy`: who may call what, and why a call was decided as it was |
//! | `evidence` | `/v1/evidence/{id}`: a record, its proof, its bundle, its content |
//! | [`cases`] | `/v1/cases/{id}`: all records of one order or call, and one bundle of them |
//! | `replay` | `POST /v1/evidence/{id}/replay` |
//! | `upstreams` | `POST /v1/upstreams/{name}/test`: asks an upstream whether it is there |
//! | `status` | `GET /v1/status`: the state of the server, and its problems |
//! | `log` | `/v1/log`: the signed checkpoints and the tiles under them |
//! | `sight` | read access to records |
//! | `probes` | `/healthz`, `/readyz` |
//! | [`interop`] | `/acp/…`, `/ucp/…`: the same calls in the terms of two agent commerce standards |
//! | [`openapi`] | `/openapi.json` |
//! | `origin` | refuses foreign web pages |
//! | `body` | a body while it arrives: limited in length and in time |
//! | `answer` | answers: reply envelopes, other JSON, and refusals |

use axum::Router;
use axum::routing::{get, post};

use crate::gateway::Gateway;

mod acts;
pub mod answer;
mod approvals;
mod attention;
pub(crate) mod body;
mod call;
mod calls;
pub mod cases;
mod claims;
mod decision;
pub mod edge;
mod evidence;
mod grants;
pub(crate) mod headers;
mod holds;
pub mod interop;
mod log;
mod members;
mod notifications;
pub mod openapi;
mod origin;
mod policy;
mod probes;
mod providers;
mod query;
mod reasons;
mod replay;
mod sessions;
mod sight;
mod status;
mod tools;
mod trail;
mod upstreams;

/// Scope for reading other users' calls and records.
pub const SCOPE_CALLS: &str = "calls:read";

/// Routes that need a caller.
pub(crate) fn for_callers() -> Router<Gateway> {
    Router::new()
        .route("/v1/approvals", get(approvals::list))
        .route(
            "/v1/approvals/{id}",
            get(approvals::one).post(approvals::answer),
        )
        .route("/v1/approvals/{id}/authority", get(approvals::authority))
        .route("/v1/grants", get(grants::list).post(grants::make))
        .route("/v1/grants/{id}", get(grants::one))
        .route("/v1/grants/{id}/revoke", post(grants::revoke))
        .route("/v1/tools", get(tools::list))
        .route("/v1/tools/{name}", post(call::call).get(tools::one))
        .route("/v1/status", get(status::show))
        .route("/v1/attention", get(attention::show))
        .route("/v1/calls", get(calls::list))
        .route("/v1/calls/{request_id}", get(calls::one))
        .route("/v1/cases/{id}", get(cases::show))
        .route("/v1/cases/{id}/bundle", post(cases::bundle))
        .route("/v1/sessions/{id}", get(sessions::show))
        .route("/v1/claims", get(claims::list))
        .route("/v1/claims/settle", post(claims::settle))
        .route("/v1/claims/settle/all", post(claims::settle_all))
        .route("/v1/holds", get(holds::list).post(holds::hold))
        .route("/v1/holds/release", post(holds::release))
        .route("/v1/erasures", post(holds::erase))
        .route("/v1/notifications", get(notifications::list))
        .route("/v1/policy", get(policy::show))
        .route("/v1/policy/explain", get(policy::explain))
        .route("/v1/policy/report", get(policy::report))
        .route("/v1/upstreams/{name}/test", post(upstreams::test))
        .route("/v1/evidence", get(acts::list))
        .route("/v1/evidence/reasons", post(acts::reasons))
        .route("/v1/evidence/{id}", get(evidence::show))
        .route("/v1/evidence/{id}/proof", get(evidence::proof))
        .route("/v1/evidence/{id}/receipt", get(evidence::receipt))
        .route("/v1/evidence/{id}/statement", get(evidence::statement))
        .route("/v1/evidence/{id}/repeats", get(evidence::repeats))
        .route("/v1/evidence/{id}/bundle", get(evidence::bundle))
        .route("/v1/evidence/{id}/open", post(evidence::open))
        .route("/v1/evidence/{id}/replay", post(replay::replay))
        .route("/v1/providers/{provider}/calls", post(providers::calls))
        .route("/openapi.json", get(openapi::serve))
        .route("/v1/log/checkpoint", get(log::checkpoint))
        .route("/v1/log/checkpoints", get(log::checkpoints))
        .route("/v1/log/tile/{*path}", get(log::tile))
        .route("/v1/log/trail", get(trail::show))
        .merge(interop::for_callers())
}

/// Routes that need no credential.
pub(crate) fn for_anybody() -> Router<Gateway> {
    Router::new()
        .route("/healthz", get(probes::alive))
        .route("/readyz", get(probes::ready))
        .merge(interop::for_anybody())
}
