//! Inclusion proofs as text (C2SP tlog-proof): the place of a record in the log, and the path from there to a signed root.
//!
//! The optional extra data of the format carries the record itself, so that one file is enough to check it.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::bundle::LEAF_BYTES_MAX;
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::note::{NOTE_BYTES_MAX, VerifyingKey};
use crate::tree::{Hash, InvalidProof, leaf_hash, verify_inclusion};

/// First line of the text.
pub const PROOF_HEADER: &str = "c2sp.org/tlog-proof@v1";

/// Extension of files with such a text.
pub const PROOF_EXTENSION: &str = "tlog-proof";

/// Maximum number of hashes in a proof: the height of the largest tree.
const HASHES_MAX: usize = 62;

/// Maximum length of a text that is read, in bytes.
pub const PROOF_BYTES_MAX: usize =
    NOTE_BYTES_MAX + LEAF_BYTES_MAX.div_ceil(3) * 4 + HASHES_MAX * 45 + 256;

/// An inclusion proof with the signed note that it leads to.
///
/// # Example
///
/// ```
/// use countersign_evidence::checkpoint::Checkpoint;
/// use countersign_evidence::note::SigningKey;
/// use countersign_evidence::proof::TlogProof;
/// use countersign_evidence::tree::leaf_hash;
///
/// let key = SigningKey::from_seed("example.com/log", &[7; 32])?;
/// let note = Checkpoint::new("example.com/log", 1, leaf_hash(b"a record")).sign(&key)?;
/// let proof = TlogProof { extra: None, index: 0, hashes: Vec::new(), note };
///
/// let read: TlogProof = proof.to_string().parse()?;
/// assert_eq!(read.verify(b"a record", &key.verifying_key())?.size, 1);
/// assert!(read.verify(b"another", &key.verifying_key()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlogProof {
    /// Extra data, which nothing authenticates until it is verified as the leaf.
    pub extra: Option<Vec<u8>>,
    /// Index of the leaf in the log, from 0.
    pub index: u64,
    /// Hashes on the way to the root, lowest first.
    pub hashes: Vec<Hash>,
    /// Signed note of the checkpoint, with the cosignatures that there are.
    pub note: String,
}

/// Reason why a proof is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofFault {
    /// The text is not a tlog-proof, usually because its line breaks were changed or the file is another one.
    #[error("not a tlog-proof: {0}")]
    Malformed(&'static str),
    /// The checkpoint is not one of this log, usually because the key of another log was given.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The leaf is not in the tree, usually because the leaf or the proof was altered.
    #[error(transparent)]
    NotIncluded(#[from] InvalidProof),
    /// The proof does not carry the record, usually because another program made it: give the record as well.
    #[error("the proof does not carry its record")]
    NoRecord,
}

impl TlogProof {
    /// Checks that the log that this key signs has the leaf, and returns the checkpoint that says so.
    pub fn verify(&self, leaf: &[u8], key: &VerifyingKey) -> Result<Checkpoint, ProofFault> {
        let checkpoint = Checkpoint::open(&self.note, key)?;
        let (size, root) = (checkpoint.size, &checkpoint.root);
        verify_inclusion(&leaf_hash(leaf), self.index, size, &self.hashes, root)?;
        Ok(checkpoint)
    }

    /// Checks the record that the extra data carries, and returns it with the checkpoint.
    pub fn verify_carried(&self, key: &VerifyingKey) -> Result<(&[u8], Checkpoint), ProofFault> {
        let leaf = self.extra.as_deref().ok_or(ProofFault::NoRecord)?;
        Ok((leaf, self.verify(leaf, key)?))
    }
}

impl fmt::Display for TlogProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{PROOF_HEADER}")?;
        if let Some(extra) = &self.extra {
            writeln!(f, "extra {}", STANDARD.encode(extra))?;
        }
        writeln!(f, "index {}", self.index)?;
        for hash in &self.hashes {
            writeln!(f, "{}", STANDARD.encode(hash))?;
        }
        write!(f, "\n{}", self.note)
    }
}

impl FromStr for TlogProof {
    type Err = ProofFault;

    fn from_str(text: &str) -> Result<Self, ProofFault> {
        let malformed = ProofFault::Malformed;
        if text.len() > PROOF_BYTES_MAX {
            return Err(malformed("it is too long"));
        }
        let (head, note) = text
            .split_once("\n\n")
            .ok_or(malformed("expected an empty line before the checkpoint"))?;
        let mut lines = head.split('\n').peekable();
        if lines.next() != Some(PROOF_HEADER) {
            return Err(malformed(
                "the first line is not \"c2sp.org/tlog-proof@v1\"",
            ));
        }
        let extra = lines.next_if(|line| line.starts_with("extra "));
        let extra = extra.and_then(|line| line.strip_prefix("extra "));
        let decoded = |text: &str| STANDARD.decode(text);
        let extra = extra.map(decoded).transpose();
        let extra = extra.map_err(|_| malformed("the extra data is not base64"))?;
        let digits = lines.next().and_then(|line| line.strip_prefix("index "));
        let index: Option<u64> = digits.and_then(|digits| digits.parse().ok());
        // There is one spelling: neither `+1` nor `01`.
        let index = index.filter(|index| digits == Some(index.to_string().as_str()));
        let index = index.ok_or(malformed("expected a line with the index"))?;
        let mut hashes = Vec::new();
        for line in lines {
            let hash = decoded(line).ok().and_then(|hash| hash.try_into().ok());
            hashes.push(hash.ok_or(malformed("expected a hash in each line of the proof"))?);
        }
        if hashes.len() > HASHES_MAX {
            return Err(malformed("it has too many hashes"));
        }
        Ok(Self {
            extra,
            index,
            hashes,
            note: note.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::SigningKey;
    use crate::tile::{TileMap, TileWriter};
    use crate::tree;

    const NAME: &str = "example.com/log";

    fn key() -> SigningKey {
        SigningKey::from_seed(NAME, &[7; 32]).unwrap()
    }

    fn proof(index: usize) -> TlogProof {
        let leaves = ["a", "b", "c", "d", "e"].map(|leaf| leaf_hash(leaf.as_bytes()));
        let mut writer = TileWriter::new();
        let tiles: TileMap = writer.append(&leaves).into_iter().collect();
        let checkpoint = Checkpoint::new(NAME, 5, writer.frontier().root());
        TlogProof {
            extra: Some(vec![b'a' + index as u8]),
            index: index as u64,
            hashes: tree::inclusion_proof(index as u64, 5, &tiles).unwrap(),
            note: checkpoint.sign(&key()).unwrap(),
        }
    }

    #[test]
    fn a_proof_comes_back_from_its_text_and_holds() {
        for index in 0..5 {
            let proof = proof(index);
            let text = proof.to_string();
            let read: TlogProof = text.parse().unwrap();
            assert_eq!((&read, read.to_string()), (&proof, text));
            let (leaf, checkpoint) = read.verify_carried(&key().verifying_key()).unwrap();
            assert_eq!((leaf, checkpoint.size), (&[b'a' + index as u8][..], 5));
        }
    }

    /// Altering any byte is detected, those of the extra data included, because they are the leaf.
    #[test]
    fn every_flipped_byte_is_caught() {
        let text = proof(4).to_string();
        let mut read = 0;
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(altered) = String::from_utf8(bytes) else {
                continue;
            };
            let Ok(altered) = altered.parse::<TlogProof>() else {
                continue;
            };
            read += 1;
            let verified = altered.verify_carried(&key().verifying_key());
            assert!(verified.is_err(), "byte {at}: {altered}");
        }
        assert!(read > 50, "only {read} altered texts were read at all");
    }

    #[test]
    fn what_is_no_proof_is_refused() {
        let text = proof(4).to_string();
        for (found, put) in [
            ("proof@v1", "proof@v2"),
            ("index 4", "index 04"),
            ("index 4", "index +4"),
            ("index 4", "index"),
            ("index 4\n", ""),
            ("extra ", "extra  "),
            ("extra ", "other "),
            ("\n\n", "\nAAAA\n\n"),
            ("\n\n", "\n"),
            ("\n", "\r\n"),
        ] {
            let altered = text.replacen(found, put, 1);
            assert_ne!(altered, text);
            let fault = altered.parse::<TlogProof>().unwrap_err();
            assert!(matches!(fault, ProofFault::Malformed(_)), "{altered}");
        }
        let mut none = proof(4);
        none.extra = None;
        let fault = none.verify_carried(&key().verifying_key()).unwrap_err();
        assert_eq!(fault, ProofFault::NoRecord);
    }

    /// The example of the specification, with its cut lines made whole: another program wrote its first half.
    #[test]
    fn the_order_of_the_lines_is_that_of_the_specification() {
        let text = "c2sp.org/tlog-proof@v1\nextra aGVsbG8=\nindex 73894\n\
                    gSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlQ=\n\
                    B95lDa8R83lS8n0eG+o0buTxRKQTYFi//1U8anccXmA=\n\n\
                    example.com/fancylog\n109482\nsFodV/vSp5O8n9a8QpW6PRY97tfOSW5bsc2Xl/EQi08=\n\n";
        let read: TlogProof = text.parse().unwrap();
        assert_eq!((read.index, read.hashes.len()), (73_894, 2));
        assert_eq!(read.extra.as_deref(), Some(&b"hello"[..]));
        assert!(read.note.starts_with("example.com/fancylog\n109482\n"));
    }
}
