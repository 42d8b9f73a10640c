//! The report of a verification: the proved facts about every record, and every fault by name.

use std::fmt;

use countersign_contract::evidence::{EvidenceRecord, RecordKind};
use countersign_contract::{Digest, ErrorCode};
use serde::{Serialize, Serializer};

use crate::bundle::{Fault, NotChecked, Verdict};
use crate::seal;

/// Result of [`Bundle::verify`](crate::bundle::Bundle::verify).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Overall verdict. As JSON it is `verdict` and, for simple scripts, `valid`: true for [`Verdict::Valid`]
    /// only.
    #[serde(flatten, serialize_with = "with_valid")]
    pub verdict: Verdict,
    /// Aspects that this verification did not check.
    pub not_checked: Vec<NotChecked>,
    /// Summary of the bundle, which was checked.
    pub summary: String,
    /// Public key that signed the checkpoint, in its text form.
    pub public_key: String,
    /// Origin of the trust in that key.
    pub trust: Trust,
    /// Number of other parties' signatures under the checkpoint; they were not checked.
    pub further_signatures: usize,
    /// Relation of the held checkpoint to the bundle's.
    pub consistency: Consistency,
    /// Reports of the records, in the order of the bundle.
    pub records: Vec<RecordReport>,
    /// Faults, in the order of the checks.
    pub findings: Vec<Finding>,
}

/// Origin of the trust in a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The verifier supplied it.
    Given,
    /// The bundle supplied it itself, which proves nothing about its owner.
    Bundle,
}

/// Relation of a held checkpoint to the bundle's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Consistency {
    /// No held checkpoint was supplied.
    NotAsked,
    /// It is the same.
    Same,
    /// The log has only grown since.
    Grown,
    /// It contradicts the bundle's, or no proof connects them; a finding says which.
    NotShown,
}

/// Proved facts about one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordReport {
    /// Index in the log.
    pub index: u64,
    /// Id of the record; `None` if the leaf is not a record.
    pub id: Option<String>,
    /// Kind of the record.
    pub kind: Option<RecordKind>,
    /// Time of the record.
    pub at: Option<String>,
    /// Name of the tool.
    pub tool: Option<String>,
    /// Error code of the call; `None` if it succeeded or there was no call.
    pub code: Option<ErrorCode>,
    /// True if there is a reply.
    pub replied: bool,
    /// True if the inclusion proof shows that the log has it at this index.
    pub included: bool,
    /// Presence of the sent and answered values.
    pub content: Content,
    /// Ids of linked records that are in the bundle and match.
    pub links: Vec<String>,
    /// Ids of linked records that the bundle does not have.
    pub not_included: Vec<String>,
}

/// Presence of the sent and answered values in a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Every value that the record commits to is opened, and matches.
    Opened,
    /// Some of the values that the record commits to are opened.
    PartlyOpened,
    /// Only the sealed payload is there.
    Sealed,
    /// Nothing is there: it was left out, expired or erased.
    Absent,
    /// A value does not match its commitment; a finding says which.
    Mismatch,
    /// The record commits to nothing.
    Nothing,
}

/// A fault, and the record that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Index of the record, and its id if that could be read. `None` if the fault is about the whole bundle.
    pub record: Option<(u64, Option<String>)>,
    /// The fault.
    pub fault: Fault,
}

/// A value that a record commits to. The enum is exhaustive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    /// Arguments of the tool.
    Arguments,
    /// Reply of the tool.
    Data,
    /// Arguments as the caller sent them.
    Raw,
    /// Text that a person was shown.
    Shown,
}

impl Value {
    /// All values.
    pub const ALL: [Self; 4] = [Self::Arguments, Self::Data, Self::Raw, Self::Shown];

    /// Returns the domain of its commitment, which is also its name in a bundle.
    pub const fn domain(self) -> &'static str {
        match self {
            Self::Arguments => seal::DOMAIN_ARGUMENTS,
            Self::Data => seal::DOMAIN_DATA,
            Self::Raw => seal::DOMAIN_RAW,
            Self::Shown => seal::DOMAIN_SHOWN,
        }
    }

    /// Returns the commitment that a record has to it.
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
    /// True if a trusted key signed the log and there is no fault.
    pub fn is_valid(&self) -> bool {
        self.verdict == Verdict::Valid
    }
}

impl Content {
    /// Returns the name on the wire.
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
