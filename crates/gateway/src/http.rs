//! Plain HTTP: one call is one `POST`, what there was is one `GET` away. The contract for callers is in
//! `docs/http.md`.
//!
//! | module | what is in it |
//! |---|---|
//! | `edge` | what happens to every request before its route, and to every answer after it |
//! | `call` | `POST /v1/tools/{name}` |
//! | `members` | what a body may say: the members of the envelope, and the arguments as they were written |
//! | `headers` | what the headers of a call say |
//! | `approvals` | `/v1/approvals`: what users are asked to confirm, and their answers |
//! | `tools` | `GET /v1/tools`: what the caller may call, in the words of whoever asks |
//! | `providers` | `POST /v1/providers/{provider}/calls`: a model's message in, its tool messages out |
//! | `calls` | `GET /v1/calls`: the calls that there were |
//! | `evidence` | `/v1/evidence/{id}`: a record, its proof, its bundle, its content |
//! | `replay` | `POST /v1/evidence/{id}/replay` |
//! | `status` | `GET /v1/status`: what there is, and what is wrong |
//! | `log` | `/v1/log`: the signed checkpoint and the tiles under it |
//! | `sight` | whose records a caller may see |
//! | `probes` | `/healthz`, `/readyz` |
//! | [`interop`] | `/acp/…`, `/ucp/…`: the same calls in the words of two standards of agent commerce |
//! | [`openapi`] | `/openapi.json` |
//! | `origin` | keeps other people's web pages out |
//! | `body` | a body as it arrives: bounded in length and in time |
//! | `answer` | what goes back |

use axum::Router;
use axum::routing::{get, post};

use crate::gateway::Gateway;

pub mod answer;
mod approvals;
pub(crate) mod body;
mod call;
mod calls;
pub mod edge;
mod evidence;
pub(crate) mod headers;
pub mod interop;
mod log;
mod members;
pub mod openapi;
mod origin;
mod probes;
mod providers;
mod query;
mod replay;
mod sight;
mod status;
mod tools;

/// Grants looking at the calls and records of others.
pub const SCOPE_CALLS: &str = "calls:read";

/// The routes that need a caller.
pub(crate) fn for_callers() -> Router<Gateway> {
    Router::new()
        .route("/v1/approvals", get(approvals::list))
        .route(
            "/v1/approvals/{id}",
            get(approvals::one).post(approvals::answer),
        )
        .route("/v1/tools", get(tools::list))
        .route("/v1/tools/{name}", post(call::call).get(tools::one))
        .route("/v1/status", get(status::show))
        .route("/v1/calls", get(calls::list))
        .route("/v1/calls/{request_id}", get(calls::one))
        .route("/v1/evidence/{id}", get(evidence::show))
        .route("/v1/evidence/{id}/proof", get(evidence::proof))
        .route("/v1/evidence/{id}/bundle", get(evidence::bundle))
        .route("/v1/evidence/{id}/open", post(evidence::open))
        .route("/v1/evidence/{id}/replay", post(replay::replay))
        .route("/v1/providers/{provider}/calls", post(providers::calls))
        .route("/openapi.json", get(openapi::serve))
        .route("/v1/log/checkpoint", get(log::checkpoint))
        .route("/v1/log/tile/{*path}", get(log::tile))
        .merge(interop::for_callers())
}

/// The routes that anybody may ask.
pub(crate) fn for_anybody() -> Router<Gateway> {
    Router::new()
        .route("/healthz", get(probes::alive))
        .route("/readyz", get(probes::ready))
        .merge(interop::for_anybody())
}
