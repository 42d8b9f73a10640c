//! Declaration of a collection of documents.

use countersign_contract::canonical;
use countersign_evidence::seal::UserKey;
use serde_json::Value;

use crate::ledger::IndexEntry;

/// A named set of documents, declared once as a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collection {
    name: &'static str,
    owner: Owner,
    is_scanned: bool,
    indexes: &'static [(&'static str, &'static str)],
}

/// Owner of the documents of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Each user has their own; they are erased with the user.
    User,
    /// All calls share them: stock, counters.
    Shared,
}

impl Collection {
    /// Each user has their own documents.
    pub const fn of_user(name: &'static str) -> Self {
        Self {
            name,
            owner: Owner::User,
            is_scanned: false,
            indexes: &[],
        }
    }

    /// All users share the documents.
    pub const fn shared(name: &'static str) -> Self {
        Self {
            owner: Owner::Shared,
            ..Self::of_user(name)
        }
    }

    /// Allows scans. The store then counts inserts and deletes, so that a scan notices them: calls
    /// that insert into it at the same moment, for the same owner, wait for each other.
    pub const fn scanned(mut self) -> Self {
        self.is_scanned = true;
        self
    }

    /// Declares indexes: names, and the JSON pointers to the indexed members. Documents can be found by equality.
    /// Allows scans too.
    pub const fn indexed(mut self, indexes: &'static [(&'static str, &'static str)]) -> Self {
        self.indexes = indexes;
        self.is_scanned = true;
        self
    }

    /// Its name in the store.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Owner of the documents.
    pub const fn owner(&self) -> Owner {
        self.owner
    }

    /// True if inserts and deletes are counted.
    pub const fn is_tracked(&self) -> bool {
        self.is_scanned
    }

    pub(super) fn pointer_of(&self, index: &str) -> Option<&'static str> {
        let mut indexes = self.indexes.iter();
        indexes
            .find(|(name, _)| *name == index)
            .map(|(_, pointer)| *pointer)
    }

    /// The index entries of a document.
    pub(super) fn entries(&self, keys: &UserKey, document: &Value) -> Vec<IndexEntry> {
        let mut entries: Vec<_> = self
            .indexes
            .iter()
            .filter_map(|(index, pointer)| {
                let value = document.pointer(pointer)?;
                Some(entry(keys, self, index, value))
            })
            .collect();
        entries.sort();
        entries
    }
}

/// The entry of a value in an index.
pub(super) fn entry(
    keys: &UserKey,
    collection: &Collection,
    index: &str,
    value: &Value,
) -> IndexEntry {
    // A value without a canonical form is found by its text: the same text, the same entry.
    let text = canonical::to_string(value).unwrap_or_else(|_| value.to_string());
    let named = [collection.name, index, &text].join("\0");
    IndexEntry {
        index: index.to_owned(),
        value: keys.index(named.as_bytes()),
    }
}
