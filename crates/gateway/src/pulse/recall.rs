//! Recalling figures and sessions from the newest records of the log, after a start. Leaves are read, which hold nothing personal in the
//! clear; no payload is opened.

use std::collections::BTreeSet;

use countersign::contract::evidence::CountedRefusals;
use countersign::contract::record::{BindSummary, PhaseTimes};
use countersign::contract::{ErrorCode, EvidenceRecord, RecordKind, SnapshotId};
use countersign::ledger::{self, LogQuery, Store};
use countersign::scribe::SESSION;
use jiff::Timestamp;

use super::{Counting, MINUTES, Pulse, minute_of};
use crate::gateway::Gateway;
use crate::strands::Strand;

/// Maximum number of records that are read.
const RECORDS_MAX: u64 = 20_000;

/// Number of records that are read at once.
const AT_ONCE: u64 = 500;

/// Maximum number of records that may wait for the tree.
const WAITING_MAX: usize = 1_000;

/// Number of records in the tree after which no more are searched for those that wait: both are nearly in the order of time.
const IN_TREE_MAX: usize = 20;

impl Gateway {
    /// Counts the calls and finds the sessions of the newest 20,000 records from before this process began. It reads them page
    /// by page, and is meant to run beside the server.
    pub async fn recall(&self) -> Result<(), ledger::Error> {
        let store = self.executor().store();
        if !store.keeps_log() {
            return Ok(());
        }
        let pulse = self.pulse();
        pulse.recall(&**store, self.started_at()).await
    }

    /// Time since which calls are counted by tool and error, and sessions are known.
    pub fn counted_since(&self) -> Timestamp {
        let since = self.pulse().counted().since;
        since.unwrap_or_else(|| self.started_at())
    }
}

impl Pulse {
    /// Reads records newest first. Those of this process are counted as they are answered, so only older ones count here.
    async fn recall(&self, store: &dyn Store, began: Timestamp) -> Result<(), ledger::Error> {
        let mut read = Read {
            began,
            since: began,
            past: Vec::new(),
            seen: BTreeSet::new(),
        };
        read.waiting(store).await?;
        let size = store.head().await?.size;
        let oldest = size.saturating_sub(RECORDS_MAX);
        let mut above = size;
        while above > oldest {
            let below = above.saturating_sub(AT_ONCE).max(oldest);
            let count = usize::try_from(above - below).unwrap_or_default();
            let leaves = store.leaves(below, count).await?;
            for leaf in leaves.iter().rev() {
                read.take(&leaf.bytes);
            }
            above = below;
            tokio::task::yield_now().await;
        }
        self.take_in(read.past, read.since, began);
        Ok(())
    }

    /// Adds calls, newest first.
    fn take_in(&self, past: Vec<Past>, since: Timestamp, began: Timestamp) {
        let mut counted = self.counted();
        for call in &past {
            let counting = call.counting();
            if minute_of(call.between[1]) > minute_of(began) - MINUTES {
                counted.in_minute(&counting);
            }
            counted.by_kind(&counting);
        }
        counted.since = Some(since);
        drop(counted);
        for call in past {
            if let Some((session, id)) = call.session
                && !self.strands.add_older(session, id)
            {
                return;
            }
        }
    }
}

/// Records that were read so far.
struct Read {
    began: Timestamp,
    /// Time of the oldest of them.
    since: Timestamp,
    past: Vec<Past>,
    /// Records that were not in the tree yet, and may be by now.
    seen: BTreeSet<SnapshotId>,
}

impl Read {
    /// Reads the records that still wait for the tree. The process before may have been killed, and the tree may be another
    /// server's to grow.
    async fn waiting(&mut self, store: &dyn Store) -> Result<(), ledger::Error> {
        let query = LogQuery {
            until: Some(self.began),
            limit: WAITING_MAX,
            ..LogQuery::default()
        };
        let mut in_tree = 0;
        for row in store.records(&query).await? {
            let Some(stored) = store.record(&row.id).await? else {
                continue;
            };
            if stored.index.is_some() {
                in_tree += 1;
                if in_tree > IN_TREE_MAX {
                    break;
                }
                continue;
            }
            self.take(&stored.leaf);
            self.seen.insert(row.id);
        }
        Ok(())
    }

    fn take(&mut self, leaf: &[u8]) {
        // A leaf that cannot be read is what a verification finds.
        let Ok(record) = serde_json::from_slice::<EvidenceRecord>(leaf) else {
            return;
        };
        let Ok(at) = record.at.parse::<Timestamp>() else {
            return;
        };
        if at < self.began && !self.seen.contains(&record.id) {
            self.since = self.since.min(at);
            self.past.extend(Past::of(record, at));
        }
    }
}

/// The part of a record that figures are made from.
struct Past {
    code: Option<ErrorCode>,
    /// Name and version, if there is such a tool.
    tool: Option<(String, String)>,
    is_repaired: bool,
    /// Duration, without waiting for a person; `None` if the record has none.
    took_us: Option<u64>,
    /// Number of calls that the record stands for.
    count: u64,
    /// Times of the first and the last of them.
    between: [Timestamp; 2],
    session: Option<(Strand, SnapshotId)>,
}

impl Past {
    fn counting(&self) -> Counting<'_> {
        let tool = self.tool.as_ref();
        Counting {
            code: self.code,
            tool: tool.map(|(name, version)| (name.as_str(), version.as_str())),
            is_repaired: self.is_repaired,
            took_us: self.took_us,
            count: self.count,
            between: self.between,
        }
    }

    /// The call of a record; `None` for records of anything but answered calls.
    fn of(record: EvidenceRecord, at: Timestamp) -> Option<Self> {
        match record.kind {
            RecordKind::Call | RecordKind::Denial => {}
            RecordKind::Approval
            | RecordKind::Access
            | RecordKind::Erasure
            | RecordKind::Config
            | RecordKind::Intent
            | RecordKind::Resolution
            | RecordKind::Checkpoint => return None,
        }
        let (reply, tool) = (record.reply?, record.tool?);
        let binding = record.binding.as_ref();
        let counted = CountedRefusals::from_act(&record.act);
        let session = record.act.get(SESSION).and_then(serde_json::Value::as_str);
        let session = session.and_then(Strand::read);
        let (count, between) = counted.map_or((1, [at, at]), |counted| {
            let first = counted.first_at.parse().unwrap_or(at);
            (counted.count, [first, at])
        });
        Some(Self {
            code: reply.code,
            is_repaired: binding.is_some_and(BindSummary::is_repaired),
            took_us: record.phases.as_ref().map(PhaseTimes::worked_us),
            tool: tool.version.map(|version| (tool.name, version)),
            count,
            between,
            session: session.map(|session| (session, record.id)),
        })
    }
}
