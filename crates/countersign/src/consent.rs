//! The parts that approvals and standing grants share. Both are a user's consent: [`approve`](crate::approve) has it call
//! by call, [`grant`](crate::grant) in advance.
//!
//! A consent is a sealed document of its user, in a collection that no tool can name. A second document, shared and under
//! the id of the consent, leads from the id to the user. Every change is one commit with its record.

use std::sync::Arc;

use countersign_contract::evidence::{Link, RecordedActor};
use countersign_contract::{Actor, ActorType, Digest, EvidenceRecord};
use countersign_evidence::seal::{self, UserKey};
use countersign_evidence::tree::leaf_hash;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::approve::SCOPE_ANSWER;
use crate::ids::IdSource;
use crate::ledger::{
    Commit, CommitAnswer, DocumentKey, DocumentRead, DocumentWrite, Entry, Error, FoundDocument,
    IndexEntry, Store,
};
use crate::payload::{self, Plain};
use crate::principal::Principal;
use crate::retention::RetentionPlan;
use crate::scribe::{Draft, canonical_leaf, recorded_actor};
use crate::state::document::{self, Stamp, stamped};
use crate::unavailable::Unavailable;
use crate::vault::{SHARED, Vault};

/// Maximum length of a reason, in characters.
pub(crate) const REASON_CHARS_MAX: usize = 500;

/// Maximum write attempts under contention.
pub(crate) const TRIES_MAX: u32 = 32;

/// Maximum length of an id that is looked up.
const ID_BYTES_MAX: usize = 255;

/// Maximum number of characters of an unknown id that are shown.
const ID_CHARS_SHOWN: usize = 64;

/// Number of documents that are read at a time.
pub(crate) const PAGE: usize = 256;

/// True if a text can be the reason of a decision.
pub(crate) fn is_reason(reason: &str) -> bool {
    reason.chars().count() <= REASON_CHARS_MAX && !reason.chars().any(char::is_control)
}

/// True if a text can be the id of a consent.
pub(crate) fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= ID_BYTES_MAX && !id.contains('\0')
}

/// An unknown id, cut for an error message.
pub(crate) fn shown_id(id: &str) -> String {
    id.chars().take(ID_CHARS_SHOWN).collect()
}

/// True if a principal may see the consents of all users.
pub(crate) fn sees_all(by: &Principal) -> bool {
    match by.actor.kind {
        ActorType::User | ActorType::System => by.holds(SCOPE_ANSWER),
        ActorType::Agent => false,
    }
}

/// True if a principal may see the consents of a user.
pub(crate) fn sees(by: &Principal, user_id: &str) -> bool {
    (by.user_id != SHARED && user_id == by.user_id) || sees_all(by)
}

/// Reason why a principal may not decide for a user. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAllowed {
    /// An agent never decides.
    Agent,
    /// Another user, without the scope.
    NotTheirs,
}

/// Refuses a principal who may not decide for a user: who is neither the user nor holds the scope.
pub(crate) fn check_may_decide(by: &Principal, user_id: &str) -> Result<(), NotAllowed> {
    let is_theirs = by.actor.id == user_id && by.user_id == user_id;
    match by.actor.kind {
        ActorType::Agent => Err(NotAllowed::Agent),
        ActorType::User if is_theirs => Ok(()),
        ActorType::User | ActorType::System if by.holds(SCOPE_ANSWER) => Ok(()),
        ActorType::User | ActorType::System => Err(NotAllowed::NotTheirs),
    }
}

/// A kind of consent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// Collection of its documents.
    pub(crate) collection: &'static str,
    /// Its name in errors.
    pub(crate) name: &'static str,
    /// Name of the part in errors.
    pub(crate) part: &'static str,
}

impl Kind {
    /// The key of a document.
    pub(crate) fn place(self, user_id: &str, id: &str) -> DocumentKey {
        DocumentKey {
            user_id: user_id.to_owned(),
            collection: self.collection.to_owned(),
            id: id.to_owned(),
        }
    }

    /// The key of the shared document that leads from an id to its user.
    pub(crate) fn owner_place(self, id: &str) -> DocumentKey {
        self.place(SHARED, id)
    }

    /// Opens a document.
    pub(crate) fn open<T: DeserializeOwned>(
        self,
        keys: &UserKey,
        key: &DocumentKey,
        version: u64,
        body: &[u8],
    ) -> Result<T, Error> {
        let damaged = || Error::Damaged {
            what: format!("the {} {:?}", self.name, key.id),
        };
        let opened = document::open(keys, key, version, body).map_err(|_| damaged())?;
        serde_json::from_slice(&opened).map_err(|_| damaged())
    }

    /// The entry of a value in an index.
    pub(crate) fn index(self, keys: &UserKey, index: &str, value: &str) -> IndexEntry {
        let named = [self.collection, index, value].join("\0");
        IndexEntry {
            index: index.to_owned(),
            value: keys.index(named.as_bytes()),
        }
    }

    /// The next documents of a user after those of the page before; `None` after the last.
    pub(crate) async fn next_page(
        self,
        store: &dyn Store,
        user_id: &str,
        after: &mut Option<String>,
    ) -> Result<Option<Vec<FoundDocument>>, Error> {
        let page = store.scan(user_id, self.collection, "", after.as_deref(), PAGE);
        let documents = page.await?.documents;
        let Some(last) = documents.last() else {
            return Ok(None);
        };
        *after = Some(last.id.clone());
        Ok(Some(documents))
    }

    /// The error of a change that lost every race.
    pub(crate) fn busy(self) -> Error {
        Unavailable::new(self.part, format!("the {} keeps changing", self.name)).into()
    }
}

/// A document that a commit reads and writes.
pub(crate) struct Writing {
    pub(crate) read: DocumentRead,
    pub(crate) write: DocumentWrite,
}

impl Writing {
    /// Deletes a document.
    pub(crate) fn delete(key: DocumentKey, version: u64, tracked: bool, keys: &UserKey) -> Self {
        Self {
            read: DocumentRead {
                key: key.clone(),
                version,
            },
            write: DocumentWrite {
                pseudonym: keys.document(&key.collection, &key.id),
                key,
                version,
                body: None,
                entries: Vec::new(),
                tracked,
            },
        }
    }

    /// Writes a document, sealed, in the place of a version.
    pub(crate) fn seal(
        key: DocumentKey,
        version: u64,
        plain: &impl Serialize,
        keys: &UserKey,
        ids: &dyn IdSource,
    ) -> Self {
        let mut nonce = [0; 12];
        ids.fill(&mut nonce);
        let plain = serde_json::to_vec(plain).expect("names, texts and JSON values");
        let body = document::seal(keys, nonce, &key, version, &plain);
        let mut writing = Self::delete(key, version, false, keys);
        writing.write.body = Some(body);
        writing
    }

    /// Tracks the document, with these index entries.
    pub(crate) fn tracked(mut self, entries: Vec<IndexEntry>) -> Self {
        self.write.tracked = true;
        self.write.entries = entries;
        self
    }

    /// The stamps of documents, for their record.
    pub(crate) fn stamps<'a>(writings: impl IntoIterator<Item = &'a Self>) -> Vec<Stamp> {
        let writings = writings.into_iter();
        writings.map(|own| Stamp::of(&own.write)).collect()
    }
}

/// A commit of documents with their record.
pub(crate) fn unit(writings: impl IntoIterator<Item = Writing>, record: Entry) -> Commit {
    let documents = writings.into_iter().map(|own| (own.read, own.write));
    let (reads, writes) = documents.unzip();
    Commit {
        key: None,
        reads,
        shapes: Vec::new(),
        writes,
        spend: None,
        record: Draft::from(record),
    }
}

/// The user of a consent, stored under its id.
#[derive(Serialize, Deserialize)]
struct Owner {
    user_id: String,
    /// Name of the document among the user's; `None` if it is the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<String>,
}

/// A document that was found by its id.
pub(crate) struct Found {
    pub(crate) key: DocumentKey,
    pub(crate) version: u64,
    pub(crate) body: Arc<[u8]>,
    /// The key of its user.
    pub(crate) keys: Arc<UserKey>,
}

/// The consents of one kind in a store.
pub(crate) struct Shelf<'a> {
    pub(crate) kind: Kind,
    pub(crate) store: &'a dyn Store,
    pub(crate) vault: &'a Vault,
    pub(crate) ids: &'a dyn IdSource,
}

impl Shelf<'_> {
    /// The user of a consent, and its document if it is still stored.
    pub(crate) async fn found(&self, id: &str) -> Result<Option<(String, Option<Found>)>, Error> {
        if !is_id(id) {
            return Ok(None);
        }
        let key = self.kind.owner_place(id);
        let stored = self.store.document(&key).await?;
        let Some(body) = stored.body else {
            return Ok(None);
        };
        let shared = self.vault.key(SHARED).await?;
        let Owner { user_id, place } = self.kind.open(&shared, &key, stored.version, &body)?;
        // An erased user has no key, and must not get a new one by being looked for.
        let Some(keys) = self.vault.existing_key(&user_id).await? else {
            return Ok(Some((user_id, None)));
        };
        let key = self.kind.place(&user_id, place.as_deref().unwrap_or(id));
        let stored = self.store.document(&key).await?;
        let found = stored.body.map(|body| Found {
            key,
            version: stored.version,
            body,
            keys,
        });
        Ok(Some((user_id, found)))
    }

    /// The document that leads from the id of a new consent to its user.
    pub(crate) async fn owner(&self, id: &str, place: &DocumentKey) -> Result<Writing, Error> {
        let owner = Owner {
            user_id: place.user_id.clone(),
            place: Some(place.id.clone()).filter(|place| place != id),
        };
        let shared = self.vault.key(SHARED).await?;
        let key = self.kind.owner_place(id);
        Ok(Writing::seal(key, 0, &owner, &shared, self.ids))
    }

    /// Commits a change; false if it lost a race and has done nothing. Fails if the user was erased meanwhile, so that a
    /// retry with a new key does not bring the consent back.
    pub(crate) async fn commit(&self, user_id: &str, commit: Commit) -> Result<bool, Error> {
        match self.store.commit(commit).await? {
            CommitAnswer::Committed => Ok(true),
            CommitAnswer::Moved { .. }
            | CommitAnswer::Held(_)
            | CommitAnswer::Fenced
            | CommitAnswer::Lapsed => Ok(false),
            CommitAnswer::Erased => {
                self.vault.forget(user_id);
                let Kind { name, part, .. } = self.kind;
                let erased = format!("the user was erased while the {name} was being written");
                Err(Unavailable::new(part, erased).into())
            }
        }
    }
}

/// The parts of a record that are sealed beside it.
pub(crate) struct Deed<'a> {
    pub(crate) user_id: &'a str,
    pub(crate) by: &'a Actor,
    pub(crate) reason: Option<&'a str>,
    /// The consent as the user saw or gave it, as canonical JSON.
    pub(crate) shown: &'a str,
    pub(crate) at: Timestamp,
    pub(crate) keys: &'a UserKey,
    pub(crate) ids: &'a dyn IdSource,
    pub(crate) retention: &'a RetentionPlan,
    /// Documents that are committed with the record.
    pub(crate) stamps: &'a [Stamp],
}

impl Deed<'_> {
    /// Completes the record, and returns it with the link by which later records name it.
    pub(crate) fn entry(&self, record: EvidenceRecord) -> (Entry, Link) {
        let (user_id, keys) = (self.user_id, self.keys);
        let (mut salt, mut nonce) = ([0; 32], [0; 12]);
        self.ids.fill(&mut salt);
        self.ids.fill(&mut nonce);
        let plain = Plain {
            user_id,
            actor: Some(self.by),
            reason: self.reason,
            ..Plain::default()
        };
        let text = payload::text_of(&plain, &salt, &[("shown", self.shown)]);
        let id = record.id.clone();
        let sealed = keys.seal(nonce, &payload::aad(user_id, &id), text.as_bytes());
        let salt = seal::salt_of(&salt, seal::DOMAIN_SHOWN);
        let shown = seal::commit(seal::DOMAIN_SHOWN, &salt, self.shown.as_bytes());
        let record = EvidenceRecord {
            subject: Some(keys.subject(user_id)),
            shown: Some(shown),
            payload: Some(Digest::of_bytes(&sealed)),
            act: stamped(record.act, self.stamps),
            ..record
        };
        let leaf = canonical_leaf(&record);
        let link = Link::rests_on(id.clone(), Digest(leaf_hash(&leaf)));
        let entry = Entry {
            id,
            user_id: user_id.to_owned(),
            sealed_under: Some(keys.id()),
            kind: record.kind,
            at: self.at,
            request_id: None,
            tool: record.tool.map(|tool| tool.name),
            code: None,
            leaf,
            payload: Some(sealed),
            keep_payload: self.retention.of(record.retention),
        };
        (entry, link)
    }
}

/// The actor of a decision, for its record. One who decides for other users is recorded by name.
pub(crate) fn recorded_decider(by: &Actor, user_id: &str, keys: &UserKey) -> RecordedActor {
    if by.id == user_id {
        return recorded_actor(by, user_id, keys, true);
    }
    RecordedActor {
        kind: by.kind,
        id: by.id.clone(),
    }
}
