//! What a verification found: for every record what is proved of it, and every fault by name.

use std::fmt;

use countersign_contract::canonical;
use countersign_contract::evidence::{EvidenceRecord, RecordKind};
use countersign_contract::{Digest, ErrorCode};
use serde::{Serialize, Serializer};

use crate::bundle::LEAF_BYTES_MAX;
use crate::checkpoint::CheckpointError;
use crate::seal;
use crate::tree::InvalidProof;

/// The outcome of [`Bundle::verify`](crate::bundle::Bundle::verify).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What can be said of the bundle as a whole.
    pub verdict: Verdict,
    /// What this verification did not check, and why.
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

/// What can be said of a bundle. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every check passed, and the trusted key signed the log.
    Valid,
    /// Every check passed, but the signer was not checked: no trusted key was given.
    Consistent,
    /// Something is wrong; the findings say what.
    Invalid,
}

impl Verdict {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Consistent => "consistent",
            Self::Invalid => "invalid",
        }
    }

    /// The exit code of a program that verifies: 0, 4 or 3.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::Consistent => 4,
            Self::Invalid => 3,
        }
    }
}

/// Something that a verification did not check. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotChecked {
    /// Who signed the log: no trusted key was given.
    Signer,
    /// Whether the log was rewritten since: no checkpoint was given that somebody kept.
    Rewriting,
    /// The signatures of others under the checkpoint.
    FurtherSignatures,
    /// Linked records that the bundle does not have.
    LinksOutside,
    /// Whether linked answers were fresh: the records do not claim it (version 1 never does).
    Freshness,
    /// Sealed payloads: their digest was compared, they were not opened.
    SealedPayloads,
    /// Content that the bundle does not have.
    AbsentContent,
}

impl NotChecked {
    /// Everything that can be left unchecked.
    pub const ALL: [Self; 7] = [
        Self::Signer,
        Self::Rewriting,
        Self::FurtherSignatures,
        Self::LinksOutside,
        Self::Freshness,
        Self::SealedPayloads,
        Self::AbsentContent,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Signer => "signer",
            Self::Rewriting => "rewriting",
            Self::FurtherSignatures => "further_signatures",
            Self::LinksOutside => "links_outside",
            Self::Freshness => "freshness",
            Self::SealedPayloads => "sealed_payloads",
            Self::AbsentContent => "absent_content",
        }
    }

    /// In words, with what would check it.
    pub const fn explained(self) -> &'static str {
        match self {
            Self::Signer => "who signed the log: give the log's key with --key",
            Self::Rewriting => {
                "whether the log was rewritten: give a checkpoint that you kept with --held"
            }
            Self::FurtherSignatures => "signatures of others under the checkpoint",
            Self::LinksOutside => "linked records that are not in the bundle",
            Self::Freshness => "freshness of linked answers whose record makes no claim about it",
            Self::SealedPayloads => {
                "the content of sealed payloads: only their digest was compared"
            }
            Self::AbsentContent => "content that the bundle does not have",
        }
    }
}

impl fmt::Display for NotChecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.explained())
    }
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

/// Everything that can be wrong with a bundle. Closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The text of the key.
    #[error("the bundle's public key is none")]
    KeyMalformed,
    /// The key is not the trusted one.
    #[error("the bundle is of the key {found:?}, not of the trusted {expected:?}")]
    KeyOther {
        /// The trusted key.
        expected: String,
        /// The bundle's.
        found: String,
    },
    /// The checkpoint is none, or not of this log.
    #[error("the checkpoint does not hold: {0}")]
    Checkpoint(CheckpointError),
    /// Records stand out of order, or twice.
    #[error("it follows record {previous}; records stand in the order of the log, each once")]
    Order {
        /// The place of the record before it.
        previous: u64,
    },
    /// No log can have this leaf.
    #[error("its leaf has {found} bytes; a leaf has at most {LEAF_BYTES_MAX}")]
    LeafTooLong {
        /// How many.
        found: usize,
    },
    /// The leaf has another canonical text, or none.
    #[error("its leaf is not canonical JSON{}", reason(.0.as_ref()))]
    LeafNotCanonical(Option<canonical::Error>),
    /// The leaf is JSON and no record.
    #[error("its leaf is no record: {0}")]
    LeafNotARecord(String),
    /// Two records have one name.
    #[error("its name stands at {other} already")]
    IdTwice {
        /// The place of the other.
        other: u64,
    },
    /// A hash of the proof cannot be read.
    #[error("hash {position} of its proof is not 32 bytes in base64")]
    ProofMalformed {
        /// Which hash.
        position: usize,
    },
    /// The log does not have this leaf at this place.
    #[error("it is not shown to be in the log: {0}")]
    Inclusion(InvalidProof),
    /// The sealed payload cannot be read.
    #[error("its payload is not base64")]
    PayloadMalformed,
    /// The record knows no payload.
    #[error("it has no payload, and the bundle has one for it")]
    PayloadUnexpected,
    /// The sealed payload is another one.
    #[error("its payload has the digest {found}, not {expected}")]
    PayloadOther {
        /// What the record says.
        expected: Digest,
        /// What the bundle has.
        found: Digest,
    },
    /// The record commits to no such value.
    #[error("it does not commit to {0}, which the bundle opens")]
    OpenedUnexpected(Value),
    /// The salt is none.
    #[error("the salt of its {0} is not 32 bytes in hexadecimal")]
    SaltMalformed(Value),
    /// An opening has a value or a text, not both and not neither.
    #[error("its {0} is opened with both a value and a text, or with neither")]
    OpeningMalformed(Value),
    /// The value or the salt is another one.
    #[error("its {value} does not match the commitment: it gives {found}, not {expected}")]
    OpenedOther {
        /// Which value.
        value: Value,
        /// What the record says.
        expected: Digest,
        /// What the opened value gives.
        found: Digest,
    },
    /// A record has the name of a link and another leaf, or the leaf and another name.
    #[error("it links {id:?} with the leaf {expected}, and the bundle's has {found}")]
    LinkOther {
        /// The name in the link.
        id: String,
        /// The leaf in the link.
        expected: Digest,
        /// The leaf of that name.
        found: Digest,
    },
    /// The linked record does not stand before this one in the log.
    #[error("it links {id:?}, which stands at {target}, not before it")]
    LinkLater {
        /// The name in the link.
        id: String,
        /// The place of the linked record.
        target: u64,
    },
    /// The record claims that a linked answer was fresh, and its own times say otherwise.
    #[error("it claims that {id:?} was fresh at {at}, after its window ended at {until}")]
    LinkExpired {
        /// The name in the link.
        id: String,
        /// The end of the window, as the record claims it.
        until: String,
        /// When it was used, as the record claims it.
        at: String,
    },
    /// The record claims another window than the linked answer has.
    #[error("it claims that {id:?} was valid until {claimed:?}, and that record says {found:?}")]
    LinkWindowOther {
        /// The name in the link.
        id: String,
        /// The end of the window, as the record claims it.
        claimed: String,
        /// What the linked record says; `None` if it has no window.
        found: Option<String>,
    },
    /// A claim of freshness on a record that the call does not rest on.
    #[error("it claims that {id:?} was fresh and does not rest on it")]
    LinkClaimUnexpected {
        /// The name in the link.
        id: String,
    },
    /// A time that has to be compared cannot be read.
    #[error("{text:?} is no time of the form 2026-11-15T12:00:00Z")]
    TimeMalformed {
        /// What stands there.
        text: String,
    },
    /// The older checkpoint in the bundle does not hold.
    #[error("the earlier checkpoint does not hold: {0}")]
    Earlier(CheckpointError),
    /// A hash of the consistency proof cannot be read.
    #[error("hash {position} of the consistency proof is not 32 bytes in base64")]
    EarlierMalformed {
        /// Which hash.
        position: usize,
    },
    /// The log did not grow from the older checkpoint.
    #[error("the log is not shown to have grown from the earlier checkpoint: {0}")]
    EarlierNotGrown(InvalidProof),
    /// What somebody held is no checkpoint of this log.
    #[error("the held checkpoint does not hold: {0}")]
    Held(CheckpointError),
    /// Two roots for one size: the log was rewritten.
    #[error("the log was rewritten: at {size} leaves it has another root than the held checkpoint")]
    Forked {
        /// The size that has two roots.
        size: u64,
    },
    /// Nothing leads from the held checkpoint to this one.
    #[error("nothing shows that the log of {size} leaves grew from the held one of {held}")]
    HeldNotShown {
        /// The size of the held checkpoint.
        held: u64,
        /// The size of the bundle's.
        size: u64,
    },
    /// The summary says something else than the records.
    #[error("the summary is not that of the records")]
    SummaryOther,
}

impl Report {
    /// True if a trusted key signed the log and nothing is wrong.
    pub fn is_valid(&self) -> bool {
        self.verdict == Verdict::Valid
    }
}

impl Fault {
    /// The name of the fault, the same in every implementation.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::KeyMalformed => "key_malformed",
            Self::KeyOther { .. } => "key_other",
            Self::Checkpoint(_) => "checkpoint",
            Self::Order { .. } => "order",
            Self::LeafTooLong { .. } => "leaf_too_long",
            Self::LeafNotCanonical(_) => "leaf_not_canonical",
            Self::LeafNotARecord(_) => "leaf_not_a_record",
            Self::IdTwice { .. } => "id_twice",
            Self::ProofMalformed { .. } => "proof_malformed",
            Self::Inclusion(_) => "inclusion",
            Self::PayloadMalformed => "payload_malformed",
            Self::PayloadUnexpected => "payload_unexpected",
            Self::PayloadOther { .. } => "payload_other",
            Self::OpenedUnexpected(_) => "opened_unexpected",
            Self::SaltMalformed(_) => "salt_malformed",
            Self::OpeningMalformed(_) => "opening_malformed",
            Self::OpenedOther { .. } => "opened_other",
            Self::LinkOther { .. } => "link_other",
            Self::LinkLater { .. } => "link_later",
            Self::LinkExpired { .. } => "link_expired",
            Self::LinkWindowOther { .. } => "link_window_other",
            Self::LinkClaimUnexpected { .. } => "link_claim_unexpected",
            Self::TimeMalformed { .. } => "time_malformed",
            Self::Earlier(_) => "earlier",
            Self::EarlierMalformed { .. } => "earlier_malformed",
            Self::EarlierNotGrown(_) => "earlier_not_grown",
            Self::Held(_) => "held",
            Self::Forked { .. } => "forked",
            Self::HeldNotShown { .. } => "held_not_shown",
            Self::SummaryOther => "summary_other",
        }
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

fn reason(error: Option<&canonical::Error>) -> String {
    error.map_or_else(String::new, |error| format!(": {error}"))
}
