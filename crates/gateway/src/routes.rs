//! Routing of paths. Routes that need a caller are behind [`identity::layer`].

use std::fmt;

use ::http::HeaderValue;
use ::http::header::HOST;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::{Router, middleware};
use tower_service::Service as _;

use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::http::edge;
use crate::identity::Known;
use crate::{http, identity, mcp, metrics, operator};

/// Returns all routes of a gateway.
pub fn router(gateway: &Gateway) -> Router {
    let identified = middleware::from_fn_with_state(gateway.clone(), identity::layer);
    let for_callers = http::for_callers()
        .merge(identity::routes::for_callers())
        .merge(operator::routes::for_callers())
        .merge(mcp::router(gateway))
        .layer(identified);
    let at_the_edge = middleware::from_fn_with_state(gateway.clone(), edge::layer);
    let counted = middleware::from_fn_with_state(gateway.clone(), metrics::layer);
    let routes = Router::new()
        .merge(http::for_anybody())
        .merge(identity::routes::for_anybody())
        .merge(operator::routes::for_anybody())
        .merge(metrics::routes())
        .merge(for_callers);
    let routes = match gateway.pages() {
        Some(pages) => routes.merge(pages.with_state(())),
        None => routes,
    };
    routes
        .method_not_allowed_fallback(edge::no_such_method)
        .fallback(edge::no_such_path)
        .layer(at_the_edge)
        .layer(counted)
        .with_state(gateway.clone())
}

/// The routes of the API for a caller who is known already. Pages use it, so that they show the same as the API shows
/// to the same caller, and nothing is decided twice.
#[derive(Clone)]
pub struct Inside {
    router: Router,
}

impl Inside {
    /// The API of a gateway, without what only the operator's commands ask for.
    pub fn new(gateway: &Gateway) -> Self {
        let identified = middleware::from_fn_with_state(gateway.clone(), identity::layer);
        let at_the_edge = middleware::from_fn_with_state(gateway.clone(), edge::layer);
        let router = http::for_callers()
            .merge(identity::routes::for_callers())
            .layer(identified)
            .fallback(edge::no_such_path)
            .layer(at_the_edge)
            .with_state(gateway.clone());
        Self { router }
    }

    /// Answers a request of this caller.
    pub async fn ask(&self, caller: &Caller, mut request: Request<Body>) -> Response {
        request.extensions_mut().insert(Known(caller.clone()));
        let here = HeaderValue::from_static("localhost");
        request.headers_mut().insert(HOST, here);
        let answered = self.router.clone().call(request).await;
        answered.unwrap_or_else(|never| match never {})
    }
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside")
    }
}

#[cfg(test)]
mod tests {
    use axum::extract::State;
    use axum::middleware::Next;

    use super::*;

    /// Every layer moves the future of a request to the heap: what it rarely waits for must not make it large.
    #[test]
    fn futures_of_layers_are_small() {
        fn bytes<F>(_: impl Fn(State<Gateway>, Request, Next) -> F) -> usize {
            size_of::<F>()
        }
        let sizes = [
            bytes(identity::layer),
            bytes(edge::layer),
            bytes(metrics::layer),
        ];
        assert!(sizes.iter().all(|size| *size < 4_096), "{sizes:?}");
    }
}
