//! Metadata of this server as a protected resource (RFC 9728): the sources of tokens for it.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use countersign::contract::ErrorCode;
use http::{HeaderMap, Uri};
use serde_json::json;

use super::challenge::{METADATA, base_url};
use crate::gateway::Gateway;
use crate::http::answer::{self, Refusal};
use crate::words::Say;

/// Answers `/.well-known/oauth-protected-resource` and the same below it for `/mcp`.
pub(super) async fn metadata(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let policy = gateway.identity().policy().current();
    let issuers = &policy.file().issuers;
    let base = base_url(gateway.settings(), &headers);
    let Some(base) = base.filter(|_| !issuers.is_empty()) else {
        return Refusal::new(ErrorCode::NotFound, Say::NoIssuer)
            .hint(Say::UseApiKey)
            .into_response();
    };
    let suffix = uri.path().strip_prefix(METADATA).unwrap_or_default();
    let mut servers: Vec<&str> = Vec::new();
    for issuer in issuers {
        if !servers.contains(&issuer.issuer.as_str()) {
            servers.push(&issuer.issuer);
        }
    }
    let document = json!({
        "resource": format!("{base}{}", suffix.trim_end_matches('/')),
        "authorization_servers": servers,
        "scopes_supported": policy.scopes(),
        "bearer_methods_supported": ["header"],
        "resource_name": "Countersign",
    });
    answer::json(&document)
}
