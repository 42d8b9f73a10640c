//! `/.well-known/acp.json` and `/.well-known/ucp`: the addresses of a standard's pages, for clients that know
//! only the host. They list only what exists: no service of ACP, which would mean all of its operations, and no
//! capability of UCP, whose service only gives the base address of its pages.

use axum::extract::State;
use axum::response::Response;
use countersign::contract::ErrorCode;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::outcome;
use super::profile::Profile;
use super::view::View;
use crate::gateway::Gateway;
use crate::http::answer::Refusal;
use crate::identity::base_url;
use crate::words::Say;

pub(super) async fn acp(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let base = base_of(Profile::Acp, &gateway, &headers)?;
    let version = Profile::Acp.version();
    Ok(cached(&json!({
        "protocol": {"name": "acp", "version": version, "supported_versions": [version]},
        "api_base_url": base,
        "transports": ["rest"],
        // Sessions can be read here, but are created by calls of tools: that is not the service `checkout`.
        "capabilities": {"services": []},
    })))
}

pub(super) async fn ucp(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let base = base_of(Profile::Ucp, &gateway, &headers)?;
    let version = Profile::Ucp.version();
    Ok(cached(&json!({"ucp": {
        "version": version,
        "services": {"dev.ucp.shopping": [
            {"version": version, "transport": "rest", "endpoint": base},
        ]},
        "capabilities": {},
        // Payments are never made here: the buyer pays elsewhere.
        "payment_handlers": {},
    }})))
}

/// Returns the base address of a profile's paths. A server without any page of it does not support it.
fn base_of(profile: Profile, gateway: &Gateway, headers: &HeaderMap) -> Result<String, Refusal> {
    // A page is built from the answer of a tool, which may be disabled.
    let catalog = gateway.executor().catalog();
    let is_there = |view: &View| view.profile() == profile && catalog.get(view.tool()).is_some();
    let has_pages = gateway.views().iter().any(is_there);
    let base = base_url(gateway.settings(), headers).filter(|_| has_pages);
    let base = base.map(|base| format!("{base}{}", profile.prefix()));
    base.ok_or_else(|| {
        Refusal::new(ErrorCode::NotFound, Say::NoSuchStandard).hint(Say::ListOfPaths)
    })
}

/// Builds a response that clients may cache: it rarely changes except with a new version of the server.
fn cached(body: &Value) -> Response {
    let mut response = outcome::written(StatusCode::OK, body);
    let cache = HeaderValue::from_static("public, max-age=3600");
    response.headers_mut().insert(CACHE_CONTROL, cache);
    response
}
