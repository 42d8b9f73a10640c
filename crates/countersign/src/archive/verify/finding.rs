//! The faults that a log can have.

use std::fmt;
use std::sync::Arc;

use countersign_contract::Digest;
use countersign_contract::evidence::LeafError;
use countersign_evidence::checkpoint::CheckpointError;
use countersign_evidence::freshness::FreshnessFault;
use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// A fault, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The place in the log, if it is about one record.
    pub index: Option<u64>,
    /// The id of the record, if it could be read.
    pub id: Option<Arc<str>>,
    /// The fault.
    pub fault: Fault,
}

/// The source of a statement about the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The store's own tree head.
    Head,
    /// The newest signed checkpoint in the store.
    Signed,
    /// A signed checkpoint that an auditor kept elsewhere.
    Held,
    /// The run that this one continues.
    Progress,
}

/// Kinds of fault. Closed. The usual cause is a change of the store outside of the program, or an older copy of it
/// that was put back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A note that is not a valid checkpoint of this log. Usually it was altered, or is of another installation.
    #[error("{whose} is not valid: {error}")]
    Checkpoint {
        /// The source of the note.
        whose: Whose,
        /// The reason.
        error: CheckpointError,
    },
    /// There are records, but none was ever signed. Usually the signer has never run.
    #[error("the log was never signed")]
    NeverSigned,
    /// Records are missing: the log was cut or rolled back. Usually an old backup was put back.
    #[error("the log has {found} leaves, and {whose} is of {signed}: the newest are gone")]
    Shorter {
        /// The source that names the greater size.
        whose: Whose,
        /// Number of leaves by that source.
        signed: u64,
        /// Number of leaves in the log.
        found: u64,
    },
    /// The store shows an old checkpoint as its newest. Usually an old copy was put back.
    #[error("the newest signed checkpoint is of {signed} leaves, and one of {held} was kept")]
    Replayed {
        /// The size that the auditor kept.
        held: u64,
        /// The size that the store has.
        signed: u64,
    },
    /// The leaves have another root: a leaf was changed, or the log was rewritten.
    /// Usually a row was edited in the database.
    #[error("the first {size} leaves have the root {found}; {whose} says {expected}")]
    RootDiffers {
        /// The source of the expected root.
        whose: Whose,
        /// Number of leaves under the root.
        size: u64,
        /// The root by that source.
        expected: Digest,
        /// The root of the leaves.
        found: Digest,
    },
    /// No proof leads from this checkpoint to the current tree. Usually the tiles were rebuilt from changed leaves.
    #[error("there is no proof that the log grew from the {size} leaves of {whose}")]
    NotShown {
        /// The source of the checkpoint.
        whose: Whose,
        /// Its size.
        size: u64,
    },
    /// The log does not continue a copy of the checkpoint that is kept elsewhere. Usually an old data folder was put
    /// back, or two copies of one folder were both written to.
    #[error("the log does not continue the checkpoint in {name}: {reason}")]
    Copy {
        /// Place of the copy.
        name: Arc<str>,
        /// The difference.
        reason: Arc<str>,
    },
    /// The tiles do not belong to the tree that was verified before.
    /// Usually the store was exchanged since the run that is resumed.
    #[error("the tiles of the first {size} leaves are not those that were verified before")]
    EdgeDiffers {
        /// Number of leaves that were verified before.
        size: u64,
    },
    /// A leaf is missing. Usually its row was deleted from the database.
    #[error("the leaf is missing; the log should have {size}")]
    LeafMissing {
        /// Number of leaves that the log should have.
        size: u64,
    },
    /// Another leaf is in its place. Usually rows were exchanged in the database.
    #[error("the leaf {found} is in its place")]
    OutOfOrder {
        /// The place that the other leaf names.
        found: u64,
    },
    /// The leaf is not canonical JSON. Usually the leaf was edited in the database.
    #[error("its leaf is not canonical JSON")]
    LeafNotCanonical,
    /// The leaf is JSON, but not a record. Usually the leaf was edited, or a newer version has written it.
    #[error("its leaf isn't a record: {0}")]
    LeafNotARecord(LeafError),
    /// The leaf, or its hash in the tree, was changed. Usually the row was edited in the database.
    #[error("its leaf has another hash than the tree keeps")]
    HashDiffers,
    /// A tile is missing, or cut short. Usually rows were deleted from the database.
    #[error("tile {level}/{index} is missing or cut short")]
    TileMissing {
        /// Its level.
        level: u8,
        /// Its number in the level.
        index: u64,
    },
    /// A tile does not agree with the leaves. Usually a leaf below it was changed.
    #[error("tile {level}/{index} is not that of the leaves below it")]
    TileDiffers {
        /// Its level.
        level: u8,
        /// Its number in the level.
        index: u64,
    },
    /// The record cannot be found by its id. Usually its row was deleted from the database.
    #[error("there is no row for it")]
    RowMissing,
    /// The row cannot be read back from the store. Usually a column was edited in the database.
    #[error("its row cannot be read: {what}")]
    RowUnreadable {
        /// The damage that the store reports.
        what: Arc<str>,
    },
    /// The row names another place in the tree. Usually the row was edited in the database.
    #[error("its row has the position {found:?}")]
    IndexDiffers {
        /// The place that the row names.
        found: Option<u64>,
    },
    /// A column of the row differs from the record. Usually the row was edited in the database.
    #[error("its row has another {field}")]
    RowDiffers {
        /// Name of the column.
        field: &'static str,
    },
    /// The user's key is missing, and the row does not say that the user was erased.
    /// Usually the key was deleted from the database without an erasure.
    #[error("its user was not erased and has no key")]
    KeyMissing,
    /// There is a payload, but the record names none. Usually a row was moved or added in the database.
    #[error("it has no payload, and one is kept for it")]
    PayloadUnexpected,
    /// The call has settled its key, and the key is not taken any more: the call could run again. Usually
    /// the claim was deleted from the store.
    #[error("its key is free again: the claim is gone")]
    ClaimMissing,
    /// The call has settled its key, and the claim says otherwise. Usually an old row was put back.
    #[error("its key is settled, and the claim says otherwise")]
    ClaimDiffers,
    /// What the act has done is not so any more. Usually an old row was put back.
    #[error("what it has done to the {what} is undone")]
    Undone {
        /// Name of the kind of thing.
        what: &'static str,
    },
    /// A hold was placed and never lifted, and is not there. Usually it was deleted from the store.
    #[error("the hold that it places is gone, and was not lifted")]
    HoldMissing,
    /// A hold was lifted, and the store has it again: its user cannot be erased.
    /// Usually a row was put back into the database.
    #[error("a hold was lifted by this record, and the store has it")]
    HoldPutBack,
    /// A document that its call wrote is older than the record says. Usually an old row was put back.
    #[error("a document that it wrote is there in an older version")]
    DocumentPutBack,
    /// A document that its call wrote is gone, and no record removes it. Usually the row was deleted from the store.
    #[error("a document that it wrote is gone, and nothing has removed it")]
    DocumentMissing,
    /// A document that its call wrote has another content. Usually an older body was put under the newer version.
    #[error("a document that it wrote has another content")]
    DocumentChanged,
    /// A budget was charged with less than the records of its calls say. Usually its row was changed, deleted or put back.
    #[error(
        "a budget that it charged was charged with {found}, and the records say at least {charged}"
    )]
    PotRefilled {
        /// Least amount by the records, in the smallest unit.
        charged: i64,
        /// Amount in the store.
        found: i64,
    },
    /// The payload is gone although its retention is not over and its user was not erased. Usually it was deleted
    /// from the store.
    #[error("its payload is gone, and was to be kept until {until:.0}")]
    PayloadMissing {
        /// End of its retention.
        until: Timestamp,
    },
    /// The payload's digest differs from the one in the record.
    /// Usually the payload was changed, or that of another record was put in its place.
    #[error("its payload has the digest {found}, not {expected}")]
    PayloadDiffers {
        /// The digest in the record.
        expected: Digest,
        /// The digest of the stored payload.
        found: Digest,
    },
    /// A linked record is missing. Usually its row was deleted from the database.
    #[error("it links {id:?}, which is not there")]
    LinkMissing {
        /// The name in the link.
        id: Arc<str>,
    },
    /// A linked record has another leaf than the link names. Usually one of the two leaves was changed.
    #[error("it links {id:?}, which has another leaf")]
    LinkDiffers {
        /// The name in the link.
        id: Arc<str>,
    },
    /// A linked record is not before this one in the log. Usually one of the two leaves was changed.
    #[error("it links {id:?}, which is not before it in the log")]
    LinkLater {
        /// The name in the link.
        id: Arc<str>,
    },
    /// The claim that a linked answer was fresh is wrong. Usually one of the two leaves was changed.
    #[error("it claims that {id:?} was fresh {fault}")]
    Freshness {
        /// The name in the link.
        id: Arc<str>,
        /// The reason.
        fault: FreshnessFault,
    },
    /// A record begins this log as the continuation of another one, and its statement about that log is wrong.
    /// Usually the file of the earlier log that was given is another one.
    #[error("it begins the log after another one, and {what}")]
    EarlierLog {
        /// The difference.
        what: &'static str,
    },
    /// A kept checkpoint is of an earlier log, and that log's records are not those that stand here.
    /// Usually two copies of that log's store were both written to.
    #[error(
        "the checkpoint that was kept is of an earlier log, and its {size} records are not those that this log names: the earlier log has two histories"
    )]
    EarlierForked {
        /// Number of records under the kept checkpoint.
        size: u64,
    },
    /// A kept checkpoint is of an earlier log, and is of more records than this log knows of.
    /// Usually more was lost than the restore could know, or the earlier log went on elsewhere.
    #[error(
        "the checkpoint that was kept is of an earlier log and of {held} records, and this log knows of {stated}: more records are lost than it says, or the earlier log went on elsewhere"
    )]
    EarlierLonger {
        /// Number of records under the kept checkpoint.
        held: u64,
        /// Number of records of the earlier log that this one names.
        stated: u64,
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
            Self::Copy { .. } => "copy",
            Self::EdgeDiffers { .. } => "edge_differs",
            Self::LeafMissing { .. } => "leaf_missing",
            Self::OutOfOrder { .. } => "out_of_order",
            Self::LeafNotCanonical => "leaf_not_canonical",
            Self::LeafNotARecord(_) => "leaf_not_a_record",
            Self::HashDiffers => "hash_differs",
            Self::TileMissing { .. } => "tile_missing",
            Self::TileDiffers { .. } => "tile_differs",
            Self::RowMissing => "row_missing",
            Self::RowUnreadable { .. } => "row_unreadable",
            Self::IndexDiffers { .. } => "index_differs",
            Self::RowDiffers { .. } => "row_differs",
            Self::KeyMissing => "key_missing",
            Self::PayloadUnexpected => "payload_unexpected",
            Self::ClaimMissing => "claim_missing",
            Self::ClaimDiffers => "claim_differs",
            Self::Undone { .. } => "undone",
            Self::HoldMissing => "hold_missing",
            Self::HoldPutBack => "hold_put_back",
            Self::DocumentPutBack => "document_put_back",
            Self::DocumentMissing => "document_missing",
            Self::DocumentChanged => "document_changed",
            Self::PotRefilled { .. } => "pot_refilled",
            Self::PayloadMissing { .. } => "payload_missing",
            Self::PayloadDiffers { .. } => "payload_differs",
            Self::LinkMissing { .. } => "link_missing",
            Self::LinkDiffers { .. } => "link_differs",
            Self::LinkLater { .. } => "link_later",
            Self::Freshness { fault, .. } => fault.code(),
            Self::EarlierLog { .. } => "earlier_log",
            Self::EarlierForked { .. } => "earlier_forked",
            Self::EarlierLonger { .. } => "earlier_longer",
        }
    }

    /// The source whose statement about the tree the fault contradicts.
    pub(super) const fn whose(&self) -> Option<Whose> {
        match self {
            Self::Checkpoint { whose, .. }
            | Self::Shorter { whose, .. }
            | Self::RootDiffers { whose, .. }
            | Self::NotShown { whose, .. } => Some(*whose),
            Self::NeverSigned | Self::Replayed { .. } => Some(Whose::Signed),
            Self::EarlierForked { .. } | Self::EarlierLonger { .. } => Some(Whose::Held),
            Self::Copy { .. }
            | Self::EdgeDiffers { .. }
            | Self::LeafMissing { .. }
            | Self::OutOfOrder { .. }
            | Self::LeafNotCanonical
            | Self::LeafNotARecord(_)
            | Self::HashDiffers
            | Self::TileMissing { .. }
            | Self::TileDiffers { .. }
            | Self::RowMissing
            | Self::RowUnreadable { .. }
            | Self::IndexDiffers { .. }
            | Self::RowDiffers { .. }
            | Self::KeyMissing
            | Self::PayloadUnexpected
            | Self::ClaimMissing
            | Self::ClaimDiffers
            | Self::Undone { .. }
            | Self::HoldMissing
            | Self::HoldPutBack
            | Self::DocumentPutBack
            | Self::DocumentMissing
            | Self::DocumentChanged
            | Self::PotRefilled { .. }
            | Self::PayloadMissing { .. }
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
