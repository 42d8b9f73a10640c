//! The same calls in the terms of two agent commerce standards: ACP 2026-04-17 and UCP 2026-04-08. The contract
//! for callers is in `docs/interop.md`.
//!
//! A profile changes nothing about a call: the executor decides, runs and records it as always. It changes the
//! accepted idempotency keys, and the form and status of the answer. The edge writes a refusal that never
//! becomes a call, in the form of the profile whose path was requested.
//!
//! | module | content |
//! |---|---|
//! | `profile` | the standard that a path follows |
//! | `key` | the idempotency keys that it accepts |
//! | `outcome` | errors in the form of a standard: a status, or messages |
//! | `codes` | the table of our codes in both standards |
//! | `acp`, `ucp` | answers in the form of each standard |
//! | `call` | `POST /acp/tools/{name}`, `POST /ucp/tools/{name}` |
//! | `view` | `GET /acp/checkout_sessions/{id}` and the like: pages built from a tool's answer |
//! | `discovery` | `/.well-known/acp.json`, `/.well-known/ucp` |

use axum::Router;
use axum::routing::{get, post};

use crate::gateway::Gateway;

mod acp;
mod call;
mod codes;
mod discovery;
mod key;
mod outcome;
mod profile;
mod ucp;
mod view;

pub use profile::Profile;
pub use view::{Page, PageError, View};

pub(super) use outcome::{refused, request_id};

/// Routes that need a caller.
pub(super) fn for_callers() -> Router<Gateway> {
    Router::new()
        .route("/acp/tools/{name}", post(call::acp))
        .route("/ucp/tools/{name}", post(call::ucp))
        .route("/acp/{resource}/{id}", get(view::acp))
        .route("/ucp/{resource}/{id}", get(view::ucp))
}

/// Routes that need no credential.
pub(super) fn for_anybody() -> Router<Gateway> {
    Router::new()
        .route("/.well-known/acp.json", get(discovery::acp))
        .route("/.well-known/ucp", get(discovery::ucp))
}
