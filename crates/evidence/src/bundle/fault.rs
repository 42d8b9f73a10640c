//! Everything that can be wrong with a bundle, by name.

use countersign_contract::evidence::LeafError;
use countersign_contract::{Digest, canonical};

use crate::bundle::{LEAF_BYTES_MAX, Value};
use crate::checkpoint::CheckpointError;
use crate::freshness::FreshnessFault;
use crate::tree::InvalidProof;

/// Everything that can be wrong with a bundle. Closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The text of the key.
    #[error("the bundle's public key isn't a key")]
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
    /// The leaf is JSON and not a record.
    #[error("its leaf isn't a record: {0}")]
    LeafNotARecord(LeafError),
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
    /// The claim that a linked answer was fresh does not hold.
    #[error("it claims that {id:?} was fresh {fault}")]
    Freshness {
        /// The name in the link.
        id: String,
        /// Why.
        fault: FreshnessFault,
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
            Self::Freshness { fault, .. } => fault.code(),
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

fn reason(error: Option<&canonical::Error>) -> String {
    error.map_or_else(String::new, |error| format!(": {error}"))
}
