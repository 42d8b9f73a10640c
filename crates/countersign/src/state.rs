//! A call's unit of work: the tool's state, read and written as if the call were alone.
//!
//! Reads are remembered with their versions, writes are buffered. When the tool has answered, both are committed
//! together with the call's key, its record and its reply, or not at all. If a document that was read has changed
//! meanwhile, the tool is run again, with the new state. A dry run commits nothing. So a tool that keeps its state here
//! has its effect exactly once, and needs no code for repeats, races and crashes.
//!
//! Bodies are sealed under the key of the user they belong to, index entries are digests under it: the store sees
//! neither. The store does see ids and collection names, so they must not be personal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign_contract::{ErrorBody, ErrorCode, FaultSource};
use countersign_evidence::seal::UserKey;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::clock::Clock;
use crate::ids::IdSource;
use crate::ledger::{self, DocumentKey, FoundDocument, MemoryStore, Store};
use crate::text::TextReader;
use crate::tool::ToolError;
use crate::vault::{SHARED, Vault};
use crate::words::Say;

mod collection;
pub mod document;
mod linked;
mod unit;

pub use collection::{Collection, Owner};
pub use linked::{Linked, Stale};
pub(crate) use unit::Changes;
use unit::{Buffered, Unit};

/// The tool's state. Found in [`CallContext::state`](crate::CallContext::state).
///
/// # Example
///
/// ```
/// use countersign::state::Collection;
/// use countersign::{CallContext, Principal};
///
/// const CARTS: Collection = Collection::of_user("cart").indexed(&[("status", "/status")]);
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let ctx = CallContext::standalone(&Principal::user("u_1"), "{}");
/// let state = ctx.state();
/// let cart = serde_json::json!({"status": "open", "items": []});
/// state.put(&CARTS, "c_1", &cart).await?;
/// assert_eq!(state.get(&CARTS, "c_1").await?, Some(cart.clone()));
/// assert_eq!(state.find(&CARTS, "status", "open", 10).await?, [("c_1".to_owned(), cart)]);
/// # Ok::<(), countersign::ToolError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct State {
    store: Arc<dyn Store>,
    vault: Arc<Vault>,
    ids: Arc<dyn IdSource>,
    user_id: String,
    keys: Arc<UserKey>,
    /// True if the tool has declared that it changes something.
    may_write: bool,
    unit: Mutex<Unit>,
}

/// Maximum size of a document, as JSON.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

/// Maximum number of documents that one call may write.
pub const WRITES_MAX: usize = 256;

/// Maximum number of documents that one call may read.
pub const READS_MAX: usize = 4_096;

/// Maximum length of a document id.
pub const ID_BYTES_MAX: usize = 255;

impl State {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        vault: Arc<Vault>,
        ids: Arc<dyn IdSource>,
        user_id: String,
        keys: Arc<UserKey>,
        may_write: bool,
    ) -> Self {
        Self {
            store,
            vault,
            ids,
            user_id,
            keys,
            may_write,
            unit: Mutex::default(),
        }
    }

    /// State outside any executor, in memory.
    pub(crate) fn standalone(user_id: &str, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock.clone()));
        let mut secret = [0; 32];
        ids.fill(&mut secret);
        let master = Vault::ephemeral_master(&*ids);
        let vault = Arc::new(Vault::new(store.clone(), master, clock, ids.clone()));
        let keys = Arc::new(UserKey::from_bytes(&secret));
        Self::new(store, vault, ids, user_id.to_owned(), keys, true)
    }

    /// The document of this id, with this call's own writes; `None` if there is none.
    pub async fn get<T: DeserializeOwned>(
        &self,
        collection: &Collection,
        id: &str,
    ) -> Result<Option<T>, ToolError> {
        let key = self.key(collection, id)?;
        if let Some(buffered) = self.unit().buffered(&key) {
            return buffered.value().map(read_as).transpose();
        }
        let stored = self.store.document(&key).await.map_err(store_failed)?;
        self.unit().track(key.clone(), stored.version)?;
        let Some(body) = stored.body else {
            return Ok(None);
        };
        let keys = self.keys_of(&key.user_id).await?;
        read_as(open(&keys, &key, stored.version, &body)?).map(Some)
    }

    /// Like [`get`](Self::get), for a document that the call uses and does not rest on, such as a credential: it may change while the
    /// call runs.
    pub async fn look_at<T: DeserializeOwned>(
        &self,
        collection: &Collection,
        id: &str,
    ) -> Result<Option<T>, ToolError> {
        let key = self.key(collection, id)?;
        if let Some(buffered) = self.unit().buffered(&key) {
            return buffered.value().map(read_as).transpose();
        }
        let stored = self.store.document(&key).await.map_err(store_failed)?;
        let Some(body) = stored.body else {
            return Ok(None);
        };
        let keys = self.keys_of(&key.user_id).await?;
        read_as(open(&keys, &key, stored.version, &body)?).map(Some)
    }

    /// Writes a document when the call commits.
    pub async fn put<T: Serialize>(
        &self,
        collection: &Collection,
        id: &str,
        value: &T,
    ) -> Result<(), ToolError> {
        let value = serde_json::to_value(value).map_err(ToolError::unwritable_output)?;
        self.buffer(collection, id, Some(value)).await
    }

    /// Deletes a document when the call commits; does nothing if there is none.
    pub async fn delete(&self, collection: &Collection, id: &str) -> Result<(), ToolError> {
        self.buffer(collection, id, None).await
    }

    /// The documents whose id starts with `prefix`, by id, at most `limit`. The collection has to be
    /// declared [`scanned`](Collection::scanned) or indexed.
    pub async fn scan<T: DeserializeOwned>(
        &self,
        collection: &Collection,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<(String, T)>, ToolError> {
        check_name(collection)?;
        check_tracked(collection)?;
        let user_id = self.owner(collection);
        let wanted = self.wanted(user_id, collection, limit);
        let found = self
            .store
            .scan(user_id, collection.name(), prefix, None, wanted)
            .await
            .map_err(store_failed)?;
        self.unit()
            .track_shape(user_id, collection.name(), found.shape)?;
        let documents = self.opened(user_id, collection, found.documents).await?;
        let overlay = |id: &str, _: &Value| id.starts_with(prefix);
        self.merged(user_id, collection, documents, overlay, limit)
    }

    /// The documents whose member under a declared index has this value, by id, at most `limit`.
    pub async fn find<T: DeserializeOwned>(
        &self,
        collection: &Collection,
        index: &str,
        value: impl Into<Value>,
        limit: usize,
    ) -> Result<Vec<(String, T)>, ToolError> {
        check_name(collection)?;
        let pointer = collection.pointer_of(index).ok_or_else(|| {
            misuse(Say::NoIndex {
                collection: collection.name().to_owned(),
                index: index.to_owned(),
            })
        })?;
        let value = value.into();
        let user_id = self.owner(collection);
        let keys = self.keys_of(user_id).await?;
        let entry = collection::entry(&keys, collection, index, &value);
        let wanted = self.wanted(user_id, collection, limit);
        let found = self
            .store
            .find(user_id, collection.name(), &entry, wanted)
            .await
            .map_err(store_failed)?;
        self.unit()
            .track_shape(user_id, collection.name(), found.shape)?;
        let documents = self.opened(user_id, collection, found.documents).await?;
        // By entry, as in the store: 1 and 1.0 are one value.
        let overlay = |_: &str, document: &Value| {
            let member = document.pointer(pointer);
            member.is_some_and(|own| collection::entry(&keys, collection, index, own) == entry)
        };
        self.merged(user_id, collection, documents, overlay, limit)
    }

    pub(crate) fn texts(&self) -> TextReader<'_> {
        TextReader::new(&self.store)
    }

    /// Takes all reads and writes, sealed, and leaves the unit empty.
    pub(crate) async fn take(&self) -> Result<Changes, ToolError> {
        let unit = std::mem::take(&mut *self.unit());
        let mut changes = Changes::of(&unit);
        for (key, written) in unit.into_writes() {
            let keys = self.keys_of(&key.user_id).await?;
            changes.writes.push(written.seal(key, &keys, &*self.ids));
        }
        Ok(changes)
    }

    /// Forgets all reads and writes: the tool is run again.
    pub(crate) fn reset(&self) {
        *self.unit() = Unit::default();
    }

    async fn buffer(
        &self,
        collection: &Collection,
        id: &str,
        value: Option<Value>,
    ) -> Result<(), ToolError> {
        if !self.may_write {
            return Err(misuse(Say::ReadsOnly {
                collection: collection.name().to_owned(),
            }));
        }
        let key = self.key(collection, id)?;
        let tracked = self.unit().version(&key);
        let version = if let Some(version) = tracked {
            version
        } else {
            let stored = self.store.document(&key).await.map_err(store_failed)?;
            stored.version
        };
        let mut unit = self.unit();
        unit.track(key.clone(), version)?;
        unit.write(key, Buffered::new(collection, version, value)?)
    }

    async fn opened(
        &self,
        user_id: &str,
        collection: &Collection,
        found: Vec<FoundDocument>,
    ) -> Result<Vec<(String, Value)>, ToolError> {
        let keys = self.keys_of(user_id).await?;
        let mut unit = self.unit();
        let mut documents = Vec::with_capacity(found.len());
        for document in found {
            let key = DocumentKey {
                user_id: user_id.to_owned(),
                collection: collection.name().to_owned(),
                id: document.id,
            };
            let value = open(&keys, &key, document.version, &document.body)?;
            documents.push((key.id.clone(), value));
            unit.track(key, document.version)?;
        }
        Ok(documents)
    }

    /// The documents that were found, with this call's own writes applied.
    fn merged<T: DeserializeOwned>(
        &self,
        user_id: &str,
        collection: &Collection,
        documents: Vec<(String, Value)>,
        wanted: impl Fn(&str, &Value) -> bool,
        limit: usize,
    ) -> Result<Vec<(String, T)>, ToolError> {
        let unit = self.unit();
        let documents = unit.overlay(user_id, collection.name(), documents, wanted);
        let documents = documents.into_iter().take(limit);
        documents
            .map(|(id, value)| Ok((id, read_as(value)?)))
            .collect()
    }

    /// Number of documents to request: `limit`, and as many more as this call has changed, which may drop out.
    fn wanted(&self, user_id: &str, collection: &Collection, limit: usize) -> usize {
        let changed = self.unit().changed(user_id, collection.name());
        limit.saturating_add(changed).min(READS_MAX)
    }

    fn key(&self, collection: &Collection, id: &str) -> Result<DocumentKey, ToolError> {
        check_name(collection)?;
        if id.is_empty() || id.len() > ID_BYTES_MAX || id.contains('\0') {
            return Err(misuse(Say::IdForm {
                collection: collection.name().to_owned(),
                most: ID_BYTES_MAX.to_string(),
            }));
        }
        Ok(DocumentKey {
            user_id: self.owner(collection).to_owned(),
            collection: collection.name().to_owned(),
            id: id.to_owned(),
        })
    }

    fn owner(&self, collection: &Collection) -> &str {
        match collection.owner() {
            Owner::User => &self.user_id,
            Owner::Shared => SHARED,
        }
    }

    async fn keys_of(&self, user_id: &str) -> Result<Arc<UserKey>, ToolError> {
        if user_id == self.user_id {
            return Ok(self.keys.clone());
        }
        self.vault.key(user_id).await.map_err(store_failed)
    }

    fn unit(&self) -> MutexGuard<'_, Unit> {
        self.unit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

pub(crate) fn open(
    keys: &UserKey,
    key: &DocumentKey,
    version: u64,
    body: &[u8],
) -> Result<Value, ToolError> {
    let opened = document::open(keys, key, version, body).map_err(|error| {
        let what = format!("the document {:?} of {}", key.id, key.collection);
        store_failed(ledger::Error::Damaged { what }).with_source(error)
    })?;
    serde_json::from_slice(&opened).map_err(ToolError::unwritable_output)
}

fn read_as<T: DeserializeOwned>(value: Value) -> Result<T, ToolError> {
    serde_json::from_value(value).map_err(|error| misuse(Say::DocumentUnfit).with_source(error))
}

/// Refuses the gateway's own collections, such as approvals, which no tool may access.
fn check_name(collection: &Collection) -> Result<(), ToolError> {
    let name = collection.name();
    if name.starts_with('$') {
        return Err(misuse(Say::NotATools {
            collection: name.to_owned(),
        }));
    }
    Ok(())
}

fn check_tracked(collection: &Collection) -> Result<(), ToolError> {
    if collection.is_tracked() {
        return Ok(());
    }
    Err(misuse(Say::NotScanned {
        collection: collection.name().to_owned(),
    }))
}

/// The error for a tool that uses its state in a way that cannot work; a retry does not help.
fn misuse(message: Say) -> ToolError {
    let mut body = ErrorBody::new(ErrorCode::UpstreamError, message).source(FaultSource::Tool);
    body.details.retryable = false;
    ToolError::from(body)
}

/// The error for a failed store. The tool may have had an external effect before that, so this does not say that there
/// was none.
fn store_failed(error: ledger::Error) -> ToolError {
    let body = ErrorBody::new(ErrorCode::UpstreamError, Say::StateUnread)
        .source(FaultSource::Gateway)
        .hint(Say::SameLaterWithKey);
    ToolError::from(body).with_source(error)
}
