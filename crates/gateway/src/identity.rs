//! Credentials: what they prove, and the answer to a missing or wrong one.
//!
//! A credential is an API key of ours ([`ApiKeys`]) or a token that a configured issuer has signed, and arrives
//! as `Authorization: Bearer …`. While neither is configured, programs on the same machine need none; from the
//! first one on every caller needs one.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use countersign::Principal;
use countersign::clock::{Clock, SystemClock};
use countersign::contract::{Actor, ActorType};
use countersign::principal::BearerToken;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::caller::{Caller, Proof};
use crate::operator::{Operator, Prover};
use crate::policy::{LivePolicy, Policy};

mod api_key;
mod api_keys;
mod challenge;
mod discovery;
mod issuer_door;
mod jwks;
mod jwt;
mod key_store;
mod keys_error;
mod layer;
mod metadata;
mod refusal;
pub mod routes;
mod sessions;
mod token_claims;
mod verified;

pub use api_key::{ApiKey, IssuedKey, KeyState, NewKey};
pub use api_keys::{ApiKeys, SCOPE_KEYS};
pub(crate) use challenge::base_url;
pub use issuer_door::{FromIssuer, IssuerClient, NotLetIn, ToIssuer, Unusable};
pub use key_store::{API_KEYS, FLAGS};
pub use keys_error::KeysError;
pub(crate) use layer::Known;
pub use layer::layer;
pub use refusal::{Reason, Refused};
pub use sessions::{LINK_LIFE, NotSignedIn, SESSION_IDLE, SESSION_LIFE, Sessions, SignedIn, Use};

use issuer_door::IssuerDoor;
use jwt::Tokens;
use refusal::Refusals;

/// Maximum length of a credential in bytes.
const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// Accepted credentials.
pub struct Identity {
    local: Caller,
    /// True if every request comes from `local`.
    is_fixed: bool,
    keys: Option<ApiKeys>,
    tokens: Tokens,
    policy: Arc<LivePolicy>,
    clock: Arc<dyn Clock>,
    /// Issuer at which people sign in with a browser.
    door: Option<IssuerDoor>,
    operator: Option<Operator>,
    /// True if programs on this machine need no credential although some are configured.
    anonymous_allowed: bool,
    /// True if only the operator is accepted.
    is_operators_only: bool,
    /// True if the server can be reached from outside this machine.
    is_exposed: AtomicBool,
    refusals: Refusals,
}

impl Identity {
    /// Requires no credential: for a server that only this machine can reach.
    pub fn loopback() -> Self {
        let policy = Arc::new(LivePolicy::fixed(Policy::allow_all()));
        Self::new(Arc::new(SystemClock::new()), policy)
    }

    /// Accepts credentials by this policy.
    pub fn new(clock: Arc<dyn Clock>, policy: Arc<LivePolicy>) -> Self {
        Self {
            local: Caller::local(),
            is_fixed: false,
            keys: None,
            tokens: Tokens::new(clock.clone()),
            policy,
            clock: clock.clone(),
            door: None,
            operator: None,
            anonymous_allowed: false,
            is_operators_only: false,
            is_exposed: AtomicBool::new(false),
            refusals: Refusals::new(clock),
        }
    }

    /// Accepts these keys.
    pub fn api_keys(mut self, keys: ApiKeys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Treats every request as one of this caller: for a server behind a component that has already
    /// authenticated it, and for tests.
    pub fn fixed(caller: Caller) -> Self {
        Self {
            local: caller,
            is_fixed: true,
            ..Self::loopback()
        }
    }

    /// Accepts the operator of this machine as well. It does not count as a configured credential.
    pub fn with_operator(mut self, operator: Operator) -> Self {
        self.operator = Some(operator);
        self
    }

    /// Lets people sign in with a browser at this issuer. Its tokens are still checked by the policy.
    pub fn with_issuer_client(mut self, client: IssuerClient) -> Self {
        self.door = Some(IssuerDoor::new(client, self.clock.clone()));
        self
    }

    /// Returns the issuer at which people sign in with a browser.
    pub fn issuer_client(&self) -> Option<&IssuerClient> {
        self.door.as_ref().map(|door| &door.client)
    }

    /// Accepts programs on this machine without a credential, even if some are configured.
    pub fn allow_anonymous_loopback(mut self) -> Self {
        self.anonymous_allowed = true;
        self
    }

    /// Accepts only the operator, whatever the credential: for a server that only serves the commands of this
    /// machine.
    pub fn operators_only(mut self) -> Self {
        self.is_operators_only = true;
        self
    }

    /// Returns the caller of the operator's socket.
    pub(crate) fn at_socket(&self) -> Option<Caller> {
        self.operator.as_ref().map(Operator::at_socket)
    }

    /// Returns the prover by which the server proves itself to commands; `None` if they use the socket.
    pub fn prover(&self) -> Option<&Prover> {
        self.operator.as_ref().and_then(Operator::prover)
    }

    /// Returns the API keys of this installation.
    pub fn keys(&self) -> Option<&ApiKeys> {
        self.keys.as_ref()
    }

    /// Returns the policy in force.
    pub fn policy(&self) -> &Arc<LivePolicy> {
        &self.policy
    }

    /// Returns the number of refused requests by reason.
    pub fn refused(&self) -> [(Reason, u64); Reason::ALL.len()] {
        self.refusals.counts()
    }

    /// Authenticates the sender of a request with these headers.
    pub async fn caller(&self, headers: &HeaderMap) -> Result<Caller, Refused> {
        let operator = self.operator.as_ref();
        if let Some(caller) = operator.and_then(|operator| operator.caller(headers)) {
            return Ok(caller);
        }
        if self.is_fixed {
            return Ok(self.local.clone());
        }
        let caller = match bearer(headers) {
            Ok(Some(_)) if self.is_operators_only => Err(Refused::new(Reason::NotAccepted)),
            Ok(None) if self.is_operators_only => Err(Refused::new(Reason::Missing)),
            Ok(Some(token)) => self.proved(token).await,
            Ok(None) => self.anonymous().await,
            Err(reason) => Err(Refused::new(reason)),
        };
        caller.inspect_err(|refused| self.refusals.count(refused.reason))
    }

    /// Returns the caller of a request without a credential; `None` if it would be refused. This does not count
    /// as a request.
    pub async fn without_credential(&self) -> Option<Caller> {
        if self.is_fixed {
            return Some(self.local.clone());
        }
        if self.is_operators_only {
            return None;
        }
        self.anonymous().await.ok()
    }

    async fn proved(&self, token: &str) -> Result<Caller, Refused> {
        if !token.starts_with(api_key::PREFIX) {
            return self.signed(token).await;
        }
        let Some(keys) = &self.keys else {
            return Err(Refused::new(Reason::NotAccepted));
        };
        match keys.verify(token).await {
            Ok(Some(principal)) => Ok(caller(principal, Proof::ApiKey)),
            Ok(None) => Err(Refused::new(Reason::NotAccepted)),
            Err(error) => Err(Refused::unavailable(&error)),
        }
    }

    async fn signed(&self, token: &str) -> Result<Caller, Refused> {
        let policy = self.policy.current();
        match self.tokens.verify(token, &policy.file().issuers).await {
            Ok(Some(principal)) => {
                self.keep_required().await;
                let principal = principal.with_token(BearerToken::new(token));
                Ok(caller(Arc::new(principal), Proof::Token))
            }
            Ok(None) => Err(Refused::new(Reason::NotAccepted)),
            Err(error) => Err(Refused::unavailable(&error)),
        }
    }

    async fn anonymous(&self) -> Result<Caller, Refused> {
        if self.is_exposed.load(Ordering::Relaxed) {
            return Err(Refused::new(Reason::Missing));
        }
        if self.anonymous_allowed {
            return Ok(self.local.clone());
        }
        let has_keys = match &self.keys {
            Some(keys) => keys.are_used().await,
            None => Ok(false),
        };
        let has_keys = has_keys.map_err(|error| Refused::unavailable(&error))?;
        if self.policy.has_had_issuers() {
            self.keep_required().await;
            return Err(Refused::new(Reason::Missing));
        }
        if has_keys {
            return Err(Refused::new(Reason::Missing));
        }
        Ok(self.local.clone())
    }

    /// Stores that credentials are required, also after a policy was loaded that names issuers for the first
    /// time.
    async fn keep_required(&self) {
        let policy = Actor {
            kind: ActorType::System,
            id: "policy".to_owned(),
        };
        if let Some(keys) = &self.keys
            && let Err(error) = Box::pin(keys.require_credentials(&policy)).await
        {
            tracing::warn!(%error, "the setting that credentials are required could not be stored");
        }
    }

    fn has_issuers(&self) -> bool {
        !self.policy.current().file().issuers.is_empty()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("keys", &self.keys)
            .field("policy", &self.policy.current().revision())
            .finish_non_exhaustive()
    }
}

/// Reason why a server may not listen on an address.
#[derive(Debug, thiserror::Error)]
pub enum MayNotListen {
    /// The address can be reached from outside and no credential is configured, so every client could call
    /// everything. Usually a first server is started for other machines before its first key is made.
    #[error("{address} can be reached by other machines, but no credential is configured")]
    NoCredential {
        /// Address to listen on.
        address: SocketAddr,
    },
    /// The address can be reached from outside and anonymous access is allowed: clients behind a proxy would
    /// count as local programs. Usually `--allow-anonymous-loopback` was left from a try on one machine.
    #[error("{address} can be reached by other machines, so every caller needs a credential")]
    Anonymous {
        /// Address to listen on.
        address: SocketAddr,
    },
    /// The API keys cannot be read, usually because the store is unreachable.
    #[error("the API keys cannot be read: {0}")]
    Store(#[from] countersign::ledger::Error),
}

impl MayNotListen {
    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoCredential { .. } => {
                "make a key with `countersign keys create`, name an issuer in the policy, or listen on 127.0.0.1 without a public URL"
            }
            Self::Anonymous { .. } => {
                "leave --allow-anonymous-loopback out, or listen on 127.0.0.1"
            }
            Self::Store(_) => "`countersign doctor` says more",
        }
    }
}

/// Checks that a server may listen on an address. Any address but loopback needs a key or an issuer. So does a
/// server with a public URL: a proxy on this machine forwards requests to it, and all of them would count as
/// local. From then on every request needs a credential, even after the last key has ended.
pub async fn may_listen(
    address: SocketAddr,
    public_url: Option<&str>,
    identity: &Identity,
) -> Result<(), MayNotListen> {
    if identity.policy.has_had_issuers() {
        identity.keep_required().await;
    }
    if address.ip().to_canonical().is_loopback() && public_url.is_none() {
        return Ok(());
    }
    if identity.anonymous_allowed {
        return Err(MayNotListen::Anonymous { address });
    }
    let has_keys = match &identity.keys {
        Some(keys) => keys.has_active().await?,
        None => false,
    };
    if !has_keys && !identity.has_issuers() {
        return Err(MayNotListen::NoCredential { address });
    }
    identity.is_exposed.store(true, Ordering::Relaxed);
    Ok(())
}

fn caller(principal: Arc<Principal>, proof: Proof) -> Caller {
    Caller { principal, proof }
}

/// Returns the credential in the headers. Two of them count as none, because a proxy in between may use the
/// other one.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Reason> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value,
        (Some(_), Some(_)) => return Err(Reason::Malformed),
    };
    let text = value.to_str().map_err(|_| Reason::Malformed)?;
    let (scheme, token) = text.split_once(' ').ok_or(Reason::Malformed)?;
    let token = token.trim_matches(' ');
    let is_token = (1..=TOKEN_BYTES_MAX).contains(&token.len()) && !token.contains(' ');
    if scheme.eq_ignore_ascii_case("bearer") && is_token {
        return Ok(Some(token));
    }
    Err(Reason::Malformed)
}
