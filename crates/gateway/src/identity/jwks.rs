//! Public keys of an issuer: fetched or read, cached, and fetched again when a token names an unknown key.
//!
//! While an issuer is unreachable, the keys that were fetched before stay valid, so that its outage does not
//! become ours.

use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use countersign::clock::Clock;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use super::discovery;
use crate::policy::JwksSource;
use crate::regular_file;

/// Maximum size of a key set in bytes.
const SET_BYTES_MAX: usize = 256 * 1024;

/// Maximum number of keys of a set that are kept.
const KEYS_MAX: usize = 64;

/// Timeout of a fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Age from which the keys are fetched again in the background.
const RENEW_AFTER: Duration = Duration::from_mins(10);

/// Minimum interval between fetches for tokens that name an unknown key.
const UNKNOWN_AFTER: Duration = Duration::from_secs(30);

/// Retry interval while there are no keys yet.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// A key that verifies tokens.
pub(super) struct PublicKey {
    pub(super) id: Option<String>,
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) key: DecodingKey,
}

/// The keys of one issuer.
pub(super) struct KeySet {
    source: JwksSource,
    clock: Arc<dyn Clock>,
    loaded: ArcSwap<Loaded>,
    /// Held while they are fetched.
    loading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Loaded {
    keys: Vec<Arc<PublicKey>>,
    /// Monotonic time of the last successful fetch; `None` before the first.
    at: Option<Duration>,
    /// Monotonic time of the last attempt.
    tried: Option<Duration>,
}

/// The keys of an issuer could not be fetched. For the log.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfetched {
    #[error("the keys cannot be fetched: {0}")]
    Http(#[source] reqwest::Error),
    #[error("the keys cannot be fetched: the issuer answers with {0}")]
    Status(u16),
    #[error("the keys cannot be read: {0}")]
    File(#[source] std::io::Error),
    #[error("the set of keys has more than {SET_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the key set is not a JWKS: {0}")]
    NoSet(#[source] serde_json::Error),
    #[error("the keys could not be fetched a moment ago; they are tried again later")]
    Lately,
    #[error("the keys were fetched too long ago, and cannot be fetched")]
    TooOld,
    #[error("the issuer's configuration is not usable: {0}")]
    Discovery(&'static str),
}

impl KeySet {
    pub(super) fn new(source: JwksSource, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            source,
            clock,
            loaded: ArcSwap::default(),
            loading: tokio::sync::Mutex::default(),
        })
    }

    /// Returns the keys that may have signed a token: the one that it names, or, if it names none, those that
    /// fit.
    pub(super) async fn find(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
        age_max: Duration,
    ) -> Result<Vec<Arc<PublicKey>>, Unfetched> {
        let loaded = self.loaded.load_full();
        let now = self.clock.monotonic();
        let age = |at: Option<Duration>| at.map(|at| now.saturating_sub(at));
        if loaded.at.is_none() {
            if age(loaded.tried).is_some_and(|age| age < RETRY_AFTER) {
                return Err(Unfetched::Lately);
            }
            let loaded = self.load(now).await?;
            return Ok(fitting(&loaded, id, algorithm));
        }
        // A key that its issuer has withdrawn must not stay valid for ever because the issuer is unreachable.
        if age(loaded.at).is_some_and(|age| age >= age_max) {
            if age(loaded.tried).is_some_and(|age| age < RETRY_AFTER) {
                return Err(Unfetched::TooOld);
            }
            let loaded = self.load(now).await?;
            return Ok(fitting(&loaded, id, algorithm));
        }
        let found = fitting(&loaded, id, algorithm);
        let tried = age(loaded.tried).unwrap_or(Duration::MAX);
        if found.is_empty() && tried >= UNKNOWN_AFTER {
            return match self.load(now).await {
                Ok(loaded) => Ok(fitting(&loaded, id, algorithm)),
                Err(error) => {
                    tracing::warn!(%error, "the signing keys of a token issuer could not be loaded; the earlier keys stay in use");
                    Ok(found)
                }
            };
        }
        if age(loaded.at).is_some_and(|age| age >= RENEW_AFTER) && tried >= UNKNOWN_AFTER {
            let set = self.clone();
            tokio::spawn(async move {
                if let Err(error) = set.load(now).await {
                    tracing::warn!(%error, "the signing keys of a token issuer could not be loaded; the earlier keys stay in use");
                }
            });
        }
        Ok(found)
    }

    /// Fetches the keys, unless another task has done so since `asked`.
    async fn load(&self, asked: Duration) -> Result<Arc<Loaded>, Unfetched> {
        let _guard = self.loading.lock().await;
        let before = self.loaded.load_full();
        if before.tried.is_some_and(|tried| tried >= asked) {
            return match before.at {
                Some(_) => Ok(before),
                None => Err(Unfetched::Lately),
            };
        }
        let tried = Some(self.clock.monotonic());
        // On the heap: every request has room for what waits here, and nearly none waits.
        match Box::pin(self.fetch()).await {
            Ok(keys) => {
                let at = tried;
                let loaded = Arc::new(Loaded { keys, at, tried });
                self.loaded.store(loaded.clone());
                Ok(loaded)
            }
            Err(error) => {
                self.loaded.store(Arc::new(Loaded {
                    keys: before.keys.clone(),
                    at: before.at,
                    tried,
                }));
                Err(error)
            }
        }
    }

    async fn fetch(&self) -> Result<Vec<Arc<PublicKey>>, Unfetched> {
        let bytes = match &self.source {
            JwksSource::Url(url) => fetch_url(url).await?,
            JwksSource::Discovered { issuer } => {
                fetch_url(&discovery::fetch(issuer).await?.jwks_uri).await?
            }
            JwksSource::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read_file(&path)).await;
                read.unwrap_or_else(|error| Err(Unfetched::File(error.into())))?
            }
        };
        parse(&bytes)
    }
}

fn fitting(loaded: &Loaded, id: Option<&str>, algorithm: Algorithm) -> Vec<Arc<PublicKey>> {
    let fits = |key: &&Arc<PublicKey>| {
        let is_named = id.is_none() || key.id.as_deref() == id;
        is_named && key.algorithms.contains(&algorithm)
    };
    loaded.keys.iter().filter(fits).cloned().collect()
}

/// Returns the HTTP client. It is created for the first issuer that has a URL, because reading the machine's
/// certificates takes a while.
pub(super) fn client() -> Result<&'static reqwest::Client, Unfetched> {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();

    if let Some(client) = CLIENT.get() {
        return Ok(client);
    }
    let client = reqwest::Client::builder()
        .timeout(FETCH_TIMEOUT)
        // Only the policy says where the keys are.
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(Unfetched::Http)?;
    Ok(CLIENT.get_or_init(|| client))
}

/// Fetches a short document.
pub(super) async fn fetch_url(url: &str) -> Result<Vec<u8>, Unfetched> {
    let mut answer = client()?.get(url).send().await.map_err(Unfetched::Http)?;
    if !answer.status().is_success() {
        return Err(Unfetched::Status(answer.status().as_u16()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(Unfetched::Http)? {
        if bytes.len() + chunk.len() > SET_BYTES_MAX {
            return Err(Unfetched::TooLarge);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn read_file(path: &Path) -> Result<Vec<u8>, Unfetched> {
    let file = regular_file::open(path).map_err(Unfetched::File)?;
    let mut bytes = Vec::new();
    // One byte more than the limit, so that a longer file is told from one that just fits.
    let read = file.take(SET_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
    read.map_err(Unfetched::File)?;
    if bytes.len() > SET_BYTES_MAX {
        return Err(Unfetched::TooLarge);
    }
    Ok(bytes)
}

/// Parses the keys of a set that sign tokens with a supported algorithm. Others are skipped: a set may hold
/// keys for other purposes and of unknown kinds.
fn parse(bytes: &[u8]) -> Result<Vec<Arc<PublicKey>>, Unfetched> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Value>,
    }
    let set: Set = serde_json::from_slice(bytes).map_err(Unfetched::NoSet)?;
    let keys = set.keys.into_iter().take(KEYS_MAX);
    let keys = keys.filter_map(|key| public_key(&serde_json::from_value(key).ok()?));
    Ok(keys.map(Arc::new).collect())
}

fn public_key(jwk: &Jwk) -> Option<PublicKey> {
    if !matches!(
        jwk.common.public_key_use,
        None | Some(PublicKeyUse::Signature)
    ) {
        return None;
    }
    let mut algorithms = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => vec![Algorithm::RS256, Algorithm::PS256],
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            vec![Algorithm::ES256]
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            vec![Algorithm::EdDSA]
        }
        // This includes shared secrets: a party that can verify with one can also sign with it.
        _ => return None,
    };
    if let Some(declared) = jwk.common.key_algorithm {
        let declared = match declared {
            KeyAlgorithm::RS256 => Algorithm::RS256,
            KeyAlgorithm::PS256 => Algorithm::PS256,
            KeyAlgorithm::ES256 => Algorithm::ES256,
            KeyAlgorithm::EdDSA => Algorithm::EdDSA,
            _ => return None,
        };
        algorithms.retain(|algorithm| *algorithm == declared);
    }
    Some(PublicKey {
        id: jwk.common.key_id.clone(),
        algorithms,
        key: DecodingKey::from_jwk(jwk).ok()?,
    })
}
