//! One upstream while the gateway runs: its client, its credential, and the limits on calls to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;
use url::Url;

use super::auth::Authenticator;
use super::breaker::{Breaker, RetryBudget};
use super::guard::{Guard, Refused};
use crate::manifest::{Network, Secret, SecretError, Upstream};
use crate::mcp::pins::PinsError;

/// An HTTP service that tools call. Tools of one upstream share it.
pub struct Service {
    pub(super) entry: Upstream,
    pub(super) base: Url,
    pub(crate) client: reqwest::Client,
    pub(super) guard: Guard,
    pub(crate) auth: Authenticator,
    pub(super) identity: Option<Secret>,
    pub(super) slots: Semaphore,
    pub(super) breaker: Breaker,
    pub(super) budget: RetryBudget,
    started: Instant,
}

/// An upstream cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// A secret cannot be read.
    /// Usually its variable is not set, or its file is not readable for the server's account.
    #[error("the upstream {upstream}: {source}")]
    Secret {
        /// Its name.
        upstream: String,
        /// The cause.
        source: SecretError,
    },
    /// The secret for identities is too short to be one. Usually a word was chosen in place of random bytes.
    #[error("the upstream {upstream}: identity_secret has fewer than {IDENTITY_BYTES_MIN} bytes")]
    WeakIdentity {
        /// Its name.
        upstream: String,
    },
    /// The base address is not a valid URL of http or https. Usually the scheme was left out.
    #[error("the upstream {upstream}: {url:?} is not an http or https address")]
    Address {
        /// Its name.
        upstream: String,
        /// The text.
        url: String,
    },
    /// The address is private, and `allow_private` does not list it.
    /// Usually the service runs on the same machine or in the same network.
    #[error("the upstream {upstream}: {source}")]
    Private {
        /// Its name.
        upstream: String,
        /// The cause.
        source: Refused,
    },
    /// An entry of `allow_private` is not a valid network.
    /// Usually it is a host name; networks are written as `10.0.0.0/8` or `loopback`.
    #[error("the upstream {upstream}: {text:?} is not a network")]
    Network {
        /// Its name.
        upstream: String,
        /// The text.
        text: String,
    },
    /// The approved tools of an MCP server cannot be read.
    /// Usually the file was edited by hand, or belongs to another account.
    #[error("the upstream {upstream}: {source}")]
    Pins {
        /// Its name.
        upstream: String,
        /// The cause.
        source: PinsError,
    },
    /// The certificates cannot be read. Usually the path is wrong, or the file is not in PEM format.
    #[error("the upstream {upstream}: the certificates in {path:?} cannot be read: {source}")]
    Certificates {
        /// Its name.
        upstream: String,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The client cannot be made. Usually the TLS settings do not fit together.
    #[error("the upstream {upstream}: {source}")]
    Client {
        /// Its name.
        upstream: String,
        /// The cause.
        source: reqwest::Error,
    },
}

/// Fewest bytes of a secret that signs identities.
const IDENTITY_BYTES_MIN: usize = 32;

impl Service {
    /// Reads the secrets and prepares the client. Nothing is sent. Relative paths count from `folder`.
    pub fn prepare(entry: &Upstream, folder: &Path) -> Result<Arc<Self>, ServiceError> {
        let upstream = || entry.name.clone();
        let networks = entry.allow_private.iter().map(|text| {
            text.parse::<Network>().map_err(|_| ServiceError::Network {
                upstream: upstream(),
                text: text.clone(),
            })
        });
        let guard = Guard::new(networks.collect::<Result<Vec<_>, _>>()?);
        let base = address(entry, &entry.base_url, &guard)?;
        let read = |source| ServiceError::Secret {
            upstream: upstream(),
            source,
        };
        let identity = entry.identity_secret.as_ref();
        let identity = identity.map(|secret| secret.read(folder)).transpose();
        let identity = identity.map_err(read)?;
        let is_weak = |secret: &Secret| secret.expose().len() < IDENTITY_BYTES_MIN;
        if identity.as_ref().is_some_and(is_weak) {
            return Err(ServiceError::WeakIdentity {
                upstream: upstream(),
            });
        }
        let auth = Authenticator::prepare(&entry.auth, folder).map_err(read)?;
        for token_url in auth.token_urls() {
            address(entry, token_url, &guard)?;
        }
        Ok(Arc::new(Self {
            client: client(entry, &guard, folder)?,
            slots: Semaphore::new(entry.pool.concurrent_max as usize),
            breaker: Breaker::new(entry.breaker),
            budget: RetryBudget::new(entry.retries.budget_percent),
            started: Instant::now(),
            entry: entry.clone(),
            base,
            guard,
            auth,
            identity,
        }))
    }

    /// Returns the name of the upstream.
    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// Asks for the head of the base address, without a credential; the status of the answer, whatever it is.
    pub(crate) async fn head(&self) -> Result<u16, reqwest::Error> {
        let answer = self.client.head(self.base.clone()).send().await?;
        Ok(answer.status().as_u16())
    }

    /// True if calls are not passed on for a moment, because the last ones did not reach it.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.breaker.is_open(self.now())
    }

    /// Secrets of the configuration that no request carries as they are: what signs identities, and what tokens are fetched with.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.identity.iter().chain(self.auth.client_secrets())
    }

    /// Most bytes of an answer.
    pub(super) fn response_bytes_max(&self) -> u64 {
        self.entry.response_bytes_max
    }

    /// Time since the service was prepared.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// True if a redirect may lead there: to the port of the upstream itself, or to a declared host. A declared host without
    /// a port means the usual one of its scheme.
    pub(super) fn knows(&self, url: &Url) -> bool {
        let has_credential = !url.username().is_empty() || url.password().is_some();
        let Some(host) = url.host_str().filter(|_| !has_credential) else {
            return false;
        };
        let is_home = Some(host) == self.base.host_str();
        let is_same_port = url.port_or_known_default() == self.base.port_or_known_default();
        // From http to https of the same host, where both have their usual ports.
        let is_usual = url.port().is_none() && self.base.port().is_none();
        let is_declared = |declared: &String| match url.port() {
            None => host.eq_ignore_ascii_case(declared),
            Some(port) => format!("{host}:{port}").eq_ignore_ascii_case(declared),
        };
        (is_home && (is_same_port || is_usual)) || self.entry.hosts.iter().any(is_declared)
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Service").field(&self.entry.name).finish()
    }
}

/// Parses an address, and checks it as far as the guard can without resolving it.
fn address(entry: &Upstream, text: &str, guard: &Guard) -> Result<Url, ServiceError> {
    let url = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https") && url.host().is_some() && !url.cannot_be_a_base()
    });
    let url = url.ok_or_else(|| ServiceError::Address {
        upstream: entry.name.clone(),
        url: text.to_owned(),
    })?;
    guard.check(&url).map_err(|source| ServiceError::Private {
        upstream: entry.name.clone(),
        source,
    })?;
    Ok(url)
}

fn client(entry: &Upstream, guard: &Guard, folder: &Path) -> Result<reqwest::Client, ServiceError> {
    let upstream = || entry.name.clone();
    let mut builder = reqwest::Client::builder()
        // A proxy would resolve names by itself, past the guard.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .dns_resolver(guard.clone())
        .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_millis(entry.timeouts.connect_ms))
        .pool_max_idle_per_host(entry.pool.idle_max as usize)
        .pool_idle_timeout(Duration::from_secs(entry.pool.idle_seconds));
    if let Some(path) = &entry.ca_file {
        let path = folder.join(path);
        let failed =
            |source: Box<dyn std::error::Error + Send + Sync>| ServiceError::Certificates {
                upstream: upstream(),
                path: path.clone(),
                source,
            };
        let pem = std::fs::read(&path).map_err(|error| failed(error.into()))?;
        let certificates = reqwest::Certificate::from_pem_bundle(&pem);
        builder = builder.tls_certs_only(certificates.map_err(|error| failed(error.into()))?);
    }
    builder.build().map_err(|source| ServiceError::Client {
        upstream: upstream(),
        source,
    })
}
