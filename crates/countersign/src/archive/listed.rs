//! Records behind the rows of a list. A row has the columns that a store searches by; the rest is only in the record.

use countersign_contract::{EvidenceRecord, SnapshotId};

use super::{Archive, Error, content};
use crate::ledger::LogRow;

impl Archive {
    /// The records of these rows, in their order; `None` for a record that is not stored. They are read at once, without
    /// payloads and proofs, so this is for a page of a list.
    pub async fn behind(&self, rows: &[LogRow]) -> Result<Vec<Option<EvidenceRecord>>, Error> {
        let ids: Vec<SnapshotId> = rows.iter().map(|row| row.id.clone()).collect();
        let leaves = self.store.leaves_of(&ids).await?;
        let records = rows.iter().zip(leaves).map(|(row, leaf)| {
            let Some((_, leaf)) = leaf else {
                return Ok(None);
            };
            let record = content::record_in(row, &leaf).map_err(|what| Error::Tampered {
                id: row.id.clone(),
                what,
            })?;
            Ok(Some(record))
        });
        records.collect()
    }

    /// These records with their rows; those that are not stored are left out. They are read at once, without payloads and
    /// proofs.
    pub async fn at_hand(
        &self,
        ids: &[SnapshotId],
    ) -> Result<Vec<(LogRow, EvidenceRecord)>, Error> {
        let found = self.store.leaves_of(ids).await?.into_iter().flatten();
        let found = found.map(|(row, leaf)| match content::record_in(&row, &leaf) {
            Ok(record) => Ok((row, record)),
            Err(what) => Err(Error::Tampered { id: row.id, what }),
        });
        found.collect()
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
