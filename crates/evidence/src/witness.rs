//! The protocol between a log and its witnesses (C2SP tlog-witness), without I/O: `add-checkpoint`, and the checks that
//! a witness makes before it cosigns.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::note::{NOTE_BYTES_MAX, Note, VerifyingKey};
use crate::tree::{Hash, empty_root, verify_consistency};

/// Maximum number of hashes in a consistency proof.
pub const PROOF_HASHES_MAX: usize = 63;

/// Maximum length of a request, in bytes.
pub const REQUEST_BYTES_MAX: usize = NOTE_BYTES_MAX + 64 * (PROOF_HASHES_MAX + 1);

/// Media type of the answer that names the size of the latest cosigned checkpoint.
pub const SIZE_MEDIA_TYPE: &str = "text/x.tlog.size";

/// The body of an `add-checkpoint` request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddCheckpoint {
    /// Size of the checkpoint that the witness cosigned last; 0 if there is none.
    pub old_size: u64,
    /// Proof that the log has only grown since then.
    pub proof: Vec<Hash>,
    /// The signed checkpoint.
    pub note: Note,
}

/// Reason why a witness does not cosign. Closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request is not one of the protocol. Usually another program sent it.
    #[error("not an add-checkpoint request: {0}")]
    Malformed(&'static str),
    /// The witness does not follow this log. Usually its key is missing in the witness's settings.
    #[error("the witness does not follow this log")]
    UnknownLog,
    /// The checkpoint is not signed by the log. Usually the log has a new key.
    #[error(transparent)]
    NotSigned(CheckpointError),
    /// The witness has cosigned a checkpoint of another size. Usually the log did not know the size, and asks again with
    /// it.
    #[error("the latest cosigned checkpoint has {known} records")]
    OtherSize {
        /// Size of the latest cosigned checkpoint.
        known: u64,
    },
    /// A checkpoint of the same size with another root was cosigned: the log has two histories. Usually an old data
    /// folder was put back and went on.
    #[error("a checkpoint of {known} records with another root was cosigned before")]
    OtherRoot {
        /// Size of both checkpoints.
        known: u64,
    },
    /// The proof does not lead from the latest cosigned checkpoint to this one. Usually the log was rolled back and
    /// went on, so that it has two histories.
    #[error("the checkpoint does not continue the one of {known} records that was cosigned before")]
    Inconsistent {
        /// Size of the latest cosigned checkpoint.
        known: u64,
    },
}

impl Refusal {
    /// Returns the HTTP status of the refusal.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::NotSigned(_) => 403,
            Self::UnknownLog => 404,
            Self::OtherSize { .. } | Self::OtherRoot { .. } => 409,
            Self::Inconsistent { .. } => 422,
        }
    }

    /// True if the refusal shows that the log has two histories.
    pub const fn is_fork(&self) -> bool {
        match self {
            Self::OtherRoot { .. } | Self::Inconsistent { .. } => true,
            Self::Malformed(_) | Self::UnknownLog | Self::NotSigned(_) | Self::OtherSize { .. } => {
                false
            }
        }
    }
}

impl AddCheckpoint {
    /// Returns the origin that the checkpoint names; not verified.
    pub fn origin(&self) -> &str {
        self.note.text.split('\n').next().unwrap_or_default()
    }

    /// Checks the request against the log's key and the latest cosigned checkpoint of the log. The caller persists the
    /// returned checkpoint before it cosigns, and lets no other request of this log in between.
    pub fn check(
        &self,
        key: &VerifyingKey,
        latest: Option<&Checkpoint>,
    ) -> Result<Checkpoint, Refusal> {
        let opened = Checkpoint::open(&self.note.to_string(), key);
        let new = opened.map_err(Refusal::NotSigned)?;
        if self.old_size > new.size {
            return Err(Refusal::Malformed("the old size is the larger one"));
        }
        let (known, root) = latest.map_or((0, empty_root()), |latest| (latest.size, latest.root));
        if self.old_size != known {
            return Err(Refusal::OtherSize { known });
        }
        if known == new.size && known > 0 && root != new.root {
            return Err(Refusal::OtherRoot { known });
        }
        let is_empty_one = new.size == 0 && new.root != empty_root();
        let grown = verify_consistency(known, &root, new.size, &new.root, &self.proof);
        if is_empty_one || grown.is_err() {
            return Err(Refusal::Inconsistent { known });
        }
        Ok(new)
    }
}

/// Formats the body of the request.
impl fmt::Display for AddCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "old {}", self.old_size)?;
        for hash in &self.proof {
            writeln!(f, "{}", STANDARD.encode(hash))?;
        }
        write!(f, "\n{}", self.note)
    }
}

impl FromStr for AddCheckpoint {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        if text.len() > REQUEST_BYTES_MAX {
            return Err(Refusal::Malformed("it is too long"));
        }
        let parts = text.split_once("\n\n");
        let (head, note) = parts.ok_or(Refusal::Malformed("it has no empty line"))?;
        let mut lines = head.split('\n');
        let old = lines.next().and_then(|line| line.strip_prefix("old "));
        let old_size = old.and_then(size);
        let old_size = old_size.ok_or(Refusal::Malformed("it has no old size"))?;
        let hash = |line: &str| -> Option<Hash> { STANDARD.decode(line).ok()?.try_into().ok() };
        let proof: Option<Vec<Hash>> = lines.take(PROOF_HASHES_MAX + 1).map(hash).collect();
        let proof = proof.filter(|proof| proof.len() <= PROOF_HASHES_MAX);
        let proof = proof.ok_or(Refusal::Malformed("its proof is not at most 63 hashes"))?;
        let note = Note::parse(note).map_err(|_| Refusal::Malformed("it has no signed note"))?;
        Ok(Self {
            old_size,
            proof,
            note,
        })
    }
}

/// Reads a size: decimal, without leading zeroes.
pub fn size(text: &str) -> Option<u64> {
    let size: u64 = text.parse().ok()?;
    (size.to_string() == text).then_some(size)
}

#[cfg(test)]
mod tests;
