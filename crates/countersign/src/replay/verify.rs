//! Whether what is stored of a record is what was recorded, and whether the record is in the tree.

use std::collections::HashMap;

use countersign_contract::{Digest, EvidenceRecord, SnapshotId};
use countersign_evidence::tree::{
    inclusion_proof, leaf_hash, tiles_for_inclusion, verify_inclusion,
};

use jiff::Timestamp;

use super::{Difference, Error, Replayer, payload};
use crate::ledger::StoredRecord;

/// What was found out about a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Its name.
    pub id: SnapshotId,
    /// Where it stands in the tree.
    pub standing: Standing,
    /// Whether its payload is there, and was checked.
    pub has_payload: bool,
    /// What is wrong; nothing where it is empty.
    pub breaches: Vec<Breach>,
}

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// In the tree as it is now: its leaf leads to the root. Whether that root was signed is for a
    /// checkpoint to say.
    Included {
        /// Its place.
        index: u64,
    },
    /// Committed, and not taken into the tree yet.
    Waiting,
}

/// What is not as it was recorded. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breach {
    /// The leaf is no record, or one of another name.
    OtherRecord,
    /// The row says something else than the leaf.
    OtherRow,
    /// The leaf does not lead to the root of the tree.
    NotInTree,
    /// The payload is another one than was recorded.
    OtherPayload,
    /// The payload cannot be opened with the user's key.
    Unopenable,
    /// The arguments in the payload are not those that the record commits to.
    OtherArguments,
    /// The answer in the payload is not the one that the record commits to.
    OtherData,
    /// The text that the caller sent is not the one that the record commits to.
    OtherText,
    /// What a person was shown is not what the record commits to.
    OtherQuestion,
}

impl Breach {
    /// In words.
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
    /// What is broken stands in the place of a path; there is nothing to compare.
    fn from(breach: Breach) -> Self {
        Self {
            path: breach.as_str().to_owned(),
            recorded: None,
            computed: None,
        }
    }
}

impl Verified {
    /// Whether everything is as it was recorded.
    pub fn is_intact(&self) -> bool {
        self.breaches.is_empty()
    }
}

impl Replayer {
    /// Checks one record: its leaf, its row, its place in the tree, and its payload where that is kept.
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
