//! `/.well-known/acp.json` and `/.well-known/ucp`: where the pages of a standard are, for clients that know only
//! our name. They name what is really there, and no more: no service of ACP, which would be all of its operations,
//! and no capability of UCP, whose service only says where its pages begin.

use axum::extract::State;
use axum::response::Response;
use countersign::contract::ErrorCode;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::outcome;
use super::profile::Profile;
use crate::gateway::Gateway;
use crate::http::answer::Refusal;
use crate::identity::base_url;

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
        // Sessions can be read here, and are made by calls of tools: that is not the service `checkout`.
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
        // A payment is never made here: the buyer makes it elsewhere.
        "payment_handlers": {},
    }})))
}

/// Where the paths of a profile begin. A server without any page of it does not speak it.
fn base_of(profile: Profile, gateway: &Gateway, headers: &HeaderMap) -> Result<String, Refusal> {
    let has_pages = gateway.views().iter().any(|view| view.profile() == profile);
    let base = base_url(gateway.settings(), headers).filter(|_| has_pages);
    let base = base.map(|base| format!("{base}{}", profile.prefix()));
    base.ok_or_else(|| {
        Refusal::new(
            ErrorCode::NotFound,
            "this server has no pages of this standard",
        )
        .hint("GET /openapi.json lists what there is")
    })
}

/// What changes with a new version of the server, and hardly else.
fn cached(body: &Value) -> Response {
    let mut response = outcome::written(StatusCode::OK, body);
    let cache = HeaderValue::from_static("public, max-age=3600");
    response.headers_mut().insert(CACHE_CONTROL, cache);
    response
}
