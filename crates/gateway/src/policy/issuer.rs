//! Issuers whose tokens are accepted: one entry for each authorization server.

use std::path::PathBuf;
use std::time::Duration;

use countersign::realm::Realm;
use schemars::JsonSchema;
use serde::Deserialize;

use super::value::{Period, ScopeName};

/// An authorization server whose tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "IssuerTable")]
pub struct IssuerRule {
    /// Issuer name, exactly as its tokens have it in `iss`.
    pub issuer: String,
    /// Names of this server as a resource, of which `aud` must contain one (RFC 8707).
    pub audiences: Vec<String>,
    /// Source of its public keys.
    pub jwks: JwksSource,
    /// Realm of the users that its tokens name; `None` if the file does not set it, which only a single issuer
    /// may omit.
    pub realm: Option<Realm>,
    /// Scopes of Countersign itself that its tokens may hold. Other such scopes are ignored.
    pub grants: Vec<ScopeName>,
    /// Claim that names the user.
    pub user_claim: String,
    /// Claim that lists the scopes: a string with spaces, or a list.
    pub scopes_claim: String,
    /// Scope whose holder may act for others: a trusted backend.
    pub acts_for_others_scope: Option<ScopeName>,
    /// Claims that name the application that got a token. All that are present count.
    pub client_claims: Vec<String>,
    /// Applications that a person uses alone. A token of any other application belongs to an agent that acts
    /// for the user, and cannot confirm anything.
    pub user_clients: Vec<String>,
    /// True if a token that names no application is a person's own. Otherwise it is an agent's, because an
    /// issuer that names applications in other claims would make every agent a person.
    pub is_user_without_client: bool,
    /// Maximum remaining life of a token: one that never expires cannot be revoked.
    pub token_life_max: Duration,
    /// Allowed difference between clocks.
    pub clock_skew: Duration,
    /// Time for which keys stay valid while they cannot be fetched.
    pub jwks_age_max: Duration,
}

/// Source of public keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum JwksSource {
    /// Fetched from this URL.
    Url(String),
    /// Fetched from the address in the issuer's own document (`OpenID` Connect Discovery).
    Discovered {
        /// Issuer name.
        issuer: String,
    },
    /// Read from this file.
    File(PathBuf),
}

/// An authorization server whose tokens are accepted, as the file has it.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "IssuerRule")]
#[serde(deny_unknown_fields)]
pub(super) struct IssuerTable {
    /// Issuer name, exactly as its tokens have it in `iss`.
    issuer: String,
    /// Name of this server as a resource, or several of them; `aud` of a token must contain one (RFC 8707).
    audience: Audience,
    /// Address of its public keys: https, or http on this machine. If neither this nor `jwks_file` is set, OpenID Connect Discovery finds them.
    jwks_url: Option<String>,
    /// File with its public keys.
    jwks_file: Option<PathBuf>,
    /// Realm of the users that its tokens name: `home`, or 1 to 32 small letters, digits, `-` and `_`. Only a single issuer may leave it out,
    /// and then has `home`.
    realm: Option<String>,
    /// Scopes of Countersign itself that its tokens may hold, such as `approvals:answer`. Other such scopes are ignored.
    #[serde(default)]
    grants: Vec<ScopeName>,
    /// Maximum remaining life of a token, because one that never expires cannot be revoked. The default is 24 hours.
    token_life_max: Option<Period>,
    /// Allowed difference between clocks, at most 5 minutes. The default is one minute.
    clock_skew: Option<Period>,
    /// Time for which keys stay valid while they cannot be fetched. The default is 24 hours.
    jwks_age_max: Option<Period>,
    /// Claim that names the user.
    #[serde(default = "sub")]
    user_claim: String,
    /// Claim that lists the scopes: a string with spaces, or a list.
    #[serde(default = "scope")]
    scopes_claim: String,
    /// Scope whose holder may act for others: a trusted backend. If left out, no token may.
    acts_for_others_scope: Option<ScopeName>,
    /// Claim that names the application that got a token. The default is `client_id`, `azp`, `cid` and `appid`; all that are present count.
    client_claim: Option<String>,
    /// Applications that a person uses alone. A token of any other application belongs to an agent that acts for the user, and cannot
    /// confirm anything.
    #[serde(default)]
    user_clients: Vec<String>,
    /// True if a token that names no application is a person's own. Otherwise it is an agent's.
    #[serde(default)]
    tokens_without_client_are_users: bool,
}

/// Default maximum life of a token.
const TOKEN_LIFE_MAX: Duration = Duration::from_hours(24);

/// Default and maximum of the allowed difference between clocks.
const CLOCK_SKEW: Duration = Duration::from_mins(1);
const CLOCK_SKEW_MAX: Duration = Duration::from_mins(5);

/// Default time for which keys stay valid while they cannot be fetched.
const JWKS_AGE_MAX: Duration = Duration::from_hours(24);

/// Claims in which known issuers name the application.
const CLIENT_CLAIMS: [&str; 4] = ["client_id", "azp", "cid", "appid"];

/// One name or several.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("x-form" = "a string, or a list of strings"))]
#[serde(untagged, expecting = "audience must be a text or a list of texts")]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl IssuerRule {
    /// Returns the realm of the users that its tokens name. The only issuer of a policy has the home realm
    /// unless the file sets another one.
    pub fn realm(&self) -> Realm {
        self.realm.clone().unwrap_or(Realm::Home)
    }

    /// True if its tokens may hold a scope. Scopes of Countersign itself must be listed.
    pub fn may_grant(&self, scope: &str) -> bool {
        !is_built_in(scope) || self.grants.iter().any(|granted| **granted == *scope)
    }

    /// True if this is a name of this server.
    pub fn is_audience(&self, name: &str) -> bool {
        self.audiences.iter().any(|own| own == name)
    }
}

/// True if a scope is one of Countersign itself, or may become one.
pub fn is_built_in(scope: &str) -> bool {
    let areas = [
        "keys:",
        "approvals:",
        "evidence:",
        "calls:",
        "claims:",
        "policy:",
        "store:",
        "status:",
    ];
    areas.iter().any(|area| scope.starts_with(area))
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
        let jwks = jwks(table.jwks_url, table.jwks_file, &table.issuer)?;
        let realm = match table.realm.as_deref() {
            None => None,
            Some(name) => Some(Realm::named(name).ok_or_else(|| {
                format!("realm {name:?} must be \"home\" or 1 to 32 small letters, digits, - and _")
            })?),
        };
        let clock_skew = table.clock_skew.map_or(CLOCK_SKEW, Period::duration);
        if clock_skew > CLOCK_SKEW_MAX {
            return Err("clock_skew is at most 5m".to_owned());
        }
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
            realm,
            grants: table.grants,
            token_life_max: table
                .token_life_max
                .map_or(TOKEN_LIFE_MAX, Period::duration),
            clock_skew,
            jwks_age_max: table.jwks_age_max.map_or(JWKS_AGE_MAX, Period::duration),
            user_claim: table.user_claim,
            scopes_claim: table.scopes_claim,
            acts_for_others_scope: table.acts_for_others_scope,
            client_claims,
            user_clients: table.user_clients,
            is_user_without_client: table.tokens_without_client_are_users,
        })
    }
}

/// True if what is fetched from this address cannot be changed in transit: a party that can change the keys can
/// forge tokens.
pub(crate) fn is_private(url: &str) -> bool {
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

/// Returns the source of an issuer's keys. If the file names none, the issuer's own document does.
fn jwks(url: Option<String>, file: Option<PathBuf>, issuer: &str) -> Result<JwksSource, String> {
    match (url, file) {
        (Some(url), None) if is_private(&url) => Ok(JwksSource::Url(url)),
        (Some(url), None) => Err(format!(
            "jwks_url {url:?} must be https, or http on this very machine"
        )),
        (None, Some(file)) => Ok(JwksSource::File(file)),
        (None, None) if is_private(issuer) => Ok(JwksSource::Discovered {
            issuer: issuer.to_owned(),
        }),
        (None, None) => {
            Err("an issuer that is not an https address needs jwks_url or jwks_file".to_owned())
        }
        (Some(_), Some(_)) => Err("an issuer has jwks_url or jwks_file, not both".to_owned()),
    }
}
