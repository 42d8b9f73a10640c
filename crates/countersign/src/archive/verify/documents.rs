//! Documents that the log can be compared with. The record of each commit names the documents that it wrote, by a pseudonym and with the new
//! version. A document that is older than its newest record, or gone, was put back or removed without one.
//!
//! The log is read first and the documents after it, so a document that is written meanwhile is newer than its record, and never older.

use std::collections::HashMap;
use std::sync::Arc;

use countersign_contract::EvidenceRecord;
use countersign_evidence::hex;
use countersign_evidence::seal::UserKey;
use serde_json::Value;

use super::batch::{self, ReadRecord};
use super::earlier::LOG_BEGUN;
use super::{Fault, Finding};
use crate::archive::Archive;
use crate::ledger::{DocumentKey, DocumentRow, Error, LogQuery};
use crate::state::document::{REMOVED, RESTORED, WRITES, open_versioned};

/// Number of documents that are read at once.
const PAGE: usize = 512;

/// Number of leaves that are read at once.
const LEAVES: usize = 4_096;

/// Maximum number of records that are committed and not in the tree yet.
const WAITING_MAX: usize = 4_096;

/// Pseudonym of a document, as bytes.
type Pseudonym = [u8; 16];

/// The newest stamp of each document.
#[derive(Debug, Default)]
pub(super) struct Documents {
    newest: HashMap<Pseudonym, Newest>,
    /// Number of leaves that were looked at, from the start of the log.
    end: u64,
    /// Place of the record that began this log after another one: keys, approvals and grants were forgotten there.
    begun: u64,
}

#[derive(Debug, Clone, Copy)]
struct Newest {
    index: u64,
    version: u64,
    is_removed: bool,
    /// True if the document must be there: its user was not erased.
    is_owed: bool,
}

impl Documents {
    /// Notes the documents that the commit of a record wrote.
    pub(super) fn note(&mut self, read: &ReadRecord, user_id: &str) {
        self.end = self.end.max(read.index.saturating_add(1));
        // The row of a user's record loses its name when the user is erased, and the user's documents are erased with it. A
        // restore is about the documents of many users.
        let of_nobody = read.record.subject.is_none() && event(&read.record) != Some(RESTORED);
        let is_owed = !user_id.is_empty() || of_nobody;
        if event(&read.record) == Some(LOG_BEGUN) {
            self.begun = self.begun.max(read.index);
        }
        for (pseudonym, version, is_removed) in stamps(&read.record) {
            let stamp = Newest {
                index: read.index,
                version,
                is_removed,
                is_owed,
            };
            self.put(pseudonym, stamp);
        }
    }

    fn put(&mut self, pseudonym: Pseudonym, stamp: Newest) {
        let newest = self.newest.entry(pseudonym).or_insert(stamp);
        if newest.index < stamp.index {
            *newest = stamp;
        }
    }

    pub(super) fn add(&mut self, more: Self) {
        self.end = self.end.max(more.end);
        self.begun = self.begun.max(more.begun);
        for (pseudonym, stamp) in more.newest {
            self.put(pseudonym, stamp);
        }
    }

    /// The faults, when the whole log was read.
    pub(super) async fn faults(mut self, archive: &Archive) -> Result<Vec<Finding>, Error> {
        if self.newest.is_empty() {
            return Ok(Vec::new());
        }
        let (mut faults, mut removed) = (Vec::new(), Vec::new());
        let mut after = None;
        let mut keys = Keys::default();
        loop {
            let page = archive.store.all_documents(after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            for row in &page {
                let Some(keys) = keys.of(archive, &row.key.user_id).await? else {
                    continue;
                };
                let Some(pseudonym) = pseudonym(&keys, &row.key) else {
                    continue;
                };
                let Some(newest) = self.newest.remove(&pseudonym) else {
                    continue;
                };
                match compared(row, &keys, newest) {
                    Compared::Same => {}
                    Compared::Removed => removed.push((pseudonym, row.version, newest)),
                    Compared::Fault(fault) => faults.push((newest, fault)),
                }
            }
        }
        let missing = self.newest.iter();
        let missing = missing.filter(|(_, newest)| {
            newest.is_owed && !newest.is_removed && newest.index >= self.begun
        });
        let missing: Vec<Newest> = missing.map(|(_, newest)| *newest).collect();
        for newest in missing {
            if self.is_still_owed(archive, newest).await? {
                faults.push((newest, Fault::DocumentMissing));
            }
        }
        if !removed.is_empty() {
            let later = self.later(archive).await?;
            removed.retain(|(pseudonym, version, _)| {
                let said = later.get(pseudonym);
                said.is_none_or(|said| said < version)
            });
            let removed = removed.into_iter();
            faults.extend(removed.map(|(_, _, newest)| (newest, Fault::DocumentMissing)));
        }
        let mut findings = Vec::with_capacity(faults.len());
        for (newest, fault) in faults {
            findings.push(Finding {
                index: Some(newest.index),
                id: record_at(archive, newest.index)
                    .await?
                    .map(|record| record.id.as_str().into()),
                fault,
            });
        }
        Ok(findings)
    }

    /// False if the user of a record was erased since it was read.
    async fn is_still_owed(&self, archive: &Archive, newest: Newest) -> Result<bool, Error> {
        let Some(record) = record_at(archive, newest.index).await? else {
            return Ok(false);
        };
        if record.subject.is_none() {
            return Ok(true);
        }
        let stored = archive.store.record(&record.id).await?;
        Ok(stored.is_some_and(|stored| !stored.row.user_id.is_empty()))
    }

    /// The newest versions in the records behind those that were looked at.
    async fn later(&self, archive: &Archive) -> Result<HashMap<Pseudonym, u64>, Error> {
        let mut later: HashMap<Pseudonym, u64> = HashMap::new();
        let mut note = |leaf: &[u8]| {
            if let Ok(record) = batch::read(leaf) {
                for (pseudonym, version, _) in stamps(&record) {
                    let newest = later.entry(pseudonym).or_default();
                    *newest = (*newest).max(version);
                }
            }
        };
        let mut at = self.end;
        loop {
            let leaves = archive.store.leaves(at, LEAVES).await?;
            if leaves.is_empty() {
                break;
            }
            at += leaves.len() as u64;
            for leaf in &leaves {
                note(&leaf.bytes);
            }
        }
        let waiting = LogQuery {
            limit: WAITING_MAX,
            ..LogQuery::default()
        };
        let rows = archive.store.records(&waiting).await?;
        let ids: Vec<_> = rows.into_iter().map(|row| row.id).collect();
        let leaves = archive.store.leaves_of(&ids).await?;
        for (_, leaf) in leaves.iter().flatten() {
            note(leaf);
        }
        Ok(later)
    }
}

fn event(record: &EvidenceRecord) -> Option<&str> {
    record.act.get("event").and_then(Value::as_str)
}

/// Result of comparing a document with its newest record.
enum Compared {
    Same,
    /// It was removed after the record, which a later record may say.
    Removed,
    Fault(Fault),
}

fn compared(row: &DocumentRow, keys: &UserKey, newest: Newest) -> Compared {
    let Newest {
        version,
        is_removed,
        ..
    } = newest;
    if row.version < version {
        return Compared::Fault(Fault::DocumentPutBack);
    }
    let Some(body) = &row.body else {
        return match (row.version == version, is_removed) {
            (_, true) => Compared::Same,
            (true, false) => Compared::Fault(Fault::DocumentMissing),
            (false, false) => Compared::Removed,
        };
    };
    if row.version == version && is_removed {
        return Compared::Fault(Fault::DocumentPutBack);
    }
    match open_versioned(keys, &row.key, row.version, body) {
        Ok(_) => Compared::Same,
        Err(_) => Compared::Fault(Fault::DocumentChanged),
    }
}

/// The key of the user whose documents are being read; they come user by user.
#[derive(Default)]
struct Keys(Option<(String, Option<Arc<UserKey>>)>);

impl Keys {
    async fn of(
        &mut self,
        archive: &Archive,
        user_id: &str,
    ) -> Result<Option<Arc<UserKey>>, Error> {
        if let Some((known, keys)) = &self.0
            && known == user_id
        {
            return Ok(keys.clone());
        }
        // A key that cannot be opened is a fault of its own, and names no document.
        let keys = match archive.vault.existing_key(user_id).await {
            Ok(keys) => keys,
            Err(Error::Damaged { .. }) => None,
            Err(error) => return Err(error),
        };
        self.0 = Some((user_id.to_owned(), keys.clone()));
        Ok(keys)
    }
}

fn pseudonym(keys: &UserKey, key: &DocumentKey) -> Option<Pseudonym> {
    digits(&keys.document(&key.collection, &key.id))
}

fn digits(pseudonym: &str) -> Option<Pseudonym> {
    hex::decode(pseudonym)
}

/// The documents that a record names, each with its version after the commit; true if the commit removed it.
fn stamps(record: &EvidenceRecord) -> Vec<(Pseudonym, u64, bool)> {
    let mut stamps = Vec::new();
    for (member, is_removed) in [(WRITES, false), (REMOVED, true)] {
        let Some(Value::Object(named)) = record.act.get(member) else {
            continue;
        };
        stamps.extend(named.iter().filter_map(|(pseudonym, version)| {
            Some((digits(pseudonym)?, version.as_u64()?, is_removed))
        }));
    }
    stamps
}

/// The record at a place of the log; `None` if its leaf cannot be read, which is a finding of its own.
async fn record_at(archive: &Archive, index: u64) -> Result<Option<EvidenceRecord>, Error> {
    let leaves = archive.store.leaves(index, 1).await?;
    let leaf = leaves.first();
    Ok(leaf.and_then(|leaf| batch::read(&leaf.bytes).ok()))
}
