//! Which path goes where. What needs a caller stands behind [`identity::layer`].

use axum::{Router, middleware};

use crate::gateway::Gateway;
use crate::http::edge;
use crate::{http, identity, mcp, metrics, operator};

/// All routes of a gateway.
pub fn router(gateway: &Gateway) -> Router {
    let identified = middleware::from_fn_with_state(gateway.clone(), identity::layer);
    let for_callers = http::for_callers()
        .merge(identity::routes::for_callers())
        .merge(operator::routes::for_callers())
        .merge(mcp::router(gateway))
        .layer(identified);
    let at_the_edge = middleware::from_fn_with_state(gateway.clone(), edge::layer);
    let counted = middleware::from_fn_with_state(gateway.clone(), metrics::layer);
    Router::new()
        .merge(http::for_anybody())
        .merge(identity::routes::for_anybody())
        .merge(operator::routes::for_anybody())
        .merge(metrics::routes())
        .merge(for_callers)
        .method_not_allowed_fallback(edge::no_such_method)
        .fallback(edge::no_such_path)
        .layer(at_the_edge)
        .layer(counted)
        .with_state(gateway.clone())
}
