//! Earlier calls that a call rests on or looks at: found by their evidence id, of the same user only.

use std::fmt;

use countersign_contract::evidence::{Exact, Link};
use countersign_contract::{Digest, EvidenceRecord, SnapshotId};
use countersign_evidence::tree::leaf_hash;
use jiff::Timestamp;
use serde_json::Value;

use super::{State, store_failed};
use crate::ledger;
use crate::payload::Opened;
use crate::tool::ToolError;
use crate::words::Say;

/// An earlier call.
#[derive(Clone, PartialEq)]
pub struct Linked {
    /// Its record.
    pub record: EvidenceRecord,
    /// The hash of its leaf in the log, by which the record is known for good.
    pub leaf: Digest,
    /// Its answer; null if it failed or if the answer is no longer stored.
    pub data: Value,
    /// End of the time in which the answer may be relied on (A8).
    pub valid_until: Option<Timestamp>,
}

/// Leaves out the answer, which is the user's data.
impl fmt::Debug for Linked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Linked")
            .field("record", &self.record)
            .field("leaf", &self.leaf)
            .field("valid_until", &self.valid_until)
            .finish_non_exhaustive()
    }
}

/// The error for an earlier answer whose window of validity is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer was valid until {until}, and it is {now}")]
pub struct Stale {
    /// The end of the window.
    pub until: Timestamp,
    /// The time of the call.
    pub now: Timestamp,
}

impl State {
    pub(crate) async fn linked(
        &self,
        id: &SnapshotId,
        user_id: &str,
    ) -> Result<(Linked, Link), ToolError> {
        let stored = ledger::awaited_record(&*self.store, id).await;
        let stored = stored.map_err(store_failed)?;
        let stored = stored.filter(|stored| stored.row.user_id == user_id);
        let Some(stored) = stored else {
            let message = Say::NoEvidence { id: id.to_string() };
            return Err(ToolError::not_found(message).without_effect());
        };
        let damaged = || {
            store_failed(ledger::Error::Damaged {
                what: format!("the record {id}"),
            })
        };
        let record: EvidenceRecord = serde_json::from_slice(&stored.leaf).map_err(|_| damaged())?;
        let data = match &stored.payload {
            None => Value::Null,
            Some(sealed) => {
                let opened = Opened::open(&self.keys, user_id, id, sealed);
                let opened = opened.map_err(|_| damaged())?;
                let data = opened.payload.data.as_ref().map(Exact::value);
                data.transpose().map_err(|_| damaged())?.unwrap_or_default()
            }
        };
        let reply = record.reply.as_ref();
        let valid_until = window(reply.and_then(|reply| reply.valid_until.as_deref()));
        let valid_until = valid_until.map_err(|_| damaged())?;
        let link = Link::looked_at(id.clone(), Digest(leaf_hash(&stored.leaf)));
        let linked = Linked {
            record,
            leaf: link.leaf,
            data,
            valid_until,
        };
        Ok((linked, link))
    }
}

/// End of the validity of a reply. An unreadable time is damage: taken for no window, it could be valid for ever.
fn window(valid_until: Option<&str>) -> Result<Option<Timestamp>, jiff::Error> {
    valid_until.map(str::parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unreadable window is damage (A8).
    #[test]
    fn a_window_that_cannot_be_read_is_damage() {
        let end = "2026-11-16T12:05:00Z";
        assert_eq!(window(Some(end)).unwrap(), Some(end.parse().unwrap()));
        assert_eq!(window(None).unwrap(), None);
        for damaged in ["", "soon", "2026-11-16"] {
            assert!(window(Some(damaged)).is_err(), "{damaged:?}");
        }
    }
}
