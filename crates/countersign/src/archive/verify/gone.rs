//! Payloads that are gone: by their time, which has records, by the erasure of their user, or for no reason.

use std::time::Duration;

use countersign_contract::RecordKind;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::batch::ReadRecord;
use super::{Fault, Finding};
use crate::archive::Archive;
use crate::ledger::{StoredRecord, TIME_STEP_MAX};

/// Payloads that are gone although their user was not erased.
///
/// A retention that was lengthened makes payloads look as if they were gone too early. The records of disposals have
/// counts, so as many are excused as were disposed of and are not past their time by now.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// Payloads that are gone although their retention is not over.
    early: Vec<Finding>,
    /// Number of the others.
    expired: u64,
    /// Number of payloads that the records of disposals count.
    disposed: u64,
}

impl Gone {
    pub(super) fn look(&mut self, archive: &Archive, read: &ReadRecord, stored: &StoredRecord) {
        let record = &read.record;
        let event = record.act.get("event").and_then(Value::as_str);
        if record.kind == RecordKind::Config && event == Some("disposed") {
            let payloads = record.act.get("payloads").and_then(Value::as_u64);
            self.disposed += payloads.unwrap_or_default();
        }
        let is_erased = record.subject.is_some() && stored.row.user_id.is_empty();
        if record.payload.is_none() || stored.payload.is_some() || is_erased {
            return;
        }
        let at: Timestamp = record.at.parse().unwrap_or(Timestamp::MIN);
        let keep = archive.retention.of(record.retention);
        let until = keep.map_or(Timestamp::MAX, |keep| after(at, keep));
        // A clock that is wrong by some days is not noticed, so the last days of a retention are not looked at.
        if after(archive.clock.now(), TIME_STEP_MAX) >= until {
            self.expired += 1;
            return;
        }
        self.early.push(Finding {
            index: Some(read.index),
            id: Some(record.id.as_str().into()),
            fault: Fault::PayloadMissing { until },
        });
    }

    pub(super) fn add(&mut self, more: Self) {
        self.early.extend(more.early);
        self.expired += more.expired;
        self.disposed += more.disposed;
    }

    /// The faults, if there are more than disposals explain.
    pub(super) fn faults(self) -> Vec<Finding> {
        let excused = self.disposed.saturating_sub(self.expired);
        if self.early.len() as u64 > excused {
            self.early
        } else {
            Vec::new()
        }
    }
}

fn after(at: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
