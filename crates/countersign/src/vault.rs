//! The users' data keys, unwrapped: everything personal is sealed under one of them.
//!
//! A key is made with a user's first call, stored wrapped, and cached here for a few minutes. Without it nothing of the
//! user can be read; destroying it erases the user.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign_contract::{RecordKind, Retention};
use countersign_evidence::seal::{Kms, KmsError, LeafKey, MasterKey, UserKey};
use serde_json::json;
use tokio::sync::RwLock;

use crate::clock::Clock;
use crate::ids::IdSource;
use crate::ledger::{Durability, Error, Store, WrappedKey};
use crate::scribe::{Act, Draft};
use crate::unavailable::Unavailable;

/// A cache of users' keys.
pub struct Vault {
    masters: RwLock<Masters>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    cache: Arc<Mutex<HashMap<String, Cached>>>,
}

/// The master keys.
struct Masters {
    current: Arc<dyn Kms>,
    /// The previous master key, as long as a user's key may still be wrapped by it.
    former: Option<Arc<dyn Kms>>,
}

struct Cached {
    key: Arc<UserKey>,
    /// End of the cache entry, in the clock's monotonic time.
    until: Duration,
}

/// TTL of a cached key. An erasure by another process is noticed no later than this, and with the first write under the
/// key: the store accepts nothing of a user under a key that is no longer theirs.
const CACHED_FOR: Duration = Duration::from_mins(5);

/// Maximum number of cached keys.
const CACHED_MAX: usize = 10_000;

/// User id of the key that seals data without a user.
pub const SHARED: &str = "";

impl Vault {
    /// Keys from this store, wrapped by this master key.
    pub fn new(
        store: Arc<dyn Store>,
        kms: Arc<dyn Kms>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        let masters = Masters {
            current: kms,
            former: None,
        };
        let cache: Arc<Mutex<HashMap<String, Cached>>> = Arc::default();
        let held = Arc::downgrade(&cache);
        store.on_lost_key(Arc::new(move |user_id| {
            if let Some(held) = held.upgrade() {
                locked(&held).remove(user_id);
            }
        }));
        Self {
            masters: RwLock::new(masters),
            store,
            clock,
            ids,
            cache,
        }
    }

    /// A new master key that is not stored: sealed data is readable only as long as this process lives.
    pub(crate) fn ephemeral_master(ids: &dyn IdSource) -> Arc<dyn Kms> {
        let mut bytes = [0; 32];
        ids.fill(&mut bytes);
        Arc::new(MasterKey::from_bytes(&bytes))
    }

    /// The key of a user; made and stored, durably, if there is none.
    pub async fn key(&self, user_id: &str) -> Result<Arc<UserKey>, Error> {
        if let Some(key) = self.cached(user_id) {
            return Ok(key);
        }
        let wrapped = match self.store.user_key(user_id).await? {
            Some(wrapped) => wrapped,
            None => self.make(user_id).await?,
        };
        self.unwrap(user_id, &wrapped).await
    }

    /// Gives the store the key that authenticates records that are not signed yet. Answers the number of records that an
    /// earlier version left without a code.
    pub async fn authenticate_records(&self) -> Result<usize, Error> {
        let shared = self.key(SHARED).await?;
        let adopted = self.store.authenticate(LeafKey::of(&shared)).await?;
        if adopted > 0 {
            tracing::warn!(
                adopted,
                "records of an earlier version were not signed yet; they are accepted as they are"
            );
            let act = Act {
                kind: RecordKind::Config,
                at: self.clock.now(),
                user_id: String::new(),
                actor: None,
                about: json!({"event": "records_adopted", "count": adopted}),
                retention: Retention::Standard,
            };
            let draft = Draft::from(act.entry(self.ids.snapshot_id(), None));
            self.store.append(draft, Durability::Committed).await?;
        }
        Ok(adopted)
    }

    /// The key of a user; `None` if the user has none.
    pub async fn existing_key(&self, user_id: &str) -> Result<Option<Arc<UserKey>>, Error> {
        // What the cache holds may have been destroyed by another process.
        match self.store.user_key(user_id).await? {
            Some(wrapped) => self.unwrap(user_id, &wrapped).await.map(Some),
            None => Ok(None),
        }
    }

    /// The key of a user, from the cache if it is there; `None` if the user has none. For data that was read from the
    /// store a moment ago: another key than the one that sealed it does not open it.
    pub(crate) async fn known_key(&self, user_id: &str) -> Result<Option<Arc<UserKey>>, Error> {
        match self.cached(user_id) {
            Some(key) => Ok(Some(key)),
            None => self.existing_key(user_id).await,
        }
    }

    /// The key in these bytes, from the cache if it is there.
    pub(crate) async fn opened(
        &self,
        user_id: &str,
        wrapped: &WrappedKey,
    ) -> Result<Arc<UserKey>, Error> {
        match self
            .cached(user_id)
            .filter(|key| wrapped.id == Some(key.id()))
        {
            Some(key) => Ok(key),
            None => self.unwrap(user_id, wrapped).await,
        }
    }

    /// Also reads keys that this master key wraps: those that a rotation has not come to yet.
    pub fn also_reading(mut self, former: Arc<dyn Kms>) -> Self {
        self.masters.get_mut().former = Some(former);
        self
    }

    /// Wraps with another master key from now on. Keys under the previous one are still read, until
    /// [`forget_former`](Self::forget_former). When this returns, nothing is being wrapped by the previous one any
    /// more.
    pub async fn change_master(&self, kms: Arc<dyn Kms>) {
        let mut masters = self.masters.write().await;
        let former = std::mem::replace(&mut masters.current, kms);
        masters.former = Some(former);
    }

    /// Stops reading keys under the previous master key. To be called when there are none.
    pub async fn forget_former(&self) {
        self.masters.write().await.former = None;
    }

    /// Wraps every key that another master key wraps with ours; answers their number. `old` is the master key that
    /// wraps them now.
    pub async fn rewrap_all(
        &self,
        old: &dyn Kms,
        mut progress: impl FnMut(usize),
    ) -> Result<usize, Error> {
        let mut done = 0;
        loop {
            let master = self.masters.read().await.current.clone();
            let batch = self.store.user_keys_not_under(master.id(), 256).await?;
            if batch.is_empty() {
                return Ok(done);
            }
            for (user_id, wrapped) in batch {
                let key = old
                    .unwrap(&wrapped.bytes, context(&user_id).as_slice())
                    .await;
                let key = key.map_err(|error| kms_failed(&error))?;
                let new = self.wrap(&*master, &user_id, &key).await?;
                self.store.rewrap(&user_id, &wrapped, new).await?;
                done += 1;
            }
            progress(done);
        }
    }

    /// True if two wrapped keys are the same key of a user. Each is wrapped by our master key or by the previous one; a
    /// key that neither opens is unknown.
    pub async fn is_same_key(
        &self,
        user_id: &str,
        one: &WrappedKey,
        other: &WrappedKey,
        before: Option<&dyn Kms>,
    ) -> bool {
        if one == other {
            return true;
        }
        let context = context(user_id);
        let ours = self.masters.read().await.current.clone();
        let mut secrets = Vec::new();
        for wrapped in [one, other] {
            let before = before.filter(|before| before.id() == wrapped.master);
            let kms = before.unwrap_or(&*ours);
            let Ok(key) = kms.unwrap(&wrapped.bytes, &context).await else {
                return false;
            };
            secrets.push(key);
        }
        match secrets.as_slice() {
            [one, other] => one.secret_bytes() == other.secret_bytes(),
            _ => false,
        }
    }

    /// Drops a cached key at once.
    pub fn forget(&self, user_id: &str) {
        self.cache().remove(user_id);
    }

    fn cached(&self, user_id: &str) -> Option<Arc<UserKey>> {
        let now = self.clock.monotonic();
        let cache = self.cache();
        let cached = cache.get(user_id).filter(|cached| now < cached.until)?;
        Some(cached.key.clone())
    }

    async fn make(&self, user_id: &str) -> Result<WrappedKey, Error> {
        let mut bytes = [0; 32];
        self.ids.fill(&mut bytes);
        // Held until the key is kept: a rotation that has begun by then sees it, and one that begins later waits.
        let masters = self.masters.read().await;
        let key = UserKey::from_bytes(&bytes);
        let wrapped = self.wrap(&*masters.current, user_id, &key).await?;
        self.store.add_user_key(user_id, wrapped).await
    }

    async fn wrap(
        &self,
        master: &dyn Kms,
        user_id: &str,
        key: &UserKey,
    ) -> Result<WrappedKey, Error> {
        let mut nonce = [0; 12];
        self.ids.fill(&mut nonce);
        let wrapped = master.wrap(key, nonce, &context(user_id)).await;
        Ok(WrappedKey {
            id: Some(key.id()),
            master: master.id().to_owned(),
            bytes: wrapped.map_err(|error| kms_failed(&error))?,
        })
    }

    async fn unwrap(&self, user_id: &str, wrapped: &WrappedKey) -> Result<Arc<UserKey>, Error> {
        let master = self.master_of(wrapped).await?;
        let key = master.unwrap(&wrapped.bytes, &context(user_id)).await;
        let key = Arc::new(key.map_err(|error| kms_failed(&error))?);
        let until = self.clock.monotonic().saturating_add(CACHED_FOR);
        let mut cache = self.cache();
        if cache.len() >= CACHED_MAX {
            cache.clear();
        }
        let cached = Cached {
            key: key.clone(),
            until,
        };
        cache.insert(user_id.to_owned(), cached);
        Ok(key)
    }

    /// The master key that wraps a key.
    async fn master_of(&self, wrapped: &WrappedKey) -> Result<Arc<dyn Kms>, Error> {
        let masters = self.masters.read().await;
        let known = [Some(&masters.current), masters.former.as_ref()];
        let mut known = known.into_iter().flatten();
        let master = known.find(|master| master.id() == wrapped.master);
        master.cloned().ok_or_else(|| {
            let source = WrongMaster {
                wrapped_by: wrapped.master.clone(),
                ours: masters.current.id().to_owned(),
            };
            Unavailable::new("master key", source).into()
        })
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<String, Cached>> {
        locked(&self.cache)
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.masters.try_read() {
            Ok(masters) => write!(f, "Vault(master {})", masters.current.id()),
            Err(_) => f.write_str("Vault"),
        }
    }
}

fn locked(cache: &Mutex<HashMap<String, Cached>>) -> MutexGuard<'_, HashMap<String, Cached>> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error for a key that another master key wraps.
#[derive(Debug, thiserror::Error)]
#[error(
    "the key was wrapped by the master key {wrapped_by}, the one in use is {ours}; use that one, or \
     wrap the keys again with `countersign keys rotate-master`"
)]
struct WrongMaster {
    wrapped_by: String,
    ours: String,
}

/// Additional data of the wrapping, so that one user's key cannot be passed off as another's.
fn context(user_id: &str) -> Vec<u8> {
    [b"user", user_id.as_bytes()].join(&0)
}

fn kms_failed(error: &KmsError) -> Error {
    Unavailable::new("master key", error.to_string()).into()
}
