//! `GET /v1/policy`: who may call what, as the policy in force says it.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use countersign::contract::ToolSpec;
use serde::Serialize;

use super::answer::{self, Refusal};
use super::sight;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::policy::Review;

#[derive(Serialize)]
struct Shown<'p> {
    review: Review,
    /// The file as it was written; empty if there is none.
    text: &'p str,
}

/// Shows the policy, for callers who may see what operators see.
pub(super) async fn show(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refusal> {
    sight::operators_only(&caller)?;
    let entries = gateway.executor().catalog().list();
    let specs: Vec<&ToolSpec> = entries.iter().map(|entry| entry.spec()).collect();
    let policy = gateway.identity().policy().current();
    Ok(answer::json(&Shown {
        review: policy.review(&specs),
        text: policy.text(),
    }))
}
