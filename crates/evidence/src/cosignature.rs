//! Cosignatures (C2SP tlog-cosignature): a witness states that a checkpoint continues all that it has seen of the log.
//!
//! Both kinds are verified: Ed25519 and ML-DSA-44. Only Ed25519 is signed here.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::signature::{
    ED25519, Ed25519KeyPair, KeyPair as _, ML_DSA_44, UnparsedPublicKey, VerificationAlgorithm,
};

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::note::{self, Note, NoteError, Signature};

/// Bytes of the kinds of keys, in key ids and key texts.
const ED25519_ID: u8 = 4;
const ML_DSA_44_ID: u8 = 6;

/// Length of an ML-DSA-44 public key, in bytes.
const ML_DSA_44_BYTES: usize = 1312;

/// First bytes of a message that ML-DSA-44 signs.
const SUBTREE_LABEL: &[u8; 12] = b"subtree/v1\n\0";

/// The greatest time that a cosignature may name.
const TIME_MAX: u64 = i64::MAX.unsigned_abs();

/// Identity of a witness: a name and a public key. Its text form is `NAME+HASH+BASE64`, of type 4 (Ed25519) or 6
/// (ML-DSA-44).
///
/// # Example
///
/// ```
/// use countersign_evidence::checkpoint::Checkpoint;
/// use countersign_evidence::cosignature::{Cosigner, WitnessKey};
/// use countersign_evidence::note::{Note, SigningKey};
/// use countersign_evidence::tree::empty_root;
///
/// let log = SigningKey::from_seed("example.com/log", &[7; 32])?;
/// let note = Checkpoint::new("example.com/log", 0, empty_root()).sign(&log)?;
/// let witness = Cosigner::from_seed("witness.example/w1", &[8; 32])?;
/// let mut note = Note::parse(&note)?;
/// note.signatures.push(witness.cosign(&note.text, 1_800_000_000)?);
///
/// let key: WitnessKey = witness.key().to_string().parse()?;
/// assert_eq!(key.verify(&note)?, 1_800_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct WitnessKey {
    name: String,
    public: Public,
}

#[derive(Clone, PartialEq, Eq)]
enum Public {
    Ed25519([u8; 32]),
    MlDsa44(Box<[u8; ML_DSA_44_BYTES]>),
}

/// The text is not the key of a witness. Usually it was cut off when it was copied, or is the key of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the key of a witness: expected NAME+HASH+BASE64 of type 4 (Ed25519) or 6 (ML-DSA-44)")]
pub struct InvalidWitnessKey;

/// A witness that cosigns with Ed25519. Its key is derived from a seed that is kept elsewhere.
pub struct Cosigner {
    pair: Ed25519KeyPair,
    public: WitnessKey,
}

impl WitnessKey {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the id that tells keys of the same name apart.
    pub fn key_id(&self) -> [u8; 4] {
        note::key_id(&self.name, self.kind(), self.bytes())
    }

    /// Checks that this witness cosigned the checkpoint in the note; returns the latest time of its cosignatures, in
    /// seconds since 1970. Signatures of other keys are ignored.
    pub fn verify(&self, note: &Note) -> Result<u64, CheckpointError> {
        let checkpoint: Checkpoint = note.text.parse()?;
        let name = || self.name.clone();
        let wrong = || NoteError::WrongSignature { name: name() };
        let mut latest = None;
        for signature in note.signatures.iter().filter(|it| self.is_of(it)) {
            let (time, bytes) = signature.bytes.split_first_chunk().ok_or_else(wrong)?;
            let time = u64::from_be_bytes(*time);
            let (algorithm, message): (&'static dyn VerificationAlgorithm, Vec<u8>) =
                match self.public {
                    Public::Ed25519(_) => (&ED25519, timed(&note.text, time)),
                    Public::MlDsa44(_) => (
                        &ML_DSA_44,
                        self.subtree(&checkpoint, time).ok_or_else(wrong)?,
                    ),
                };
            let key = UnparsedPublicKey::new(algorithm, self.bytes());
            if time > TIME_MAX || key.verify(&message, bytes).is_err() {
                return Err(wrong().into());
            }
            latest = latest.max(Some(time));
        }
        Ok(latest.ok_or_else(|| NoteError::NotSigned { name: name() })?)
    }

    /// True if a signature line is of this key.
    pub fn is_of(&self, signature: &Signature) -> bool {
        signature.name == self.name && signature.key_id == self.key_id()
    }

    /// Builds the message that ML-DSA-44 signs; `None` if a name is too long for it.
    fn subtree(&self, checkpoint: &Checkpoint, time: u64) -> Option<Vec<u8>> {
        let mut message = SUBTREE_LABEL.to_vec();
        message.push(u8::try_from(self.name.len()).ok()?);
        message.extend_from_slice(self.name.as_bytes());
        message.extend_from_slice(&time.to_be_bytes());
        message.push(u8::try_from(checkpoint.origin.len()).ok()?);
        message.extend_from_slice(checkpoint.origin.as_bytes());
        message.extend_from_slice(&0_u64.to_be_bytes());
        message.extend_from_slice(&checkpoint.size.to_be_bytes());
        message.extend_from_slice(&checkpoint.root);
        Some(message)
    }

    const fn kind(&self) -> u8 {
        match self.public {
            Public::Ed25519(_) => ED25519_ID,
            Public::MlDsa44(_) => ML_DSA_44_ID,
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.public {
            Public::Ed25519(public) => public,
            Public::MlDsa44(public) => &**public,
        }
    }
}

/// Builds the message that Ed25519 signs.
fn timed(text: &str, time: u64) -> Vec<u8> {
    format!("cosignature/v1\ntime {time}\n{text}").into_bytes()
}

impl fmt::Display for WitnessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        note::format_key(f, &self.name, self.kind(), self.bytes())
    }
}

impl fmt::Debug for WitnessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for WitnessKey {
    type Err = InvalidWitnessKey;

    fn from_str(text: &str) -> Result<Self, InvalidWitnessKey> {
        let (name, kind, public) = note::parse_key(text).ok_or(InvalidWitnessKey)?;
        let name = note::checked_name(name).map_err(|_| InvalidWitnessKey)?;
        let public = match kind {
            ED25519_ID => public.try_into().map(Public::Ed25519),
            ML_DSA_44_ID => public
                .try_into()
                .map(|public| Public::MlDsa44(Box::new(public))),
            _ => return Err(InvalidWitnessKey),
        };
        let public = public.map_err(|_| InvalidWitnessKey)?;
        Ok(Self { name, public })
    }
}

impl Cosigner {
    /// Creates the witness of a 32-byte seed, under this name.
    pub fn from_seed(name: impl Into<String>, seed: &[u8; 32]) -> Result<Self, NoteError> {
        let name = note::checked_name(name.into())?;
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| NoteError::InvalidKey)?;
        let public = pair.public_key().as_ref().try_into();
        let public = Public::Ed25519(public.map_err(|_| NoteError::InvalidKey)?);
        let public = WitnessKey { name, public };
        Ok(Self { pair, public })
    }

    /// Returns the public key that verifies the cosignatures.
    pub const fn key(&self) -> &WitnessKey {
        &self.public
    }

    /// Cosigns the text of a checkpoint, at this time in seconds since 1970. The caller has checked that the
    /// checkpoint continues the one before.
    pub fn cosign(&self, text: &str, time: u64) -> Result<Signature, CheckpointError> {
        text.parse::<Checkpoint>()?;
        let time = time.min(TIME_MAX);
        let signature = self.pair.sign(&timed(text, time));
        Ok(Signature {
            name: self.public.name.clone(),
            key_id: self.public.key_id(),
            bytes: [time.to_be_bytes().as_slice(), signature.as_ref()].concat(),
        })
    }
}

/// Omits the secret, so that it stays out of logs.
impl fmt::Debug for Cosigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cosigner({})", self.public)
    }
}

#[cfg(test)]
mod tests;
