//! Faults of a bundle, by name.

use countersign_contract::evidence::LeafError;
use countersign_contract::{Digest, canonical};

use crate::bundle::{LEAF_BYTES_MAX, Value};
use crate::checkpoint::CheckpointError;
use crate::freshness::FreshnessFault;
use crate::tree::InvalidProof;

/// A fault of a bundle. The enum is exhaustive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The text of the bundle's public key is not a key, usually because it was cut off or edited.
    #[error("the bundle's public key isn't a key")]
    KeyMalformed,
    /// The bundle's key is not the trusted one, usually because the bundle is from another log.
    #[error("the bundle is of the key {found:?}, not of the trusted {expected:?}")]
    KeyOther {
        /// Trusted key.
        expected: String,
        /// Key of the bundle.
        found: String,
    },
    /// The checkpoint is malformed, or not signed by this log.
    /// Usually the file was altered, or the key of another log was given.
    #[error("the checkpoint is not valid: {0}")]
    Checkpoint(CheckpointError),
    /// Records are out of order, or occur twice. Usually a program has sorted or merged bundles.
    #[error("it follows record {previous}; records stand in the order of the log, each once")]
    Order {
        /// Index of the record before it.
        previous: u64,
    },
    /// The leaf is longer than any log can store. Usually the file was altered: no log has written such a leaf.
    #[error("its leaf has {found} bytes; a leaf has at most {LEAF_BYTES_MAX}")]
    LeafTooLong {
        /// Length in bytes.
        found: usize,
    },
    /// The leaf is not in canonical form, or not JSON at all, usually because it was reformatted.
    #[error("its leaf is not canonical JSON{}", reason(.0.as_ref()))]
    LeafNotCanonical(Option<canonical::Error>),
    /// The leaf is JSON but not a record, usually because a later version wrote it.
    #[error("its leaf isn't a record: {0}")]
    LeafNotARecord(LeafError),
    /// Two records have the same id. Usually bundles were merged by hand.
    #[error("its name stands at {other} already")]
    IdTwice {
        /// Index of the other record.
        other: u64,
    },
    /// A hash of the inclusion proof is malformed. Usually the file was cut or altered on the way.
    #[error("hash {position} of its proof is not 32 bytes in base64")]
    ProofMalformed {
        /// Position of the hash in the proof.
        position: usize,
    },
    /// The inclusion proof does not show this leaf at this index, usually because the leaf or the proof was
    /// altered.
    #[error("it is not shown to be in the log: {0}")]
    Inclusion(InvalidProof),
    /// The sealed payload is not base64. Usually the file was altered on the way.
    #[error("its payload is not base64")]
    PayloadMalformed,
    /// The bundle has a payload for a record that has none. Usually the payload belongs to another record.
    #[error("it has no payload, and the bundle has one for it")]
    PayloadUnexpected,
    /// The sealed payload is not the one that the record names, usually because payloads were swapped.
    #[error("its payload has the digest {found}, not {expected}")]
    PayloadOther {
        /// Digest in the record.
        expected: Digest,
        /// Digest of the bundle's payload.
        found: Digest,
    },
    /// The bundle opens a value that the record does not commit to.
    /// Usually a value was added to the bundle afterwards.
    #[error("it does not commit to {0}, which the bundle opens")]
    OpenedUnexpected(Value),
    /// The salt of an opened value is malformed. Usually the file was altered on the way.
    #[error("the salt of its {0} is not 32 bytes in hexadecimal")]
    SaltMalformed(Value),
    /// An opening must have either a value or a text; this one has both or neither.
    /// Usually the bundle was written by another program.
    #[error("its {0} is opened with both a value and a text, or with neither")]
    OpeningMalformed(Value),
    /// An opened value does not match its commitment, usually because the value or the salt was altered.
    #[error("its {value} does not match the commitment: it gives {found}, not {expected}")]
    OpenedOther {
        /// Value that was opened.
        value: Value,
        /// Commitment in the record.
        expected: Digest,
        /// Commitment that the opened value gives.
        found: Digest,
    },
    /// A record of the bundle has the id of a link and another leaf, or the leaf and another id.
    /// Usually a linked record was exchanged.
    #[error("it links {id:?} with the leaf {expected}, and the bundle's has {found}")]
    LinkOther {
        /// Id in the link.
        id: String,
        /// Leaf digest in the link.
        expected: Digest,
        /// Leaf digest of the record with that id.
        found: Digest,
    },
    /// The linked record does not come before this one in the log.
    /// Usually the record was made up afterwards: a gateway links only records that exist.
    #[error("it links {id:?}, which stands at {target}, not before it")]
    LinkLater {
        /// Id in the link.
        id: String,
        /// Index of the linked record.
        target: u64,
    },
    /// The claim that a linked answer was fresh is not valid.
    /// Usually the record was altered, or another program wrote it.
    #[error("it claims that {id:?} was fresh {fault}")]
    Freshness {
        /// Id in the link.
        id: String,
        /// Reason.
        fault: FreshnessFault,
    },
    /// The older checkpoint in the bundle is not valid. Usually it is of another log, or was altered.
    #[error("the earlier checkpoint is not valid: {0}")]
    Earlier(CheckpointError),
    /// A hash of the consistency proof is malformed. Usually the file was cut or altered on the way.
    #[error("hash {position} of the consistency proof is not 32 bytes in base64")]
    EarlierMalformed {
        /// Position of the hash in the proof.
        position: usize,
    },
    /// The consistency proof does not show that the log grew from the older checkpoint.
    /// Usually the log was rewritten in between, or the proof is for other sizes.
    #[error("the log is not shown to have grown from the earlier checkpoint: {0}")]
    EarlierNotGrown(InvalidProof),
    /// The held checkpoint is not one of this log, usually because it is from another log.
    #[error("the held checkpoint is not valid: {0}")]
    Held(CheckpointError),
    /// The held checkpoint has another root for the same size: the log was rewritten.
    /// Usually an old backup was put back and written to.
    #[error("the log was rewritten: at {size} leaves it has another root than the held checkpoint")]
    Forked {
        /// Size that has two roots.
        size: u64,
    },
    /// No proof leads from the held checkpoint to the bundle's, usually because the bundle was made without it.
    #[error("nothing shows that the log of {size} leaves grew from the held one of {held}")]
    HeldNotShown {
        /// Size of the held checkpoint.
        held: u64,
        /// Size of the bundle's checkpoint.
        size: u64,
    },
    /// The summary does not match the records, usually because it was edited.
    #[error("the summary is not that of the records")]
    SummaryOther,
}

impl Fault {
    /// Returns the code of the fault, the same in every implementation.
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
