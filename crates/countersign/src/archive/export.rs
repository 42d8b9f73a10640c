//! Exporting evidence for an auditor: some records, the records that they rest on, and the proofs, in one file.

use std::collections::{BTreeMap, BTreeSet};

use countersign_contract::{EvidenceRecord, RecordKind, SnapshotId};
use countersign_evidence::bundle::{self, Bundle, BundledRecord};
use serde_json::json;

use super::act::Deed;
use super::content;
use super::{Archive, Error, SCOPE_OPEN, reason, tampered};
use crate::ledger::{Durability, StoredRecord};
use crate::principal::Principal;
use crate::scribe::Draft;

/// Content of a bundle besides records and proofs.
#[derive(Debug, Clone, Copy)]
pub enum Export<'a> {
    /// No content: it proves that a call happened, not what was said.
    Records,
    /// The sealed payloads, for a receiver who gets the keys.
    Sealed,
    /// The payloads, opened. One record of the access names all of them.
    Opened {
        /// The principal who opens them.
        by: &'a Principal,
        /// The reason.
        reason: &'a str,
    },
}

/// Maximum number of records that one record of their access can name.
const OPENED_MAX: usize = 1_000;

impl Archive {
    /// A bundle of these records and of everything they rest on, against the newest signed checkpoint.
    /// With `held`, a signed note that the receiver has, it also shows that the log has grown from it.
    pub async fn export(
        &self,
        ids: &[SnapshotId],
        export: Export<'_>,
        held: Option<&str>,
    ) -> Result<Bundle, Error> {
        self.export_told(ids, export, held, |_, _| ()).await
    }

    /// Same as [`export`](Self::export), and tells how many records of how many are proved.
    pub async fn export_told(
        &self,
        ids: &[SnapshotId],
        export: Export<'_>,
        held: Option<&str>,
        mut told: impl FnMut(usize, usize) + Send,
    ) -> Result<Bundle, Error> {
        let limit = match export {
            Export::Records | Export::Sealed => bundle::RECORDS_MAX,
            Export::Opened { by, reason } => {
                let first = ids.first();
                self.needs(by, SCOPE_OPEN, "export", first).await?;
                self.reasoned(reason, by, "export", first).await?;
                OPENED_MAX
            }
        };
        let records = self.with_linked(ids, limit).await?;
        let (checkpoint, note) = self.signed().await?.ok_or(Error::NoCheckpoint)?;
        let mut proved = BTreeMap::new();
        for (done, (stored, record)) in records.iter().enumerate() {
            told(done, records.len());
            let proof = self.prove(stored, checkpoint.clone(), note.clone()).await?;
            let leaf = String::from_utf8_lossy(&stored.leaf);
            let bundled = BundledRecord::new(proof.index, leaf, &proof.hashes);
            proved.insert(proof.index, (bundled, stored, record));
        }
        told(records.len(), records.len());
        if let Export::Opened { by, reason } = export {
            self.write_export(&records, by, reason).await?;
        }
        let mut bundled = Vec::new();
        for (record, stored, parsed) in proved.into_values() {
            bundled.push(match export {
                Export::Records => record,
                Export::Sealed => sealed(record, stored, parsed)?,
                Export::Opened { .. } => self.opened(record, stored, parsed).await?,
            });
        }
        let bundle = Bundle::new(&self.key, note, bundled)?;
        let Some(held) = held else { return Ok(bundle) };
        let (_, proof) = self.growth(held).await?;
        Ok(bundle.with_earlier(held.to_owned(), &proof))
    }

    /// The records and everything that they rest on, each once.
    pub(super) async fn with_linked(
        &self,
        ids: &[SnapshotId],
        limit: usize,
    ) -> Result<Vec<(StoredRecord, EvidenceRecord)>, Error> {
        let mut waiting: Vec<SnapshotId> = ids.to_vec();
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut records = Vec::new();
        while let Some(id) = waiting.pop() {
            if !seen.insert(id.as_str().to_owned()) {
                continue;
            }
            if seen.len() > limit {
                let found = seen.len() + waiting.len();
                return Err(Error::TooMany { found, limit });
            }
            let stored = self.stored(&id).await?;
            let record = self.record_of_user(&stored).await?;
            waiting.extend(record.links.iter().map(|link| link.id.clone()));
            records.push((stored, record));
        }
        Ok(records)
    }

    async fn opened(
        &self,
        bundled: BundledRecord,
        stored: &StoredRecord,
        record: &EvidenceRecord,
    ) -> Result<BundledRecord, Error> {
        let bundled = sealed(bundled, stored, record)?;
        let (Some(keys), Some(payload)) = (self.keys_of(stored).await?, &stored.payload) else {
            return Ok(bundled);
        };
        let opened = content::open(record, &stored.row, payload, &keys);
        let opened = opened.map_err(|what| tampered(stored, what))?;
        Ok(bundled.with_opened(opened.for_bundle()))
    }

    async fn write_export(
        &self,
        records: &[(StoredRecord, EvidenceRecord)],
        by: &Principal,
        reason: &str,
    ) -> Result<(), Error> {
        let with_payload = records
            .iter()
            .filter(|(stored, _)| stored.payload.is_some());
        let ids: Vec<_> = with_payload
            .map(|(stored, _)| stored.row.id.as_str())
            .collect();
        if ids.is_empty() {
            return Ok(());
        }
        let deed = Deed {
            kind: RecordKind::Access,
            user_id: "",
            keys: None,
            by,
            about: json!({"event": "export", "records": ids}),
            reason: &reason::checked(reason)?,
        };
        let draft = Draft::from(self.entry(&deed).await?);
        Ok(self.store.append(draft, Durability::Committed).await?)
    }
}

fn sealed(
    bundled: BundledRecord,
    stored: &StoredRecord,
    record: &EvidenceRecord,
) -> Result<BundledRecord, Error> {
    let Some(payload) = &stored.payload else {
        return Ok(bundled);
    };
    content::check_sealed(record, payload).map_err(|what| tampered(stored, what))?;
    Ok(bundled.with_payload(payload))
}
