//! Many calls opened at once, to be decided again under another policy.

use countersign_contract::evidence::Payload;
use countersign_contract::{EvidenceRecord, SnapshotId};

use super::{Archive, Error, SCOPE_OPEN, content, tampered};
use crate::principal::Principal;

/// A call that was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenedCall {
    /// Its record.
    pub record: EvidenceRecord,
    /// Its content; `None` if it is no longer kept, or if its user was erased.
    pub payload: Option<Box<Payload>>,
}

impl Archive {
    /// Opens these calls. The record of the access is durable before anything is opened.
    pub async fn open_many(
        &self,
        ids: &[SnapshotId],
        by: &Principal,
        reason: &str,
        event: &'static str,
    ) -> Result<Vec<OpenedCall>, Error> {
        let first = ids.first();
        self.needs(by, SCOPE_OPEN, event, first).await?;
        let reason = self.reasoned(reason, by, event, first).await?;
        let mut records = Vec::with_capacity(ids.len());
        for id in ids {
            let stored = self.stored(id).await?;
            let record = self.record_of_user(&stored).await?;
            records.push((stored, record));
        }
        self.write_accesses(&records, by, &reason, event).await?;
        let mut opened = Vec::with_capacity(records.len());
        for (stored, record) in records {
            let keys = self.keys_of(&stored).await?;
            let payload = match (keys, &stored.payload) {
                (Some(keys), Some(sealed)) => {
                    let checked = content::check_sealed(&record, sealed);
                    checked.map_err(|what| tampered(&stored, what))?;
                    let open = content::open(&record, &stored.row, sealed, &keys);
                    let open = open.map_err(|what| tampered(&stored, what))?;
                    Some(Box::new(open.payload))
                }
                (Some(_) | None, _) => None,
            };
            opened.push(OpenedCall { record, payload });
        }
        Ok(opened)
    }
}
