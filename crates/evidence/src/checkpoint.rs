//! Checkpoints (C2SP tlog-checkpoint): the root of a log at a size, signed by the log.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::note::{Note, NoteError, SigningKey, VerifyingKey};
use crate::tree::{Hash, SIZE_MAX};

/// A log's statement about its size and root.
///
/// # Example
///
/// ```
/// use countersign_evidence::checkpoint::Checkpoint;
/// use countersign_evidence::tree::empty_root;
///
/// let text = Checkpoint::new("example.com/log", 0, empty_root()).to_string();
/// assert_eq!(text, "example.com/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Name of the log: the name of the key that signs for it.
    pub origin: String,
    /// Number of leaves.
    pub size: u64,
    /// Root over the leaves.
    pub root: Hash,
    /// Further lines, which are ignored here.
    pub extensions: Vec<String>,
}

/// Reason why a note is not a checkpoint of a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The note is malformed, or its signature is missing or wrong.
    /// Usually the file isn't a checkpoint, or the key of another log was given.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The text of the note is not a checkpoint, usually because the note is about something else.
    #[error("not a checkpoint: expected a line for the origin, the size and the root each")]
    Malformed,
    /// The checkpoint names another log than its key, usually because a key signed another log's text.
    #[error("the checkpoint is of the log {found:?}, not of {expected:?}")]
    OtherOrigin {
        /// Name of the key.
        expected: String,
        /// Origin in the text.
        found: String,
    },
}

impl Checkpoint {
    /// Creates a checkpoint without extensions.
    pub fn new(origin: impl Into<String>, size: u64, root: Hash) -> Self {
        Self {
            origin: origin.into(),
            size,
            root,
            extensions: Vec::new(),
        }
    }

    /// Signs this checkpoint as a note. The key must have the name of the log.
    pub fn sign(&self, key: &SigningKey) -> Result<String, CheckpointError> {
        self.check_origin(key.name())?;
        let text = self.to_string();
        // A text that cannot be read back, such as one whose origin has two lines, is not signed.
        if text.parse::<Self>()? != *self {
            return Err(CheckpointError::Malformed);
        }
        Ok(key.sign(&text)?)
    }

    /// Returns the checkpoint in a note that this log signed.
    pub fn open(note: &str, key: &VerifyingKey) -> Result<Self, CheckpointError> {
        let note = Note::parse(note)?;
        note.verify(key)?;
        let checkpoint: Self = note.text.parse()?;
        checkpoint.check_origin(key.name())?;
        Ok(checkpoint)
    }

    fn check_origin(&self, name: &str) -> Result<(), CheckpointError> {
        if self.origin == name {
            return Ok(());
        }
        Err(CheckpointError::OtherOrigin {
            expected: name.to_owned(),
            found: self.origin.clone(),
        })
    }
}

/// Formats the text that is signed.
impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = STANDARD.encode(self.root);
        write!(f, "{}\n{}\n{root}\n", self.origin, self.size)?;
        self.extensions
            .iter()
            .try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl FromStr for Checkpoint {
    type Err = CheckpointError;

    fn from_str(text: &str) -> Result<Self, CheckpointError> {
        parse(text).ok_or(CheckpointError::Malformed)
    }
}

fn parse(text: &str) -> Option<Checkpoint> {
    let mut lines = text.strip_suffix('\n')?.split('\n');
    let origin = lines.next().filter(|line| !line.is_empty())?.to_owned();
    let digits = lines.next()?;
    let size: u64 = digits.parse().ok().filter(|size| *size <= SIZE_MAX)?;
    let root = STANDARD.decode(lines.next()?).ok()?.try_into().ok()?;
    let extensions: Vec<String> = lines.map(str::to_owned).collect();
    // There is one spelling: neither `+1` nor `01`; and an extension is never an empty line.
    let well_formed = size.to_string() == digits && extensions.iter().all(|line| !line.is_empty());
    well_formed.then_some(Checkpoint {
        origin,
        size,
        root,
        extensions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::empty_root;

    const NAME: &str = "example.com/log";

    fn key() -> SigningKey {
        SigningKey::from_seed(NAME, &[7; 32]).unwrap()
    }

    #[test]
    fn a_checkpoint_comes_back_from_its_note() {
        let mut checkpoint = Checkpoint::new(NAME, 20_852_163, [3; 32]);
        checkpoint.extensions.push("kept".to_owned());
        let note = checkpoint.sign(&key()).unwrap();
        assert_eq!(
            Checkpoint::open(&note, &key().verifying_key()),
            Ok(checkpoint)
        );
    }

    /// Altering any byte of a signed checkpoint is detected.
    #[test]
    fn an_altered_checkpoint_is_refused() {
        let note = Checkpoint::new(NAME, 3, empty_root()).sign(&key()).unwrap();
        for at in 0..note.len() {
            let mut bytes = note.clone().into_bytes();
            bytes[at] ^= 1;
            if let Ok(altered) = String::from_utf8(bytes) {
                assert!(
                    Checkpoint::open(&altered, &key().verifying_key()).is_err(),
                    "{altered}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_checkpoint_is_refused() {
        let root = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        for text in [
            format!("{NAME}\n01\n{root}\n"),
            format!("{NAME}\n+1\n{root}\n"),
            format!("{NAME}\n\n{root}\n"),
            format!("{NAME}\n9223372036854775808\n{root}\n"),
            format!("\n1\n{root}\n"),
            format!("{NAME}\n1\n{}\n", root.replace("FU=", "FV=")),
            format!("{NAME}\n1\n{}\n", root.trim_end_matches('=')),
            format!("{NAME}\n1\n{root}\n\n"),
            format!("{NAME}\n1\n{root}"),
            format!("{NAME}\n1\n"),
        ] {
            assert_eq!(
                text.parse::<Checkpoint>(),
                Err(CheckpointError::Malformed),
                "{text}"
            );
        }
        let other = Checkpoint::new("example.com/other", 0, empty_root());
        let error = other.sign(&key()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the checkpoint is of the log \"example.com/other\", not of \"example.com/log\""
        );
        let mut twice = Checkpoint::new(NAME, 0, empty_root());
        twice.extensions.push("a\nb".to_owned());
        assert_eq!(twice.sign(&key()), Err(CheckpointError::Malformed));
    }

    /// A note whose text names another log than its key is not that log's checkpoint.
    #[test]
    fn a_log_signs_for_itself_only() {
        let text = Checkpoint::new("example.com/other", 0, empty_root()).to_string();
        let note = key().sign(&text).unwrap();
        let error = Checkpoint::open(&note, &key().verifying_key()).unwrap_err();
        assert!(
            matches!(error, CheckpointError::OtherOrigin { .. }),
            "{error}"
        );
    }
}
