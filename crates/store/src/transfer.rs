//! Transfer: everything that a store holds, row by row and independent of the database, for moving from one
//! store to another and for comparing the two afterwards.

mod copy;

use countersign::BoxFuture;
use countersign::ledger::{
    Claim, ClaimState, DocumentKey, Error, Head, Hold, IndexEntry, Lapse, LogRow, PotKey, PotRow,
    ReservationId, Scope, WrappedKey,
};
use countersign_contract::RequestId;
use countersign_contract::tool::Recovery;
use countersign_evidence::tile::TileId;
use jiff::Timestamp;

pub(crate) use copy::Verified;
pub use copy::{CopyError, Phase, Progress, Report, copy};

/// Reads a whole store, as of one moment.
///
/// Rows come in the order of the variants of [`Row`], and within a variant as the variant says, so that two
/// stores with the same content give the same rows in the same order. Records that are not in the tree yet have
/// no order: integrate before comparing.
pub trait Source: Send {
    /// Returns the next rows, at most `limit`; an empty list at the end.
    fn next_batch(&mut self, limit: usize) -> BoxFuture<'_, Result<Vec<Row>, Error>>;
}

/// One row of a store. The enum is exhaustive, so that a new kind of row does not compile until the transfer
/// handles it.
///
/// State of a running process is left out: the sequencing lease, and whether the store was closed. So are
/// searchable texts: they are rebuilt from their files. So are notices: they are found again from what they are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A user's key. Ordered by user.
    UserKey {
        /// User whose key it is.
        user_id: String,
        /// Wrapped key.
        key: WrappedKey,
    },
    /// A claim. Ordered by scope.
    Claim(Box<StoredClaim>),
    /// A document. Ordered by key; deleted ones are included, because they keep their version.
    Document {
        /// Key of the document.
        key: DocumentKey,
        /// Its version.
        version: u64,
        /// Sealed body; `None` if the document was deleted.
        body: Option<Vec<u8>>,
        /// Index entries, in the order in which they were written.
        entries: Vec<IndexEntry>,
    },
    /// A collection's shape. Ordered by user and collection.
    Shape {
        /// User whose collection it is.
        user_id: String,
        /// Name of the collection.
        collection: String,
        /// Its shape.
        shape: u64,
    },
    /// A record. Ordered by place in the tree; records without a place come last, in the order in which they
    /// will get theirs, if the store has such an order.
    Record(Box<TransferRecord>),
    /// A tile of the tree, as far as it is filled. Ordered by level and index.
    Tile {
        /// Id of the tile.
        id: TileId,
        /// Hashes, 32 bytes each.
        bytes: Vec<u8>,
    },
    /// Head of the tree; there is exactly one such row.
    Head(Head),
    /// A signed checkpoint. Ordered by size.
    Checkpoint {
        /// Head that was signed.
        head: Head,
        /// The signed note.
        note: String,
    },
    /// A legal hold. Ordered by user and record, those of whole users first.
    Hold(Hold),
    /// A pot. Ordered by key and window.
    Pot(PotRow),
    /// A reservation. Ordered by user, id and draw.
    Reservation(Box<StoredReservation>),
}

/// A claim with all its stored fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredClaim {
    /// Scope of the claim.
    pub scope: Scope,
    /// Fingerprint of the arguments.
    pub fingerprint: [u8; 32],
    /// Parts, as they were given with the claim.
    pub parts: Vec<u8>,
    /// Recovery after the owner is lost.
    pub recovery: Recovery,
    /// Number of the newest attempt.
    pub attempt: u32,
    /// Id of the call that took the claim last.
    pub request_id: RequestId,
    /// Time of the first claim.
    pub first_claim: Timestamp,
    /// Time of the newest claim.
    pub claimed_at: Timestamp,
    /// State of the claim.
    pub state: ClaimState,
    /// End of the owner's lease; `None` if the claim is not running.
    pub lease_until: Option<Timestamp>,
    /// Sealed reply; `None` if it is not kept.
    pub reply: Option<Vec<u8>>,
    /// End of retention of the reply or the tombstone.
    pub until: Option<Timestamp>,
}

/// A reservation of a call in one pot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReservation {
    /// Id of the reservation.
    pub id: ReservationId,
    /// Number of the draw within the reservation.
    pub n: u32,
    /// Key of the pot.
    pub pot: PotKey,
    /// Start of the pot's window, in seconds since 1970.
    pub window_start: i64,
    /// Reserved amount.
    pub amount: i64,
    /// Result of the reservation after the owner is lost.
    pub lapse: Lapse,
    /// End of the owner's lease.
    pub lease_until: Timestamp,
    /// Claim that the reservation was made with.
    pub claim: Option<Claim>,
}

/// A record with all its stored fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferRecord {
    /// Row of the record.
    pub row: LogRow,
    /// Place in the tree; `None` while the record waits for it.
    pub index: Option<u64>,
    /// True if the owner had been overtaken when the record was kept.
    pub fenced: bool,
    /// Canonical JSON of the record.
    pub leaf: Vec<u8>,
    /// Code that authenticates the record until it is signed; `None` if an earlier version has signed it.
    pub code_of_leaf: Option<Vec<u8>>,
    /// Sealed payload; `None` if there was none, or if it was deleted.
    pub payload: Option<Vec<u8>>,
    /// End of retention of the payload; `None` keeps it for ever.
    pub payload_until: Option<Timestamp>,
}
