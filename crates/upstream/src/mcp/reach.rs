//! Ways to reach an MCP server: over HTTP or as a child, with whose credential, and by which connection.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use countersign::dialogue::Dialogue;
use countersign::{CallContext, Principal, ToolError};
use countersign_contract::Digest;
use http::{HeaderName, HeaderValue};
use tokio::time::timeout;

use super::child::Program;
use super::client::Updates;
use super::connection::{Behind, Connection};
use super::pool::Key;
use super::server::Server;
use super::talk;
use super::trouble::Trouble;
use super::wire::Wire;
use crate::http::auth::{Authenticator, Credentials};
use crate::http::{Service, ServiceError};
use crate::manifest::{Secret, Upstream};
use crate::user_token;

/// Way to reach a server.
pub(super) enum Way {
    Http {
        url: String,
        service: Arc<Service>,
        /// The credential for listing tools, where it is another one than for calls.
        discovery: Option<Authenticator>,
        headers: Vec<(HeaderName, HeaderValue)>,
    },
    Child(Program),
}

/// A connection, and the credential that is sent over it.
pub(super) type Opened = (Arc<Connection>, Credentials);

/// Caller for whom a connection is opened.
struct Whose<'a> {
    /// The credential, where it is another one than that of calls.
    own: Option<&'a Authenticator>,
    /// The user's token for a child.
    token: Option<Secret>,
    dialogue: Option<&'a Dialogue>,
}

/// Reason why a call has no connection.
pub(super) enum NoConnection {
    /// With an error for the caller.
    Told(ToolError),
    /// On the way.
    Trouble(Trouble),
}

impl From<Trouble> for NoConnection {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl Way {
    pub(super) fn http(entry: &Upstream, url: &str, folder: &Path) -> Result<Self, ServiceError> {
        let as_http = Upstream {
            base_url: url.to_owned(),
            ..entry.clone()
        };
        let discovery = &entry.discovery.auth;
        let is_of_caller = entry.auth.is_of_caller();
        let read = |source| ServiceError::Secret {
            upstream: entry.name.clone(),
            source,
        };
        let discovery = (!discovery.is_empty() || is_of_caller)
            .then(|| Authenticator::prepare(discovery, folder).map_err(read))
            .transpose()?;
        let headers = entry.headers.iter().filter_map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value).ok()?))
        });
        Ok(Self::Http {
            url: url.to_owned(),
            service: Service::prepare(&as_http, folder)?,
            discovery,
            headers: headers.collect(),
        })
    }

    pub(super) fn child(entry: &Upstream, folder: &Path) -> Result<Self, ServiceError> {
        let env = entry.env.iter().map(|(name, own)| {
            let secret = own.read(folder).map_err(|source| ServiceError::Secret {
                upstream: entry.name.clone(),
                source,
            })?;
            Ok((name.clone(), secret))
        });
        let is_here = folder.as_os_str().is_empty();
        let folder = if is_here { Path::new(".") } else { folder };
        Ok(Self::Child(Program {
            command: entry.command.clone(),
            env: env.collect::<Result<_, ServiceError>>()?,
            folder: folder.to_owned(),
        }))
    }
}

impl Server {
    pub(super) async fn for_discovery(&self) -> Result<Opened, NoConnection> {
        let nobody = CallContext::standalone(&Principal::user("gateway"), "{}");
        let own = match &self.way {
            Way::Http { discovery, .. } => discovery.as_ref(),
            Way::Child(_) => None,
        };
        let key = if self.entry.shared && own.is_none() {
            Key::Shared
        } else {
            Key::Discovery
        };
        let whose = Whose {
            own,
            token: None,
            dialogue: None,
        };
        self.open(&key, &nobody, whose).await
    }

    /// The connection for a call, with the credential for it.
    pub(super) async fn connection(&self, ctx: &CallContext) -> Result<Opened, NoConnection> {
        let dialogue = ctx.extension::<Arc<Dialogue>>();
        self.connection_with(ctx, dialogue.map(|own| &**own)).await
    }

    /// The same for a caller who is spoken to here.
    pub(super) async fn connection_with(
        &self,
        ctx: &CallContext,
        dialogue: Option<&Dialogue>,
    ) -> Result<Opened, NoConnection> {
        let mut token = None;
        let key = if self.entry.shared && !self.is_of_caller() {
            Key::Shared
        } else {
            let user = ctx.user_id().to_owned();
            match &self.way {
                Way::Http { .. } => {
                    // Two callers of one user may have different rights, so each token has a connection of its own.
                    let of_caller = ctx.caller_token().filter(|_| self.is_of_caller());
                    let digest = of_caller.map(|own| Digest::of_bytes(own.expose().as_bytes()));
                    let abilities = talk::abilities(dialogue);
                    let is_older = dialogue.is_some_and(Dialogue::is_live);
                    Key::User(user, digest, format!("{abilities} {is_older}"))
                }
                Way::Child(_) => {
                    // Another token is for another child.
                    if self.entry.user_env.is_some() {
                        let own = user_token::of(ctx, self.name()).await;
                        token = Some(own.map_err(NoConnection::Told)?);
                    }
                    let digest = token.as_ref();
                    let digest = digest.map(|own| Digest::of_bytes(own.expose().as_bytes()));
                    Key::User(user, digest, String::new())
                }
            }
        };
        let whose = Whose {
            own: None,
            token,
            dialogue,
        };
        self.open(&key, ctx, whose).await
    }

    fn is_of_caller(&self) -> bool {
        self.entry.auth.is_of_caller()
    }

    async fn open(
        &self,
        key: &Key,
        ctx: &CallContext,
        whose: Whose<'_>,
    ) -> Result<Opened, NoConnection> {
        let Whose {
            own,
            token,
            dialogue,
        } = whose;
        let behind = Behind {
            abilities: talk::abilities(dialogue),
            is_shared: *key == Key::Shared,
            is_of_gateway: matches!(key, Key::Shared | Key::Discovery),
            is_older: *key != Key::Shared && dialogue.is_some_and(Dialogue::is_live),
            changed: self.changed.clone(),
            updates: self.updates().map(|to| Updates {
                to,
                prefix: self.outside(""),
            }),
        };
        let bytes_max = usize::try_from(self.entry.response_bytes_max).unwrap_or(usize::MAX);
        let limit = Duration::from_millis(self.entry.connections.start_ms);
        let late = |_| Trouble::NoConnection("the server did not answer in time".to_owned());
        match &self.way {
            Way::Child(program) => {
                let own = self.entry.user_env.clone().zip(token);
                let secrets = program.env.iter().chain(&own).map(|(_, own)| own.clone());
                let sent = Credentials {
                    secrets: secrets.collect(),
                    ..Credentials::default()
                };
                // The start is large and rare, so it does not stand on the stack of every call.
                let open = async {
                    let opened = Connection::to_child(program, own, bytes_max, &behind).await?;
                    // A child that was started anew may be another program by now. What a server lists to one user may differ.
                    opened.look().await.map(|()| opened)
                };
                let open = Box::pin(open);
                let open = async { timeout(limit, open).await.map_err(late)? };
                let opened = self.pool.get(key, open).await;
                let opened = opened.map_err(|trouble| trouble.without(&sent.secrets))?;
                opened.set_secrets(&sent.secrets);
                Ok((opened, sent))
            }
            Way::Http {
                url,
                service,
                headers,
                ..
            } => {
                let auth = own.unwrap_or(&service.auth);
                let credentials = auth.credentials(service, ctx).await;
                let credentials = credentials.map_err(NoConnection::Told)?;
                let wire = Wire::new(
                    service.client.clone(),
                    headers.clone(),
                    self.entry.send_context,
                    bytes_max,
                );
                wire.set_credentials(credentials.clone());
                let concurrent = self.entry.pool.concurrent_max as usize;
                let open = Connection::over_http(url, wire, concurrent, &behind);
                let open = Box::pin(open);
                let open = async { timeout(limit, open).await.map_err(late)? };
                let opened = self.pool.get(key, open).await;
                let connection = opened.map_err(|own| own.without(&credentials.secrets))?;
                connection.set_secrets(&credentials.secrets);
                if let Some(wire) = connection.wire() {
                    wire.set_credentials(credentials.clone());
                }
                Ok((connection, credentials))
            }
        }
    }

    /// Forgets the token of a call that was refused; true if a new one can be had.
    pub(super) fn forget_token(&self, ctx: &CallContext, refused: &Credentials) -> bool {
        match &self.way {
            Way::Http { service, .. } => service.auth.forget(ctx, refused),
            Way::Child(_) => false,
        }
    }
}
