//! The store's traits: claims, documents, the log, the users' keys, the installation, pots of money, rate limits,
//! texts that are searched, the outbox of notices, and the time that is believed.
//!
//! One trait a concern, so that each can be read alone; one type implements all of them, because effect, claim and
//! record are one commit ([`Claims::commit`]). A store sees no personal data in the clear: bodies, replies and payloads
//! arrive sealed, keys and fingerprints as digests under the user's own key. Only the columns that it searches by are
//! readable: user, tool, time, code.
//!
//! Only the store's own clock decides about leases and retention. Nothing in these traits takes the current time as an
//! argument, so no caller's clock can give a claim to two owners.

use std::fmt;

use countersign_contract::SnapshotId;

use crate::unavailable::Unavailable;

mod claims;
mod documents;
mod installation;
mod keyring;
mod log;
mod memory;
mod outbox;
mod paces;
mod pots;
mod tally;
mod texts;
mod timekeeping;
mod vitals;

pub use claims::{
    Claim, ClaimAnswer, ClaimQuery, ClaimRequest, ClaimRow, ClaimState, Claims, Commit,
    CommitAnswer, Held, HeldState, KeyChange, KeyDigest, Outcome, Scope, Swept,
};
pub use documents::{
    DocumentKey, DocumentRead, DocumentRow, DocumentWrite, Documents, FoundDocument, IndexEntry,
    OPEN_INDEX, OpenDocument, OpenPlace, Scan, ShapeRead, StoredDocument,
};
pub use installation::{Binding, Installation, Installations, NotOurs, Traces};
pub use keyring::{Keyring, LostKeyFn, WrappedKey};
pub use log::{
    Durability, Entry, Erased, FoundLeaf, Head, Hold, Integration, Leaf, Log, LogQuery, LogRow,
    Sequencing, StoredRecord,
};
pub use memory::MemoryStore;
pub use outbox::{
    Delivery, DeliveryEnd, DeliveryId, DeliveryRow, FailedDeliveries, Finding, Look, Notice,
    NoticeKind, NoticeRow, Outbox, UnknownNoticeKind,
};
pub use paces::{Pace, PaceAnswer, PaceCount, PaceKey, PaceRule, Paces};
pub use pots::{
    Draw, Lapse, Overdrawn, POT_KEPT, PotKey, PotRow, Pots, ReservationId, Reserve, ReserveAnswer,
    SpendChange, SpendEnd, longer, overdrawn, window_start,
};
pub use tally::Tally;
pub use texts::{
    CANDIDATES_MAX, CHUNK_BYTES_MAX, CHUNKS_MAX, Corpus, CorpusError, CorpusId, HITS_MAX,
    TextChunk, TextHit, TextQuery, Texts, VERSIONS_KEPT,
};

pub use timekeeping::{
    Disposal, Disposed, Forgotten, Jump, MARK_MOVES_AFTER, Name, Names, Passage, Removed,
    TIME_LAG_MAX, TIME_STEP_MAX, Timekeeping, Told, window_time,
};
pub use vitals::{COUNTED_MAX, StoreKind, StoreVitals, Vitals};

/// Everything that a call needs of a store.
pub trait Store:
    Claims
    + Documents
    + Log
    + Keyring
    + Installations
    + Pots
    + Paces
    + Texts
    + Outbox
    + Timekeeping
    + Vitals
{
}

impl<T> Store for T where
    T: Claims
        + Documents
        + Log
        + Keyring
        + Installations
        + Pots
        + Paces
        + Texts
        + Outbox
        + Timekeeping
        + Vitals
{
}

/// Errors of a store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store could not answer; it may or may not have committed. Usually the disk or the database cannot be
    /// reached.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The disk is nearly full: the store accepts no more writes until there is room again; reading and verifying go
    /// on. Usually old backups or logs fill the same disk.
    #[error(
        "the disk has {free_bytes} bytes left, {needed_bytes} are kept free; nothing is written"
    )]
    DiskLow {
        /// Free bytes on the disk.
        free_bytes: u64,
        /// Bytes that must stay free.
        needed_bytes: u64,
    },
    /// A bounded store has no room for another key. Usually a program keeps a store in memory for longer than a test.
    #[error("the store has its maximum of {limit} keys")]
    Full {
        /// Number of keys that it holds at most.
        limit: usize,
    },
    /// Something that was stored cannot be read back: another program has changed the store, or it is damaged.
    /// Usually a row was edited in the database.
    #[error("{what} in the store is damaged")]
    Damaged {
        /// Name of what is damaged.
        what: String,
    },
    /// A legal hold forbids the change. Usually a dispute about the user is open.
    #[error("the records of this user are under a hold: {reason}")]
    UnderHold {
        /// Reason for the hold, in the words of the operator who placed it.
        reason: String,
    },
    /// A second checkpoint of one size with another root: two histories of one log.
    /// Usually two copies of one store were both written to.
    #[error("the log has another root at size {size} than the one that was signed")]
    Forked {
        /// The size that both claim.
        size: u64,
    },
}

/// Hexadecimal, for digests in texts.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One record by its name. A record that is on its way to the disk is waited for: its name has left with a reply
/// already.
pub async fn awaited_record(
    store: &dyn Store,
    id: &SnapshotId,
) -> Result<Option<StoredRecord>, Error> {
    if let Some(found) = store.record(id).await? {
        return Ok(Some(found));
    }
    store.flush().await?;
    store.record(id).await
}
