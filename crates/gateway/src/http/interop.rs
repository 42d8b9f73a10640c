//! The same calls in the words of two standards of agent commerce: ACP 2026-04-17 and UCP 2026-04-08. The
//! contract for callers is in `docs/interop.md`.
//!
//! A profile changes nothing about a call: the executor decides, runs and records it as ever. It changes which
//! keys are accepted, and in which words and with which status the answer goes back. A refusal that never
//! becomes a call is written by the edge, in the words of the profile whose path was asked for.
//!
//! | module | what is in it |
//! |---|---|
//! | `profile` | which standard a path speaks |
//! | `key` | which idempotency keys it accepts |
//! | `outcome` | an error in a standard: a status, or messages |
//! | `codes` | the table of our codes in both standards |
//! | `acp`, `ucp` | how answers are written |
//! | `call` | `POST /acp/tools/{name}`, `POST /ucp/tools/{name}` |
//! | `view` | `GET /acp/checkout_sessions/{id}` and the like: pages made from a tool's answer |
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

/// The routes that need a caller.
pub(super) fn for_callers() -> Router<Gateway> {
    Router::new()
        .route("/acp/tools/{name}", post(call::acp))
        .route("/ucp/tools/{name}", post(call::ucp))
        .route("/acp/{resource}/{id}", get(view::acp))
        .route("/ucp/{resource}/{id}", get(view::ucp))
}

/// The routes that anybody may ask.
pub(super) fn for_anybody() -> Router<Gateway> {
    Router::new()
        .route("/.well-known/acp.json", get(discovery::acp))
        .route("/.well-known/ucp", get(discovery::ucp))
}
