//! Which path goes where. What needs a caller stands behind [`identity::layer`].

use axum::Router;
use axum::middleware;
use axum::routing::get;

use crate::gateway::Gateway;
use crate::identity;
use crate::metrics;

/// All routes of a gateway.
pub fn router(gateway: &Gateway) -> Router {
    let identified = middleware::from_fn_with_state(gateway.clone(), identity::layer);
    let for_callers = Router::new().layer(identified);
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .merge(metrics::routes())
        .merge(for_callers)
        .layer(middleware::from_fn_with_state(
            gateway.clone(),
            metrics::layer,
        ))
        .with_state(gateway.clone())
}
