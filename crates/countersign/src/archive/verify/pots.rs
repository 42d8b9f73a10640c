//! Pots that the log can be compared with. The record of each commit names the amounts by which it charged pots, by pseudonyms. A pot that was
//! charged with less than that was refilled behind the back of the program.
//!
//! A pot may be charged with more: the reservation of a lost owner counts as spent without a record. So this is a lower bound.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use countersign_contract::EvidenceRecord;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::batch::{self, ReadRecord};
use super::earlier::LOG_BEGUN;
use super::{Fault, Finding};
use crate::archive::Archive;
use crate::budget::spent::{pseudonym, stamps};
use crate::ledger::{Error, LogQuery, POT_KEPT, PotKey, window_start};
use crate::vault::SHARED;

/// Maximum number of pots that are compared.
const POTS_MAX: usize = 1_000_000;

/// Maximum number of records that are committed and not in the tree yet.
const WAITING_MAX: usize = 4_096;

/// Number of leaves that are read at once.
const LEAVES: usize = 4_096;

/// Longest time between a record's and the reservation that it spends, and between the clocks of a server and of its store. Pots of windows that
/// are shorter than twice as long are not compared.
const SLACK_SECONDS: i64 = 300;

/// Name of a pot in the records: its pseudonym, and the length of its window.
type Name = (String, u64);

/// The charges of the log, by pot and window.
#[derive(Debug, Default)]
pub(super) struct Pots {
    charges: HashMap<Name, BTreeMap<i64, Sum>>,
    /// Number of leaves that were looked at, from the start of the log.
    end: u64,
    /// True if a record began this log after another one: pots were left behind there.
    has_begun: bool,
    /// Jumps of the clock and their ends, with the place in the log: what the clock said, and if it was believed.
    jumps: BTreeMap<u64, (i64, bool)>,
}

/// The charges of one window.
#[derive(Debug, Clone)]
struct Sum {
    amount: i64,
    /// The newest record that charges the pot.
    index: u64,
    id: Arc<str>,
    /// True if the pot belongs to no user, so that no erasure removes it.
    is_shared: bool,
}

impl Pots {
    /// Notes what the commit of a record has spent. Records come in the order of the log.
    pub(super) fn note(&mut self, read: &ReadRecord, user_id: &str) {
        self.end = self.end.max(read.index.saturating_add(1));
        if read.record.act.get("event").and_then(Value::as_str) == Some(LOG_BEGUN) {
            self.charges.clear();
            self.has_begun = true;
        }
        self.note_jump(read);
        for spent in stamps(&read.record) {
            // The pots of a user are removed with the user.
            if !spent.is_shared && user_id.is_empty() {
                continue;
            }
            let at = seconds(&read.record);
            let sum = Sum {
                amount: spent.amount,
                index: read.index,
                id: read.record.id.as_str().into(),
                is_shared: spent.is_shared,
            };
            let name = (spent.pot, spent.window_seconds);
            let windows = [
                at.saturating_sub(SLACK_SECONDS),
                at.saturating_add(SLACK_SECONDS),
            ]
            .map(|at| window_start(at, spent.window_seconds));
            let [first, last] = windows;
            if first == last {
                self.put(name, first, sum);
            } else if spent.amount < 0 {
                // At the edge of a window a refund may be in either, and an amount that was spent is not compared.
                for start in windows {
                    self.put(name.clone(), start, sum.clone());
                }
            }
        }
    }

    fn note_jump(&mut self, read: &ReadRecord) {
        let act = &read.record.act;
        let is_believed = match act.get("event").and_then(Value::as_str) {
            Some("clock_jumped") => false,
            Some("clock_agrees" | "clock_trusted") => true,
            Some(_) | None => return,
        };
        let clock = act.get("clock").and_then(Value::as_str);
        let clock = clock.and_then(|clock| clock.parse::<Timestamp>().ok());
        if let Some(clock) = clock {
            self.jumps
                .insert(read.index, (clock.as_second(), is_believed));
        }
    }

    /// The times that a clock told which was not believed. What was spent then counts in other windows than the records
    /// say: those of the time that was believed.
    fn disbelieved(&self, now: i64) -> Vec<(i64, i64)> {
        let mut spans = Vec::new();
        let mut since = None;
        for (clock, is_believed) in self.jumps.values() {
            match (is_believed, since) {
                (false, None) => since = Some(*clock),
                (true, Some(from)) => {
                    spans.push((from, (*clock).max(from)));
                    since = None;
                }
                (false, Some(_)) | (true, None) => {}
            }
        }
        spans.extend(since.map(|from| (from, now.max(from))));
        spans
    }

    fn put(&mut self, name: Name, start: i64, more: Sum) {
        let windows = self.charges.entry(name).or_default();
        match windows.entry(start) {
            Entry::Vacant(place) => {
                place.insert(more);
            }
            Entry::Occupied(mut place) => {
                let sum = place.get_mut();
                let amount = sum.amount.saturating_add(more.amount);
                let newest = if more.index > sum.index {
                    more
                } else {
                    sum.clone()
                };
                *sum = Sum { amount, ..newest };
            }
        }
    }

    /// Adds what later records say.
    pub(super) fn add(&mut self, more: Self) {
        self.end = self.end.max(more.end);
        if more.has_begun {
            self.charges.clear();
            self.has_begun = true;
        }
        self.jumps.extend(more.jumps);
        for (name, windows) in more.charges {
            for (start, sum) in windows {
                self.put(name.clone(), start, sum);
            }
        }
    }

    /// The faults, when the whole log was read.
    pub(super) async fn faults(mut self, archive: &Archive) -> Result<Vec<Finding>, Error> {
        if self.charges.is_empty() {
            return Ok(Vec::new());
        }
        let now = archive.clock.now().as_second();
        let spent = spent(archive, now).await?;
        let mut faults = Vec::new();
        let mut refunds = None;
        let disbelieved = self.disbelieved(now);
        let is_believed = move |start: i64, window: u64| {
            let end = start.saturating_add(i64::try_from(window).unwrap_or(i64::MAX));
            let is_in = |(from, to): &(i64, i64)| {
                *from < end.saturating_add(SLACK_SECONDS)
                    && to.saturating_add(SLACK_SECONDS) >= start
            };
            window == 0 || !disbelieved.iter().any(is_in)
        };
        let windows = self.charges.drain().flat_map(|(name, windows)| {
            let kept = first_window(now, name.1);
            let windows: Vec<_> = windows
                .into_iter()
                .filter(|(start, _)| *start >= kept && is_believed(*start, name.1))
                .collect();
            let windows = windows.into_iter();
            windows.map(move |(start, sum)| ((name.clone(), start), sum))
        });
        for (place, sum) in windows {
            let Sum {
                amount: charged,
                index,
                id,
                is_shared,
            } = sum;
            let found = spent.get(&place).copied().unwrap_or_default();
            if found >= charged {
                continue;
            }
            let (name, _) = place;
            // What came after the records that were looked at may have been a refund, or an erasure.
            if refunds.is_none() {
                refunds = Some(later_refunds(archive, self.end).await?);
            }
            let refunded = refunds.as_ref().and_then(|refunds| refunds.get(&name));
            let charged = charged.saturating_add(refunded.copied().unwrap_or_default());
            if found < charged && (is_shared || is_still_owed(archive, &id).await?) {
                faults.push(Finding {
                    index: Some(index),
                    id: Some(id),
                    fault: Fault::PotRefilled { charged, found },
                });
            }
        }
        faults.sort_by_key(|finding| finding.index);
        Ok(faults)
    }
}

/// Start of the first window whose pots are certainly there: they are kept for twice as long as they are compared.
fn first_window(now: i64, window_seconds: u64) -> i64 {
    if window_seconds == 0 {
        return i64::MIN;
    }
    let kept = i64::try_from(POT_KEPT.as_secs() / 2).unwrap_or(i64::MAX);
    let window = i64::try_from(window_seconds).unwrap_or(i64::MAX);
    window_start(now.saturating_sub(kept), window_seconds).saturating_add(window)
}

/// What the store says was spent from each pot, in the windows that are compared.
async fn spent(archive: &Archive, now: i64) -> Result<HashMap<(Name, i64), i64>, Error> {
    let mut spent = HashMap::new();
    let mut keys: HashMap<String, Option<Arc<_>>> = HashMap::new();
    for row in archive.store.pots(None, POTS_MAX).await? {
        let PotKey {
            user_id,
            window_seconds,
            ..
        } = &row.key;
        if row.window_start < first_window(now, *window_seconds) {
            continue;
        }
        let owner = if user_id.is_empty() { SHARED } else { user_id };
        if !keys.contains_key(owner) {
            // A key that cannot be opened is a fault of its own, and names no pot.
            let found = match archive.vault.existing_key(owner).await {
                Ok(found) => found,
                Err(Error::Damaged { .. }) => None,
                Err(error) => return Err(error),
            };
            keys.insert(owner.to_owned(), found);
        }
        let Some(Some(keys)) = keys.get(owner) else {
            continue;
        };
        let name = (pseudonym(keys, &row.key), *window_seconds);
        spent.insert((name, row.window_start), row.spent);
    }
    Ok(spent)
}

/// What the records behind those that were looked at give back.
async fn later_refunds(archive: &Archive, end: u64) -> Result<HashMap<Name, i64>, Error> {
    let mut refunds: HashMap<Name, i64> = HashMap::new();
    let mut note = |leaf: &[u8]| {
        let Ok(record) = batch::read(leaf) else {
            return;
        };
        for spent in stamps(&record) {
            let sum = refunds
                .entry((spent.pot, spent.window_seconds))
                .or_default();
            *sum = sum.saturating_add(spent.amount.min(0));
        }
    };
    let mut at = end;
    loop {
        let leaves = archive.store.leaves(at, LEAVES).await?;
        if leaves.is_empty() {
            break;
        }
        at += leaves.len() as u64;
        for leaf in &leaves {
            note(&leaf.bytes);
        }
    }
    let waiting = LogQuery {
        limit: WAITING_MAX,
        since: archive
            .clock
            .now()
            .checked_sub(SignedDuration::from_hours(1))
            .ok(),
        ..LogQuery::default()
    };
    let rows = archive.store.records(&waiting).await?;
    let ids: Vec<_> = rows.into_iter().map(|row| row.id).collect();
    let stored = archive.store.leaves_of(&ids).await?;
    for (_, leaf) in stored.iter().flatten() {
        note(leaf);
    }
    Ok(refunds)
}

/// False if the user of a record was erased since it was read.
async fn is_still_owed(archive: &Archive, id: &str) -> Result<bool, Error> {
    let Ok(id) = countersign_contract::SnapshotId::new(id) else {
        return Ok(false);
    };
    let Some(stored) = archive.store.record(&id).await? else {
        return Ok(false);
    };
    let is_about_nobody = batch::read(&stored.leaf).is_ok_and(|record| record.subject.is_none());
    Ok(is_about_nobody || !stored.row.user_id.is_empty())
}

fn seconds(record: &EvidenceRecord) -> i64 {
    let at: Timestamp = record.at.parse().unwrap_or(Timestamp::MIN);
    at.as_second()
}
