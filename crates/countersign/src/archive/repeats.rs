//! Repeats of a call: later calls with the same key, which were answered with its answer.
//!
//! A repeat links the first call. The way back is found among the later records of the same user and tool, as for a
//! [case](super::Case).

use countersign_contract::{RecordKind, RequestId, SnapshotId};
use jiff::{SignedDuration, Timestamp};

use super::{Archive, Error, record_of};
use crate::ledger::LogQuery;

/// Maximum number of later records that are looked through.
const LOOKED_MAX: usize = 300;

/// The first span of time after the call; each next one is eight times as long.
const SPAN_FIRST: SignedDuration = SignedDuration::from_hours(1);

/// Repeats of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repeats {
    /// The repeats, oldest first.
    pub repeats: Vec<Repeat>,
    /// True if the user has more later calls of the tool than are looked through.
    pub is_cut: bool,
}

/// A call that was answered with the answer of an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// Its record.
    pub id: SnapshotId,
    /// Its request id.
    pub request_id: Option<RequestId>,
    /// Time of the call.
    pub at: Timestamp,
    /// True if it was a dry run.
    pub dry_run: bool,
}

impl Archive {
    /// The repeats of a call. There are none of a call without a key, and none of a call that is a repeat itself.
    pub async fn repeats(&self, id: &SnapshotId) -> Result<Repeats, Error> {
        let first = self.stored(id).await?;
        let record = record_of(&first)?;
        let key = record.idempotency.as_ref();
        let has_repeats = key.is_some_and(|key| key.state != REPLAYED);
        let mut found = Repeats::default();
        if !has_repeats || first.row.user_id.is_empty() {
            return Ok(found);
        }
        let (mut since, mut span, mut looked_at) = (first.row.at, SPAN_FIRST, 0);
        let now = self.clock.now();
        while since <= now {
            let until = since.checked_add(span).unwrap_or(Timestamp::MAX);
            let query = LogQuery {
                user_id: Some(first.row.user_id.clone()),
                tool: first.row.tool.clone(),
                kind: Some(RecordKind::Call),
                since: Some(since),
                until: Some(until),
                limit: LOOKED_MAX,
                ..LogQuery::default()
            };
            let rows = self.list(&query).await?;
            found.is_cut |= rows.len() == LOOKED_MAX;
            for row in rows.into_iter().rev() {
                looked_at += 1;
                if looked_at > LOOKED_MAX {
                    found.is_cut = true;
                    return Ok(found);
                }
                let stored = self.stored(&row.id).await?;
                let record = record_of(&stored)?;
                let key = record.idempotency.as_ref();
                let is_repeat = key.is_some_and(|key| key.state == REPLAYED)
                    && record.links.iter().any(|link| link.id == *id);
                if is_repeat {
                    found.repeats.push(Repeat {
                        id: row.id,
                        request_id: row.request_id,
                        at: row.at,
                        dry_run: record.dry_run,
                    });
                }
            }
            since = until;
            span = span.saturating_mul(8);
        }
        Ok(found)
    }
}

/// State of the key in the record of a repeat.
const REPLAYED: &str = "replayed";
