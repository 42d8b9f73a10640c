//! The document in which an issuer says where its endpoints are (OpenID Connect Discovery 1.0, section 4).

use serde::Deserialize;

use super::jwks::{Unfetched, fetch_url};
use crate::policy::is_private;

/// Endpoints of an issuer.
#[derive(Debug, Deserialize)]
pub(super) struct Configuration {
    issuer: String,
    pub(super) jwks_uri: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Vec<String>,
    /// True if every return from the issuer names it (RFC 9207).
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

/// Fetches the document, and checks that it is of this issuer and that it cannot have been changed on the way.
pub(super) async fn fetch(issuer: &str) -> Result<Configuration, Unfetched> {
    let base = issuer.trim_end_matches('/');
    let bytes = fetch_url(&format!("{base}/.well-known/openid-configuration")).await?;
    let told: Configuration = serde_json::from_slice(&bytes).map_err(Unfetched::NoSet)?;
    if told.issuer != issuer {
        return Err(Unfetched::Discovery("it names another issuer"));
    }
    if !is_private(&told.jwks_uri) {
        return Err(Unfetched::Discovery("its jwks_uri is not https"));
    }
    let mut endpoints = told
        .authorization_endpoint
        .iter()
        .chain(&told.token_endpoint);
    if !endpoints.all(|url| is_private(url)) {
        return Err(Unfetched::Discovery("one of its endpoints is not https"));
    }
    Ok(told)
}
