//! Records behind the rows of a list. A row has the columns that a store searches by; the rest is only in the record.

use countersign_contract::{EvidenceRecord, SnapshotId};

use super::{Archive, Error, content, record_of};
use crate::ledger::{LogRow, StoredRecord};

impl Archive {
    /// The records of these rows, in their order; `None` for a record that is not stored. They are read at once, without
    /// payloads and proofs, so this is for a page of a list.
    pub async fn behind(&self, rows: &[LogRow]) -> Result<Vec<Option<EvidenceRecord>>, Error> {
        let ids: Vec<SnapshotId> = rows.iter().map(|row| row.id.clone()).collect();
        let leaves = self.store.leaves_of(&ids).await?;
        let records = rows.iter().zip(leaves).map(|(row, leaf)| {
            let Some(leaf) = leaf else { return Ok(None) };
            let record = content::record_in(row, &leaf).map_err(|what| Error::Tampered {
                id: row.id.clone(),
                what,
            })?;
            Ok(Some(record))
        });
        records.collect()
    }

    /// One record with its row; `None` if it is not stored. Its proof is not looked at.
    pub async fn at_hand(
        &self,
        id: &SnapshotId,
    ) -> Result<Option<(LogRow, EvidenceRecord)>, Error> {
        let Some(stored) = self.store.record(id).await? else {
            return Ok(None);
        };
        let record = record_of(&stored)?;
        let StoredRecord { row, .. } = stored;
        Ok(Some((row, record)))
    }

    /// True if the actor of a record, or the holder of its credential, has this id. Records have the id of a proved
    /// program, and a digest under the user's key of any other; both are compared, and so is the digest itself.
    pub async fn is_called_by(&self, row: &LogRow, record: &EvidenceRecord, id: &str) -> bool {
        let has = |id: &str| {
            let mut callers = record.actor.iter().chain(&record.principal);
            callers.any(|caller| caller.id == id)
        };
        if has(id) {
            return true;
        }
        // A user who was erased has no key, and a key that cannot be opened finds nothing.
        match self.vault.known_key(&row.user_id).await {
            Ok(Some(keys)) => has(&keys.subject(id)),
            Ok(None) | Err(_) => false,
        }
    }
}
