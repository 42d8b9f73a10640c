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

/// What is added to a request.
#[derive(Default)]
pub(crate) struct Credentials {
    pub(crate) headers: Vec<(String, String)>,
    /// Escaped pairs.
    pub(crate) query: Vec<(String, String)>,
}

/// A credential, ready to be used.
pub(crate) enum Authenticator {
    None,
    Header { name: String, value: Secret },
    Query { name: String, value: Secret },
    Client(Box<ClientToken>),
    Exchange(Box<Exchange>),
    User { header: String, prefix: String },
}

impl Authenticator {
    pub(crate) fn prepare(auth: Option<&Auth>, folder: &Path) -> Result<Self, SecretError> {
        let authorization = |text: String| Self::Header {
            name: "authorization".to_owned(),
            value: Secret::new(text),
        };
        Ok(match auth {
            None => Self::None,
            Some(Auth::Bearer { token }) => {
                authorization(format!("Bearer {}", token.read(folder)?.expose()))
            }
            Some(Auth::Basic { username, password }) => {
                let pair = format!("{username}:{}", password.read(folder)?.expose());
                authorization(format!("Basic {}", STANDARD.encode(pair)))
            }
            Some(Auth::Header {
                name,
                value,
                prefix,
            }) => Self::Header {
                name: name.clone(),
                value: Secret::new(format!("{prefix}{}", value.read(folder)?.expose())),
            },
            Some(Auth::Cookie { name, value }) => Self::Header {
                name: "cookie".to_owned(),
                value: Secret::new(format!("{name}={}", escape(value.read(folder)?.expose()))),
            },
            Some(Auth::Query { name, value }) => Self::Query {
                name: escape(name),
                value: Secret::new(escape(value.read(folder)?.expose())),
            },
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

    /// Where tokens come from, if they come from somewhere.
    pub(crate) fn token_url(&self) -> Option<&str> {
        match self {
            Self::Client(own) => Some(own.token_url()),
            Self::Exchange(own) => Some(own.token_url()),
            Self::None | Self::Header { .. } | Self::Query { .. } | Self::User { .. } => None,
        }
    }

    /// The credential for one request.
    pub(crate) async fn credentials(
        &self,
        service: &Service,
        ctx: &CallContext,
    ) -> Result<Credentials, ToolError> {
        let bearer = |token: &Secret| {
            let value = format!("Bearer {}", token.expose());
            vec![("authorization".to_owned(), value)]
        };
        let headers = match self {
            Self::None => Vec::new(),
            Self::Header { name, value } => vec![(name.clone(), value.expose().to_owned())],
            Self::Query { name, value } => {
                let query = vec![(name.clone(), value.expose().to_owned())];
                return Ok(Credentials {
                    query,
                    ..Credentials::default()
                });
            }
            Self::Client(own) => bearer(&own.token(service, ctx).await?),
            Self::Exchange(own) => bearer(&own.token(service, ctx).await?),
            Self::User { header, prefix } => {
                let token = crate::user_token::of(ctx, service.name()).await?;
                vec![(header.clone(), format!("{prefix}{}", token.expose()))]
            }
        };
        Ok(Credentials {
            headers,
            ..Credentials::default()
        })
    }

    /// Forgets the token of a call that was refused; true if there was one, so that a new one can be had.
    pub(crate) fn forget(&self, ctx: &CallContext) -> bool {
        match self {
            Self::Client(own) => own.forget(),
            Self::Exchange(own) => own.forget(ctx),
            Self::None | Self::Header { .. } | Self::Query { .. } | Self::User { .. } => false,
        }
    }
}
