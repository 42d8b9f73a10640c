//! Everything that a store holds, row by row and in a form that belongs to no database: for moving from
//! one to the other, and for comparing the two afterwards.

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

/// Reads a whole store, as it was at one moment.
///
/// Rows come in the order of the variants of [`Row`], and within a variant as the variant says, so that
/// two stores with the same content give the same rows in the same order. Records that are not in the
/// tree yet have no place to be ordered by: integrate before comparing.
pub trait Source: Send {
    /// The next rows, at most `limit`; none when there are no more.
    fn next_batch(&mut self, limit: usize) -> BoxFuture<'_, Result<Vec<Row>, Error>>;
}

/// One row of a store. Closed: a kind of row that is added does not compile until it is moved too.
///
/// What belongs to a running process is not here: the sequencing lease, and whether the store was closed. Nor
/// are texts that are searched: they are made again from their files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// By user.
    UserKey {
        /// Whose key it is.
        user_id: String,
        /// The key.
        key: WrappedKey,
    },
    /// By scope.
    Claim(Box<StoredClaim>),
    /// By key, deleted ones too: they keep their version.
    Document {
        /// Where it is.
        key: DocumentKey,
        /// Its version.
        version: u64,
        /// Sealed; none where it was deleted.
        body: Option<Vec<u8>>,
        /// In the order in which they were written.
        entries: Vec<IndexEntry>,
    },
    /// By user and collection.
    Shape {
        /// Whose collection.
        user_id: String,
        /// Which one.
        collection: String,
        /// Its shape.
        shape: u64,
    },
    /// By place in the tree, those without one last and in the order in which they will get theirs,
    /// where the store has such an order.
    Record(Box<TransferRecord>),
    /// By level and index; as far as it is filled.
    Tile {
        /// Which tile.
        id: TileId,
        /// 32 for each hash.
        bytes: Vec<u8>,
    },
    /// The tree; there is exactly one such row.
    Head(Head),
    /// By size.
    Checkpoint {
        /// What it says.
        head: Head,
        /// The signed note.
        note: String,
    },
    /// By user and record, those of the whole user first.
    Hold(Hold),
    /// By key and window.
    Pot(PotRow),
    /// By user, id and draw.
    Reservation(Box<StoredReservation>),
}

/// A claim with everything that is kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredClaim {
    /// Which one.
    pub scope: Scope,
    /// Of the arguments.
    pub fingerprint: [u8; 32],
    /// As it was given with the claim.
    pub parts: Vec<u8>,
    /// What a lost owner leaves behind.
    pub recovery: Recovery,
    /// The newest attempt.
    pub attempt: u32,
    /// The call that took it last.
    pub request_id: RequestId,
    /// When it was claimed first.
    pub first_claim: Timestamp,
    /// When it was claimed last.
    pub claimed_at: Timestamp,
    /// How it stands.
    pub state: ClaimState,
    /// Until when the owner may be silent, where it runs.
    pub lease_until: Option<Timestamp>,
    /// The sealed answer, where it is kept.
    pub reply: Option<Vec<u8>>,
    /// Until when the answer is kept, or the tombstone.
    pub until: Option<Timestamp>,
}

/// What a call has set aside in one pot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReservation {
    /// Which reservation.
    pub id: ReservationId,
    /// Which of its draws.
    pub n: u32,
    /// Which pot.
    pub pot: PotKey,
    /// In which window, in seconds since 1970.
    pub window_start: i64,
    /// How much.
    pub amount: i64,
    /// What a lost owner leaves behind.
    pub lapse: Lapse,
    /// Until when the owner may be silent.
    pub lease_until: Timestamp,
    /// The claim that it was made with.
    pub claim: Option<Claim>,
}

/// A record with everything that is kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferRecord {
    /// Its row.
    pub row: LogRow,
    /// Its place in the tree; none while it waits for it.
    pub index: Option<u64>,
    /// Whether its owner had been overtaken when it was kept.
    pub fenced: bool,
    /// The canonical JSON of the record.
    pub leaf: Vec<u8>,
    /// Sealed; none where there was none, or where it is gone.
    pub payload: Option<Vec<u8>>,
    /// Until when the payload is kept; for ever where there is none.
    pub payload_until: Option<Timestamp>,
}
