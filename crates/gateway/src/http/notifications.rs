//! `GET /v1/notifications`: notices of what needed a person, and what became of their deliveries.

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use countersign::archive;

use super::answer::{self, Refusal};
use super::query::Options;
use super::sight;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::notify::{Notifications, ShownNotice, ShownTarget};

/// Default and maximum number of notices in a list.
const LIMIT: usize = 100;
const LIMIT_MAX: usize = 1_000;

/// Lists the newest notices, for callers who may see what operators see.
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let options = Options::read(query.as_deref(), ["limit"])?;
    sight::operators_only(&caller)?;
    let limit = options.limit(LIMIT, 1, LIMIT_MAX)?;
    let rows = gateway.executor().store().notices(limit).await;
    let rows = rows.map_err(archive::Error::from)?;
    let targets = gateway.notify_targets();
    Ok(answer::json(&Notifications {
        targets: targets.iter().map(ShownTarget::from).collect(),
        notifications: rows.into_iter().map(ShownNotice::from).collect(),
    }))
}
