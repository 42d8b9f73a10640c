//! Payloads that are gone: by their time, which has records, by the erasure of their user, or for no reason.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::batch::ReadRecord;
use super::{Fault, Finding};
use crate::archive::Archive;
use crate::ledger::{Name, Names, StoredRecord, TIME_STEP_MAX};

/// Payloads that are gone although their user was not erased and their retention is not over.
///
/// A retention that was lengthened makes payloads look as if they were gone too early. The records of disposals name
/// what they have removed, so no payload is excused for another one.
#[derive(Debug, Default)]
pub(super) struct Gone(Vec<(Name, Finding)>);

impl Gone {
    pub(super) fn look(&mut self, archive: &Archive, read: &ReadRecord, stored: &StoredRecord) {
        let record = &read.record;
        let is_erased = record.subject.is_some() && stored.row.user_id.is_empty();
        if record.payload.is_none() || stored.payload.is_some() || is_erased {
            return;
        }
        let at: Timestamp = record.at.parse().unwrap_or(Timestamp::MIN);
        let keep = archive.retention.of(record.retention);
        let until = keep.map_or(Timestamp::MAX, |keep| after(at, keep));
        // A clock that is wrong by some days is not noticed, so the last days of a retention are not looked at.
        if after(archive.clock.now(), TIME_STEP_MAX) >= until {
            return;
        }
        let id = record.id.as_str();
        let finding = Finding {
            index: Some(read.index),
            id: Some(id.into()),
            fault: Fault::PayloadMissing { until },
        };
        self.0.push((Names::of_record(id), finding));
    }

    pub(super) fn add(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// True if nothing is missing.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The faults: payloads that no disposal has named.
    pub(super) fn faults(self, disposed: &BTreeSet<Name>) -> Vec<Finding> {
        let early = self.0.into_iter();
        let missing = early.filter(|(name, _)| !disposed.contains(name));
        missing.map(|(_, finding)| finding).collect()
    }
}

fn after(at: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
