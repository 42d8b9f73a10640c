//! The outbox in memory.

use std::collections::BTreeMap;
use std::future::ready;
use std::time::Duration;

use jiff::Timestamp;

use super::{Inner, MemoryStore, after};
use crate::BoxFuture;
use crate::ledger::{
    Delivery, DeliveryEnd, DeliveryId, DeliveryRow, Error, FailedDeliveries, Finding, Look,
    NoticeRow, Outbox,
};

/// A notice, oldest first in the store.
pub(super) struct Kept {
    row: NoticeRow,
    seen_at: Timestamp,
    /// Ends of the deliveries' time, in their order.
    give_up_at: Vec<Timestamp>,
}

impl Outbox for MemoryStore {
    fn keep_notices<'a>(&'a self, look: &'a Look) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        let now = self.clock.now();
        Box::pin(ready(Ok(self.lock().keep_notices(look, now))))
    }

    fn take_deliveries<'a>(
        &'a self,
        targets: &'a [String],
        lease: Duration,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, Error>> {
        let now = self.clock.now();
        let taken = self.lock().take_deliveries(targets, lease, limit, now);
        Box::pin(ready(Ok(taken)))
    }

    fn end_delivery<'a>(
        &'a self,
        delivery: &'a DeliveryId,
        end: &'a DeliveryEnd,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let now = self.clock.now();
        self.lock().end_delivery(delivery, end, now);
        Box::pin(ready(Ok(())))
    }

    fn retry_deliveries<'a>(
        &'a self,
        target: &'a str,
        give_up_after: Duration,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        let now = self.clock.now();
        let mut retried = 0;
        for kept in &mut self.lock().outbox {
            let rows = kept.row.deliveries.iter_mut().zip(&mut kept.give_up_at);
            for (row, give_up_at) in rows {
                if row.target == target && row.failed_at.is_some() && row.delivered_at.is_none() {
                    row.failed_at = None;
                    row.next_at = now;
                    *give_up_at = after(now, give_up_after);
                    retried += 1;
                }
            }
        }
        Box::pin(ready(Ok(retried)))
    }

    fn notices(&self, limit: usize) -> BoxFuture<'_, Result<Vec<NoticeRow>, Error>> {
        let inner = self.lock();
        let newest = inner.outbox.iter().rev().take(limit);
        let rows = newest.map(|kept| kept.row.clone()).collect();
        Box::pin(ready(Ok(rows)))
    }

    fn failed_deliveries(&self) -> BoxFuture<'_, Result<Vec<FailedDeliveries>, Error>> {
        let mut found: BTreeMap<String, (u64, Timestamp)> = BTreeMap::new();
        let inner = self.lock();
        for row in inner.outbox.iter().flat_map(|kept| &kept.row.deliveries) {
            if let (None, Some(at)) = (row.delivered_at, row.failed_at) {
                let of_target = found.entry(row.target.clone()).or_insert((0, at));
                *of_target = (of_target.0 + 1, of_target.1.min(at));
            }
        }
        let failed = found
            .into_iter()
            .map(|(target, (count, since))| FailedDeliveries {
                target,
                count,
                since,
            });
        Box::pin(ready(Ok(failed.collect())))
    }
}

impl Kept {
    fn is_open_for(&self, finding: &Finding) -> bool {
        let (here, there) = (&self.row.notice, &finding.notice);
        self.row.gone_at.is_none() && here.kind == there.kind && here.subject == there.subject
    }

    /// Adds the deliveries that are missing.
    fn want(&mut self, targets: &[String], now: Timestamp, give_up_at: Timestamp) {
        for target in targets {
            let rows = &mut self.row.deliveries;
            let Err(place) = rows.binary_search_by(|row| row.target.cmp(target)) else {
                continue;
            };
            let row = DeliveryRow {
                target: target.clone(),
                attempts: 0,
                next_at: now,
                delivered_at: None,
                failed_at: None,
                last_error: None,
            };
            rows.insert(place, row);
            self.give_up_at.insert(place, give_up_at);
        }
    }

    fn is_due(&self, now: Timestamp) -> bool {
        let mut rows = self.row.deliveries.iter().zip(&self.give_up_at);
        rows.any(|(row, give_up_at)| row.state() == "waiting" && *give_up_at > now)
    }
}

impl Inner {
    fn keep_notices(&mut self, look: &Look, now: Timestamp) -> Vec<String> {
        let give_up_at = after(now, look.give_up_after);
        let mut new = Vec::new();
        for finding in &look.findings {
            let open = self
                .outbox
                .iter_mut()
                .find(|kept| kept.is_open_for(finding));
            if let Some(kept) = open {
                if after(kept.seen_at, look.refresh_after()) <= now {
                    kept.seen_at = now;
                }
                kept.want(&finding.targets, now, give_up_at);
                continue;
            }
            let mut kept = Kept {
                row: NoticeRow {
                    notice: finding.notice.clone(),
                    at: now,
                    gone_at: None,
                    deliveries: Vec::new(),
                },
                seen_at: now,
                give_up_at: Vec::new(),
            };
            kept.want(&finding.targets, now, give_up_at);
            new.push(finding.notice.id.clone());
            self.outbox.push(kept);
        }
        for kept in &mut self.outbox {
            let is_seen = look
                .findings
                .iter()
                .any(|finding| kept.is_open_for(finding));
            let is_looked_for = look.complete.contains(&kept.row.notice.kind);
            let is_old = after(kept.seen_at, look.gone_after) <= now;
            if kept.row.gone_at.is_none() && !is_seen && is_looked_for && is_old {
                kept.row.gone_at = Some(now);
            }
        }
        let mut left = self.outbox.len();
        self.outbox.retain(|kept| {
            let is_old = left > look.kept_max;
            left -= 1;
            !is_old || kept.row.gone_at.is_none() || kept.is_due(now)
        });
        new
    }

    fn take_deliveries(
        &mut self,
        targets: &[String],
        lease: Duration,
        limit: usize,
        now: Timestamp,
    ) -> Vec<Delivery> {
        let mut due = Vec::new();
        for (n, kept) in self.outbox.iter_mut().enumerate() {
            let rows = kept.row.deliveries.iter_mut().zip(&kept.give_up_at);
            for (m, (row, give_up_at)) in rows.enumerate() {
                if row.state() != "waiting" || row.next_at > now {
                    continue;
                }
                if *give_up_at <= now && row.attempts > 0 {
                    row.failed_at = Some(now);
                } else if targets.contains(&row.target) {
                    due.push((row.next_at, n, m));
                }
            }
        }
        due.sort_unstable();
        let mut taken = Vec::new();
        for (_, n, m) in due.into_iter().take(limit) {
            let Some(kept) = self.outbox.get_mut(n) else {
                continue;
            };
            let (notice, at) = (kept.row.notice.clone(), kept.row.at);
            let Some(row) = kept.row.deliveries.get_mut(m) else {
                continue;
            };
            row.attempts += 1;
            row.next_at = after(now, lease);
            let id = DeliveryId {
                notice_id: notice.id.clone(),
                target: row.target.clone(),
                attempt: row.attempts,
            };
            taken.push(Delivery { id, notice, at });
        }
        taken
    }

    fn end_delivery(&mut self, delivery: &DeliveryId, end: &DeliveryEnd, now: Timestamp) {
        let mut outbox = self.outbox.iter_mut();
        let Some(kept) = outbox.find(|kept| kept.row.notice.id == delivery.notice_id) else {
            return;
        };
        let mut rows = kept.row.deliveries.iter_mut().zip(&kept.give_up_at);
        let Some((row, give_up_at)) = rows.find(|(row, _)| row.target == delivery.target) else {
            return;
        };
        if row.delivered_at.is_some() {
            return;
        }
        match end {
            DeliveryEnd::Delivered => {
                row.delivered_at = Some(now);
                row.failed_at = None;
            }
            DeliveryEnd::Failed { retry_after, error } => {
                if row.attempts != delivery.attempt || row.failed_at.is_some() {
                    return;
                }
                row.next_at = after(now, *retry_after);
                row.last_error = Some(error.clone());
                if row.next_at > *give_up_at {
                    row.failed_at = Some(now);
                }
            }
        }
    }
}
