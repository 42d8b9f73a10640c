//! Sealed documents, and the stamps by which the record of a commit names what it wrote.
//!
//! The seal covers the version, so that no older body can be put back under a newer version. The record of each commit names every document
//! that it wrote with the new version, so that no older row can be put back as a whole without `verify` naming it.

use countersign_evidence::seal::{SealError, UserKey, Zeroizing};
use serde_json::{Map, Value};

use crate::ledger::{DocumentKey, DocumentWrite};

/// Members of `act` with the documents that a commit wrote and removed, each by its pseudonym with its new version.
pub(crate) const WRITES: &str = "writes";
pub(crate) const REMOVED: &str = "removed";

/// Event of a record about documents that a restore has put back.
pub const RESTORED: &str = "documents_restored";

/// Seals a document that replaces this version.
pub fn seal(
    keys: &UserKey,
    nonce: [u8; 12],
    key: &DocumentKey,
    replaced: u64,
    plain: &[u8],
) -> Vec<u8> {
    keys.seal(nonce, &aad(key, replaced + 1), plain)
}

/// Opens a document of this version. Programs before this one sealed without the version.
pub fn open(
    keys: &UserKey,
    key: &DocumentKey,
    version: u64,
    body: &[u8],
) -> Result<Zeroizing<Vec<u8>>, SealError> {
    let opened = open_versioned(keys, key, version, body);
    opened.or_else(|error| keys.open(&named(key), body).map_err(|_| error))
}

/// Opens a document whose seal covers this version.
pub(crate) fn open_versioned(
    keys: &UserKey,
    key: &DocumentKey,
    version: u64,
    body: &[u8],
) -> Result<Zeroizing<Vec<u8>>, SealError> {
    keys.open(&aad(key, version), body)
}

/// Additional data of a seal, so that neither another document nor another version can be passed off as this one.
fn aad(key: &DocumentKey, version: u64) -> Vec<u8> {
    let mut aad = named(key);
    aad.push(0);
    aad.extend(version.to_be_bytes());
    aad
}

fn named(key: &DocumentKey) -> Vec<u8> {
    let DocumentKey {
        user_id,
        collection,
        id,
    } = key;
    ["document", user_id, collection, id]
        .join("\0")
        .into_bytes()
}

/// A write as the record of its commit names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    pseudonym: String,
    /// The version after the write.
    version: u64,
    is_removed: bool,
}

impl Stamp {
    /// The stamp of a write.
    pub fn of(write: &DocumentWrite) -> Self {
        Self {
            pseudonym: write.pseudonym.clone(),
            version: write.version + 1,
            is_removed: write.body.is_none(),
        }
    }

    /// The stamp of a document that will be written in the place of this version.
    pub fn to_come(keys: &UserKey, key: &DocumentKey, replaced: u64) -> Self {
        Self {
            pseudonym: keys.document(&key.collection, &key.id),
            version: replaced + 1,
            is_removed: false,
        }
    }
}

/// The stamps of all writes of a commit.
pub fn stamps(writes: &[DocumentWrite]) -> Vec<Stamp> {
    writes.iter().map(Stamp::of).collect()
}

/// Adds stamps to the member `act` of a record.
pub fn stamped(act: Value, stamps: &[Stamp]) -> Value {
    if stamps.is_empty() {
        return act;
    }
    let mut members = match act {
        Value::Object(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    for (name, is_removed) in [(WRITES, false), (REMOVED, true)] {
        let named = stamps.iter().filter(|stamp| {
            let has_name = !stamp.pseudonym.is_empty();
            has_name && stamp.is_removed == is_removed
        });
        let named = named.map(|stamp| (stamp.pseudonym.clone(), stamp.version.into()));
        let named: Map<String, Value> = named.collect();
        if !named.is_empty() {
            members.insert(name.to_owned(), Value::Object(named));
        }
    }
    Value::Object(members)
}
