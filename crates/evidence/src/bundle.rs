//! Evidence bundles: some records of a log in one file, with everything that a third party needs to check them.
//!
//! A bundle shows nothing that it cannot prove. The tree proves the content of a record, the commitments prove
//! the values that were sent and answered, and the summary is recomputed from the records. Everything that the
//! log does not commit to (the rest of a payload) is therefore not part of an opened record.

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
use serde_json::Value as Json;

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::note::{Note, VerifyingKey};
use crate::tree::Hash;

pub use fault::Fault;
pub use report::{Consistency, Content, Finding, RecordReport, Report, Trust, Value};
pub use verdict::{NotChecked, Verdict};
pub(crate) use verify::record_of;

/// Format name that is written and read.
pub const FORMAT: &str = "countersign.dev/bundle@v1";

/// Maximum size of a bundle that is read, in bytes.
pub const BUNDLE_BYTES_MAX: usize = 64 << 20;

/// Maximum number of records in a bundle that is read.
pub const RECORDS_MAX: usize = 10_000;

/// Maximum length of a leaf in bytes: the log stores the length in two bytes.
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
    /// Format name; always [`FORMAT`].
    pub format: String,
    /// Summary for people. It is built from the records, and a bundle with another one is refused.
    pub summary: String,
    /// Public key of the log, in the text form of a [`VerifyingKey`]. Compare it with one from another source.
    pub public_key: String,
    /// Signed note with the checkpoint that the proofs lead to.
    pub checkpoint: String,
    /// An older checkpoint that a verifier may hold, and the proof that the log has only grown since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
    /// Records in the order of the log, each once.
    pub records: Vec<BundledRecord>,
}

/// One record of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledRecord {
    /// Index in the log, from 0.
    pub index: u64,
    /// Canonical JSON, byte for byte what the log hashed.
    pub leaf: String,
    /// Inclusion proof: hashes in base64, lowest first.
    pub proof: Vec<String>,
    /// Sealed payload in base64; `None` if the bundle leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// Values that were opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<Opened>,
}

/// Values of a record, with the salts that open the commitments to them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    /// Arguments of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Opening>,
    /// Reply of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Opening>,
    /// Arguments as the caller sent them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Opening>,
    /// Text that a person was shown before they answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Opening>,
}

impl Opened {
    /// Returns the opening of one value.
    pub const fn of(&self, value: Value) -> Option<&Opening> {
        match value {
            Value::Arguments => self.arguments.as_ref(),
            Value::Data => self.data.as_ref(),
            Value::Raw => self.raw.as_ref(),
            Value::Shown => self.shown.as_ref(),
        }
    }
}

/// An older checkpoint, with the proof that the log grew from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Earlier {
    /// Signed note of the older checkpoint.
    pub checkpoint: String,
    /// Consistency proof from there: hashes in base64.
    pub proof: Vec<String>,
}

/// Reason why a file is not a bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// The file is larger than [`BUNDLE_BYTES_MAX`].
    /// Usually another file was given in its place, or too many records were exported at once.
    #[error("the bundle has {found} bytes; at most {BUNDLE_BYTES_MAX} are read")]
    TooLarge {
        /// Size in bytes.
        found: usize,
    },
    /// The bundle has no records or more than [`RECORDS_MAX`].
    /// Usually the file was made by hand or by another program: an export has at least one record.
    #[error("the bundle has {found} records; 1 to {RECORDS_MAX} are read")]
    RecordCount {
        /// Number of records.
        found: usize,
    },
    /// The file is not UTF-8, usually because it is not a bundle at all or is compressed.
    #[error("the bundle is not UTF-8 from byte {at} on")]
    NotText {
        /// Offset of the first byte that is not UTF-8.
        at: usize,
    },
    /// The text is not JSON, or readers could read it differently, usually because it was cut off or edited by
    /// hand.
    #[error("the bundle cannot be read: {0}")]
    NotJson(#[from] canonical::Error),
    /// A member is missing or unknown, usually because the file is other JSON.
    #[error("this is not an evidence bundle: {reason}")]
    NotABundle {
        /// Message of the parser.
        reason: String,
    },
    /// The format is not known, usually because a later version wrote the file.
    #[error("the format {found:?} is not known; expected {FORMAT:?}")]
    UnknownFormat {
        /// Format name in the file.
        found: String,
    },
}

impl BundleError {
    /// Returns the code of the error, the same in every implementation.
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
    /// Creates a bundle of these records; the summary is built from them.
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

    /// Adds the proof that the log has grown from an older checkpoint.
    #[must_use]
    pub fn with_earlier(mut self, checkpoint: String, proof: &[Hash]) -> Self {
        let proof = proof.iter().map(|hash| STANDARD.encode(hash)).collect();
        self.earlier = Some(Earlier { checkpoint, proof });
        self
    }

    /// Returns the content of the file: JSON for people and programs.
    pub fn to_json(&self) -> String {
        // The types hold strings, integers and JSON, all of which can be written.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads a file. White space and the spelling of numbers do not matter; anything that two readers could
    /// read differently, such as a duplicate member, is refused.
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
            // The position would refer to the canonical text, which the reader does not have.
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            BundleError::NotABundle {
                reason: reason.to_owned(),
            }
        };
        // From here on only the canonical text counts.
        let text = canonical::from_json_text(text)?;
        let Head { format } = serde_json::from_str(&text).map_err(not_a_bundle)?;
        if format != FORMAT {
            return Err(BundleError::UnknownFormat { found: format });
        }
        let shape: Json = serde_json::from_str(&text).map_err(not_a_bundle)?;
        if !is_made_of_objects(&shape) {
            let reason = "a list stands where an object is expected".to_owned();
            return Err(BundleError::NotABundle { reason });
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
    /// Without a `trusted` key, the verdict is at most [`Verdict::Consistent`]: anyone can make a consistent
    /// bundle with a key of their own, under any name. `held` is a signed checkpoint that the verifier kept;
    /// with it the report shows that the log has not been rewritten since.
    pub fn verify(&self, trusted: Option<&VerifyingKey>, held: Option<&str>) -> Report {
        verify::verify(self, trusted, held)
    }
}

/// True if no list stands in the place of an object. Derived readers take a list of the members in their order for the object,
/// which other implementations do not.
fn is_made_of_objects(bundle: &Json) -> bool {
    let is_list = |value: &Json, name: &str| value.get(name).is_some_and(Json::is_array);
    let opened_is_made = |record: &Json| {
        let opened = record.get("opened");
        let is_any = |opened: &Json| {
            Value::ALL
                .iter()
                .any(|value| is_list(opened, value.domain()))
        };
        !is_list(record, "opened") && !opened.is_some_and(is_any)
    };
    let records = bundle.get("records").and_then(Json::as_array);
    bundle.is_object()
        && !is_list(bundle, "earlier")
        && records.is_none_or(|records| {
            let mut records = records.iter();
            records.all(|record| !record.is_array() && opened_is_made(record))
        })
}

impl BundledRecord {
    /// Creates a record without content.
    pub fn new(index: u64, leaf: impl Into<String>, proof: &[Hash]) -> Self {
        Self {
            index,
            leaf: leaf.into(),
            proof: proof.iter().map(|hash| STANDARD.encode(hash)).collect(),
            payload: None,
            opened: None,
        }
    }

    /// Adds the sealed payload.
    #[must_use]
    pub fn with_payload(mut self, sealed: &[u8]) -> Self {
        self.payload = Some(STANDARD.encode(sealed));
        self
    }

    /// Adds the opened values.
    #[must_use]
    pub fn with_opened(mut self, opened: Opened) -> Self {
        self.opened = Some(opened);
        self
    }

    /// Returns the record in the leaf; `None` if the leaf is not a record in canonical form.
    fn record(&self) -> Option<EvidenceRecord> {
        record_of(&self.leaf).ok()
    }
}
