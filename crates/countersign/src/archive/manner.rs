//! The manner in which the calls of a list were made: a list has rows, and the manner is only in the record.

use countersign_contract::EvidenceRecord;

use super::{Archive, Error};
use crate::ledger::LogRow;
use crate::recording::FROM_RECORDING;

/// The manner in which a call was made. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// The tool was called.
    Made,
    /// The tool was called for a dry run; nothing was changed.
    DryRun,
    /// The answer of an earlier call with the same key was given again; the tool did not run.
    Replay,
    /// A recording answered in the tool's place; nothing was run.
    Recording,
}

impl Archive {
    /// Reads the manner of each of these calls, from their [records](Self::behind).
    pub async fn manners(&self, rows: &[LogRow]) -> Result<Vec<Manner>, Error> {
        let records = self.behind(rows).await?;
        let manners = records.iter().map(|record| {
            let record = record.as_ref();
            record.map_or(Manner::Made, Manner::of)
        });
        Ok(manners.collect())
    }
}

impl Manner {
    /// The manner of the call that a record is about.
    pub fn of(record: &EvidenceRecord) -> Self {
        let key = record.idempotency.as_ref();
        if record
            .act
            .get("event")
            .is_some_and(|event| event == FROM_RECORDING)
        {
            Self::Recording
        } else if record.dry_run {
            Self::DryRun
        } else if key.is_some_and(|key| key.state == "replayed") {
            Self::Replay
        } else {
            Self::Made
        }
    }

    /// The name on the wire and in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Made => "call",
            Self::DryRun => "dry_run",
            Self::Replay => "replay",
            Self::Recording => "recording",
        }
    }
}
