//! Signing in at an issuer: OpenID Connect, authorization code with PKCE (RFC 7636).
//!
//! The issuer sends the browser back with a code, which is exchanged here for an access token. That token is the credential: it is
//! checked like one that arrives over the API. The identity token beside it only proves that the code belongs to this browser's own
//! request (its nonce).
//!
//! Nothing is kept here between the two requests. State, nonce and verifier are derived from one secret, which the browser keeps in a
//! cookie that no script reads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use countersign::clock::Clock;
use countersign::principal::BearerToken;
use countersign_evidence::hex;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use serde::Deserialize;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::discovery::{self, Configuration};
use super::jwks::{Unfetched, client};

/// Maximum length of the issuer's answer with tokens, in bytes.
const ANSWER_BYTES_MAX: usize = 128 * 1024;

/// Time for which the issuer's endpoints are not looked up again.
const CONFIGURATION_AGE_MAX: Duration = Duration::from_mins(10);

/// Minimum interval between two attempts to look them up.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The console as a client of an issuer.
#[derive(Debug, Clone)]
pub struct IssuerClient {
    /// Issuer name, exactly as the policy has it.
    pub issuer: String,
    /// Id under which the console is registered there.
    pub client_id: String,
    /// Secret of a confidential client.
    pub client_secret: Option<BearerToken>,
    /// Scopes that are asked for; `openid` is always one of them.
    pub scopes: Vec<String>,
    /// Name of this server, sent as `audience`.
    pub audience: Option<String>,
    /// Name of this server, sent as `resource` (RFC 8707).
    pub resource: Option<String>,
}

/// The way from the sign-in page to the issuer.
#[derive(Debug, Clone)]
pub struct ToIssuer {
    /// Address at the issuer.
    pub url: String,
    /// Secret that the browser has to bring back.
    pub secret: String,
}

/// Query with which the issuer redirected the browser.
#[derive(Debug, Clone, Default)]
pub struct FromIssuer {
    /// Code that is exchanged for tokens.
    pub code: String,
    /// State that was sent.
    pub state: String,
    /// Issuer's name (RFC 9207).
    pub iss: Option<String>,
    /// Reason of a refusal.
    pub error: Option<String>,
}

/// Reason why a sign-in at an issuer failed. The enum is exhaustive.
#[derive(Debug, thiserror::Error)]
pub enum NotLetIn {
    /// No issuer is configured. Usually the link is an old one, or `[sign_in]` was removed.
    #[error("no issuer is configured for the sign-in")]
    NotConfigured,
    /// The return belongs to no request of this browser, or to one that is over.
    /// Usually the person has gone back in the browser, or took too long.
    #[error("the return belongs to no sign-in of this browser")]
    NotAsked,
    /// The issuer refused, usually because the person declined.
    #[error("the issuer refused the sign-in: {0}")]
    Declined(String),
    /// The issuer could not be reached, or its answer cannot be used.
    /// Usually the issuer is down, or `[sign_in]` names another one.
    #[error("the issuer cannot be used for a sign-in: {0}")]
    Unusable(#[from] Unusable),
}

/// Reason why an issuer's answer cannot be used. The enum is exhaustive.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// Its configuration could not be had. Usually the issuer is down, or its address is misspelt.
    #[error("{0}")]
    Unfetched(Box<dyn std::error::Error + Send + Sync>),
    /// It has no such endpoint. Usually the issuer does not offer the authorization code flow.
    #[error("its configuration names no {0}")]
    NoEndpoint(&'static str),
    /// The endpoint could not be reached. Usually a firewall is between the server and the issuer.
    #[error("its token endpoint cannot be reached: {0}")]
    Http(#[source] reqwest::Error),
    /// The endpoint refused. Usually the secret of the client is wrong, or the return address is not registered.
    #[error("its token endpoint answers with {status} {error}")]
    Status {
        /// HTTP status.
        status: u16,
        /// Code of the refusal (RFC 6749, section 5.2).
        error: String,
    },
    /// The answer is too long, or is not one of a token endpoint. Usually a proxy answers in place of the issuer.
    #[error("its token endpoint gives no usable tokens")]
    NoTokens,
    /// The identity token does not belong to this sign-in.
    /// Usually two sign-ins in one browser were mixed, or the token was put there by an attacker.
    #[error("its identity token does not belong to this sign-in")]
    OtherIdentity,
}

impl From<Unfetched> for Unusable {
    fn from(error: Unfetched) -> Self {
        Self::Unfetched(Box::new(error))
    }
}

/// Tokens of an issuer.
#[derive(Debug, Deserialize)]
pub(super) struct Tokens {
    access_token: String,
    #[serde(default)]
    pub(super) id_token: Option<String>,
    #[serde(default)]
    refresh_token: Option<String>,
    token_type: String,
}

impl Tokens {
    pub(super) fn access(&self) -> BearerToken {
        BearerToken::new(self.access_token.as_str())
    }

    pub(super) fn renewal(&self) -> Option<BearerToken> {
        self.refresh_token.as_deref().map(BearerToken::new)
    }
}

/// The configured issuer, with its endpoints as they were last looked up.
pub(super) struct IssuerDoor {
    pub(super) client: IssuerClient,
    clock: Arc<dyn Clock>,
    looked_up: tokio::sync::Mutex<LookedUp>,
}

#[derive(Default)]
struct LookedUp {
    configuration: Option<(Duration, Arc<Configuration>)>,
    tried: Option<Duration>,
}

impl IssuerDoor {
    pub(super) fn new(client: IssuerClient, clock: Arc<dyn Clock>) -> Self {
        Self {
            client,
            clock,
            looked_up: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the address at the issuer that begins a sign-in. The issuer leads back to `return_to`, which has to be registered there.
    pub(super) async fn way(&self, secret: &str, return_to: &str) -> Result<String, Unusable> {
        let configuration = self.configuration().await?;
        let endpoint = configuration.authorization_endpoint.as_deref();
        let endpoint = endpoint.ok_or(Unusable::NoEndpoint("authorization_endpoint"))?;
        let verifier = derived(secret, "verifier");
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        let mut scopes: Vec<&str> = self.client.scopes.iter().map(String::as_str).collect();
        if !scopes.contains(&"openid") {
            scopes.insert(0, "openid");
        }
        let mut query = Serializer::new(String::new());
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.client_id)
            .append_pair("redirect_uri", return_to)
            .append_pair("scope", &scopes.join(" "))
            .append_pair("state", &derived(secret, "state"))
            .append_pair("nonce", &nonce(secret))
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        for (name, value) in self.names() {
            query.append_pair(name, value);
        }
        let mark = if endpoint.contains('?') { '&' } else { '?' };
        Ok(format!("{endpoint}{mark}{}", query.finish()))
    }

    /// Exchanges the code that the browser came back with.
    pub(super) async fn exchange(
        &self,
        secret: &str,
        back: &FromIssuer,
        return_to: &str,
    ) -> Result<Tokens, NotLetIn> {
        let state = derived(secret, "state");
        let is_ours = verify_slices_are_equal(state.as_bytes(), back.state.as_bytes()).is_ok();
        if secret.is_empty() || !is_ours {
            return Err(NotLetIn::NotAsked);
        }
        let configuration = self.configuration().await?;
        let is_from = match back.iss.as_deref() {
            Some(issuer) => issuer == self.client.issuer,
            None => !configuration.authorization_response_iss_parameter_supported,
        };
        if !is_from {
            return Err(NotLetIn::NotAsked);
        }
        if let Some(error) = &back.error {
            return Err(NotLetIn::Declined(code_of(error)));
        }
        let verifier = derived(secret, "verifier");
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", back.code.as_str()),
            ("redirect_uri", return_to),
            ("code_verifier", &verifier),
        ];
        Ok(self.ask(&configuration, &fields).await?)
    }

    /// Gets another access token for the same person.
    pub(super) async fn renew(&self, token: &BearerToken) -> Result<Tokens, Unusable> {
        let configuration = self.configuration().await?;
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", token.expose()),
        ];
        self.ask(&configuration, &fields).await
    }

    /// Sends a request to the token endpoint.
    async fn ask(
        &self,
        configuration: &Configuration,
        fields: &[(&str, &str)],
    ) -> Result<Tokens, Unusable> {
        let endpoint = configuration.token_endpoint.as_deref();
        let endpoint = endpoint.ok_or(Unusable::NoEndpoint("token_endpoint"))?;
        let methods = &configuration.token_endpoint_auth_methods_supported;
        let has = |method: &str| methods.iter().any(|known| known == method);
        let is_basic = has("client_secret_basic") || !has("client_secret_post");
        let secret = self.client.client_secret.as_ref();
        let mut request = client()?.post(endpoint).header(ACCEPT, "application/json");
        if let Some(secret) = secret.filter(|_| is_basic) {
            let pair = basic(&self.client.client_id, secret.expose());
            request = request.header(AUTHORIZATION, pair);
        }
        let request = request
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(self.form(fields, is_basic));
        let mut answer = request.send().await.map_err(Unusable::Http)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(Unusable::Http)? {
            if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(Unusable::NoTokens);
            }
            bytes.extend_from_slice(&chunk);
        }
        read(answer.status(), &bytes)
    }

    /// The body of a request: with the id of the client where its secret does not come in a header.
    fn form(&self, fields: &[(&str, &str)], is_basic: bool) -> String {
        let mut form = Serializer::new(String::new());
        form.extend_pairs(fields).extend_pairs(self.names());
        let secret = self.client.client_secret.as_ref();
        if !is_basic || secret.is_none() {
            form.append_pair("client_id", &self.client.client_id);
        }
        if let Some(secret) = secret.filter(|_| !is_basic) {
            form.append_pair("client_secret", secret.expose());
        }
        form.finish()
    }

    /// Names of this server that go with every request.
    fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let audience = self.client.audience.as_deref();
        let resource = self.client.resource.as_deref();
        let named = [("audience", audience), ("resource", resource)];
        named
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
    }

    /// Returns the endpoints, which are looked up at most every few minutes: a page that asks for them often must not make us ask often.
    async fn configuration(&self) -> Result<Arc<Configuration>, Unusable> {
        let mut looked_up = self.looked_up.lock().await;
        let now = self.clock.monotonic();
        if let Some((at, known)) = &looked_up.configuration
            && now.saturating_sub(*at) < CONFIGURATION_AGE_MAX
        {
            return Ok(known.clone());
        }
        let is_recent = |at: Duration| now.saturating_sub(at) < RETRY_AFTER;
        if looked_up.tried.is_some_and(is_recent) {
            return Err(Unfetched::Lately.into());
        }
        looked_up.tried = Some(now);
        let known = Arc::new(discovery::fetch(&self.client.issuer).await?);
        looked_up.configuration = Some((now, known.clone()));
        looked_up.tried = None;
        Ok(known)
    }
}

impl fmt::Debug for IssuerDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuerDoor")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// Nonce of the sign-in that has this secret.
pub(super) fn nonce(secret: &str) -> String {
    derived(secret, "nonce")
}

/// A value that only the holder of the secret can name, and that does not tell the secret.
fn derived(secret: &str, purpose: &str) -> String {
    let text = format!("countersign sign-in {purpose} {secret}");
    hex::encode(digest(&SHA256, text.as_bytes()).as_ref())
}

/// The credentials of a client, as RFC 6749 wants them encoded (section 2.3.1).
fn basic(id: &str, secret: &str) -> String {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret));
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

fn read(status: http::StatusCode, bytes: &[u8]) -> Result<Tokens, Unusable> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Refusal {
        error: String,
    }
    if !status.is_success() {
        let refusal: Refusal = serde_json::from_slice(bytes).unwrap_or_default();
        return Err(Unusable::Status {
            status: status.as_u16(),
            error: code_of(&refusal.error),
        });
    }
    let tokens: Tokens = serde_json::from_slice(bytes).map_err(|_| Unusable::NoTokens)?;
    if !tokens.token_type.eq_ignore_ascii_case("bearer") {
        return Err(Unusable::NoTokens);
    }
    Ok(tokens)
}

/// A code of another party, as it may stand in our log: short, and of the characters that RFC 6749 has for it.
fn code_of(text: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || ['_', '-', '.'].contains(c);
    text.chars().filter(is_plain).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_secret_are_its_own_and_differ() {
        let all = ["state", "nonce", "verifier"].map(|purpose| derived("s", purpose));
        assert_ne!(all[0], all[1]);
        assert_ne!(all[1], all[2]);
        assert_eq!(all[1], nonce("s"));
        assert_ne!(nonce("s"), nonce("t"));
        // RFC 7636: 43 to 128 characters of a small alphabet.
        assert_eq!(all[2].len(), 64);
    }

    #[test]
    fn a_client_with_odd_characters_is_encoded() {
        assert_eq!(
            basic("a:b", "p@ss word"),
            format!("Basic {}", BASE64_STANDARD.encode("a%3Ab:p%40ss+word"))
        );
    }

    #[test]
    fn an_answer_without_tokens_is_refused() {
        let ok = http::StatusCode::OK;
        for text in [
            "",
            "{}",
            r#"{"access_token": "a"}"#,
            r#"{"access_token": "a", "token_type": "mac"}"#,
            r#"{"access_token": 1, "token_type": "bearer"}"#,
        ] {
            assert!(
                matches!(read(ok, text.as_bytes()), Err(Unusable::NoTokens)),
                "{text}"
            );
        }
        let tokens = read(ok, br#"{"access_token": "a", "token_type": "Bearer"}"#).unwrap();
        assert_eq!(tokens.access().expose(), "a");
        let refused = read(
            http::StatusCode::BAD_REQUEST,
            b"{\"error\": \"invalid_grant\\n<x>\"}",
        );
        let said = refused.unwrap_err().to_string();
        assert_eq!(said, "its token endpoint answers with 400 invalid_grantx");
    }
}
