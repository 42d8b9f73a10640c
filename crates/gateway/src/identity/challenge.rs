//! The `WWW-Authenticate` header: tells a client how to get a sufficient credential (RFC 6750, RFC 9728).

use countersign::Principal;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue};

use super::refusal::Reason;
use crate::policy::Policy;
use crate::settings::Settings;

/// Path of the whole server's metadata; that of a path is below it.
pub(super) const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Returns the address by which this client knows the server, without a slash at the end.
pub(crate) fn base_url(settings: &Settings, headers: &HeaderMap) -> Option<String> {
    if let Some(url) = &settings.public_url {
        return Some(url.trim_end_matches('/').to_owned());
    }
    // Without a public URL the server is reached at its own address, by plain HTTP. The host is only repeated
    // to the client that sent it.
    let host = headers.get(http::header::HOST)?.to_str().ok()?;
    let authority: Authority = host.parse().ok()?;
    let is_plain = !authority.as_str().contains('@');
    is_plain.then(|| format!("http://{authority}"))
}

/// Asks for a credential, or for another one.
pub(super) fn unauthorized(
    reason: Reason,
    policy: &Policy,
    base: Option<&str>,
    path: &str,
) -> Option<HeaderValue> {
    let error = match reason {
        // A client that sent no credential made no error.
        Reason::Missing => None,
        Reason::Malformed | Reason::NotAccepted => Some("invalid_token"),
        Reason::Unavailable => return None,
    };
    let scope = policy.usual_scopes().join(" ");
    header(policy, error, &scope, base, path)
}

/// Asks for a credential with more scopes: one of each rule for this tool, including those that the caller has,
/// so that none is lost with the new one. `None` if no scope would help.
pub(super) fn insufficient_scope(
    principal: &Principal,
    tool: &str,
    policy: &Policy,
    base: Option<&str>,
    path: &str,
) -> Option<HeaderValue> {
    if policy.missing_scopes(principal, tool).is_empty() {
        return None;
    }
    let scope = policy.scopes_for(principal, tool).join(" ");
    header(policy, Some("insufficient_scope"), &scope, base, path)
}

fn header(
    policy: &Policy,
    error: Option<&str>,
    scope: &str,
    base: Option<&str>,
    path: &str,
) -> Option<HeaderValue> {
    let mut parts = Vec::new();
    if let Some(error) = error {
        parts.push(format!("error=\"{error}\""));
    }
    if !scope.is_empty() {
        parts.push(format!("scope=\"{scope}\""));
    }
    // Without an issuer there is no source of tokens.
    if let Some(base) = base.filter(|_| !policy.file().issuers.is_empty()) {
        let suffix = if path == "/mcp" { path } else { "" };
        parts.push(format!("resource_metadata=\"{base}{METADATA}{suffix}\""));
    }
    let text = format!("Bearer {}", parts.join(", "));
    HeaderValue::try_from(text.trim_end()).ok()
}
