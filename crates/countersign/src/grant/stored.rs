//! Grants in the store, sealed under the keys of their users.
//!
//! Two documents a grant, in a collection that no tool can name: the grant itself among the user's documents, and one
//! among the shared documents that names its user. Both go when the user is erased.

use std::fmt;
use std::sync::Arc;

use countersign_contract::Actor;
use countersign_evidence::seal::UserKey;
use jiff::Timestamp;

use super::kept::{Kept, Read, given_to};
use super::{DEPTH_MAX, Language};
use crate::believed::BelievedTime;
use crate::catalog::Catalog;
use crate::clock::Clock;
use crate::consent::{Kind, Shelf};
use crate::ids::IdSource;
use crate::ledger::{self, DocumentKey, Store};
use crate::retention::RetentionPlan;
use crate::vault::Vault;

/// Collection of grants. No tool can name it: its name starts with a dollar sign.
pub const COLLECTION: &str = "$grants";

pub(super) const KIND: Kind = Kind {
    collection: COLLECTION,
    name: "grant",
    part: "grants",
};

/// Maximum number of grants of a user to one actor that calls have to look at.
pub(super) const GRANTS_MAX: usize = 64;

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
    believed: BelievedTime,
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
        let believed = BelievedTime::new(store.clone(), clock.clone());
        Self {
            store,
            vault,
            clock,
            ids,
            retention: RetentionPlan::default(),
            catalog: None,
            language: None,
            believed,
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

    pub(super) fn shelf(&self) -> Shelf<'_> {
        Shelf {
            kind: KIND,
            store: &*self.store,
            vault: &self.vault,
            ids: &*self.ids,
        }
    }

    /// The time by which grants end: that of the clock, but never before the latest time that the store has believed. A
    /// clock that is set back brings no grant back.
    pub(super) async fn believed_now(&self) -> Result<Timestamp, ledger::Error> {
        self.believed.now().await
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
            let version = document.version;
            let key = KIND.place(user_id, &document.id);
            let kept: Kept = KIND.open(keys, &key, version, &document.body)?;
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
        let key = KIND.place(user_id, id);
        let stored = self.store.document(&key).await?;
        let Some(body) = stored.body else {
            return Ok(None);
        };
        let version = stored.version;
        let kept = KIND.open(keys, &key, version, &body)?;
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
        let Some((_, Some(found))) = self.shelf().found(id).await? else {
            return Ok(None);
        };
        let version = found.version;
        let kept = KIND.open(&found.keys, &found.key, version, &found.body)?;
        Ok(Some((Read { kept, version }, found.keys)))
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
    let (mut pointers, mut after) = (Vec::new(), None);
    while let Some(page) = KIND.next_page(store, user_id, &mut after).await? {
        pointers.extend(page.iter().map(|found| KIND.owner_place(&found.id)));
    }
    Ok(pointers)
}
