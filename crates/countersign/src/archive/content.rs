//! Checks of a stored record against its leaf, and opening of its sealed payload.

use countersign_contract::evidence::Payload;
use countersign_contract::{Digest, EvidenceRecord};
use countersign_evidence::seal::UserKey;

use crate::ledger::{LogRow, StoredRecord};
use crate::payload::{Opened, Unreadable};

/// The content of a record.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// The payload: what was sent and answered.
    Open(Box<Payload>),
    /// The record never had a payload.
    Nothing,
    /// The payload was dropped after its retention.
    Pruned,
    /// The user was erased, and the payload cannot be read any more.
    Erased,
}

/// Differences between a stored record and its leaf. The usual cause is a change of the store outside of the program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Tampering {
    /// The leaf is not a record. Usually its bytes were changed in the store.
    #[error("its leaf is not a record")]
    Leaf,
    /// A column of the row differs from the leaf. Usually the row was edited in the database.
    #[error("its row has another {0} than its leaf")]
    Row(&'static str),
    /// The signed tree does not have this leaf at this place. Usually the leaf was exchanged in the store.
    #[error("its leaf is not the one that the signed tree has at {index}")]
    NotIncluded {
        /// The place.
        index: u64,
    },
    /// A payload exists, but the leaf names none. Usually a row was moved or added in the database.
    #[error("it has a payload, but its leaf names none")]
    PayloadUnexpected,
    /// The payload's digest differs from the one in the leaf.
    /// Usually the payload was changed, or that of another record was put in its place.
    #[error("its payload has the digest {found}, not {expected}")]
    Payload {
        /// The digest in the leaf.
        expected: Digest,
        /// The digest of the stored payload.
        found: Digest,
    },
    /// The payload has the right digest, but the user's key does not open it.
    /// Usually the key of the user was exchanged in the store.
    #[error("its payload does not open with the key of its user")]
    Sealed,
    /// The sealed bytes are not a payload. Usually another program has sealed them.
    #[error("the sealed content is not a payload")]
    NotAPayload,
    /// A value differs from the one that the leaf commits to.
    /// Usually the payload of another record was put in its place.
    #[error("its {0} is not what its leaf commits to")]
    Commitment(&'static str),
}

/// The record in a leaf, which has to be the one that its row names.
pub(super) fn record_of(stored: &StoredRecord) -> Result<EvidenceRecord, Tampering> {
    record_in(&stored.row, &stored.leaf)
}

/// The record in the leaf of a row, which has to be the one that the row names.
pub(super) fn record_in(row: &LogRow, leaf: &[u8]) -> Result<EvidenceRecord, Tampering> {
    let record: EvidenceRecord = serde_json::from_slice(leaf).map_err(|_| Tampering::Leaf)?;
    match differing(row, &record) {
        Some(field) => Err(Tampering::Row(field)),
        None => Ok(record),
    }
}

/// Name of the first column of a row that differs from its leaf; `None` if they agree.
pub(super) fn differing(row: &LogRow, record: &EvidenceRecord) -> Option<&'static str> {
    // Stores keep microseconds, the leaf has what the clock gave.
    let at = record.at.parse().ok().map(jiff::Timestamp::as_microsecond);
    let code = record.reply.as_ref().and_then(|reply| reply.code);
    // A name that no tool has is the caller's text: the leaf says "unknown", the row nothing.
    let tool = record.tool.as_ref().filter(|tool| tool.version.is_some());
    let tool = tool.map(|tool| &tool.name);
    [
        ("id", row.id == record.id),
        ("kind", row.kind == record.kind),
        ("time", Some(row.at.as_microsecond()) == at),
        ("request_id", row.request_id == record.request_id),
        ("tool", row.tool.as_ref() == tool),
        ("code", row.code == code),
    ]
    .into_iter()
    .find_map(|(field, is_same)| (!is_same).then_some(field))
}

/// True if the row names the user whose subject is in the leaf.
pub(super) fn is_of_user(row: &LogRow, record: &EvidenceRecord, keys: &UserKey) -> bool {
    let subject = record.subject.as_ref();
    subject.is_none_or(|subject| *subject == keys.subject(&row.user_id))
}

/// Checks the sealed bytes against the leaf.
pub(super) fn check_sealed(record: &EvidenceRecord, sealed: &[u8]) -> Result<(), Tampering> {
    let expected = record.payload.ok_or(Tampering::PayloadUnexpected)?;
    let found = Digest::of_bytes(sealed);
    if found == expected {
        return Ok(());
    }
    Err(Tampering::Payload { expected, found })
}

/// The reason why there are no sealed bytes.
pub(super) fn absent(record: &EvidenceRecord, row: &LogRow) -> Content {
    if record.payload.is_none() {
        return Content::Nothing;
    }
    if row.user_id.is_empty() && record.subject.is_some() {
        return Content::Erased;
    }
    Content::Pruned
}

/// Opens the sealed bytes, and checks them against the commitments in the leaf.
pub(super) fn open(
    record: &EvidenceRecord,
    row: &LogRow,
    sealed: &[u8],
    keys: &UserKey,
) -> Result<Opened, Tampering> {
    let opened = Opened::open(keys, &row.user_id, &row.id, sealed);
    let opened = opened.map_err(|error| match error {
        Unreadable::Sealed => Tampering::Sealed,
        Unreadable::NotAPayload => Tampering::NotAPayload,
    })?;
    match opened.differing(record).first() {
        Some(value) => Err(Tampering::Commitment(value.domain())),
        None => Ok(opened),
    }
}
