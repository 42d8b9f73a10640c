//! What a verification found: for every record what is proved of it, and every fault by name.

use std::fmt;

use countersign_contract::evidence::{EvidenceRecord, RecordKind};
use countersign_contract::{Digest, ErrorCode};
use serde::{Serialize, Serializer};

use crate::bundle::{Fault, NotChecked, Verdict};
use crate::seal;

/// The outcome of [`Bundle::verify`](crate::bundle::Bundle::verify).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The outcome as a whole. As JSON it is `verdict` and, for simple scripts, `valid`: true for
    /// [`Verdict::Valid`] only.
    #[serde(flatten, serialize_with = "with_valid")]
    pub verdict: Verdict,
    /// What this verification did not check.
    pub not_checked: Vec<NotChecked>,
    /// What the bundle says of itself, which was checked.
    pub summary: String,
    /// Whose signature everything rests on: the text of the key.
    pub public_key: String,
    /// Why that key was believed.
    pub trust: Trust,
    /// Signatures of others under the checkpoint; nobody checked them.
    pub further_signatures: usize,
    /// How the held checkpoint fits.
    pub consistency: Consistency,
    /// In the order of the bundle.
    pub records: Vec<RecordReport>,
    /// Everything that is wrong, in the order of the checks.
    pub findings: Vec<Finding>,
}

/// Why a key was believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The verifier brought it.
    Given,
    /// The bundle brought it itself, which proves nothing about whose it is.
    Bundle,
}

/// How a checkpoint that somebody held fits the bundle's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Consistency {
    /// Nobody held one.
    NotAsked,
    /// It is the same.
    Same,
    /// The log has only grown since.
    Grown,
    /// It does not fit, or nothing shows that it does; a finding says which.
    NotShown,
}

/// What is known of one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordReport {
    /// Its place in the log.
    pub index: u64,
    /// Its name, where it is a record at all.
    pub id: Option<String>,
    /// What it is a record of.
    pub kind: Option<RecordKind>,
    /// When.
    pub at: Option<String>,
    /// The tool.
    pub tool: Option<String>,
    /// How the call ended: none where it worked or there was none.
    pub code: Option<ErrorCode>,
    /// Whether there is a reply at all.
    pub replied: bool,
    /// Whether the log is proved to have it at this place.
    pub included: bool,
    /// What is known of what was sent and answered.
    pub content: Content,
    /// The linked records that are in the bundle and match.
    pub links: Vec<String>,
    /// The linked records that the bundle does not have.
    pub not_included: Vec<String>,
}

/// What a bundle has of what was sent and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Everything that the record commits to, and it matches.
    Opened,
    /// Some of what the record commits to.
    PartlyOpened,
    /// The sealed payload only.
    Sealed,
    /// Nothing of it: left out, expired or erased.
    Absent,
    /// Something else than the record commits to; a finding says what.
    Mismatch,
    /// The record commits to nothing.
    Nothing,
}

/// Something that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The record: its place in the log, and its name where that could be read. None for the bundle.
    pub record: Option<(u64, Option<String>)>,
    /// What is wrong.
    pub fault: Fault,
}

/// A value that a record commits to. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    /// What the tool was given.
    Arguments,
    /// What it answered.
    Data,
    /// The arguments as the caller sent them.
    Raw,
    /// What a person was shown.
    Shown,
}

impl Value {
    /// Every value.
    pub const ALL: [Self; 4] = [Self::Arguments, Self::Data, Self::Raw, Self::Shown];

    /// The domain of its commitment, and its name in a bundle.
    pub const fn domain(self) -> &'static str {
        match self {
            Self::Arguments => seal::DOMAIN_ARGUMENTS,
            Self::Data => seal::DOMAIN_DATA,
            Self::Raw => seal::DOMAIN_RAW,
            Self::Shown => seal::DOMAIN_SHOWN,
        }
    }

    /// The commitment that a record has to it.
    pub fn commitment(self, record: &EvidenceRecord) -> Option<Digest> {
        let arguments = record.arguments.as_ref();
        match self {
            Self::Arguments => arguments?.commitment,
            Self::Data => record.reply.as_ref()?.commitment,
            Self::Raw => arguments?.raw,
            Self::Shown => record.shown,
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands a reference to the field"
)]
fn with_valid<S: Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Wire {
        verdict: Verdict,
        valid: bool,
    }

    Wire {
        verdict: *verdict,
        valid: *verdict == Verdict::Valid,
    }
    .serialize(serializer)
}

impl Report {
    /// True if a trusted key signed the log and nothing is wrong.
    pub fn is_valid(&self) -> bool {
        self.verdict == Verdict::Valid
    }
}

impl Content {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::PartlyOpened => "partly_opened",
            Self::Sealed => "sealed",
            Self::Absent => "absent",
            Self::Mismatch => "mismatch",
            Self::Nothing => "nothing",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.domain())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.record {
            None => {}
            Some((index, None)) => write!(f, "record {index}: ")?,
            Some((index, Some(id))) => write!(f, "record {index} ({id}): ")?,
        }
        write!(f, "{}", self.fault)
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Wire<'a> {
            code: &'static str,
            message: String,
            index: Option<u64>,
            id: Option<&'a str>,
        }

        let (index, id) = self.record.as_ref().map(|(index, id)| (*index, id)).unzip();
        Wire {
            code: self.fault.code(),
            message: self.fault.to_string(),
            index,
            id: id.and_then(Option::as_deref),
        }
        .serialize(serializer)
    }
}
