//! Looking for the calls of a page.
//!
//! The store finds calls by user, tool, code and time. Who called, how long it took and what became of the arguments is
//! only in the record, so it is looked for in a bounded number of records; the page says where it ended.

use countersign::Principal;
use countersign::archive::Manner;
use countersign::contract::evidence::RecordedActor;
use countersign::contract::record::{BindSummary, PhaseTimes};
use countersign::contract::{ErrorCode, EvidenceRecord, RecordKind, RequestId, SnapshotId};
use countersign::ledger::{LogQuery, LogRow};
use jiff::Timestamp;
use serde::Serialize;

use super::super::answer::Refusal;
use super::super::sight;
use super::{LIMIT, cursor};
use crate::gateway::Gateway;
use crate::strands::Strand;

/// Maximum number of rows that are read for one page: some belong to no call.
const ROWS_MAX: usize = 2_000;

/// Maximum number of records that are read for one page, if a filter looks at them.
const RECORDS_MAX: usize = 500;

/// Number of records that are read at once.
const AT_ONCE: usize = 250;

/// Maximum number of known calls of a session that are looked through.
const OF_SESSION_MAX: usize = 20_000;

/// A page of calls.
#[derive(Serialize)]
pub(super) struct Page {
    pub(super) calls: Vec<ShownCall>,
    /// Cursor of the next page; `None` after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
    /// End of the scan, if it reached its bound before the page was full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scan: Option<Scanned>,
    /// Calls before this time are not known to belong to a session; only if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sessions_known_since: Option<String>,
}

impl Page {
    /// Calls that are all there are.
    pub(super) fn whole(calls: Vec<ShownCall>) -> Self {
        Self {
            calls,
            next_cursor: None,
            scan: None,
            sessions_known_since: None,
        }
    }
}

/// A scan that came to its bound.
#[derive(Serialize)]
pub(super) struct Scanned {
    /// Number of records that were looked through for this page.
    records: usize,
    /// Time of the oldest of them.
    back_to: String,
}

/// A call of a list.
#[derive(Serialize)]
pub(super) struct ShownCall {
    at: String,
    user_id: String,
    tool: Option<String>,
    code: &'static str,
    /// `call`, `dry_run`, `replay` or `recording`.
    manner: &'static str,
    /// Actor that triggered the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<RecordedActor>,
    /// Holder of the credential, if it is not the actor.
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<RecordedActor>,
    /// Duration, without waiting for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    took_us: Option<u64>,
    /// Time of waiting for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_us: Option<u64>,
    /// True if the stored answer of an earlier call was given again.
    replayed: bool,
    /// True if the binder changed something in the arguments.
    repaired: bool,
    evidence: SnapshotId,
    request_id: RequestId,
}

impl ShownCall {
    /// A call with what its record says; `None` for a row of no call.
    pub(super) fn of(row: LogRow, record: Option<&EvidenceRecord>) -> Option<Self> {
        let phases = record.and_then(|record| record.phases);
        let subject = record.and_then(|record| record.subject.as_deref());
        // A person is a digest in the record. Where it is that of the call's own user, the row has the name.
        let named = |actor: &RecordedActor| match subject {
            Some(subject) if subject == actor.id && !row.user_id.is_empty() => RecordedActor {
                kind: actor.kind,
                id: row.user_id.clone(),
            },
            Some(_) | None => actor.clone(),
        };
        let actor = record.and_then(|record| record.actor.as_ref());
        let principal = record.and_then(|record| record.principal.as_ref());
        Some(Self {
            at: row.at.to_string(),
            actor: actor.map(named),
            principal: principal.map(named),
            user_id: row.user_id,
            tool: row.tool,
            code: row.code.map_or("OK", ErrorCode::as_str),
            manner: record.map_or(Manner::Made, Manner::of).as_str(),
            took_us: phases.as_ref().map(PhaseTimes::worked_us),
            waited_us: phases.map(|phases| phases.awaiting_approval_us),
            replayed: record.is_some_and(is_replayed),
            repaired: record.is_some_and(is_repaired),
            evidence: row.id,
            request_id: row.request_id?,
        })
    }
}

fn is_replayed(record: &EvidenceRecord) -> bool {
    let key = record.idempotency.as_ref();
    key.is_some_and(|key| key.state == "replayed")
}

fn is_repaired(record: &EvidenceRecord) -> bool {
    let binding = record.binding.as_ref();
    binding.is_some_and(BindSummary::is_repaired)
}

/// Filters that only a record can answer. All of them must match.
#[derive(Default)]
pub(super) struct Marks {
    /// Id of the actor or of the holder of the credential.
    pub(super) actor: Option<String>,
    pub(super) replayed: Option<bool>,
    pub(super) repaired: Option<bool>,
    /// Minimum duration in milliseconds, without waiting for a person.
    pub(super) slow_ms: Option<u64>,
    /// Version of the tool.
    pub(super) version: Option<String>,
}

impl Marks {
    fn is_empty(&self) -> bool {
        let Self {
            actor,
            replayed,
            repaired,
            slow_ms,
            version,
        } = self;
        let is_of_any_time = slow_ms.is_none() && version.is_none();
        actor.is_none() && replayed.is_none() && repaired.is_none() && is_of_any_time
    }

    /// True if a call has all marks that are asked for.
    async fn are_of(
        &self,
        gateway: &Gateway,
        row: &LogRow,
        record: Option<&EvidenceRecord>,
    ) -> bool {
        if self.is_empty() {
            return true;
        }
        let Some(record) = record else { return false };
        let is = |wanted: Option<bool>, found: bool| wanted.is_none_or(|wanted| wanted == found);
        let is_slow = self.slow_ms.is_none_or(|least_ms| {
            let took = record.phases.as_ref().map(PhaseTimes::worked_us);
            took.is_some_and(|us| us >= least_ms.saturating_mul(1_000))
        });
        let called = record.tool.as_ref().and_then(|tool| tool.version.as_ref());
        let is_of_version = self.version.is_none() || self.version.as_ref() == called;
        if !is_slow
            || !is_of_version
            || !is(self.replayed, is_replayed(record))
            || !is(self.repaired, is_repaired(record))
        {
            return false;
        }
        match &self.actor {
            // Last, because it may open a key.
            Some(actor) => gateway.archive().is_called_by(row, record, actor).await,
            None => true,
        }
    }
}

/// A look for the calls of one page.
pub(super) struct Scan<'g> {
    pub(super) gateway: &'g Gateway,
    pub(super) query: LogQuery,
    pub(super) marks: Marks,
    /// Number of calls on the page.
    pub(super) wanted: usize,
}

impl Scan<'_> {
    /// Reads a page. A record belongs to a call if it has the call's id, which the store cannot filter by.
    pub(super) async fn page(mut self) -> Result<Page, Refusal> {
        let archive = self.gateway.archive();
        let (at_once, max) = if self.marks.is_empty() {
            (self.wanted.max(LIMIT), ROWS_MAX)
        } else {
            (AT_ONCE, RECORDS_MAX)
        };
        let mut calls = Vec::new();
        let mut scanned = 0;
        loop {
            self.query.limit = at_once;
            let rows = archive.list(&self.query).await?;
            let is_last = rows.len() < at_once;
            let Some(mut end) = rows.last().map(place) else {
                return Ok(Page::whole(calls));
            };
            scanned += rows.len();
            let of_calls: Vec<LogRow> = rows.into_iter().filter(is_call).collect();
            let records = archive.behind(&of_calls).await?;
            for (row, record) in of_calls.into_iter().zip(records) {
                if !self.marks.are_of(self.gateway, &row, record.as_ref()).await {
                    continue;
                }
                let at = place(&row);
                calls.extend(ShownCall::of(row, record.as_ref()));
                if calls.len() == self.wanted {
                    end = at;
                    break;
                }
            }
            let is_full = calls.len() == self.wanted;
            if is_last && !is_full {
                return Ok(Page::whole(calls));
            }
            if is_full || scanned >= max {
                let (at, id) = end;
                return Ok(Page {
                    next_cursor: Some(cursor(at, &id)),
                    scan: (!is_full).then(|| Scanned {
                        records: scanned,
                        back_to: at.to_string(),
                    }),
                    ..Page::whole(calls)
                });
            }
            self.query.before = Some(end);
        }
    }

    /// Reads a page of the calls that are known to belong to these sessions, newest first.
    pub(super) async fn of_sessions(
        self,
        strands: &[Strand],
        principal: &Principal,
    ) -> Result<Page, Refusal> {
        let archive = self.gateway.archive();
        let since = self.gateway.counted_since().to_string();
        let known = self.gateway.pulse().strands();
        let (known, _) = known.calls(strands, OF_SESSION_MAX);
        let mut left: Vec<SnapshotId> = known.into_iter().rev().collect();
        if let Some((_, last)) = &self.query.before {
            let seen = left.iter().position(|id| id == last);
            left = left.split_off(seen.map_or(left.len(), |seen| seen + 1));
        }
        let mut calls = Vec::new();
        let is_cut = left.len() > RECORDS_MAX;
        left.truncate(RECORDS_MAX);
        // Calls that were answered and could not be kept have no records.
        let found = archive.at_hand(&left).await?;
        let count = found.len();
        for (scanned, (row, record)) in (1..).zip(found) {
            let (at, id) = place(&row);
            // Users may have sessions of one name; a caller sees those that they may see.
            if is_call(&row)
                && sight::sees(principal, &row)
                && is_asked_for(&self.query, &row)
                && self.marks.are_of(self.gateway, &row, Some(&record)).await
            {
                calls.extend(ShownCall::of(row, Some(&record)));
            }
            let is_full = calls.len() == self.wanted && (scanned < count || is_cut);
            if is_full || (scanned == count && is_cut) {
                return Ok(Page {
                    scan: (!is_full).then(|| Scanned {
                        records: scanned,
                        back_to: at.to_string(),
                    }),
                    next_cursor: Some(cursor(at, &id)),
                    sessions_known_since: Some(since),
                    ..Page::whole(calls)
                });
            }
        }
        Ok(Page {
            sessions_known_since: Some(since),
            ..Page::whole(calls)
        })
    }
}

fn is_call(row: &LogRow) -> bool {
    row.request_id.is_some() && row.kind != RecordKind::Intent
}

fn place(row: &LogRow) -> (Timestamp, SnapshotId) {
    (row.at, row.id.clone())
}

/// True if a row matches what a store would be asked for.
fn is_asked_for(query: &LogQuery, row: &LogRow) -> bool {
    let is_user = query.user_id.as_ref().is_none_or(|id| *id == row.user_id);
    let is_tool = query.tool.is_none() || query.tool == row.tool;
    let is_code = query.code.is_none() || query.code == row.code;
    let is_ok = !query.ok_only || row.code.is_none();
    let is_after = query.since.is_none_or(|since| row.at >= since);
    let is_before = query.until.is_none_or(|until| row.at < until);
    is_user && is_tool && is_code && is_ok && is_after && is_before
}
