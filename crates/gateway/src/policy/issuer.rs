//! Whose tokens count: one entry an authorization server.

use std::path::PathBuf;

use serde::Deserialize;

use super::value::ScopeName;

/// An authorization server whose tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "IssuerTable")]
pub struct IssuerRule {
    /// Exactly what its tokens say in `iss`.
    pub issuer: String,
    /// What their `aud` has to contain one of: the names of this server as a resource (RFC 8707).
    pub audiences: Vec<String>,
    /// Where its public keys are.
    pub jwks: JwksSource,
    /// Which claim names the user.
    pub user_claim: String,
    /// Which claim lists the scopes: text with spaces, or a list.
    pub scopes_claim: String,
    /// A scope whose holder may act for others: a trusted backend.
    pub acts_for_others_scope: Option<ScopeName>,
    /// Which claims name the application that got a token. All that are there count.
    pub client_claims: Vec<String>,
    /// The applications that a person uses alone. A token that any other application got is an agent's
    /// that acts for the user, and confirms nothing.
    pub user_clients: Vec<String>,
    /// Whether a token that names no application is a person's own. Otherwise it is an agent's, because an
    /// issuer that names applications elsewhere would make every agent a person.
    pub is_user_without_client: bool,
}

/// Where public keys are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum JwksSource {
    /// Fetched from here.
    Url(String),
    /// Read from here.
    File(PathBuf),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IssuerTable {
    issuer: String,
    audience: Audience,
    jwks_url: Option<String>,
    jwks_file: Option<PathBuf>,
    #[serde(default = "sub")]
    user_claim: String,
    #[serde(default = "scope")]
    scopes_claim: String,
    acts_for_others_scope: Option<ScopeName>,
    client_claim: Option<String>,
    #[serde(default)]
    user_clients: Vec<String>,
    #[serde(default)]
    tokens_without_client_are_users: bool,
}

/// Where the issuers that we know of name the application.
const CLIENT_CLAIMS: [&str; 4] = ["client_id", "azp", "cid", "appid"];

/// One name or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "audience must be a text or a list of texts")]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl IssuerRule {
    /// Whether this is a name of ours.
    pub fn is_audience(&self, name: &str) -> bool {
        self.audiences.iter().any(|own| own == name)
    }
}

fn sub() -> String {
    "sub".to_owned()
}

fn scope() -> String {
    "scope".to_owned()
}

impl TryFrom<IssuerTable> for IssuerRule {
    type Error = String;

    fn try_from(table: IssuerTable) -> Result<Self, String> {
        let jwks = match (table.jwks_url, table.jwks_file) {
            (Some(url), None) if is_private(&url) => JwksSource::Url(url),
            (Some(url), None) => {
                return Err(format!(
                    "jwks_url {url:?} must be https, or http on this very machine"
                ));
            }
            (None, Some(file)) => JwksSource::File(file),
            (None, None) | (Some(_), Some(_)) => {
                return Err("an issuer needs either jwks_url or jwks_file".to_owned());
            }
        };
        let audiences = match table.audience {
            Audience::One(name) => vec![name],
            Audience::Several(names) => names,
        };
        if audiences.is_empty() {
            return Err("audience must name this server".to_owned());
        }
        let client_claims = match table.client_claim {
            Some(claim) => vec![claim],
            None => CLIENT_CLAIMS.map(str::to_owned).to_vec(),
        };
        let mut texts = vec![
            ("issuer", &table.issuer),
            ("user_claim", &table.user_claim),
            ("scopes_claim", &table.scopes_claim),
        ];
        texts.extend(audiences.iter().map(|audience| ("audience", audience)));
        texts.extend(client_claims.iter().map(|claim| ("client_claim", claim)));
        for (name, text) in texts {
            if text.is_empty() || text.len() > 1024 {
                return Err(format!("{name} must have 1 to 1024 bytes"));
            }
        }
        Ok(Self {
            issuer: table.issuer,
            audiences,
            jwks,
            user_claim: table.user_claim,
            scopes_claim: table.scopes_claim,
            acts_for_others_scope: table.acts_for_others_scope,
            client_claims,
            user_clients: table.user_clients,
            is_user_without_client: table.tokens_without_client_are_users,
        })
    }
}

/// Whether nobody on the way can change what is fetched: keys from anybody are anybody's tokens.
fn is_private(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else {
        return false;
    };
    let is_here = matches!(uri.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
    match uri.scheme_str() {
        Some("https") => uri.host().is_some(),
        Some("http") => is_here,
        Some(_) | None => false,
    }
}
