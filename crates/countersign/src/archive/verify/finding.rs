//! Everything that can be wrong with a log, by name.

use std::fmt;
use std::sync::Arc;

use countersign_contract::Digest;
use countersign_contract::evidence::LeafError;
use countersign_evidence::checkpoint::CheckpointError;
use countersign_evidence::freshness::FreshnessFault;
use serde::{Serialize, Serializer};

/// Something that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The place in the log, where it is about one record.
    pub index: Option<u64>,
    /// The name of the record, where that could be read.
    pub id: Option<Arc<str>>,
    /// What is wrong.
    pub fault: Fault,
}

/// Who says which root the tree has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The store, of itself.
    Head,
    /// The newest signed checkpoint in the store.
    Signed,
    /// A signed checkpoint that somebody kept elsewhere.
    Held,
    /// The run that this one goes on from.
    Progress,
}

/// What can be wrong. Closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A note that is none of this log.
    #[error("{whose} does not hold: {error}")]
    Checkpoint {
        /// Which one.
        whose: Whose,
        /// Why.
        error: CheckpointError,
    },
    /// There are records and no signature.
    #[error("the log was never signed")]
    NeverSigned,
    /// Records are gone.
    #[error("the log has {found} leaves, and {whose} is of {signed}: the newest are gone")]
    Shorter {
        /// Who says so.
        whose: Whose,
        /// How many there were.
        signed: u64,
        /// How many there are.
        found: u64,
    },
    /// The store shows an old checkpoint as its newest.
    #[error("the newest signed checkpoint is of {signed} leaves, and one of {held} was kept")]
    Replayed {
        /// The size that somebody kept.
        held: u64,
        /// The size that the store has.
        signed: u64,
    },
    /// The leaves give another root.
    #[error("the first {size} leaves have the root {found}; {whose} says {expected}")]
    RootDiffers {
        /// Who says so.
        whose: Whose,
        /// Of how many leaves.
        size: u64,
        /// What they say.
        expected: Digest,
        /// What the leaves give.
        found: Digest,
    },
    /// No proof leads from there to the tree as it is.
    #[error("nothing shows that the log has grown from the {size} leaves of {whose}")]
    NotShown {
        /// Which one.
        whose: Whose,
        /// Its size.
        size: u64,
    },
    /// The tiles are not of the tree that was verified before.
    #[error("the tiles of the first {size} leaves are not those that were verified before")]
    EdgeDiffers {
        /// How many were verified.
        size: u64,
    },
    /// A leaf is not there.
    #[error("the leaf is missing; the log should have {size}")]
    LeafMissing {
        /// How many there should be.
        size: u64,
    },
    /// Another leaf stands in its place.
    #[error("the leaf {found} stands in its place")]
    OutOfOrder {
        /// Which one.
        found: u64,
    },
    /// The leaf has another canonical text, or none.
    #[error("its leaf is not canonical JSON")]
    LeafNotCanonical,
    /// The leaf is JSON and not a record.
    #[error("its leaf isn't a record: {0}")]
    LeafNotARecord(LeafError),
    /// The leaf, or its hash in the tree, was changed.
    #[error("its leaf has another hash than the tree keeps")]
    HashDiffers,
    /// A tile is not there, or cut short.
    #[error("tile {level}/{index} is missing or cut short")]
    TileMissing {
        /// Its level.
        level: u8,
        /// Its number in the level.
        index: u64,
    },
    /// A tile is not that of the leaves.
    #[error("tile {level}/{index} is not that of the leaves below it")]
    TileDiffers {
        /// Its level.
        level: u8,
        /// Its number in the level.
        index: u64,
    },
    /// The record cannot be found by its name.
    #[error("there is no row for it")]
    RowMissing,
    /// The record is found in another place.
    #[error("its row says that it stands at {found:?}")]
    IndexDiffers {
        /// Where.
        found: Option<u64>,
    },
    /// The row says something else than the record.
    #[error("its row has another {field}")]
    RowDiffers {
        /// What.
        field: &'static str,
    },
    /// Nobody can read it, and its row does not say that its user was erased.
    #[error("its user was not erased and has no key")]
    KeyMissing,
    /// The record knows no payload.
    #[error("it has no payload, and one is kept for it")]
    PayloadUnexpected,
    /// The payload is another one.
    #[error("its payload has the digest {found}, not {expected}")]
    PayloadDiffers {
        /// What the record says.
        expected: Digest,
        /// What is kept.
        found: Digest,
    },
    /// A linked record is not there.
    #[error("it links {id:?}, which is not there")]
    LinkMissing {
        /// The name in the link.
        id: Arc<str>,
    },
    /// A linked record is another one now.
    #[error("it links {id:?}, which has another leaf")]
    LinkDiffers {
        /// The name in the link.
        id: Arc<str>,
    },
    /// A linked record came after this one.
    #[error("it links {id:?}, which is not before it in the log")]
    LinkLater {
        /// The name in the link.
        id: Arc<str>,
    },
    /// The claim that a linked answer was fresh does not hold.
    #[error("it claims that {id:?} was fresh {fault}")]
    Freshness {
        /// The name in the link.
        id: Arc<str>,
        /// Why.
        fault: FreshnessFault,
    },
    /// A record that begins this log after another one, which is not what it says.
    #[error("it begins the log after another one, and {what}")]
    EarlierLog {
        /// What is wrong.
        what: &'static str,
    },
}

impl Fault {
    /// The name of the fault.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Checkpoint { .. } => "checkpoint",
            Self::NeverSigned => "never_signed",
            Self::Shorter { .. } => "shorter",
            Self::Replayed { .. } => "replayed",
            Self::RootDiffers { .. } => "root_differs",
            Self::NotShown { .. } => "not_shown",
            Self::EdgeDiffers { .. } => "edge_differs",
            Self::LeafMissing { .. } => "leaf_missing",
            Self::OutOfOrder { .. } => "out_of_order",
            Self::LeafNotCanonical => "leaf_not_canonical",
            Self::LeafNotARecord(_) => "leaf_not_a_record",
            Self::HashDiffers => "hash_differs",
            Self::TileMissing { .. } => "tile_missing",
            Self::TileDiffers { .. } => "tile_differs",
            Self::RowMissing => "row_missing",
            Self::IndexDiffers { .. } => "index_differs",
            Self::RowDiffers { .. } => "row_differs",
            Self::KeyMissing => "key_missing",
            Self::PayloadUnexpected => "payload_unexpected",
            Self::PayloadDiffers { .. } => "payload_differs",
            Self::LinkMissing { .. } => "link_missing",
            Self::LinkDiffers { .. } => "link_differs",
            Self::LinkLater { .. } => "link_later",
            Self::Freshness { fault, .. } => fault.code(),
            Self::EarlierLog { .. } => "earlier_log",
        }
    }

    /// Whose statement about the tree it contradicts.
    pub(super) const fn whose(&self) -> Option<Whose> {
        match self {
            Self::Checkpoint { whose, .. }
            | Self::Shorter { whose, .. }
            | Self::RootDiffers { whose, .. }
            | Self::NotShown { whose, .. } => Some(*whose),
            Self::NeverSigned | Self::Replayed { .. } => Some(Whose::Signed),
            Self::EdgeDiffers { .. }
            | Self::LeafMissing { .. }
            | Self::OutOfOrder { .. }
            | Self::LeafNotCanonical
            | Self::LeafNotARecord(_)
            | Self::HashDiffers
            | Self::TileMissing { .. }
            | Self::TileDiffers { .. }
            | Self::RowMissing
            | Self::IndexDiffers { .. }
            | Self::RowDiffers { .. }
            | Self::KeyMissing
            | Self::PayloadUnexpected
            | Self::PayloadDiffers { .. }
            | Self::LinkMissing { .. }
            | Self::LinkDiffers { .. }
            | Self::LinkLater { .. }
            | Self::Freshness { .. }
            | Self::EarlierLog { .. } => None,
        }
    }
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "the head in the store",
            Self::Signed => "the newest signed checkpoint",
            Self::Held => "the checkpoint that was kept",
            Self::Progress => "the earlier verification",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.index, &self.id) {
            (None, _) => {}
            (Some(index), None) => write!(f, "record {index}: ")?,
            (Some(index), Some(id)) => write!(f, "record {index} ({id}): ")?,
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

        Wire {
            code: self.fault.code(),
            message: self.fault.to_string(),
            index: self.index,
            id: self.id.as_deref(),
        }
        .serialize(serializer)
    }
}
