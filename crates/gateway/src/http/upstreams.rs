//! `POST /v1/upstreams/{name}/test`: asks an upstream whether it is there, now.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;

use super::answer::{self, Kind, Refusal};
use super::{query, sight};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::words::Say;

/// Asks the upstream, for callers who may see what operators see.
pub(super) async fn test(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let name = query::segment(name)?;
    sight::operators_only(&caller)?;
    let probe = gateway.probe_upstream(&name).await;
    let probe =
        probe.ok_or_else(|| answer::not_found(Kind::Upstream, &name).hint(Say::ListOfUpstreams))?;
    Ok(answer::json(&probe))
}
