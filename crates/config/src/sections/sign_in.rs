//! `[sign_in]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{SecretRef, WebUrl};

/// People sign in to the console at an issuer of tokens (OpenID Connect, authorization code with PKCE); `docs/console.md`. The token that the
/// issuer gives is checked as over the API, by the policy's `[[issuers]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SignIn {
    /// The issuer, exactly as the policy names it in `[[issuers]]`. Its endpoints are found by OpenID Connect Discovery. If left out, people
    /// cannot sign in that way.
    pub issuer: Option<WebUrl>,
    /// The id under which the console is registered there, with the return address `/sign-in/return` of this server. The policy has it in
    /// `user_clients` of the issuer, so that its tokens are the person's own and no agent's.
    pub client_id: Option<String>,
    /// The secret of a confidential client, in a variable (`env:NAME`) or in a file that only the server's account may read (`file:PATH`). A public client
    /// has none.
    #[schemars(extend("x-path" = "scheme"))]
    pub client_secret: Option<SecretRef>,
    /// The scopes that are asked for. With `offline_access` most issuers also give a token with which a session is renewed.
    pub scopes: Vec<String>,
    /// The name of this server at the issuer, sent as `audience`, where the issuer wants one to give a token for it.
    pub audience: Option<String>,
    /// The same, sent as `resource` (RFC 8707).
    pub resource: Option<String>,
}

impl Default for SignIn {
    fn default() -> Self {
        Self {
            issuer: None,
            client_id: None,
            client_secret: None,
            scopes: vec!["openid".to_owned()],
            audience: None,
            resource: None,
        }
    }
}
