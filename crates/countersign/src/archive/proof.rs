//! Inclusion proofs: the place of a record in the log, and the path from there to a signed root; and the forms in which others read them.

use std::sync::Arc;

use countersign_contract::SnapshotId;
use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::note::{SigningKey, VerifyingKey};
use countersign_evidence::proof::TlogProof;
use countersign_evidence::receipt::{self, Proved};
use countersign_evidence::tree::{self, Hash, leaf_hash};

use super::content::Tampering;
use super::growth::{NotGrown, grown, tiles};
use super::{Archive, Error, tampered};
use crate::ledger::{Head, StoredRecord};

/// The state of a record's proof at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is durable and waits for the tree.
    Waiting,
    /// It is in the tree and waits for a signature.
    Unsigned,
    /// A signed checkpoint of this size covers it.
    Signed {
        /// The size.
        size: u64,
    },
    /// It is not what the signed tree has in its place.
    NotIncluded,
}

/// The proof of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The canonical JSON of the record.
    pub leaf: String,
    /// Its place in the tree.
    pub index: u64,
    /// The siblings on the way to the root, lowest first.
    pub hashes: Vec<Hash>,
    /// The signed note of the root.
    pub note: String,
    /// The checkpoint in the note.
    pub checkpoint: Checkpoint,
}

impl Proof {
    /// Returns the proof as C2SP writes it, with the record as its extra data.
    pub fn into_tlog_proof(self) -> TlogProof {
        TlogProof {
            extra: Some(self.leaf.into_bytes()),
            index: self.index,
            hashes: self.hashes,
            note: self.note,
        }
    }
}

/// A form of COSE messages in which a record is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoseForm {
    /// The proof alone (RFC 9942).
    Receipt,
    /// The record with its proof (RFC 9943).
    Statement,
}

impl Archive {
    /// Proves that a record is in the log, against the newest signed checkpoint.
    pub async fn proof(&self, id: &SnapshotId) -> Result<Proof, Error> {
        let stored = self.stored(id).await?;
        let (checkpoint, note) = self.signed().await?.ok_or(Error::NoCheckpoint)?;
        self.prove(&stored, checkpoint, note).await
    }

    /// Lets this archive sign receipts. A key that is not the one of the log is not used.
    #[must_use]
    pub fn signing(mut self, key: Arc<SigningKey>) -> Self {
        self.signer = (key.verifying_key() == self.key).then_some(key);
        self
    }

    /// Proves that a record is in the log, as a COSE message. It states what the newest signed checkpoint states: the root
    /// that is signed is the one of that checkpoint.
    pub async fn cose(&self, id: &SnapshotId, form: CoseForm) -> Result<Vec<u8>, Error> {
        let key = self.signer.as_ref().ok_or(Error::NoSigner)?;
        let proof = self.proof(id).await?;
        let proved = Proved {
            leaf: &proof.leaf,
            id: id.as_str(),
            index: proof.index,
            size: proof.checkpoint.size,
            hashes: &proof.hashes,
        };
        let made = match form {
            CoseForm::Receipt => receipt::receipt(key, &proved),
            CoseForm::Statement => receipt::statement(key, &proved),
        };
        Ok(made?)
    }

    /// The public key of the log.
    pub const fn log_key(&self) -> &VerifyingKey {
        &self.key
    }

    /// The tree as it is, signed or not.
    pub async fn head(&self) -> Result<Head, Error> {
        Ok(self.store.head().await?)
    }

    /// The newest signed checkpoint with its note.
    pub async fn signed(&self) -> Result<Option<(Checkpoint, String)>, Error> {
        let Some(note) = self.store.checkpoint().await? else {
            return Ok(None);
        };
        let checkpoint = Checkpoint::open(&note, &self.key)?;
        Ok(Some((checkpoint, note)))
    }

    /// Signed checkpoints with their notes, the largest tree first; only those of trees smaller than `below`, if it is
    /// given.
    pub async fn checkpoints(
        &self,
        below: Option<u64>,
        limit: usize,
    ) -> Result<Vec<(Checkpoint, String)>, Error> {
        let notes = self.store.checkpoints(below, limit).await?;
        let opened = notes.into_iter().map(|note| {
            let checkpoint = Checkpoint::open(&note, &self.key)?;
            Ok((checkpoint, note))
        });
        opened.collect()
    }

    /// Proves that the newest signed checkpoint has grown from one that an auditor kept; with the note of the newest.
    pub async fn growth(&self, held: &str) -> Result<(String, Vec<Hash>), Error> {
        let held = Checkpoint::open(held, &self.key).map_err(Error::Held)?;
        let (newest, note) = self.signed().await?.ok_or(Error::NoCheckpoint)?;
        let grown_to = Head {
            size: newest.size,
            root: newest.root,
        };
        Ok((note, grown(&*self.store, &held, &grown_to).await?))
    }

    /// Checks that the log continues a checkpoint that is kept elsewhere.
    pub async fn continues(&self, earlier: &Checkpoint) -> Result<(), NotGrown> {
        let head = self.store.head().await?;
        grown(&*self.store, earlier, &head).await.map(|_| ())
    }

    /// Proves that a signed checkpoint has grown from the first `from` records.
    pub async fn consistency(&self, from: u64, to: &Checkpoint) -> Result<Vec<Hash>, Error> {
        let wanted = tree::tiles_for_consistency(from, to.size).map_err(NotGrown::from)?;
        let tiles = tiles(&*self.store, &wanted).await?;
        let proof = tree::consistency_proof(from, to.size, &tiles);
        Ok(proof.map_err(NotGrown::from)?)
    }

    pub(super) async fn standing(&self, stored: &StoredRecord) -> Result<Standing, Error> {
        if stored.index.is_none() {
            return Ok(Standing::Waiting);
        }
        let Some((checkpoint, note)) = self.signed().await? else {
            return Ok(Standing::Unsigned);
        };
        let size = checkpoint.size;
        match self.prove(stored, checkpoint, note).await {
            Ok(_) => Ok(Standing::Signed { size }),
            Err(Error::NotSignedYet { .. }) => Ok(Standing::Unsigned),
            Err(Error::Tampered { .. }) => Ok(Standing::NotIncluded),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn prove(
        &self,
        stored: &StoredRecord,
        checkpoint: Checkpoint,
        note: String,
    ) -> Result<Proof, Error> {
        let id = &stored.row.id;
        let size = checkpoint.size;
        let Some(index) = stored.index.filter(|index| *index < size) else {
            return Err(Error::NotSignedYet { id: id.clone() });
        };
        let wanted = tree::tiles_for_inclusion(index, size).map_err(NotGrown::from)?;
        let tiles = tiles(&*self.store, &wanted).await?;
        let hashes = tree::inclusion_proof(index, size, &tiles).map_err(NotGrown::from)?;
        let leaf = leaf_hash(&stored.leaf);
        let is_there = tree::verify_inclusion(&leaf, index, size, &hashes, &checkpoint.root);
        if is_there.is_err() {
            return Err(tampered(stored, Tampering::NotIncluded { index }));
        }
        Ok(Proof {
            leaf: String::from_utf8_lossy(&stored.leaf).into_owned(),
            index,
            hashes,
            note,
            checkpoint,
        })
    }
}
