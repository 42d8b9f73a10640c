//! Plain HTTP: one call is one `POST`, what there was is one `GET` away. The contract for callers is in
//! `docs/http.md`.
//!
//! | module | what is in it |
//! |---|---|
//! | `edge` | what happens to every request before its route, and to every answer after it |
//! | `call` | `POST /v1/tools/{name}` |
//! | `members` | what a body may say: the members of the envelope, and the arguments as they were written |
//! | `headers` | what the headers of a call say |
//! | `tools` | `GET /v1/tools`: what the caller may call, in the words of whoever asks |
//! | `probes` | `/healthz`, `/readyz` |
//! | `origin` | keeps other people's web pages out |
//! | `body` | a body as it arrives: bounded in length and in time |
//! | `answer` | what goes back |

use axum::Router;
use axum::routing::{get, post};

use crate::gateway::Gateway;

pub mod answer;
mod body;
mod call;
pub mod edge;
mod headers;
mod members;
mod origin;
mod probes;
mod query;
mod tools;

/// The routes that need a caller.
pub(crate) fn for_callers() -> Router<Gateway> {
    Router::new()
        .route("/v1/tools", get(tools::list))
        .route("/v1/tools/{name}", post(call::call).get(tools::one))
}

/// The routes that anybody may ask.
pub(crate) fn for_anybody() -> Router<Gateway> {
    Router::new()
        .route("/healthz", get(probes::alive))
        .route("/readyz", get(probes::ready))
}
