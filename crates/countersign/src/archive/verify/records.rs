//! Whether the row, the payload and the links of a record are what the record says.

use std::sync::Arc;

use countersign_contract::evidence::Link;
use countersign_contract::{Digest, EvidenceRecord};
use countersign_evidence::tree::leaf_hash;
use jiff::Timestamp;

use super::batch::ReadRecord;
use super::{Fault, Finding, Found};
use crate::archive::content;
use crate::ledger::{Error, Store, StoredRecord};

/// How many records are looked up at the same time.
const PARALLEL: usize = 8;

/// Looks every record up by its name.
pub(super) async fn check(
    store: &Arc<dyn Store>,
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
        let store = store.clone();
        tasks.push(tokio::spawn(async move { check_part(&*store, part).await }));
    }
    for task in tasks {
        let part = task.await.map_err(|_| Error::Damaged {
            what: "a batch of records".to_owned(),
        })??;
        found.payloads += part.payloads;
        found.payloads_gone += part.payloads_gone;
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
}

async fn check_part(store: &dyn Store, records: Vec<ReadRecord>) -> Result<Part, Error> {
    let mut part = Part::default();
    for read in &records {
        let stored = store.record(&read.record.id).await?;
        let mut faults = Vec::new();
        match &stored {
            None => faults.push(Fault::RowMissing),
            Some(stored) => part.kept(read, stored, &mut faults),
        }
        for link in &read.record.links {
            let target = store.record(&link.id).await?;
            faults.extend(link_fault(read, link, target.as_ref()));
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

fn link_fault(read: &ReadRecord, link: &Link, target: Option<&StoredRecord>) -> Option<Fault> {
    let id: Arc<str> = link.id.as_str().into();
    let Some(target) = target else {
        return Some(Fault::LinkMissing { id });
    };
    if Digest(leaf_hash(&target.leaf)) != link.leaf {
        return Some(Fault::LinkDiffers { id });
    }
    // What a call rests on was committed before it; where that is not in the tree yet, it came later.
    if target.index.is_none_or(|index| index >= read.index) {
        return Some(Fault::LinkLater { id });
    }
    let target: EvidenceRecord = serde_json::from_slice(&target.leaf).ok()?;
    let valid_until = target.reply?.valid_until?;
    let until: Option<Timestamp> = valid_until.parse().ok();
    let at: Option<Timestamp> = read.record.at.parse().ok();
    let is_over = until.zip(at).is_none_or(|(until, at)| at > until);
    is_over.then_some(Fault::LinkExpired { id, valid_until })
}
