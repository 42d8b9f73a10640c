//! Documents: the state that tools keep, in named collections, each document with a version.
//!
//! A call reads at different moments and writes nothing until it commits. The commit checks every version that was
//! read, and fails if one has changed since. That makes the calls of one store behave as if they had run one after the
//! other, without a lock being held while a tool works.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::Error;
use crate::BoxFuture;

/// Reads documents. Writing is [`Claims::commit`](super::Claims::commit).
///
/// A deleted document keeps its version, so that a new document under the same id never has the version of the old one.
pub trait Documents: Send + Sync + 'static {
    /// One document; one that was never there has version 0 and no body.
    fn document<'a>(&'a self, key: &'a DocumentKey)
    -> BoxFuture<'a, Result<StoredDocument, Error>>;

    /// The live documents of a collection whose id starts with `prefix`, in the byte order of their ids,
    /// after `after`, at most `limit`; and the shape of the collection, read no later than they were.
    fn scan<'a>(
        &'a self,
        user_id: &'a str,
        collection: &'a str,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Scan, Error>>;

    /// The live documents with this entry in a declared index, in the byte order of their ids; and the
    /// shape.
    fn find<'a>(
        &'a self,
        user_id: &'a str,
        collection: &'a str,
        entry: &'a IndexEntry,
        limit: usize,
    ) -> BoxFuture<'a, Result<Scan, Error>>;

    /// Counts the documents of a collection, of all users, that are [open](IndexEntry::open_until) after a moment, at
    /// most `limit`: one query, whatever is stored.
    fn count_open<'a>(
        &'a self,
        collection: &'a str,
        after: Timestamp,
        limit: usize,
    ) -> BoxFuture<'a, Result<usize, Error>>;

    /// The open documents of a collection, of all users, after a position, by the end of their time, at most `limit`:
    /// one query a page.
    fn open_documents<'a>(
        &'a self,
        collection: &'a str,
        after: &'a OpenPlace,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<OpenDocument>, Error>>;

    /// The documents of all users and collections after this one, deleted ones included, in the order of their keys, at most
    /// `limit`. For comparing them with the log.
    fn all_documents<'a>(
        &'a self,
        after: Option<&'a DocumentKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DocumentRow>, Error>>;
}

/// A document with its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRow {
    /// The address.
    pub key: DocumentKey,
    /// The version.
    pub version: u64,
    /// The sealed body; `None` if the document was deleted.
    pub body: Option<Arc<[u8]>>,
}

/// A position in the list of open documents: the time when it ends, its user, and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenPlace {
    /// As [`IndexEntry::open_until`] has it.
    pub until: [u8; 32],
    /// The user that the document belongs to.
    pub user_id: String,
    /// Its name in the collection.
    pub id: String,
}

impl OpenPlace {
    /// The place before everything that is open after a moment.
    pub fn after(moment: Timestamp) -> Self {
        // Whole seconds are told apart, and no document has an empty name.
        let next = moment.checked_add(SignedDuration::from_secs(1));
        Self {
            until: IndexEntry::open_until(next.unwrap_or(Timestamp::MAX)).value,
            user_id: String::new(),
            id: String::new(),
        }
    }
}

/// A document that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenDocument {
    /// Its position in the list.
    pub place: OpenPlace,
    /// Its version.
    pub version: u64,
    /// The sealed body.
    pub body: Arc<[u8]>,
}

/// Address of a document. Shared documents have an empty `user_id`, which no user has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentKey {
    /// The user that the document belongs to; empty if it is shared.
    pub user_id: String,
    /// The collection, such as `cart`.
    pub collection: String,
    /// Its name in the collection.
    pub id: String,
}

/// A document as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDocument {
    /// The version; 0 if it was never there. It rises with each write and delete.
    pub version: u64,
    /// The sealed body; `None` if there is no document.
    pub body: Option<Arc<[u8]>>,
}

/// Documents of a collection, and its shape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// The documents that were found.
    pub documents: Vec<FoundDocument>,
    /// A number that rises with each insert, delete and change of an index entry in the collection of this user, if the
    /// collection is tracked; 0 before the first.
    pub shape: u64,
}

/// One document that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDocument {
    /// Its name in the collection.
    pub id: String,
    /// Its version.
    pub version: u64,
    /// The sealed body.
    pub body: Arc<[u8]>,
}

/// An entry of a declared index: a digest of the value under the user's own key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexEntry {
    /// Name of the index.
    pub index: String,
    /// Digest of the value.
    pub value: [u8; 32],
}

/// The index of documents that are open until a moment. No collection can declare it: its name starts with a dollar
/// sign.
pub const OPEN_INDEX: &str = "$open";

impl IndexEntry {
    /// The entry of a document that is open until a moment: the only entry that is not a digest and that is counted
    /// across users, so it has only the second.
    pub fn open_until(moment: Timestamp) -> Self {
        let mut value = [0; 32];
        // Times before 1970 are all over.
        let second = u64::try_from(moment.as_second()).unwrap_or_default();
        for (place, byte) in value.iter_mut().zip(second.to_be_bytes()) {
            *place = byte;
        }
        Self {
            index: OPEN_INDEX.to_owned(),
            value,
        }
    }
}

/// A version that a call relies on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRead {
    /// The document that was read.
    pub key: DocumentKey,
    /// The version that was read; 0 if it was never there.
    pub version: u64,
}

/// The shape of a collection that a call relies on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShapeRead {
    /// The user that the collection belongs to.
    pub user_id: String,
    /// Name of the collection.
    pub collection: String,
    /// The shape that was read.
    pub shape: u64,
}

/// A document that is written or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentWrite {
    /// The document to write.
    pub key: DocumentKey,
    /// Its name in the log, by the key of its owner; empty if the record of the commit does not name it.
    pub pseudonym: String,
    /// The version that it replaces, 0 if it was never there; the new one is one higher.
    pub version: u64,
    /// The sealed body; `None` to delete the document.
    pub body: Option<Vec<u8>>,
    /// All its index entries; they replace the previous ones.
    pub entries: Vec<IndexEntry>,
    /// True if the collection's shape is tracked: scans and indexes are declared for it. Then an insert, a
    /// delete and a change of entries raise the shape.
    pub tracked: bool,
}
