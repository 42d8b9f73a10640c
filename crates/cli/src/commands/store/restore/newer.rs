//! A store that went on since the backup: its log stays, and documents of the backup are put back into it.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use countersign::clock::Clock;
use countersign::contract::{Actor, RecordKind, Retention};
use countersign::ids::IdSource;
use countersign::ledger::{DocumentKey, DocumentWrite, Entry, Keyring};
use countersign::scribe::Act;
use countersign::state::document::{self, Stamp, stamped};
use countersign::vault::SHARED;
use countersign::{approve, grant};
use countersign_evidence::seal::{Kms, UserKey};
use countersign_gateway::identity::{API_KEYS, FLAGS};
use countersign_store::sqlite::{PutBack, Reseal};
use serde_json::json;

use super::How;
use super::judge::verified;
use super::log::act;
use crate::backend::Backend;
use crate::failure::Failure;
use crate::journal;
use crate::keys;
use crate::place::{Place, store_failed};

/// Batch size for comparing users.
const USERS: usize = 500;

/// Refuses a store that is no continuation of the backup, or was rolled back itself.
pub(super) fn check(newer: &Place, backup: &Place) -> Result<(), Failure> {
    let store = backup.store();
    let signed = backup.runtime.block_on(store.checkpoint());
    let signed = signed.map_err(store_failed)?;
    verified(newer, signed)?;
    match journal::held(&newer.folder, &newer.log_key)? {
        Some(held) => verified(newer, Some(held)),
        None => Ok(()),
    }
}

/// Puts the documents of the backup back.
pub(super) fn put_back(newer: &Place, backup: &Place, file: &Path) -> Result<How, Failure> {
    let (Backend::Sqlite(now), Backend::Sqlite(then)) = (&newer.backend, &backup.backend) else {
        return Err(Failure::new("only a SQLite store is restored from a file"));
    };
    let erased = newer.runtime.block_on(erased(newer, &**now, &**then))?;
    let users_erased = erased.len() as u64;
    let head = newer.runtime.block_on(backup.store().head());
    let about = json!({
        "event": "store_restored",
        "documents_of": head.map_err(store_failed)?.size,
    });
    let plan = PutBack {
        without_users: erased,
        stays: is_ours,
        seals: Arc::new(newer.runtime.block_on(Seals::of(newer, &**now))?),
    };
    let restored = now.put_back(file, plan, act(newer, about));
    let restored = newer.runtime.block_on(restored).map_err(store_failed)?;
    Ok(How::PutBack {
        documents: restored.put_back,
        removed: restored.removed,
        left_out: restored.left_out,
        users_erased,
    })
}

/// The keys of the users who are there now.
struct Seals {
    keys: HashMap<String, Arc<UserKey>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    by: Actor,
}

impl Seals {
    async fn of(place: &Place, now: &dyn Keyring) -> Result<Self, Failure> {
        let vault = place.vault();
        let shared = vault.key(SHARED).await.map_err(store_failed)?;
        let mut keys = HashMap::from([(SHARED.to_owned(), shared)]);
        let mut after = String::new();
        loop {
            let users = now.user_keys(&after, USERS).await.map_err(store_failed)?;
            let Some((last, _)) = users.last() else { break };
            after.clone_from(last);
            for (user, _) in users {
                let key = vault.existing_key(&user).await.map_err(store_failed)?;
                keys.extend(key.map(|key| (user, key)));
            }
        }
        Ok(Self {
            keys,
            clock: place.clock.clone(),
            ids: place.ids.clone(),
            by: place.by.actor.clone(),
        })
    }

    fn written(&self, key: &DocumentKey, version: u64, body: Option<Vec<u8>>) -> DocumentWrite {
        let keys = self.keys.get(&key.user_id);
        DocumentWrite {
            pseudonym: keys.map_or_else(String::new, |it| it.document(&key.collection, &key.id)),
            key: key.clone(),
            version,
            body,
            entries: Vec::new(),
            tracked: true,
        }
    }
}

impl Reseal for Seals {
    fn put_back(
        &self,
        key: &DocumentKey,
        was: u64,
        body: &[u8],
        replaced: u64,
    ) -> Option<DocumentWrite> {
        let keys = self.keys.get(&key.user_id)?;
        let plain = document::open(keys, key, was, body).ok()?;
        let mut nonce = [0; 12];
        self.ids.fill(&mut nonce);
        let sealed = document::seal(keys, nonce, key, replaced, &plain);
        Some(self.written(key, replaced, Some(sealed)))
    }

    fn delete(&self, key: &DocumentKey, version: u64) -> DocumentWrite {
        self.written(key, version, None)
    }

    fn entry(&self, stamps: &[Stamp]) -> Entry {
        let act = Act {
            kind: RecordKind::Config,
            at: self.clock.now(),
            user_id: String::new(),
            actor: Some(self.by.clone()),
            about: stamped(json!({"event": document::RESTORED}), stamps),
            retention: Retention::Long,
        };
        act.entry(self.ids.snapshot_id(), None)
    }
}

/// True for documents about permissions, flags, approvals and grants: they stay as new as the log.
fn is_ours(collection: &str) -> bool {
    let ours = [API_KEYS, FLAGS, approve::COLLECTION, grant::COLLECTION];
    ours.contains(&collection)
}

/// Users of the backup whose key is gone, or another one: they were erased since.
async fn erased(
    place: &Place,
    now: &dyn Keyring,
    then: &dyn Keyring,
) -> Result<HashSet<String>, Failure> {
    let named = &place.config().keys;
    let before = keys::master_before(&place.folder, named, place.master_source)?;
    let before = before.as_deref().map(|before| before as &dyn Kms);
    let vault = place.vault();
    let mut erased = HashSet::new();
    let mut after = String::new();
    loop {
        let users = then.user_keys(&after, USERS).await;
        let users = users.map_err(store_failed)?;
        let Some((last, _)) = users.last() else {
            return Ok(erased);
        };
        after.clone_from(last);
        for (user, was) in users {
            let is_same = match now.user_key(&user).await.map_err(store_failed)? {
                Some(is) => vault.is_same_key(&user, &was, &is, before).await,
                None => false,
            };
            if !is_same {
                erased.insert(user);
            }
        }
    }
}
