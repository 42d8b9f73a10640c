//! The API keys of an installation.
//!
//! Requests are checked against a copy in memory, so that a check costs a hash and a look-up. The copy is never
//! older than five seconds: a key that another process revokes is refused after five seconds at the latest, and
//! at once by the process that revokes it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use countersign::archive::Belongings;
use countersign::believed::BelievedTime;
use countersign::clock::Clock;
use countersign::contract::{Actor, ActorType};
use countersign::denials::{Denial, Denials};
use countersign::ids::IdSource;
use countersign::ledger::{self, DocumentKey, Store};
use countersign::realm::Realm;
use countersign::vault::Vault;
use countersign::{BoxFuture, Credential, Principal};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::api_key::{
    ApiKey, IssuedKey, KeyState, NewKey, digest_of, draw_id, draw_token, is_same, split,
};
use super::key_store::{Held, KEYS_MAX, KeyRecord, KeyStore, Keys, Write, document_key};
use super::keys_error::KeysError;
use crate::recorder::Recorder;

/// Scope for creating, listing, changing and revoking keys: its holder can create a key for everything.
pub const SCOPE_KEYS: &str = "keys:manage";

/// Age from which the copy is renewed in the background.
const RENEW_AFTER: Duration = Duration::from_secs(2);

/// Age from which the copy is no longer used to accept a key.
const STALE_AFTER: Duration = Duration::from_secs(5);

/// Minimum interval between reads of the store for keys that are not in the copy.
const UNKNOWN_AFTER: Duration = Duration::from_secs(1);

/// Time for which an ended key is listed.
const FORGET_AFTER: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Maximum number of ended keys that are deleted with each new one.
const FORGET_MAX: usize = 16;

/// Maximum attempts of a change under contention.
const TRIES: usize = 5;

/// Checks, creates and revokes keys. Clones share everything.
#[derive(Clone)]
pub struct ApiKeys {
    inner: Arc<Inner>,
}

struct Inner {
    keys: KeyStore,
    denials: Denials,
    clock: Arc<dyn Clock>,
    /// The time by which keys end.
    believed: BelievedTime,
    copy: ArcSwap<Copy>,
    /// Held while the copy is renewed.
    renewing: tokio::sync::Mutex<()>,
}

/// Copy of the stored keys.
struct Copy {
    keys: Keys,
    /// True if the store says that credentials are required.
    is_flagged: bool,
    /// Monotonic time at which it was read; `None` before the first time.
    at: Option<Duration>,
}

impl ApiKeys {
    /// Creates the view of the keys in a store.
    pub fn new(
        store: Arc<dyn Store>,
        vault: Arc<Vault>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        let recorder = Recorder::new(store.clone(), clock.clone(), ids.clone());
        let denials = Denials::new(store.clone(), vault.clone(), clock.clone(), ids.clone());
        let believed = BelievedTime::new(store.clone(), clock.clone());
        let keys = KeyStore {
            store,
            vault,
            ids,
            recorder,
        };
        let copy = Copy {
            keys: HashMap::new(),
            is_flagged: false,
            at: None,
        };
        Self {
            inner: Arc::new(Inner {
                keys,
                denials,
                clock,
                believed,
                copy: ArcSwap::from_pointee(copy),
                renewing: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// Returns the principal that a key proves; `None` if it is not a key of this installation, was changed, or
    /// has ended.
    pub async fn verify(&self, token: &str) -> Result<Option<Arc<Principal>>, ledger::Error> {
        let Some((id, secret)) = split(token) else {
            return Ok(None);
        };
        let copy = self.fresh(STALE_AFTER).await?;
        let held = match copy.keys.get(id) {
            Some(held) => Some(held.clone()),
            // It may be newer than the copy. Guessing ids causes at most one read a second.
            None => self.fresh(UNKNOWN_AFTER).await?.keys.get(id).cloned(),
        };
        let digest = digest_of(id, secret);
        let now = self.inner.believed.now().await?;
        let proved = held.filter(|held| {
            let state = held.key.state_at(now);
            is_same(&held.digest, &digest) && state == KeyState::Active
        });
        Ok(proved.map(|held| held.principal.clone()))
    }

    /// The label of a key, as the copy in memory has it.
    pub(crate) fn label(&self, id: &str) -> Option<String> {
        let copy = self.inner.copy.load();
        copy.keys.get(id).map(|held| held.key.label.clone())
    }

    /// True if there was ever a key: an installation that has created one requires credentials, even after the
    /// key's holder was erased.
    pub async fn are_used(&self) -> Result<bool, ledger::Error> {
        let copy = self.fresh(STALE_AFTER).await?;
        Ok(copy.is_flagged || !copy.keys.is_empty())
    }

    /// Stores permanently that credentials are required: for a server whose policy names an issuer.
    pub async fn require_credentials(&self, by: &Actor) -> Result<(), KeysError> {
        if self.inner.copy.load().is_flagged {
            return Ok(());
        }
        for _ in 0..TRIES {
            if self.fresh(Duration::ZERO).await?.is_flagged {
                return Ok(());
            }
            let about = json!({"event": "credentials_required"});
            let record = KeyRecord::of_nobody(by, about);
            if self.write(&[], record).await? {
                return Ok(());
            }
        }
        Err(KeysError::Busy)
    }

    /// True if there is an active key.
    pub async fn has_active(&self) -> Result<bool, ledger::Error> {
        let now = self.inner.believed.now().await?;
        let copy = self.fresh(Duration::ZERO).await?;
        let mut keys = copy.keys.values();
        Ok(keys.any(|held| held.key.state_at(now) == KeyState::Active))
    }

    /// Returns the number of active keys, and of ended keys that are still listed. It is read from the copy in
    /// memory.
    pub async fn counts(&self) -> Result<(usize, usize), ledger::Error> {
        let now = self.inner.believed.now().await?;
        let copy = self.fresh(STALE_AFTER).await?;
        let is_active = |held: &&Arc<Held>| held.key.state_at(now) == KeyState::Active;
        let active = copy.keys.values().filter(is_active).count();
        Ok((active, copy.keys.len() - active))
    }

    /// Lists the keys of the caller's realm, oldest first.
    pub async fn list(&self, by: &Principal) -> Result<Vec<ApiKey>, KeysError> {
        self.needs(by, "key_list").await?;
        let copy = self.fresh(Duration::ZERO).await?;
        let keys = copy.keys.values().map(|held| held.key.clone());
        let mut keys: Vec<ApiKey> = keys.filter(|key| is_of_realm(key, by)).collect();
        keys.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(keys)
    }

    /// Returns the state of a key now.
    pub fn state_of(&self, key: &ApiKey) -> KeyState {
        key.state_at(self.inner.believed.latest())
    }

    /// Returns the keys that ended long ago; none while the clock disagrees with the time that was believed.
    async fn forgettable(&self, copy: &Copy, now: Timestamp) -> Result<Vec<Arc<Held>>, KeysError> {
        let is_old = |held: &&Arc<Held>| {
            let end = held.key.revoked_at.or(held.key.expires_at);
            end.is_some_and(|end| now.duration_since(end) > FORGET_AFTER)
        };
        let old = copy.keys.values().filter(is_old).take(FORGET_MAX);
        let old: Vec<Arc<Held>> = old.cloned().collect();
        if old.is_empty() {
            return Ok(old);
        }
        let passage = self.inner.keys.store.vitals().await?.passage;
        let has_jumped = passage.is_some_and(|passage| passage.jump().is_some());
        Ok(if has_jumped { Vec::new() } else { old })
    }

    /// Creates a key. Its record is durable when this returns.
    pub async fn create(&self, new: NewKey, by: &Principal) -> Result<IssuedKey, KeysError> {
        self.needs(by, "key_create").await?;
        for _ in 0..TRIES {
            let copy = self.fresh(Duration::ZERO).await?;
            let now = self.inner.clock.now();
            let dead = self.forgettable(&copy, now).await?;
            if copy.keys.len() >= KEYS_MAX + dead.len() {
                return Err(KeysError::Full { limit: KEYS_MAX });
            }
            let id = draw_id(&*self.inner.keys.ids);
            let key = new.clone().checked(id, now)?;
            let bounds = within(&key, by).and_then(|()| ends_in_time(&key, by, &copy));
            if let Err(error) = bounds {
                self.deny(Denial::new("key_create", by, "beyond_maker"))
                    .await;
                return Err(error);
            }
            let (token, digest) = draw_token(&key.id, &*self.inner.keys.ids);
            let mut writes = vec![fresh_write(&key, &digest)];
            writes.extend(dead.iter().map(|held| forget(held)));
            let forgotten: Vec<&str> = dead.iter().map(|held| held.key.id.as_str()).collect();
            let more = if forgotten.is_empty() {
                Value::Null
            } else {
                json!({ "forgotten": forgotten })
            };
            let record = self.record("api_key_created", &key, &by.actor, more);
            if self.write(&writes, record.await?).await? {
                return Ok(IssuedKey { key, token });
            }
        }
        Err(KeysError::Busy)
    }

    /// Creates a key that replaces another, which ends after `grace`. The new key ends no later than the key
    /// that it is created with: a key cannot prolong itself.
    pub async fn rotate(
        &self,
        id: &str,
        grace: Duration,
        by: &Principal,
    ) -> Result<IssuedKey, KeysError> {
        self.needs(by, "key_rotate").await?;
        for _ in 0..TRIES {
            let held = self.held(id, by, "key_rotate").await?;
            let now = self.inner.believed.now().await?;
            if held.key.state_at(now) != KeyState::Active {
                return Err(KeysError::Ended { id: id.to_owned() });
            }
            if let Err(error) = within(&held.key, by) {
                let denial = Denial::new("key_rotate", by, "beyond_maker");
                self.deny(denial.about(id)).await;
                return Err(error);
            }
            let mut key = successor(&held.key, draw_id(&*self.inner.keys.ids), now);
            if let Some(end) = end_of_maker(by, &self.inner.copy.load()) {
                key.expires_at = Some(key.expires_at.map_or(end, |own| own.min(end)));
            }
            let (token, digest) = draw_token(&key.id, &*self.inner.keys.ids);
            let mut old = held.key.clone();
            if grace.is_zero() {
                old.revoked_at = Some(now);
            } else {
                let end = later(now, grace);
                old.expires_at = Some(old.expires_at.map_or(end, |own| own.min(end)));
            }
            let writes = [
                fresh_write(&key, &digest),
                Write {
                    id,
                    version: held.version,
                    key: Some((&old, &held.digest)),
                },
            ];
            let from = json!({"from": id, "grace_seconds": grace.as_secs()});
            let record = self.record("api_key_rotated", &key, &by.actor, from);
            if self.write(&writes, record.await?).await? {
                return Ok(IssuedKey { key, token });
            }
        }
        Err(KeysError::Busy)
    }

    /// Revokes a key. A key that has ended stays as it is.
    pub async fn revoke(&self, id: &str, by: &Principal) -> Result<ApiKey, KeysError> {
        self.needs(by, "key_revoke").await?;
        for _ in 0..TRIES {
            let held = self.held(id, by, "key_revoke").await?;
            let mut key = held.key.clone();
            if key.revoked_at.is_some() {
                return Ok(key);
            }
            key.revoked_at = Some(self.inner.clock.now());
            let write = Write {
                id,
                version: held.version,
                key: Some((&key, &held.digest)),
            };
            let record = self.record("api_key_revoked", &key, &by.actor, Value::Null);
            if self.write(&[write], record.await?).await? {
                return Ok(key);
            }
        }
        Err(KeysError::Busy)
    }

    /// Returns the counter of denied operations on keys.
    pub fn denials(&self) -> &Denials {
        &self.inner.denials
    }

    /// Returns a key that the caller may know of. A denial is recorded in the same way whether or not the key
    /// exists.
    async fn held(
        &self,
        id: &str,
        by: &Principal,
        event: &'static str,
    ) -> Result<Arc<Held>, KeysError> {
        let copy = self.fresh(Duration::ZERO).await?;
        match copy.keys.get(id) {
            Some(held) if is_of_realm(&held.key, by) => return Ok(held.clone()),
            Some(_) => {
                self.deny(Denial::new(event, by, "not_theirs").about(id))
                    .await;
            }
            None if by.realm != Realm::Any => self.deny(Denial::new(event, by, "no_key")).await,
            // A caller that may know of every key was denied nothing.
            None => {}
        }
        Err(KeysError::NoKey { id: id.to_owned() })
    }

    async fn needs(&self, by: &Principal, event: &'static str) -> Result<(), KeysError> {
        if by.holds(SCOPE_KEYS) {
            return Ok(());
        }
        self.deny(Denial::new(event, by, "missing_scope")).await;
        Err(KeysError::MissingScope { scope: SCOPE_KEYS })
    }

    async fn deny(&self, denial: Denial) {
        self.inner.denials.note(denial).await;
    }

    async fn record(
        &self,
        event: &str,
        key: &ApiKey,
        by: &Actor,
        more: Value,
    ) -> Result<KeyRecord, KeysError> {
        self.inner.keys.record(event, key, by, more).await
    }

    /// Writes, and reads the keys back, so that the change takes effect here at once.
    async fn write(&self, writes: &[Write<'_>], record: KeyRecord) -> Result<bool, KeysError> {
        let is_flagged = self.inner.copy.load().is_flagged;
        let is_written = self.inner.keys.write(writes, record, is_flagged).await?;
        self.fresh(Duration::ZERO).await?;
        Ok(is_written)
    }

    /// Returns a copy that is younger than this.
    async fn fresh(&self, age_max: Duration) -> Result<Arc<Copy>, ledger::Error> {
        let copy = self.inner.copy.load_full();
        let asked = self.inner.clock.monotonic();
        let age = copy.at.map(|at| asked.saturating_sub(at));
        match age {
            Some(age) if age < age_max => {
                if age >= RENEW_AFTER {
                    self.renew_aside();
                }
                Ok(copy)
            }
            Some(_) | None => {
                let guard = self.inner.renewing.lock().await;
                let copy = self.inner.copy.load_full();
                // Another task may have read it while this one waited for the lock.
                if copy.at.is_some_and(|at| at > asked) {
                    return Ok(copy);
                }
                // On the heap, because nearly no request gets here.
                let copy = Box::pin(self.inner.renew()).await;
                drop(guard);
                copy
            }
        }
    }

    /// Renews the copy in the background, unless another task does.
    fn renew_aside(&self) {
        let inner = self.inner.clone();
        tokio::spawn(async move {
            if let Ok(_guard) = inner.renewing.try_lock()
                && let Err(error) = inner.renew().await
            {
                tracing::warn!(%error, "the API keys could not be reloaded from the store; the earlier ones stay in use");
            }
        });
    }
}

/// Maximum age of the copy of the keys that the log is compared with.
const COMPARED_MAX: Duration = Duration::from_secs(1);

/// The keys of a user are erased in the same commit as the user.
impl Belongings for ApiKeys {
    fn name(&self) -> &'static str {
        "api_keys"
    }

    fn of_user<'a>(
        &'a self,
        user_id: &'a str,
    ) -> BoxFuture<'a, Result<Vec<DocumentKey>, ledger::Error>> {
        Box::pin(async move {
            let copy = self.fresh(Duration::ZERO).await?;
            let held = copy.keys.values();
            let theirs = held.filter(|held| held.key.user_id.as_deref() == Some(user_id));
            let mut keys: Vec<_> = theirs.map(|held| document_key(&held.key.id)).collect();
            keys.sort_by(|a, b| a.id.cmp(&b.id));
            Ok(keys)
        })
    }

    fn contradicts<'a>(&'a self, act: &'a Value) -> BoxFuture<'a, Result<bool, ledger::Error>> {
        let text = |name| act.get(name).and_then(Value::as_str);
        let revoked = text("key").filter(|_| text("event") == Some("api_key_revoked"));
        Box::pin(async move {
            let Some(id) = revoked else {
                return Ok(false);
            };
            let copy = self.fresh(COMPARED_MAX).await?;
            let held = copy.keys.get(id);
            Ok(held.is_some_and(|held| held.key.revoked_at.is_none()))
        })
    }

    fn are_gone(&self) -> BoxFuture<'_, Result<(), ledger::Error>> {
        Box::pin(async move { self.fresh(Duration::ZERO).await.map(drop) })
    }
}

impl Inner {
    async fn renew(&self) -> Result<Arc<Copy>, ledger::Error> {
        // The time before the read: writes meanwhile may be missing in the copy.
        let at = self.clock.monotonic();
        let before = self.copy.load_full();
        // The flag is never removed, so it is read only until it is found.
        let is_flagged = before.is_flagged || self.keys.credentials_required().await?;
        let keys = self.keys.load(&before.keys).await?;
        let copy = Arc::new(Copy {
            keys,
            is_flagged,
            at: Some(at),
        });
        self.copy.store(copy.clone());
        Ok(copy)
    }
}

impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKeys({} keys)", self.inner.copy.load().keys.len())
    }
}

/// Refuses a key that has more rights than its creator. The operator, whose right is the data folder itself, is
/// not limited.
fn within(key: &ApiKey, by: &Principal) -> Result<(), KeysError> {
    if by.credential.is_none() {
        return Ok(());
    }
    let beyond = |field, form| Err(KeysError::Beyond { field, form });
    // A key belongs to no realm: it may name every user, and a program that acts for no user has a name of its
    // own.
    let is_unbounded = by.may_act_for_others && by.realm == Realm::Any;
    if key.acts_for_others && !is_unbounded {
        return beyond("/acts_for_others", "false");
    }
    let is_their_user = match &key.user_id {
        Some(user_id) => *user_id == by.user_id || by.may_act_for_others && by.realm.has(user_id),
        None => is_unbounded,
    };
    if !is_their_user {
        return beyond("/user_id", "the user of the credential");
    }
    let is_their_kind = match key.actor.kind {
        ActorType::User | ActorType::Agent => true,
        ActorType::System => by.actor.kind == ActorType::System,
    };
    if !is_their_kind || !by.realm.has(&key.actor.id) {
        return beyond(
            "/actor",
            "the user of the credential, or an agent of the same realm",
        );
    }
    if !key.scopes.iter().all(|scope| by.holds(scope)) {
        return beyond("/scopes", "some of those of the credential");
    }
    if !key.effects.unwrap_or_default().is_within(by.effects) {
        return beyond("/effects", "some of those of the credential");
    }
    Ok(())
}

/// True if the caller may know of a key: it belongs to their realm. A key that acts for others belongs to none.
fn is_of_realm(key: &ApiKey, by: &Principal) -> bool {
    let is_for_everybody = key.acts_for_others && by.realm != Realm::Any;
    by.realm
        .has(key.user_id.as_deref().unwrap_or(&key.actor.id))
        && !is_for_everybody
}

/// Returns the expiry of the key that the caller uses.
fn end_of_maker(by: &Principal, copy: &Copy) -> Option<Timestamp> {
    let maker = match &by.credential {
        Some(Credential::ApiKey { id }) => copy.keys.get(id),
        Some(Credential::Token { .. }) | None => None,
    };
    maker.and_then(|maker| maker.key.expires_at)
}

/// Refuses a key that ends later than the key that it is created with.
fn ends_in_time(key: &ApiKey, by: &Principal, copy: &Copy) -> Result<(), KeysError> {
    match end_of_maker(by, copy) {
        Some(end) if key.expires_at.is_none_or(|own| own > end) => Err(KeysError::Beyond {
            field: "/expires_at",
            form: "not later than the end of the credential",
        }),
        Some(_) | None => Ok(()),
    }
}

/// Builds the successor of a key: the same rights under a new id, for the same duration.
fn successor(old: &ApiKey, id: String, now: Timestamp) -> ApiKey {
    // If the new end would overflow, the old end stays: a key that expires never becomes one that does not.
    let end_of = |end: Timestamp| {
        let later = now.checked_add(end.duration_since(old.created_at));
        later.unwrap_or(end)
    };
    ApiKey {
        rotated_from: Some(old.id.clone()),
        id,
        created_at: now,
        expires_at: old.expires_at.map(end_of),
        ..old.clone()
    }
}

fn fresh_write<'a>(key: &'a ApiKey, digest: &'a [u8; 32]) -> Write<'a> {
    Write {
        id: &key.id,
        version: 0,
        key: Some((key, digest)),
    }
}

fn forget(held: &Held) -> Write<'_> {
    Write {
        id: &held.key.id,
        version: held.version,
        key: None,
    }
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}
