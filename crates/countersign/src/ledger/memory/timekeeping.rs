//! The time that is believed, in memory.

use std::future::ready;

use jiff::Timestamp;

use super::{Inner, MemoryStore};
use crate::BoxFuture;
use crate::ledger::{
    Disposal, Disposed, Error, Forgotten, Names, Passage, Removed, Timekeeping, Told, window_time,
};

/// The mark, and whether the log says that the clock disagrees with it.
#[derive(Default)]
pub(super) struct Kept {
    mark: Option<Timestamp>,
    is_told: bool,
}

impl Kept {
    /// Returns the time by which windows of budgets open.
    pub(super) fn windows(&self, now: Timestamp) -> Timestamp {
        window_time(self.mark, now)
    }

    /// Returns the later of this time and the latest that was believed.
    pub(super) fn believed(&self, now: Timestamp) -> Timestamp {
        self.mark.map_or(now, |mark| mark.max(now))
    }
}

impl Timekeeping for MemoryStore {
    fn observe_time(&self, told: Told<Passage>) -> BoxFuture<'_, Result<Passage, Error>> {
        let mut inner = self.lock();
        let passage = inner.passage(self.clock.now());
        let has_jumped = passage.jump().is_some();
        if has_jumped != inner.time.is_told {
            inner.time.is_told = has_jumped;
            self.keep_entry(&mut inner, told(&passage));
        }
        if inner.time.mark.is_none() || passage.moves_mark() {
            let moved = if has_jumped {
                passage.mark
            } else {
                passage.clock
            };
            inner.time.mark = Some(moved);
        }
        Box::pin(ready(Ok(passage)))
    }

    fn trust_time(&self, told: Told<Passage>) -> BoxFuture<'_, Result<Passage, Error>> {
        let mut inner = self.lock();
        let passage = inner.passage(self.clock.now());
        inner.time = Kept {
            mark: Some(passage.clock),
            is_told: false,
        };
        self.keep_entry(&mut inner, told(&passage));
        Box::pin(ready(Ok(passage)))
    }

    fn dispose(&self, limit: usize, told: Told<Removed>) -> BoxFuture<'_, Result<Disposal, Error>> {
        let now = self.clock.now();
        let mut inner = self.lock();
        let passage = inner.passage(now);
        if passage.jump().is_some() {
            return Box::pin(ready(Ok(Disposal::Stopped(passage))));
        }
        let payloads = inner.prune(now, limit);
        let disposed = Disposed {
            payloads: payloads.len(),
            replies: inner.drop_replies(now, limit),
            pots: inner.drop_pots(now, limit),
        };
        if !disposed.is_empty() {
            let removed = Removed {
                counts: disposed,
                payloads,
            };
            self.keep_entry(&mut inner, told(&removed));
        }
        Box::pin(ready(Ok(Disposal::Done(disposed))))
    }

    fn forget_keys<'a>(
        &'a self,
        which: &'a Forgotten,
        told: Told<Names>,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        let mut inner = self.lock();
        let forgotten = inner.forget(which);
        if !forgotten.is_empty() {
            self.keep_entry(&mut inner, told(&forgotten));
        }
        Box::pin(ready(Ok(forgotten.len())))
    }
}

impl Inner {
    /// The clock beside the mark; `None` if there is no mark.
    pub(super) fn believed(&self, clock: Timestamp) -> Option<Passage> {
        let mark = self.time.mark?;
        Some(Passage { mark, clock })
    }

    fn passage(&self, clock: Timestamp) -> Passage {
        let newest = self.records.last().map(|record| record.row.at);
        let mark = self.time.mark.or(newest).unwrap_or(clock);
        Passage { mark, clock }
    }
}

impl MemoryStore {
    fn keep_entry(&self, inner: &mut Inner, entry: crate::ledger::Entry) {
        if self.keeps_log {
            inner.keep(entry, false);
        }
    }
}
