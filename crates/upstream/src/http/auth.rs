//! Credentials for an upstream.

mod oauth;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::{CallContext, ToolError};

use super::service::Service;
use super::style::escape;
use crate::manifest::{Auth, Secret, SecretError};
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

/// A credential, ready to be used.
pub(crate) enum Authenticator {
    None,
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
    pub(crate) fn prepare(auth: Option<&Auth>, folder: &Path) -> Result<Self, SecretError> {
        let header = |name: &str, value: String, secrets: Vec<Secret>| Self::Header {
            name: name.to_owned(),
            value: Secret::new(value),
            secrets,
        };
        Ok(match auth {
            None => Self::None,
            Some(Auth::Bearer { token }) => {
                let token = token.read(folder)?;
                let value = format!("Bearer {}", token.expose());
                header("authorization", value, vec![token])
            }
            Some(Auth::Basic { username, password }) => {
                let password = password.read(folder)?;
                let pair = STANDARD.encode(format!("{username}:{}", password.expose()));
                let value = format!("Basic {pair}");
                header("authorization", value, vec![password, Secret::new(pair)])
            }
            Some(Auth::Header {
                name,
                value,
                prefix,
            }) => {
                let secret = value.read(folder)?;
                let value = format!("{prefix}{}", secret.expose());
                header(name, value, vec![secret])
            }
            Some(Auth::Cookie { name, value }) => {
                let secret = value.read(folder)?;
                let escaped = escape(secret.expose());
                let value = format!("{name}={escaped}");
                header("cookie", value, vec![secret, Secret::new(escaped)])
            }
            Some(Auth::Query { name, value }) => {
                let secret = value.read(folder)?;
                let value = Secret::new(escape(secret.expose()));
                Self::Query {
                    name: escape(name),
                    secrets: vec![secret, value.clone()],
                    value,
                }
            }
            Some(Auth::ClientCredentials(own)) => {
                let secret = own.client_secret.read(folder)?;
                Self::Client(Box::new(ClientToken::new(own.clone(), secret)))
            }
            Some(Auth::TokenExchange(own)) => {
                let secret = own.client_secret.read(folder)?;
                Self::Exchange(Box::new(Exchange::new(own.clone(), secret)))
            }
            Some(Auth::UserToken { header, prefix }) => Self::User {
                header: header.clone(),
                prefix: prefix.clone(),
            },
        })
    }

    /// Returns the URL of the token endpoint; `None` if the credential needs no token.
    pub(crate) fn token_url(&self) -> Option<&str> {
        match self {
            Self::Client(own) => Some(own.token_url()),
            Self::Exchange(own) => Some(own.token_url()),
            Self::None | Self::Header { .. } | Self::Query { .. } | Self::User { .. } => None,
        }
    }

    /// Returns the secret that tokens are fetched with; `None` if the credential needs no token.
    pub(super) fn client_secret(&self) -> Option<&Secret> {
        match self {
            Self::Client(own) => Some(own.secret()),
            Self::Exchange(own) => Some(own.secret()),
            Self::None | Self::Header { .. } | Self::Query { .. } | Self::User { .. } => None,
        }
    }

    /// The credential for one request.
    pub(crate) async fn credentials(
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
            Self::None => Credentials::default(),
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

    /// Forgets the token of a call that was refused; true if a new one can be had.
    pub(crate) fn forget(&self, ctx: &CallContext, refused: &Credentials) -> bool {
        let Some(refused) = refused.secrets.first() else {
            return false;
        };
        match self {
            Self::Client(own) => own.forget(refused),
            Self::Exchange(own) => own.forget(ctx, refused),
            Self::None | Self::Header { .. } | Self::Query { .. } | Self::User { .. } => false,
        }
    }
}
