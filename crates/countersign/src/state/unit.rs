//! The unit of work: the reads and writes of one run of a tool.

use std::collections::BTreeMap;

use countersign_evidence::seal::UserKey;
use serde_json::Value;

use super::document;
use super::{Collection, DOCUMENT_BYTES_MAX, READS_MAX, WRITES_MAX, misuse};
use crate::ids::IdSource;
use crate::ledger::{DocumentKey, DocumentRead, DocumentWrite, ShapeRead};
use crate::tool::ToolError;
use crate::words::Say;

/// Reads with their versions, and buffered writes.
#[derive(Debug, Default)]
pub(super) struct Unit {
    reads: BTreeMap<DocumentKey, u64>,
    /// Shapes that were read, by user and collection.
    shapes: BTreeMap<(String, String), u64>,
    writes: BTreeMap<DocumentKey, Buffered>,
}

/// A write that waits for the commit.
#[derive(Debug)]
pub(super) struct Buffered {
    collection: Collection,
    version: u64,
    /// The value to write; `None` to delete the document.
    value: Option<Value>,
    bytes: Vec<u8>,
}

/// The reads and writes of a unit, for its commit.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) reads: Vec<DocumentRead>,
    pub(crate) shapes: Vec<ShapeRead>,
    pub(crate) writes: Vec<DocumentWrite>,
}

impl Changes {
    pub(super) fn of(unit: &Unit) -> Self {
        let read = |(key, version): (&DocumentKey, &u64)| DocumentRead {
            key: key.clone(),
            version: *version,
        };
        let shape = |((user_id, collection), shape): (&(String, String), &u64)| ShapeRead {
            user_id: user_id.clone(),
            collection: collection.clone(),
            shape: *shape,
        };
        Self {
            reads: unit.reads.iter().map(read).collect(),
            shapes: unit.shapes.iter().map(shape).collect(),
            writes: Vec::new(),
        }
    }

    /// The same without the documents of this user.
    pub(crate) fn without(&self, user_id: &str) -> Self {
        let reads = self.reads.iter().filter(|read| read.key.user_id != user_id);
        let shapes = self.shapes.iter().filter(|read| read.user_id != user_id);
        let writes = self.writes.iter();
        let writes = writes.filter(|write| write.key.user_id != user_id);
        Self {
            reads: reads.cloned().collect(),
            shapes: shapes.cloned().collect(),
            writes: writes.cloned().collect(),
        }
    }
}

impl Unit {
    /// The write of this call to a document: a value, or its deletion.
    pub(super) fn buffered(&self, key: &DocumentKey) -> Option<&Buffered> {
        self.writes.get(key)
    }

    pub(super) fn version(&self, key: &DocumentKey) -> Option<u64> {
        self.reads.get(key).copied()
    }

    /// Notes the version of a read. If another version was read before, the first counts: the commit will then find
    /// that it has changed.
    pub(super) fn track(&mut self, key: DocumentKey, version: u64) -> Result<(), ToolError> {
        if self.reads.len() >= READS_MAX && !self.reads.contains_key(&key) {
            return Err(misuse(Say::TooManyReads {
                most: READS_MAX.to_string(),
            }));
        }
        self.reads.entry(key).or_insert(version);
        Ok(())
    }

    pub(super) fn track_shape(
        &mut self,
        user_id: &str,
        collection: &str,
        shape: u64,
    ) -> Result<(), ToolError> {
        if self.shapes.len() >= READS_MAX {
            return Err(misuse(Say::TooManyScans {
                most: READS_MAX.to_string(),
            }));
        }
        let key = (user_id.to_owned(), collection.to_owned());
        self.shapes.entry(key).or_insert(shape);
        Ok(())
    }

    pub(super) fn write(&mut self, key: DocumentKey, written: Buffered) -> Result<(), ToolError> {
        if self.writes.len() >= WRITES_MAX && !self.writes.contains_key(&key) {
            return Err(misuse(Say::TooManyWrites {
                most: WRITES_MAX.to_string(),
            }));
        }
        self.writes.insert(key, written);
        Ok(())
    }

    pub(super) fn into_writes(self) -> BTreeMap<DocumentKey, Buffered> {
        self.writes
    }

    /// Number of documents of a collection that this unit has changed.
    pub(super) fn changed(&self, user_id: &str, collection: &str) -> usize {
        self.writes_in(user_id, collection).count()
    }

    fn writes_in<'a>(
        &'a self,
        user_id: &'a str,
        collection: &'a str,
    ) -> impl Iterator<Item = (&'a DocumentKey, &'a Buffered)> {
        self.writes
            .iter()
            .filter(move |(key, _)| key.user_id == user_id && key.collection == collection)
    }

    /// The result of a scan with this unit's own writes applied, by id.
    pub(super) fn overlay(
        &self,
        user_id: &str,
        collection: &str,
        found: Vec<(String, Value)>,
        wanted: impl Fn(&str, &Value) -> bool,
    ) -> BTreeMap<String, Value> {
        let mut documents: BTreeMap<_, _> = found.into_iter().collect();
        for (key, written) in self.writes_in(user_id, collection) {
            match &written.value {
                Some(value) if wanted(&key.id, value) => {
                    documents.insert(key.id.clone(), value.clone());
                }
                Some(_) | None => {
                    documents.remove(&key.id);
                }
            }
        }
        documents
    }
}

impl Buffered {
    pub(super) fn new(
        collection: &Collection,
        version: u64,
        value: Option<Value>,
    ) -> Result<Self, ToolError> {
        let bytes = match &value {
            Some(value) => serde_json::to_vec(value).map_err(ToolError::unwritable_output)?,
            None => Vec::new(),
        };
        if bytes.len() > DOCUMENT_BYTES_MAX {
            return Err(misuse(Say::DocumentTooLarge {
                collection: collection.name().to_owned(),
                bytes: bytes.len().to_string(),
                most: DOCUMENT_BYTES_MAX.to_string(),
            }));
        }
        Ok(Self {
            collection: *collection,
            version,
            value,
            bytes,
        })
    }

    /// The document as this call has left it; `None` if it is deleted.
    pub(super) fn value(&self) -> Option<Value> {
        self.value.clone()
    }

    pub(super) fn seal(
        self,
        key: DocumentKey,
        keys: &UserKey,
        ids: &dyn IdSource,
    ) -> DocumentWrite {
        let mut nonce = [0; 12];
        ids.fill(&mut nonce);
        let entries = self
            .value
            .as_ref()
            .map(|value| self.collection.entries(keys, value))
            .unwrap_or_default();
        DocumentWrite {
            body: self
                .value
                .is_some()
                .then(|| document::seal(keys, nonce, &key, self.version, &self.bytes)),
            pseudonym: keys.document(&key.collection, &key.id),
            key,
            version: self.version,
            entries,
            tracked: self.collection.is_tracked(),
        }
    }
}
