//! Evidence in one file: some records of a log, and all that a stranger needs to check them.
//!
//! A bundle shows nothing that it cannot prove. What a record says is proved by the tree, what was
//! sent and answered by the commitments, the summary is made from the records again. What the log
//! does not commit to (the rest of a payload) is therefore not part of an opened record.

mod fault;
mod report;
mod summary;
mod verdict;
mod verify;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_contract::canonical;
use countersign_contract::evidence::{EvidenceRecord, Opening};
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::note::{Note, VerifyingKey};
use crate::tree::Hash;

pub use fault::Fault;
pub use report::{Consistency, Content, Finding, RecordReport, Report, Trust, Value};
pub use verdict::{NotChecked, Verdict};

/// The format that is written and read.
pub const FORMAT: &str = "countersign.dev/bundle@v1";

/// A larger bundle is not read.
pub const BUNDLE_BYTES_MAX: usize = 64 << 20;

/// A bundle of more records is not read.
pub const RECORDS_MAX: usize = 10_000;

/// A longer leaf cannot be in a log: two bytes hold its length there.
pub const LEAF_BYTES_MAX: usize = u16::MAX as usize;

/// Some records of a log with their proofs.
///
/// # Example
///
/// ```
/// use countersign_contract::evidence::{EvidenceRecord, RecordKind};
/// use countersign_contract::{SnapshotId, canonical};
/// use countersign_evidence::bundle::{Bundle, BundledRecord};
/// use countersign_evidence::checkpoint::Checkpoint;
/// use countersign_evidence::note::SigningKey;
/// use countersign_evidence::tree::leaf_hash;
///
/// let id = SnapshotId::new("ev_1")?;
/// let record = EvidenceRecord::new(RecordKind::Config, id, "2026-11-15T12:00:00Z");
/// let leaf = canonical::to_string(&serde_json::to_value(&record)?)?;
///
/// let key = SigningKey::from_seed("example.com/log", &[7; 32])?;
/// let root = leaf_hash(leaf.as_bytes());
/// let note = Checkpoint::new("example.com/log", 1, root).sign(&key)?;
///
/// let record = BundledRecord::new(0, leaf, &[]);
/// let file = Bundle::new(&key.verifying_key(), note, vec![record])?.to_json();
///
/// let report = Bundle::parse(&file)?.verify(Some(&key.verifying_key()), None);
/// assert!(report.is_valid(), "{:?}", report.findings);
/// assert_eq!(report.verdict, countersign_evidence::bundle::Verdict::Valid);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// [`FORMAT`].
    pub format: String,
    /// What is in it, for people; made from the records, and refused where it says anything else.
    pub summary: String,
    /// Whose log it is: the text of a [`VerifyingKey`]. Compare it with one from elsewhere.
    pub public_key: String,
    /// The signed note that the proofs lead to.
    pub checkpoint: String,
    /// An older checkpoint that somebody may hold, and the proof that the log has only grown since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
    /// In the order of the log, each once.
    pub records: Vec<BundledRecord>,
}

/// One record of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledRecord {
    /// Its place in the log, from 0.
    pub index: u64,
    /// Its canonical JSON, byte for byte what the log hashed.
    pub leaf: String,
    /// The inclusion proof: hashes in base64, lowest first.
    pub proof: Vec<String>,
    /// The sealed payload in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// What of it was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<Opened>,
}

/// The values of a record, with the salts that open the commitments to them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    /// What the tool was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Opening>,
    /// What it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Opening>,
    /// The arguments as the caller sent them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Opening>,
    /// What a person was shown before they answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Opening>,
}

impl Opened {
    /// The opening of one value.
    pub const fn of(&self, value: Value) -> Option<&Opening> {
        match value {
            Value::Arguments => self.arguments.as_ref(),
            Value::Data => self.data.as_ref(),
            Value::Raw => self.raw.as_ref(),
            Value::Shown => self.shown.as_ref(),
        }
    }
}

/// That the log grew from an older checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Earlier {
    /// The older signed note.
    pub checkpoint: String,
    /// The consistency proof from there: hashes in base64.
    pub proof: Vec<String>,
}

/// Why a text is no bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// Beyond [`BUNDLE_BYTES_MAX`].
    #[error("the bundle has {found} bytes; at most {BUNDLE_BYTES_MAX} are read")]
    TooLarge {
        /// How many.
        found: usize,
    },
    /// Beyond [`RECORDS_MAX`].
    #[error("the bundle has {found} records; 1 to {RECORDS_MAX} are read")]
    RecordCount {
        /// How many.
        found: usize,
    },
    /// Not even text.
    #[error("the bundle is not UTF-8 from byte {at} on")]
    NotText {
        /// The first byte that is none.
        at: usize,
    },
    /// Not JSON, or not JSON that everybody reads alike.
    #[error("the bundle cannot be read: {0}")]
    NotJson(#[from] canonical::Error),
    /// Members that a bundle lacks, or does not have.
    #[error("this is no evidence bundle: {reason}")]
    NotABundle {
        /// What the reader said.
        reason: String,
    },
    /// Of a later version, perhaps.
    #[error("the format {found:?} is not known; expected {FORMAT:?}")]
    UnknownFormat {
        /// What it says.
        found: String,
    },
}

impl BundleError {
    /// The name of the reason, the same in every implementation.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
            Self::RecordCount { .. } => "record_count",
            Self::NotText { .. } | Self::NotJson(_) => "not_json",
            Self::NotABundle { .. } => "not_a_bundle",
            Self::UnknownFormat { .. } => "unknown_format",
        }
    }
}

impl Bundle {
    /// A bundle of these records; the summary is made from them.
    pub fn new(
        key: &VerifyingKey,
        checkpoint: String,
        records: Vec<BundledRecord>,
    ) -> Result<Self, CheckpointError> {
        let log: Checkpoint = Note::parse(&checkpoint)?.text.parse()?;
        Ok(Self {
            format: FORMAT.to_owned(),
            summary: summary::of(&log, &records),
            public_key: key.to_string(),
            checkpoint,
            earlier: None,
            records,
        })
    }

    /// With the proof that the log has grown from an older checkpoint.
    #[must_use]
    pub fn with_earlier(mut self, checkpoint: String, proof: &[Hash]) -> Self {
        let proof = proof.iter().map(|hash| STANDARD.encode(hash)).collect();
        self.earlier = Some(Earlier { checkpoint, proof });
        self
    }

    /// The file: JSON for people and programs.
    pub fn to_json(&self) -> String {
        // The types hold texts, integers and JSON, all of which can be written.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads a file. White space and the spelling of numbers mean nothing; whatever two readers could
    /// take for two different things, such as a member that stands there twice, is refused.
    pub fn parse(file: impl AsRef<[u8]>) -> Result<Self, BundleError> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
        }

        let file = file.as_ref();
        let found = file.len();
        if found > BUNDLE_BYTES_MAX {
            return Err(BundleError::TooLarge { found });
        }
        let text = str::from_utf8(file).map_err(|error| BundleError::NotText {
            at: error.valid_up_to(),
        })?;
        let not_a_bundle = |error: serde_json::Error| {
            // The position would be one in the canonical text, which nobody has before them.
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            BundleError::NotABundle {
                reason: reason.to_owned(),
            }
        };
        // Read from here on, the meaning is that of the canonical text and of nothing else.
        let text = canonical::from_json_text(text)?;
        let Head { format } = serde_json::from_str(&text).map_err(not_a_bundle)?;
        if format != FORMAT {
            return Err(BundleError::UnknownFormat { found: format });
        }
        let bundle: Self = serde_json::from_str(&text).map_err(not_a_bundle)?;
        let found = bundle.records.len();
        if !(1..=RECORDS_MAX).contains(&found) {
            return Err(BundleError::RecordCount { found });
        }
        Ok(bundle)
    }

    /// Checks everything that the bundle claims, and goes on after a fault to find the others.
    ///
    /// Without a `trusted` key, the verdict is at most [`Verdict::Consistent`]: anybody can make a consistent
    /// bundle with a key of their own, under any name. `held` is a signed checkpoint that somebody
    /// kept; with it the report shows that the log has not been rewritten since.
    pub fn verify(&self, trusted: Option<&VerifyingKey>, held: Option<&str>) -> Report {
        verify::verify(self, trusted, held)
    }
}

impl BundledRecord {
    /// Without content.
    pub fn new(index: u64, leaf: impl Into<String>, proof: &[Hash]) -> Self {
        Self {
            index,
            leaf: leaf.into(),
            proof: proof.iter().map(|hash| STANDARD.encode(hash)).collect(),
            payload: None,
            opened: None,
        }
    }

    /// With the sealed payload.
    #[must_use]
    pub fn with_payload(mut self, sealed: &[u8]) -> Self {
        self.payload = Some(STANDARD.encode(sealed));
        self
    }

    /// With what was opened.
    #[must_use]
    pub fn with_opened(mut self, opened: Opened) -> Self {
        self.opened = Some(opened);
        self
    }

    /// What the leaf says, where it is a record and written as one.
    fn record(&self) -> Option<EvidenceRecord> {
        verify::record_of(&self.leaf).ok()
    }
}
