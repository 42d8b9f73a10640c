//! Documents in memory.

use std::future::ready;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Document, Inner, MemoryStore};
use crate::BoxFuture;
use crate::ledger::{
    Commit, CommitAnswer, DocumentKey, DocumentRow, DocumentWrite, Documents, Error, FoundDocument,
    IndexEntry, OPEN_INDEX, OpenDocument, OpenPlace, Scan, StoredDocument,
};

impl Documents for MemoryStore {
    fn document<'a>(
        &'a self,
        key: &'a DocumentKey,
    ) -> BoxFuture<'a, Result<StoredDocument, Error>> {
        let inner = self.lock();
        let stored = inner.documents.get(key).map_or(
            StoredDocument {
                version: 0,
                body: None,
            },
            |document| StoredDocument {
                version: document.version,
                body: document.body.clone(),
            },
        );
        Box::pin(ready(Ok(stored)))
    }

    fn scan<'a>(
        &'a self,
        user_id: &'a str,
        collection: &'a str,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Scan, Error>> {
        let wanted = |key: &DocumentKey, _: &Document| {
            key.id.starts_with(prefix) && after.is_none_or(|after| key.id.as_str() > after)
        };
        Box::pin(ready(Ok(self
            .lock()
            .select(user_id, collection, limit, wanted))))
    }

    fn find<'a>(
        &'a self,
        user_id: &'a str,
        collection: &'a str,
        entry: &'a IndexEntry,
        limit: usize,
    ) -> BoxFuture<'a, Result<Scan, Error>> {
        let wanted = |_: &DocumentKey, document: &Document| document.entries.contains(entry);
        Box::pin(ready(Ok(self
            .lock()
            .select(user_id, collection, limit, wanted))))
    }

    fn count_open<'a>(
        &'a self,
        collection: &'a str,
        after: Timestamp,
        limit: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        let after = IndexEntry::open_until(after);
        let is_open = |entry: &IndexEntry| entry.index == after.index && entry.value > after.value;
        let inner = self.lock();
        let open = inner.documents.iter().filter(|(key, document)| {
            key.collection == collection
                && document.body.is_some()
                && document.entries.iter().any(is_open)
        });
        let count = open.take(limit).count();
        Box::pin(ready(Ok(count)))
    }

    fn open_documents<'a>(
        &'a self,
        collection: &'a str,
        after: &'a OpenPlace,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<OpenDocument>, Error>> {
        let inner = self.lock();
        let of_collection = inner
            .documents
            .iter()
            .filter(|(key, _)| key.collection == collection);
        let open = of_collection.filter_map(|(key, document)| {
            let mut entries = document.entries.iter();
            let entry = entries.find(|entry| entry.index == OPEN_INDEX)?;
            Some(OpenDocument {
                place: OpenPlace {
                    until: entry.value,
                    user_id: key.user_id.clone(),
                    id: key.id.clone(),
                },
                version: document.version,
                body: document.body.clone()?,
            })
        });
        let mut open: Vec<_> = open.filter(|open| open.place > *after).collect();
        open.sort_by(|a, b| a.place.cmp(&b.place));
        open.truncate(limit);
        Box::pin(ready(Ok(open)))
    }

    fn all_documents<'a>(
        &'a self,
        after: Option<&'a DocumentKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DocumentRow>, Error>> {
        let inner = self.lock();
        let documents = inner.documents.iter();
        let behind = documents.filter(|(key, _)| after.is_none_or(|after| *key > after));
        let rows = behind.take(limit).map(|(key, document)| DocumentRow {
            key: key.clone(),
            version: document.version,
            body: document.body.clone(),
        });
        let rows = rows.collect();
        drop(inner);
        Box::pin(ready(Ok(rows)))
    }
}

impl Inner {
    fn select(
        &self,
        user_id: &str,
        collection: &str,
        limit: usize,
        wanted: impl Fn(&DocumentKey, &Document) -> bool,
    ) -> Scan {
        let first = DocumentKey {
            user_id: user_id.to_owned(),
            collection: collection.to_owned(),
            id: String::new(),
        };
        let documents = self
            .documents
            .range(first..)
            .take_while(|(key, _)| key.user_id == user_id && key.collection == collection)
            .filter(|(key, document)| wanted(key, document))
            .filter_map(|(key, document)| {
                Some(FoundDocument {
                    id: key.id.clone(),
                    version: document.version,
                    body: document.body.clone()?,
                })
            })
            .take(limit)
            .collect();
        Scan {
            documents,
            shape: self.shape(user_id, collection),
        }
    }

    fn shape(&self, user_id: &str, collection: &str) -> u64 {
        let key = (user_id.to_owned(), collection.to_owned());
        self.shapes.get(&key).copied().unwrap_or_default()
    }

    /// The first document or shape that has changed since it was read.
    pub(super) fn moved(&self, commit: &Commit) -> Option<CommitAnswer> {
        let read = commit.reads.iter().find(|read| {
            let document = self.documents.get(&read.key);
            document.map_or(0, |document| document.version) != read.version
        });
        if let Some(read) = read {
            return Some(CommitAnswer::Moved {
                collection: read.key.collection.clone(),
                id: read.key.id.clone(),
            });
        }
        let shape = commit
            .shapes
            .iter()
            .find(|read| self.shape(&read.user_id, &read.collection) != read.shape)?;
        Some(CommitAnswer::Moved {
            collection: shape.collection.clone(),
            id: String::new(),
        })
    }

    pub(super) fn write(&mut self, write: DocumentWrite) {
        let before = self.documents.get(&write.key);
        let had_body = before.is_some_and(|document| document.body.is_some());
        let had_entries = before.map(|document| document.entries.as_slice());
        let is_reshaped = had_body != write.body.is_some()
            || had_entries.unwrap_or_default() != write.entries.as_slice();
        if write.tracked && is_reshaped {
            let key = (write.key.user_id.clone(), write.key.collection.clone());
            *self.shapes.entry(key).or_default() += 1;
        }
        let document = Document {
            version: write.version + 1,
            body: write.body.map(Arc::from),
            entries: write.entries,
        };
        self.documents.insert(write.key, document);
    }
}
