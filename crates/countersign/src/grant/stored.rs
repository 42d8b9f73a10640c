//! Grants in the store, sealed under the keys of their users.
//!
//! Two documents a grant, in a collection that no tool can name: the grant itself among the user's documents, and one
//! among the shared documents that names its user. Both go when the user is erased.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use countersign_contract::{Actor, ActorType};
use countersign_evidence::seal::UserKey;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::kept::{Kept, Read, given_to, place};
use super::{DEPTH_MAX, Language};
use crate::approve::SCOPE_ANSWER;
use crate::catalog::Catalog;
use crate::clock::Clock;
use crate::ids::IdSource;
use crate::ledger::{self, Commit, CommitAnswer, DocumentKey, DocumentRead, DocumentWrite, Store};
use crate::principal::Principal;
use crate::retention::RetentionPlan;
use crate::state::document_aad;
use crate::unavailable::Unavailable;
use crate::vault::{SHARED, Vault};

/// Collection of grants. No tool can name it: its name starts with a dollar sign.
pub const COLLECTION: &str = "$grants";

/// Maximum number of grants of a user to one actor that calls have to look at.
pub(super) const GRANTS_MAX: usize = 64;

/// Maximum write attempts under contention.
pub(super) const TRIES_MAX: u32 = 32;

/// Time for which the latest believed time of the store is relied on before it is read again.
const MARK_KEPT: Duration = Duration::from_secs(30);

/// Number of documents that are read at a time.
pub(super) const PAGE: usize = 256;

/// Maximum length of an id that is looked up.
const ID_BYTES_MAX: usize = 255;

/// Grants in a store. Durable wherever the store is.
pub struct StoredGrants {
    pub(super) store: Arc<dyn Store>,
    pub(super) vault: Arc<Vault>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) retention: RetentionPlan,
    /// The tools; without them no grant can be made.
    pub(super) catalog: Option<Catalog>,
    /// The language of conditions; without it none can be read, and none holds.
    pub(super) language: Option<Arc<dyn Language>>,
    /// The latest believed time of the store, and when it was read, in the clock's monotonic time.
    mark: Mutex<Option<(Duration, Timestamp)>>,
}

/// The user of a grant, stored under its id.
#[derive(Serialize, Deserialize)]
pub(super) struct Owner {
    pub(super) user_id: String,
}

/// Grants to one actor, and the shape of the collection when they were read.
pub(super) struct Given {
    pub(super) reads: Vec<Read>,
    pub(super) shape: u64,
}

impl StoredGrants {
    /// Grants in this store, under the keys of this vault.
    pub fn new(
        store: Arc<dyn Store>,
        vault: Arc<Vault>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        Self {
            store,
            vault,
            clock,
            ids,
            retention: RetentionPlan::default(),
            catalog: None,
            language: None,
            mark: Mutex::new(None),
        }
    }

    /// Sets the retention of what a grant says.
    pub fn retention(mut self, retention: RetentionPlan) -> Self {
        self.retention = retention;
        self
    }

    /// Sets the tools that grants cover. Without them none can be made.
    pub fn catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = Some(catalog);
        self
    }

    /// Sets the language of conditions. Without it no grant with a condition can be made, and none of them covers a call.
    pub fn language(mut self, language: Arc<dyn Language>) -> Self {
        self.language = Some(language);
        self
    }

    /// The time by which grants end: that of the clock, but never before the latest time that the store has believed. A
    /// clock that is set back brings no grant back.
    pub(super) async fn believed_now(&self) -> Result<Timestamp, ledger::Error> {
        let (now, moment) = (self.clock.now(), self.clock.monotonic());
        let known = *self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = known.filter(|(read, _)| moment.saturating_sub(*read) < MARK_KEPT);
        let mark = if let Some((_, mark)) = fresh {
            mark
        } else {
            let passage = self.store.vitals().await?.passage;
            let mark = passage.map_or(now, |passage| passage.mark);
            let mark = known.map_or(mark, |(_, before)| before.max(mark));
            let mut kept = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
            *kept = Some((moment, mark));
            mark
        };
        Ok(now.max(mark))
    }

    /// The grants of a user to an actor that were not put away.
    pub(super) async fn given_to(
        &self,
        user_id: &str,
        to: &Actor,
        keys: &UserKey,
        limit: usize,
    ) -> Result<Given, ledger::Error> {
        let entry = given_to(keys, to);
        let found = self.store.find(user_id, COLLECTION, &entry, limit).await?;
        let mut reads = Vec::with_capacity(found.documents.len());
        for document in found.documents {
            let key = place(user_id, &document.id);
            let kept = Kept::open(keys, &key, &document.body)?;
            let version = document.version;
            // The index is a digest; the grant itself says to whom it was given.
            if kept.to == *to {
                reads.push(Read { kept, version });
            }
        }
        let shape = found.shape;
        Ok(Given { reads, shape })
    }

    /// One grant of a user.
    pub(super) async fn read(
        &self,
        user_id: &str,
        id: &str,
        keys: &UserKey,
    ) -> Result<Option<Read>, ledger::Error> {
        let key = place(user_id, id);
        let stored = self.store.document(&key).await?;
        let Some(body) = stored.body else {
            return Ok(None);
        };
        let kept = Kept::open(keys, &key, &body)?;
        let version = stored.version;
        Ok(Some(Read { kept, version }))
    }

    /// A grant and all that it is derived from, the first one last; `None` if one of them is gone, or if there are too
    /// many.
    pub(super) async fn chain(
        &self,
        grant: Read,
        keys: &UserKey,
    ) -> Result<Option<Vec<Read>>, ledger::Error> {
        let user_id = grant.kept.user_id.clone();
        let mut next = grant.kept.parent.clone();
        let mut chain = vec![grant];
        while let Some(id) = next.take() {
            if chain.len() >= DEPTH_MAX {
                return Ok(None);
            }
            let Some(parent) = self.read(&user_id, &id, keys).await? else {
                return Ok(None);
            };
            next.clone_from(&parent.kept.parent);
            chain.push(parent);
        }
        Ok(Some(chain))
    }

    /// A grant by its id, with the key of its user; `None` if there is none, or if its user was erased.
    pub(super) async fn found(
        &self,
        id: &str,
    ) -> Result<Option<(Read, Arc<UserKey>)>, ledger::Error> {
        if id.is_empty() || id.len() > ID_BYTES_MAX || id.contains('\0') {
            return Ok(None);
        }
        let key = owner_key(id);
        let Some(body) = self.store.document(&key).await?.body else {
            return Ok(None);
        };
        let shared = self.vault.key(SHARED).await?;
        let damaged = || ledger::Error::Damaged {
            what: format!("the grant {id:?}"),
        };
        let opened = shared
            .open(&document_aad(&key), &body)
            .map_err(|_| damaged())?;
        let owner: Owner = serde_json::from_slice(&opened).map_err(|_| damaged())?;
        // An erased user has no key, and must not get a new one by being looked for.
        let Some(keys) = self.vault.existing_key(&owner.user_id).await? else {
            return Ok(None);
        };
        let read = self.read(&owner.user_id, id, &keys).await?;
        Ok(read.map(|read| (read, keys)))
    }

    /// The document that leads from an id to its user.
    pub(super) fn owner_of(&self, grant: &Kept, shared: &UserKey) -> (DocumentRead, DocumentWrite) {
        let key = owner_key(&grant.id);
        let owner = Owner {
            user_id: grant.user_id.clone(),
        };
        let mut nonce = [0; 12];
        self.ids.fill(&mut nonce);
        let plain = serde_json::to_vec(&owner).expect("a name");
        let body = shared.seal(nonce, &document_aad(&key), &plain);
        let read = DocumentRead {
            key: key.clone(),
            version: 0,
        };
        let write = DocumentWrite {
            key,
            version: 0,
            body: Some(body),
            entries: Vec::new(),
            tracked: false,
        };
        (read, write)
    }

    /// Commits a change; false if it lost a race and has done nothing. Fails if the user was erased meanwhile.
    pub(super) async fn commit(
        &self,
        user_id: &str,
        commit: Commit,
    ) -> Result<bool, ledger::Error> {
        match self.store.commit(commit).await? {
            CommitAnswer::Committed => Ok(true),
            CommitAnswer::Moved { .. }
            | CommitAnswer::Held(_)
            | CommitAnswer::Fenced
            | CommitAnswer::Lapsed => Ok(false),
            CommitAnswer::Erased => {
                self.vault.forget(user_id);
                let erased = "the user was erased while the grant was being written";
                Err(Unavailable::new("grants", erased).into())
            }
        }
    }
}

impl fmt::Debug for StoredGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredGrants")
            .field("language", &self.language)
            .finish_non_exhaustive()
    }
}

/// The shared documents that name a user: one for each grant.
pub(crate) async fn pointers(
    store: &dyn Store,
    user_id: &str,
) -> Result<Vec<DocumentKey>, ledger::Error> {
    let mut pointers = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = store
            .scan(user_id, COLLECTION, "", after.as_deref(), PAGE)
            .await?;
        let Some(last) = page.documents.last() else {
            return Ok(pointers);
        };
        after = Some(last.id.clone());
        pointers.extend(page.documents.iter().map(|found| owner_key(&found.id)));
    }
}

fn owner_key(id: &str) -> DocumentKey {
    place(SHARED, id)
}

/// True if a principal may see the grants of all users: who may answer for them.
pub(super) fn sees_all(by: &Principal) -> bool {
    match by.actor.kind {
        ActorType::User | ActorType::System => by.holds(SCOPE_ANSWER),
        ActorType::Agent => false,
    }
}

/// Refuses a principal who may not give or take authority of a user: who may not answer for them.
pub(super) fn check_may_grant(by: &Principal, user_id: &str) -> Result<(), Error> {
    let is_theirs = by.actor.id == user_id && by.user_id == user_id;
    match by.actor.kind {
        ActorType::Agent => Err(Error::Agent),
        ActorType::User if is_theirs => Ok(()),
        ActorType::User | ActorType::System if by.holds(SCOPE_ANSWER) => Ok(()),
        ActorType::User | ActorType::System => Err(Error::NotTheirs),
    }
}
