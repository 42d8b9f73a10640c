//! Credentials for an upstream.

mod oauth;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::{CallContext, ToolError};

use super::service::Service;
use super::style::escape;
use crate::manifest::{Auth, Auths, Secret, SecretError};
use oauth::{ClientToken, Exchange};

/// Credentials that are added to a request.
#[derive(Clone, Default)]
pub(crate) struct Credentials {
    pub(crate) headers: Vec<(String, String)>,
    /// Escaped pairs.
    pub(crate) query: Vec<(String, String)>,
    /// The secrets in them, as they are without prefix and encoding.
    pub(crate) secrets: Vec<Secret>,
}

/// The credentials of an upstream, ready to be used. All of them are sent with each request.
pub(crate) struct Authenticator(Vec<Part>);

/// A credential, ready to be used.
enum Part {
    Header {
        name: String,
        value: Secret,
        /// The secrets in the value.
        secrets: Vec<Secret>,
    },
    Query {
        name: String,
        /// Escaped.
        value: Secret,
        secrets: Vec<Secret>,
    },
    Client(Box<ClientToken>),
    Exchange(Box<Exchange>),
    User {
        header: String,
        prefix: String,
    },
}

impl Authenticator {
    pub(crate) fn prepare(auths: &Auths, folder: &Path) -> Result<Self, SecretError> {
        let parts = auths.iter().map(|auth| Part::prepare(auth, folder));
        parts.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the URLs of the token endpoints.
    pub(crate) fn token_urls(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(Part::token_url)
    }

    /// Returns the secrets that tokens are fetched with.
    pub(super) fn client_secrets(&self) -> impl Iterator<Item = &Secret> {
        self.0.iter().filter_map(Part::client_secret)
    }

    /// The credentials for one request.
    pub(crate) async fn credentials(
        &self,
        service: &Service,
        ctx: &CallContext,
    ) -> Result<Credentials, ToolError> {
        let mut all = Credentials::default();
        for part in &self.0 {
            let Credentials {
                headers,
                query,
                secrets,
            } = part.credentials(service, ctx).await?;
            all.headers.extend(headers);
            all.query.extend(query);
            all.secrets.extend(secrets);
        }
        Ok(all)
    }

    /// Forgets the tokens of a call that was refused; true if a new one can be had.
    pub(crate) fn forget(&self, ctx: &CallContext, refused: &Credentials) -> bool {
        let mut has_new = false;
        for part in &self.0 {
            has_new |= refused.secrets.iter().any(|own| part.forget(ctx, own));
        }
        has_new
    }
}

impl Part {
    fn prepare(auth: &Auth, folder: &Path) -> Result<Self, SecretError> {
        let header = |name: &str, value: String, secrets: Vec<Secret>| Self::Header {
            name: name.to_owned(),
            value: Secret::new(value),
            secrets,
        };
        Ok(match auth {
            Auth::Bearer { token } => {
                let token = token.read(folder)?;
                let value = format!("Bearer {}", token.expose());
                header("authorization", value, vec![token])
            }
            Auth::Basic { username, password } => {
                let password = password.read(folder)?;
                let pair = STANDARD.encode(format!("{username}:{}", password.expose()));
                let value = format!("Basic {pair}");
                header("authorization", value, vec![password, Secret::new(pair)])
            }
            Auth::Header {
                name,
                value,
                prefix,
            } => {
                let secret = value.read(folder)?;
                let value = format!("{prefix}{}", secret.expose());
                header(name, value, vec![secret])
            }
            Auth::Cookie { name, value } => {
                let secret = value.read(folder)?;
                let escaped = escape(secret.expose());
                let value = format!("{name}={escaped}");
                header("cookie", value, vec![secret, Secret::new(escaped)])
            }
            Auth::Query { name, value } => {
                let secret = value.read(folder)?;
                let value = Secret::new(escape(secret.expose()));
                Self::Query {
                    name: escape(name),
                    secrets: vec![secret, value.clone()],
                    value,
                }
            }
            Auth::ClientCredentials(own) => {
                let secret = own.client_secret.read(folder)?;
                Self::Client(Box::new(ClientToken::new(own.clone(), secret)))
            }
            Auth::TokenExchange(own) => {
                let secret = own.client_secret.read(folder)?;
                Self::Exchange(Box::new(Exchange::new(own.clone(), secret)))
            }
            Auth::UserToken { header, prefix } => Self::User {
                header: header.clone(),
                prefix: prefix.clone(),
            },
        })
    }

    /// Returns the URL of the token endpoint; `None` if the credential needs no token.
    fn token_url(&self) -> Option<&str> {
        match self {
            Self::Client(own) => Some(own.token_url()),
            Self::Exchange(own) => Some(own.token_url()),
            Self::Header { .. } | Self::Query { .. } | Self::User { .. } => None,
        }
    }

    /// Returns the secret that tokens are fetched with; `None` if the credential needs no token.
    fn client_secret(&self) -> Option<&Secret> {
        match self {
            Self::Client(own) => Some(own.secret()),
            Self::Exchange(own) => Some(own.secret()),
            Self::Header { .. } | Self::Query { .. } | Self::User { .. } => None,
        }
    }

    /// The credential for one request.
    async fn credentials(
        &self,
        service: &Service,
        ctx: &CallContext,
    ) -> Result<Credentials, ToolError> {
        let token = |header: &str, prefix: &str, token: Secret| Credentials {
            headers: vec![(header.to_owned(), format!("{prefix}{}", token.expose()))],
            query: Vec::new(),
            secrets: vec![token],
        };
        Ok(match self {
            Self::Header {
                name,
                value,
                secrets,
            } => Credentials {
                headers: vec![(name.clone(), value.expose().to_owned())],
                query: Vec::new(),
                secrets: secrets.clone(),
            },
            Self::Query {
                name,
                value,
                secrets,
            } => Credentials {
                headers: Vec::new(),
                query: vec![(name.clone(), value.expose().to_owned())],
                secrets: secrets.clone(),
            },
            Self::Client(own) => {
                let own = own.token(service, ctx).await?;
                token("authorization", "Bearer ", own)
            }
            Self::Exchange(own) => {
                let own = own.token(service, ctx).await?;
                token("authorization", "Bearer ", own)
            }
            Self::User { header, prefix } => {
                let own = crate::user_token::of(ctx, service.name()).await?;
                token(header, prefix, own)
            }
        })
    }

    /// Forgets a token that was refused; true if a new one can be had.
    fn forget(&self, ctx: &CallContext, refused: &Secret) -> bool {
        match self {
            Self::Client(own) => own.forget(refused),
            Self::Exchange(own) => own.forget(ctx, refused),
            Self::Header { .. } | Self::Query { .. } | Self::User { .. } => false,
        }
    }
}
