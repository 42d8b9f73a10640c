//! Verifying one record: the stored data against the record, and the record against the tree.

use std::collections::HashMap;

use countersign_contract::{Digest, EvidenceRecord, SnapshotId};
use countersign_evidence::tree::{
    inclusion_proof, leaf_hash, tiles_for_inclusion, verify_inclusion,
};

use jiff::Timestamp;

use super::{Difference, Error, Replayer, payload};
use crate::ledger::StoredRecord;

/// Result of verifying a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Its name.
    pub id: SnapshotId,
    /// Its place in the tree.
    pub standing: Standing,
    /// True if its payload is stored, and was checked.
    pub has_payload: bool,
    /// The faults that were found; empty if there are none.
    pub breaches: Vec<Breach>,
}

/// Place of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// In the current tree: its leaf leads to the root. The signature of that root is verified with a checkpoint.
    Included {
        /// Its place.
        index: u64,
    },
    /// Committed, and not in the tree yet.
    Waiting,
}

/// Differences from the recorded call. Closed. The usual cause is a change of the store outside of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breach {
    /// The leaf is not a record, or has another id.
    OtherRecord,
    /// A column of the row differs from the leaf.
    OtherRow,
    /// The leaf does not lead to the root of the tree.
    NotInTree,
    /// The payload's digest differs from the one in the record.
    OtherPayload,
    /// The payload cannot be opened with the user's key.
    Unopenable,
    /// The arguments in the payload differ from the ones that the record commits to.
    OtherArguments,
    /// The answer in the payload differs from the one that the record commits to.
    OtherData,
    /// The text that the caller sent differs from the one that the record commits to.
    OtherText,
    /// The display that a person saw differs from the one that the record commits to.
    OtherQuestion,
}

impl Breach {
    /// The fault in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OtherRecord => "its leaf is another record",
            Self::OtherRow => "its row says something else",
            Self::NotInTree => "its leaf is not in the tree",
            Self::OtherPayload => "its payload is another one",
            Self::Unopenable => "its payload does not open",
            Self::OtherArguments => "its arguments are others",
            Self::OtherData => "its answer is another one",
            Self::OtherText => "the text that was sent is another one",
            Self::OtherQuestion => "what was shown is something else",
        }
    }
}

impl From<Breach> for Difference {
    /// The fault stands in the place of a path; there are no values to compare.
    fn from(breach: Breach) -> Self {
        Self {
            path: breach.as_str().to_owned(),
            recorded: None,
            computed: None,
        }
    }
}

impl Verified {
    /// True if everything is as it was recorded.
    pub fn is_intact(&self) -> bool {
        self.breaches.is_empty()
    }
}

impl Replayer {
    /// Verifies one record: its leaf, its row, its place in the tree, and its payload if it is stored.
    pub async fn verify(&self, id: &SnapshotId) -> Result<Verified, Error> {
        let (stored, record) = self.stored(id).await?;
        let mut breaches = row_breaches(&stored, &record);
        let standing = match stored.index {
            None => Standing::Waiting,
            Some(index) => {
                if !self.is_included(index, &stored.leaf).await? {
                    breaches.push(Breach::NotInTree);
                }
                Standing::Included { index }
            }
        };
        let mut has_payload = false;
        if let Some(sealed) = &stored.payload {
            has_payload = true;
            if record.payload != Some(Digest::of_bytes(sealed)) {
                breaches.push(Breach::OtherPayload);
            } else if let Some(keys) = self.vault.existing_key(&stored.row.user_id).await? {
                match self.open(&stored, sealed, &keys).await? {
                    Ok(opened) => breaches.extend(payload::breaches(&opened, &record)),
                    Err(breach) => breaches.push(breach),
                }
            } else {
                breaches.push(Breach::Unopenable);
            }
        }
        Ok(Verified {
            id: id.clone(),
            standing,
            has_payload,
            breaches,
        })
    }

    async fn is_included(&self, index: u64, leaf: &[u8]) -> Result<bool, Error> {
        let head = self.store.head().await?;
        let Ok(wanted) = tiles_for_inclusion(index, head.size) else {
            return Ok(false);
        };
        let ids: Vec<_> = wanted.into_iter().map(|(id, _)| id).collect();
        let tiles = self.store.tiles(&ids).await?;
        let tiles = ids.into_iter().zip(tiles);
        let tiles: HashMap<_, _> = tiles.filter_map(|(id, tile)| Some((id, tile?))).collect();
        let proof = inclusion_proof(index, head.size, &tiles);
        Ok(proof.is_ok_and(|proof| {
            verify_inclusion(&leaf_hash(leaf), index, head.size, &proof, &head.root).is_ok()
        }))
    }
}

fn row_breaches(stored: &StoredRecord, record: &EvidenceRecord) -> Vec<Breach> {
    let row = &stored.row;
    let is_readable = serde_json::from_slice::<EvidenceRecord>(&stored.leaf).is_ok();
    if !is_readable || record.id != row.id {
        return vec![Breach::OtherRecord];
    }
    let code = record.reply.as_ref().and_then(|reply| reply.code);
    // A store may keep times less finely than a leaf.
    let at = record.at.parse::<Timestamp>();
    let is_same = row.kind == record.kind
        && at.is_ok_and(|at| at.as_millisecond() == row.at.as_millisecond())
        && row.request_id == record.request_id
        && row.code == code;
    if is_same {
        Vec::new()
    } else {
        vec![Breach::OtherRow]
    }
}
