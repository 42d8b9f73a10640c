//! An upstream: a service that tools call, its address, credentials and bounds.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auths::Auths;
use super::mcp::{Connections, Discovery, Trust};
use super::secret::SecretRef;

/// A service that tools call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// Name by which tools refer to the upstream: 1 to 64 lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// Kind of the upstream.
    #[serde(default)]
    pub kind: UpstreamKind,
    /// Address that every path of a tool is appended to, such as `https://crm.example.com/api/v2`. For `kind = "http"`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_url: String,
    /// Address of an MCP server that speaks Streamable HTTP, such as `https://mcp.example.com/mcp`. For `kind = "mcp"`, in place of
    /// `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Program of an MCP server that speaks over standard input and output, and its arguments, such as `["npx", "-y", "some-server"]`.
    /// For `kind = "mcp"`, in place of `url`. It runs in the folder of the configuration and inherits from the environment only what a
    /// program needs to be found and to write text: `PATH`, `HOME`, the locale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Environment variables of `command`, each as a reference: `GITHUB_TOKEN = "env:GITHUB_TOKEN"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, SecretRef>,
    /// Environment variable of `command` that gets the token that the user has stored with `upstream.store_token`. Each user has a child
    /// of their own, and one who has stored no token is refused. Tools are listed by a child without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_env: Option<String>,
    /// True if the name of an MCP server and a dot stand in front of the names of its tools and prompts. One server at most can do without.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub prefix: bool,
    /// True if all users share one connection or child of an MCP server. Otherwise each user has one, because a server may keep
    /// something of a user in it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared: bool,
    /// Definitions of an MCP server's tools that are used: those that an operator has approved, or those that are seen first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub trust: Trust,
    /// Listing of an MCP server's tools.
    #[serde(default, skip_serializing_if = "is_default")]
    pub discovery: Discovery,
    /// Connections to an MCP server, or its children.
    #[serde(default, skip_serializing_if = "is_default")]
    pub connections: Connections,
    /// Further hosts that a redirect may lead to, as `files.example.com`, or with a port that is not the usual one, as
    /// `files.example.com:8443`. Host and port of `base_url` are always allowed; a redirect elsewhere is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Networks of private, loopback and link-local addresses that the upstream may be at, as `10.1.0.0/16`, `192.168.1.7`, or the word
    /// `loopback`. Every other address that is not public is refused after the name was resolved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_private: Vec<String>,
    /// File with certificates (PEM) of the authorities that the upstream's certificate is checked against, in place of the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Credential for the upstream, or a list of those that are sent together. No credential is sent if it is left out.
    #[serde(default, skip_serializing_if = "Auths::is_empty")]
    pub auth: Auths,
    /// Headers of every request. Secrets do not belong here: use `auth`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Secret that signs `Countersign-Identity`, the header by which the service learns and verifies who calls. The header is sent only
    /// if the secret is set. At least 32 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_secret: Option<SecretRef>,
    /// Header that carries the idempotency key of a call that changes something.
    #[serde(default = "idempotency_header")]
    pub idempotency_header: String,
    /// True if the headers `traceparent`, `tracestate`, `X-Request-Id` and `Countersign-Deadline` are sent.
    #[serde(default = "yes")]
    pub send_context: bool,
    /// Time limits.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// Connections.
    #[serde(default)]
    pub pool: Pool,
    /// Largest answer that is read, in bytes after decompression. A larger one is refused.
    #[serde(default = "response_bytes_max")]
    pub response_bytes_max: u64,
    /// Retries of requests that may be repeated.
    #[serde(default)]
    pub retries: Retries,
    /// Circuit breaker: stops calls to an upstream that cannot be reached.
    #[serde(default)]
    pub breaker: Breaker,
}

/// Kind of an upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UpstreamKind {
    /// An HTTP service.
    #[default]
    Http,
    /// An MCP server, at an address (`url`) or as a child (`command`). Its tools are listed by it, with the upstream's name and a dot
    /// in front; entries of `[[tool]]` say something on top of them.
    Mcp,
}

/// Credential for an upstream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Auth {
    /// `Authorization: Bearer …` with a fixed token.
    Bearer {
        /// The token.
        token: SecretRef,
    },
    /// A secret in a header, such as `X-Api-Key`.
    Header {
        /// Name of the header.
        name: String,
        /// The secret.
        value: SecretRef,
        /// Text in front of the secret, such as `Token ` (with its space).
        #[serde(default, skip_serializing_if = "String::is_empty")]
        prefix: String,
    },
    /// A secret in the query.
    Query {
        /// Name of the parameter.
        name: String,
        /// The secret.
        value: SecretRef,
    },
    /// A secret in a cookie.
    Cookie {
        /// Name of the cookie.
        name: String,
        /// The secret.
        value: SecretRef,
    },
    /// HTTP basic authentication.
    Basic {
        /// User name.
        username: String,
        /// Password.
        password: SecretRef,
    },
    /// OAuth 2 client credentials: the gateway fetches a token for itself and renews it before it expires.
    ClientCredentials(ClientCredentials),
    /// RFC 8693 token exchange: the token of the caller is exchanged for one that the upstream accepts. A caller with an API key has
    /// no token and is refused.
    TokenExchange(TokenExchange),
    /// A token of the user on whose behalf the call runs. It is kept sealed under the user's key and is erased with the user. A user
    /// who has stored none is refused.
    UserToken {
        /// Name of the header.
        #[serde(default = "authorization")]
        header: String,
        /// Text in front of the token.
        #[serde(default = "bearer")]
        prefix: String,
    },
}

/// OAuth 2 client credentials (RFC 6749, section 4.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientCredentials {
    /// Token endpoint of the issuer.
    pub token_url: String,
    /// Client id.
    pub client_id: String,
    /// Client secret.
    pub client_secret: SecretRef,
    /// Scopes to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// `audience` of the request, for issuers that want one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// Place of the client's credential in the request.
    #[serde(default)]
    pub client_auth: ClientAuth,
}

/// OAuth 2 token exchange (RFC 8693).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenExchange {
    /// Token endpoint of the issuer.
    pub token_url: String,
    /// Client id.
    pub client_id: String,
    /// Client secret.
    pub client_secret: SecretRef,
    /// Scopes to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// `audience` of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// `resource` of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Type of the caller's token.
    #[serde(default = "access_token")]
    pub subject_token_type: String,
    /// Place of the client's credential in the request.
    #[serde(default)]
    pub client_auth: ClientAuth,
}

/// Place of a client's credential in a token request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// Basic authentication.
    #[default]
    Basic,
    /// Members of the form.
    Post,
}

/// Time limits of an upstream. The deadline of the call holds as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// Longest time to connect, name resolution and TLS included, in milliseconds.
    pub connect_ms: u64,
    /// Longest time of one attempt, from the first byte sent to the last byte read, in milliseconds.
    pub attempt_ms: u64,
}

/// Connections to an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pool {
    /// Most requests at the same time; further ones wait within their deadline.
    pub concurrent_max: u32,
    /// Most idle connections that are kept.
    pub idle_max: u32,
    /// Time after which an idle connection is closed, in seconds. It should be shorter than that of the upstream (5 seconds for many
    /// servers): a request that meets a closing connection may be lost.
    pub idle_seconds: u64,
}

/// Retries of an upstream. A request is repeated only if that is safe: a read, or a call that changes something, has an idempotency
/// key for the upstream and declares `recovery = "retry"` or `recovery.downstream_key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retries {
    /// Most attempts of one call, the first included. 1 switches retries off.
    pub attempts_max: u32,
    /// Mean wait before the second attempt, in milliseconds; it doubles with each further one, with jitter.
    pub backoff_ms: u64,
    /// Longest wait between two attempts, in milliseconds.
    pub backoff_max_ms: u64,
    /// Retries allowed per hundred calls. It keeps an upstream that fails from being called several times as often.
    pub budget_percent: u32,
}

/// Circuit breaker of an upstream. It counts failures to connect and lost connections, never an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Breaker {
    /// Failures in a row that open the breaker. 0 switches it off.
    pub failures: u32,
    /// Time for which calls are refused, in milliseconds; then one call tries the upstream.
    pub open_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect_ms: 5_000,
            attempt_ms: 30_000,
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            concurrent_max: 256,
            idle_max: 64,
            idle_seconds: 4,
        }
    }
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            attempts_max: 3,
            backoff_ms: 100,
            backoff_max_ms: 2_000,
            budget_percent: 20,
        }
    }
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            failures: 5,
            open_ms: 10_000,
        }
    }
}

impl Upstream {
    /// True if the address is under `.invalid`, which no name server knows (RFC 2606): the importer writes one if a document names no
    /// server that can be used.
    pub fn has_placeholder(&self) -> bool {
        let url = url::Url::parse(&self.base_url).ok();
        let host = url.as_ref().and_then(url::Url::host_str);
        host.is_some_and(|host| host == "invalid" || host.ends_with(".invalid"))
    }

    /// An HTTP service at this address; everything else has its default.
    pub fn http(name: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: UpstreamKind::Http,
            base_url: base_url.into(),
            url: None,
            command: Vec::new(),
            env: BTreeMap::new(),
            user_env: None,
            prefix: true,
            shared: false,
            trust: Trust::default(),
            discovery: Discovery::default(),
            connections: Connections::default(),
            hosts: Vec::new(),
            allow_private: Vec::new(),
            ca_file: None,
            auth: Auths::default(),
            headers: BTreeMap::new(),
            identity_secret: None,
            idempotency_header: idempotency_header(),
            send_context: true,
            timeouts: Timeouts::default(),
            pool: Pool::default(),
            response_bytes_max: response_bytes_max(),
            retries: Retries::default(),
            breaker: Breaker::default(),
        }
    }

    /// An MCP server at this address; everything else has its default.
    pub fn mcp_at(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            kind: UpstreamKind::Mcp,
            url: Some(url.into()),
            ..Self::http(name, "")
        }
    }

    /// An MCP server that runs as a child; everything else has its default.
    pub fn mcp_child<I>(name: impl Into<String>, command: I) -> Self
    where
        I: IntoIterator<Item: Into<String>>,
    {
        Self {
            kind: UpstreamKind::Mcp,
            command: command.into_iter().map(Into::into).collect(),
            ..Self::http(name, "")
        }
    }

    /// Text in front of the names of an MCP server's tools and prompts.
    pub fn prefix(&self) -> String {
        if self.prefix {
            format!("{}.", self.name)
        } else {
            String::new()
        }
    }

    /// True if users store tokens for it.
    pub(crate) fn takes_user_tokens(&self) -> bool {
        let is_of_user = |auth: &Auth| matches!(auth, Auth::UserToken { .. });
        self.auth.iter().any(is_of_user) || self.user_env.is_some()
    }

    /// Every secret that it refers to, each with the keys that lead to it.
    pub fn secrets(&self) -> Vec<(Vec<String>, &SecretRef)> {
        let mut secrets = Vec::new();
        for (at, auth) in [
            (&["auth"][..], &self.auth),
            (&["discovery", "auth"], &self.discovery.auth),
        ] {
            secrets.extend(auth.secrets().map(|(keys, secret)| {
                let at = at.iter().map(|&key| key.to_owned());
                (at.chain(keys).collect(), secret)
            }));
        }
        for (name, secret) in &self.env {
            secrets.push((vec!["env".to_owned(), name.clone()], secret));
        }
        if let Some(secret) = &self.identity_secret {
            secrets.push((vec!["identity_secret".to_owned()], secret));
        }
        secrets
    }
}

impl Auth {
    /// The part of the request that the credential is written to, and its name there.
    pub(crate) fn target(&self) -> (&'static str, String) {
        match self {
            Self::Bearer { .. }
            | Self::Basic { .. }
            | Self::ClientCredentials(_)
            | Self::TokenExchange(_) => ("header", "authorization".to_owned()),
            Self::Header { name, .. } | Self::UserToken { header: name, .. } => {
                ("header", name.to_ascii_lowercase())
            }
            Self::Query { name, .. } => ("query", name.clone()),
            Self::Cookie { name, .. } => ("cookie", name.clone()),
        }
    }

    /// The secret that it refers to, and the keys that lead to it.
    pub(super) fn secret(&self) -> Option<(&'static [&'static str], &SecretRef)> {
        match self {
            Self::UserToken { .. } => None,
            Self::Bearer { token } => Some((&["bearer", "token"], token)),
            Self::Header { value, .. } => Some((&["header", "value"], value)),
            Self::Query { value, .. } => Some((&["query", "value"], value)),
            Self::Cookie { value, .. } => Some((&["cookie", "value"], value)),
            Self::Basic { password, .. } => Some((&["basic", "password"], password)),
            Self::ClientCredentials(own) => {
                Some((&["client_credentials", "client_secret"], &own.client_secret))
            }
            Self::TokenExchange(own) => {
                Some((&["token_exchange", "client_secret"], &own.client_secret))
            }
        }
    }

    /// True if the credential belongs to the user or the caller, so that there is none without a call.
    pub(crate) fn is_of_caller(&self) -> bool {
        match self {
            Self::UserToken { .. } | Self::TokenExchange(_) => true,
            Self::Bearer { .. }
            | Self::Header { .. }
            | Self::Query { .. }
            | Self::Cookie { .. }
            | Self::Basic { .. }
            | Self::ClientCredentials(_) => false,
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_true(value: &bool) -> bool {
    *value
}

fn yes() -> bool {
    true
}

fn idempotency_header() -> String {
    "Idempotency-Key".to_owned()
}

fn response_bytes_max() -> u64 {
    4 * 1024 * 1024
}

fn authorization() -> String {
    "Authorization".to_owned()
}

fn bearer() -> String {
    "Bearer ".to_owned()
}

fn access_token() -> String {
    "urn:ietf:params:oauth:token-type:access_token".to_owned()
}
