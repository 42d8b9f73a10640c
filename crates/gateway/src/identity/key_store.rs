//! Stored API keys: sealed documents that belong to no user, so that every process on one store has the same
//! keys.

use std::collections::HashMap;
use std::sync::Arc;

use countersign::Principal;
use countersign::contract::{Actor, ActorType};
use countersign::ids::IdSource;
use countersign::ledger::{
    self, Commit, CommitAnswer, DocumentKey, DocumentRead, DocumentWrite, Store,
};
use countersign::scribe::Draft;
use countersign::state::document::{self, stamped, stamps};
use countersign::vault::{SHARED, Vault};
use countersign_evidence::hex;
use countersign_evidence::seal::UserKey;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::api_key::ApiKey;
use super::keys_error::KeysError;
use crate::recorder::Recorder;

/// Collection of the keys, which belong to no user.
pub const API_KEYS: &str = "api_keys";

/// Collection of flags for the whole installation.
pub const FLAGS: &str = "identity";

/// Document whose presence means that every request needs a credential. It is written with the first key, and
/// never removed.
const CREDENTIALS_REQUIRED: &str = "credentials_required";

/// Maximum number of keys, including ended ones until they are deleted.
pub(super) const KEYS_MAX: usize = 10_000;

/// Number of keys that are read at once.
const PAGE: usize = 500;

/// Reads and writes keys.
pub(super) struct KeyStore {
    pub(super) store: Arc<dyn Store>,
    pub(super) vault: Arc<Vault>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) recorder: Recorder,
}

/// A key with the digest of its secret.
pub(super) struct Held {
    /// Version of the document.
    pub(super) version: u64,
    pub(super) key: ApiKey,
    pub(super) digest: [u8; 32],
    /// Built once, because every request needs it.
    pub(super) principal: Arc<Principal>,
}

/// Keys by their id.
pub(super) type Keys = HashMap<String, Arc<Held>>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    v: u8,
    digest: String,
    key: ApiKey,
}

/// A document to write: a key, or `None` to delete it.
pub(super) struct Write<'a> {
    pub(super) id: &'a str,
    /// Version that it replaces; 0 for a new key.
    pub(super) version: u64,
    pub(super) key: Option<(&'a ApiKey, &'a [u8; 32])>,
}

/// The record of an operation on keys, before the documents that it writes are known.
pub(super) struct KeyRecord {
    by: Actor,
    /// The user that it is about, with the user's key.
    user: Option<(String, Arc<UserKey>)>,
    about: Value,
}

impl KeyRecord {
    /// A record that is about no user.
    pub(super) fn of_nobody(by: &Actor, about: Value) -> Self {
        Self {
            by: by.clone(),
            user: None,
            about,
        }
    }
}

impl KeyStore {
    /// Reads all keys. Those that have not changed since `known` are taken from there.
    pub(super) async fn load(&self, known: &Keys) -> Result<Keys, ledger::Error> {
        let mut keys = HashMap::new();
        let mut after: Option<String> = None;
        loop {
            let after_id = after.as_deref();
            let scan = self.store.scan(SHARED, API_KEYS, "", after_id, PAGE);
            let page = scan.await?.documents;
            after = page.last().map(|document| document.id.clone());
            let is_last = page.len() < PAGE;
            for document in page {
                let same = known.get(&document.id);
                let same = same.filter(|held| held.version == document.version);
                let held = match same {
                    Some(held) => held.clone(),
                    None => Arc::new(
                        self.open(&document.id, document.version, &document.body)
                            .await?,
                    ),
                };
                keys.insert(document.id, held);
            }
            if is_last || keys.len() >= KEYS_MAX {
                return Ok(keys);
            }
        }
    }

    /// True if credentials were ever configured.
    pub(super) async fn credentials_required(&self) -> Result<bool, ledger::Error> {
        let found = self
            .store
            .scan(SHARED, FLAGS, CREDENTIALS_REQUIRED, None, 1);
        Ok(!found.await?.documents.is_empty())
    }

    /// Writes keys together with their record and, if not known yet, the flag that credentials are required.
    /// False if another process was faster.
    pub(super) async fn write(
        &self,
        writes: &[Write<'_>],
        record: KeyRecord,
        is_flagged: bool,
    ) -> Result<bool, ledger::Error> {
        let shared = self.vault.key(SHARED).await?;
        let mut documents = Vec::new();
        if !is_flagged {
            let key = DocumentKey {
                user_id: SHARED.to_owned(),
                collection: FLAGS.to_owned(),
                id: CREDENTIALS_REQUIRED.to_owned(),
            };
            documents.push((key, 0, Some(b"true".to_vec())));
        }
        for write in writes {
            let body = write.key.map(|(key, digest)| plain(key, digest));
            documents.push((document_key(write.id), write.version, body.transpose()?));
        }
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (key, version, plain) in documents {
            let body = plain.map(|plain| {
                let mut nonce = [0; 12];
                self.ids.fill(&mut nonce);
                document::seal(&shared, nonce, &key, version, &plain)
            });
            reads.push(DocumentRead {
                key: key.clone(),
                version,
            });
            writes.push(DocumentWrite {
                pseudonym: shared.document(&key.collection, &key.id),
                key,
                version,
                body,
                entries: Vec::new(),
                tracked: true,
            });
        }
        let KeyRecord { by, user, about } = record;
        let user = user.as_ref().map(|(user_id, keys)| (&**user_id, &**keys));
        let about = stamped(about, &stamps(&writes));
        let commit = Commit {
            key: None,
            reads,
            shapes: Vec::new(),
            record: Draft::from(self.recorder.entry(Some(&by), user, about)),
            writes,
            spend: None,
        };
        match self.store.commit(commit).await? {
            CommitAnswer::Committed => Ok(true),
            // The other answers cannot occur: this commit has no claim, and nothing of a user.
            CommitAnswer::Moved { .. }
            | CommitAnswer::Held(_)
            | CommitAnswer::Fenced
            | CommitAnswer::Erased
            | CommitAnswer::Lapsed => Ok(false),
        }
    }

    /// Builds the record of an operation on a key. It stays when the user is erased, so it names a person by
    /// subject only, and does not contain the label.
    pub(super) async fn record(
        &self,
        event: &str,
        key: &ApiKey,
        by: &Actor,
        more: Value,
    ) -> Result<KeyRecord, KeysError> {
        let owner = match (&key.user_id, key.actor.kind) {
            (_, ActorType::User) => json!({"type": "user"}),
            (Some(user_id), _) if *user_id == key.actor.id => json!({"type": key.actor.kind}),
            (Some(_) | None, ActorType::Agent | ActorType::System) => json!(key.actor),
        };
        let mut about = json!({
            "event": event,
            "key": key.id,
            "owner": owner,
            "acts_for_others": key.acts_for_others,
            "scopes": key.scopes,
            "expires_at": key.expires_at,
        });
        if let (Some(about), Some(effects)) = (about.as_object_mut(), key.effects) {
            about.insert("effects".to_owned(), json!(effects));
        }
        if let (Some(about), Value::Object(more)) = (about.as_object_mut(), more) {
            about.extend(more);
        }
        let Some(user_id) = &key.user_id else {
            return Ok(KeyRecord::of_nobody(by, about));
        };
        // The cached key may be that of a user who was erased since: then the record could not be attributed.
        self.vault.forget(user_id);
        let keys = self.vault.key(user_id).await?;
        Ok(KeyRecord {
            user: Some((user_id.clone(), keys)),
            ..KeyRecord::of_nobody(by, about)
        })
    }

    async fn open(&self, id: &str, version: u64, body: &[u8]) -> Result<Held, ledger::Error> {
        let keys = self.vault.key(SHARED).await?;
        let opened = document::open(&keys, &document_key(id), version, body);
        let plain = opened.map_err(|_| damaged(id))?;
        let body: Body = serde_json::from_slice(&plain).map_err(|_| damaged(id))?;
        let digest = hex::decode(&body.digest).ok_or_else(|| damaged(id))?;
        Ok(Held {
            version,
            principal: Arc::new(body.key.principal()),
            key: body.key,
            digest,
        })
    }
}

pub(super) fn document_key(id: &str) -> DocumentKey {
    DocumentKey {
        user_id: SHARED.to_owned(),
        collection: API_KEYS.to_owned(),
        id: id.to_owned(),
    }
}

/// The body of a key's document, before it is sealed.
fn plain(key: &ApiKey, digest: &[u8; 32]) -> Result<Vec<u8>, ledger::Error> {
    let body = Body {
        v: 1,
        digest: hex::encode(digest),
        key: key.clone(),
    };
    serde_json::to_vec(&body).map_err(|_| damaged(&key.id))
}

fn damaged(id: &str) -> ledger::Error {
    ledger::Error::Damaged {
        what: format!("the API key {id:?}"),
    }
}
