//! Checks that the row, the payload and the links of a record agree with the record.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use countersign_contract::evidence::Link;
use countersign_contract::{Digest, EvidenceRecord, RecordKind};
use countersign_evidence::freshness;
use countersign_evidence::seal::UserKey;
use countersign_evidence::tree::leaf_hash;

use super::batch::ReadRecord;
use super::gone::Gone;
use super::state::State;
use super::{Fault, Finding, Found, NotChecked};
use crate::archive::{Archive, content};
use crate::ledger::{Error, StoredRecord};

/// Number of records that are looked up in parallel.
const PARALLEL: usize = 8;

/// Looks up and checks every record.
pub(super) async fn check(
    archive: &Archive,
    records: Vec<ReadRecord>,
    found: &mut Found,
) -> Result<(), Error> {
    let share = records.len().div_ceil(PARALLEL).max(1);
    let mut records = records.into_iter();
    let mut tasks = Vec::new();
    loop {
        let part: Vec<ReadRecord> = records.by_ref().take(share).collect();
        if part.is_empty() {
            break;
        }
        let archive = archive.clone();
        tasks.push(tokio::spawn(
            async move { check_part(&archive, part).await },
        ));
    }
    for task in tasks {
        let part = task.await.map_err(|_| Error::Damaged {
            what: "a batch of records".to_owned(),
        })??;
        found.payloads += part.payloads;
        found.payloads_gone += part.payloads_gone;
        found.gone.add(part.gone);
        found.state.add(part.state);
        found.not_checked.extend(part.not_checked);
        for finding in part.findings {
            found.push(finding);
        }
    }
    Ok(())
}

#[derive(Default)]
struct Part {
    findings: Vec<Finding>,
    payloads: u64,
    payloads_gone: u64,
    gone: Gone,
    state: State,
    not_checked: BTreeSet<NotChecked>,
}

async fn check_part(archive: &Archive, records: Vec<ReadRecord>) -> Result<Part, Error> {
    let store = &archive.store;
    let mut part = Part::default();
    let mut owners = Owners::default();
    for read in &records {
        let mut faults = Vec::new();
        match store.record(&read.record.id).await {
            // One row that somebody has changed must not hide all those behind it.
            Err(Error::Damaged { what }) => faults.push(Fault::RowUnreadable { what: what.into() }),
            Err(error) => return Err(error),
            Ok(None) => faults.push(Fault::RowMissing),
            Ok(Some(stored)) => {
                let stored = &stored;
                part.kept(read, stored, &mut faults);
                part.gone.look(archive, read, stored);
                part.state.look(archive, read, stored).await?;
                match owners.check(archive, read, stored).await? {
                    Ownership::Holds => {}
                    Ownership::Unknown => {
                        part.not_checked.insert(NotChecked::Owners);
                    }
                    Ownership::Wrong(fault) => faults.push(fault),
                }
            }
        }
        for link in &read.record.links {
            let target = match store.record(&link.id).await {
                Ok(target) => target,
                // It is named as the record that it is.
                Err(Error::Damaged { .. }) => continue,
                Err(error) => return Err(error),
            };
            // A leaf that cannot be read is named as the record that it is; here it says nothing.
            let leaf = target.as_ref().map(|target| target.leaf.as_slice());
            let record: Option<EvidenceRecord> =
                leaf.and_then(|leaf| serde_json::from_slice(leaf).ok());
            faults.extend(link_fault(read, link, target.as_ref(), record.as_ref()));
            if freshness::is_unclaimed(link, record.as_ref()) {
                part.not_checked.insert(NotChecked::Freshness);
            }
        }
        part.findings
            .extend(faults.into_iter().map(|fault| Finding {
                index: Some(read.index),
                id: Some(read.record.id.as_str().into()),
                fault,
            }));
    }
    Ok(part)
}

impl Part {
    fn kept(&mut self, read: &ReadRecord, stored: &StoredRecord, faults: &mut Vec<Fault>) {
        if stored.index != Some(read.index) {
            let found = stored.index;
            faults.push(Fault::IndexDiffers { found });
        }
        if stored.leaf != read.leaf {
            faults.push(Fault::RowDiffers { field: "leaf" });
        }
        if let Some(field) = content::differing(&stored.row, &read.record) {
            faults.push(Fault::RowDiffers { field });
        }
        match (&stored.payload, read.record.payload) {
            (None, None) => {}
            (None, Some(_)) => self.payloads_gone += 1,
            (Some(_), None) => faults.push(Fault::PayloadUnexpected),
            (Some(sealed), Some(expected)) => {
                let found = Digest::of_bytes(sealed);
                if found == expected {
                    self.payloads += 1;
                } else {
                    faults.push(Fault::PayloadDiffers { expected, found });
                }
            }
        }
    }
}

/// Cache of the keys of the users that were met so far.
#[derive(Default)]
struct Owners(HashMap<String, Owner>);

#[derive(Clone)]
enum Owner {
    Known(Arc<UserKey>),
    WithoutKey,
    /// The master key does not open the user's key, so the user cannot be checked.
    Closed,
}

/// Result of comparing the user in the row with the subject in the record.
enum Ownership {
    Holds,
    /// The user was erased, or the master key does not open the user's key.
    Unknown,
    Wrong(Fault),
}

impl Owners {
    async fn check(
        &mut self,
        archive: &Archive,
        read: &ReadRecord,
        stored: &StoredRecord,
    ) -> Result<Ownership, Error> {
        if read.record.subject.is_none() {
            return Ok(Ownership::Holds);
        }
        // An erasure takes the payload with the name, and its own record names nobody.
        let is_erased = stored.row.user_id.is_empty() && stored.payload.is_none();
        if is_erased || read.record.kind == RecordKind::Erasure {
            return Ok(Ownership::Unknown);
        }
        let wrong = Ownership::Wrong(Fault::RowDiffers { field: "user" });
        match self.owner(archive, stored).await {
            Owner::Closed => Ok(Ownership::Unknown),
            Owner::Known(keys) if content::is_of_user(&stored.row, &read.record, &keys) => {
                Ok(Ownership::Holds)
            }
            Owner::Known(_) => Ok(wrong),
            Owner::WithoutKey if stored.row.user_id.is_empty() => Ok(wrong),
            Owner::WithoutKey => {
                // The user may have been erased since the row was read.
                let now = archive.store.record(&stored.row.id).await?;
                let is_erased = now.is_none_or(|now| now.row.user_id.is_empty());
                Ok(if is_erased {
                    Ownership::Unknown
                } else {
                    Ownership::Wrong(Fault::KeyMissing)
                })
            }
        }
    }

    async fn owner(&mut self, archive: &Archive, stored: &StoredRecord) -> Owner {
        let user_id = &stored.row.user_id;
        if let Some(owner) = self.0.get(user_id) {
            return owner.clone();
        }
        let owner = match archive.keys_of(stored).await {
            Ok(Some(keys)) => Owner::Known(keys),
            Ok(None) => Owner::WithoutKey,
            Err(_) => Owner::Closed,
        };
        self.0.insert(user_id.clone(), owner.clone());
        owner
    }
}

/// The rules of a bundle's links, with the difference that a linked record has to be there.
fn link_fault(
    read: &ReadRecord,
    link: &Link,
    target: Option<&StoredRecord>,
    record: Option<&EvidenceRecord>,
) -> Option<Fault> {
    let id: Arc<str> = link.id.as_str().into();
    let Some(target) = target else {
        return Some(Fault::LinkMissing { id });
    };
    if Digest(leaf_hash(&target.leaf)) != link.leaf {
        return Some(Fault::LinkDiffers { id });
    }
    // A linked record was committed before the one that links it; if it is not in the tree yet, it came later.
    if target.index.is_none_or(|index| index >= read.index) {
        return Some(Fault::LinkLater { id });
    }
    let fault = freshness::check(link, record).err()?;
    Some(Fault::Freshness { id, fault })
}
