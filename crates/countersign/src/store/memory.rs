//! Claims and records in memory: for tests, samples and programs that need nothing to survive them.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign_contract::{CallRecord, Digest, Effect, RequestId};
use jiff::{SignedDuration, Timestamp};

use super::{
    Claim, ClaimAnswer, ClaimRequest, Durability, Error, Held, HeldState, Outcome, Scope, Settle,
    Store, StoredReply,
};
use crate::BoxFuture;

/// A store in memory. Bounded: the oldest records go first, and a key too many is refused.
pub struct MemoryStore {
    keys_max: usize,
    records_max: usize,
    rows: Mutex<HashMap<Scope, Row>>,
    records: Mutex<VecDeque<Box<CallRecord>>>,
}

/// One scope. It is never removed while it could be claimed again, so `attempt` never goes back.
struct Row {
    fingerprint: Digest,
    effect: Effect,
    attempt: u32,
    state: State,
}

enum State {
    Running {
        lease_until: Timestamp,
    },
    Released,
    Succeeded {
        stored: Arc<StoredReply>,
        until: Timestamp,
    },
    InDoubt,
    /// What is left of a success: enough to refuse a late repeat.
    Tombstone {
        until: Timestamp,
    },
}

/// For how long a key is refused after its answer is gone.
const TOMBSTONE: SignedDuration = SignedDuration::from_hours(30 * 24);

impl MemoryStore {
    /// Room for 100,000 keys and 1,000 records.
    pub fn new() -> Self {
        Self {
            keys_max: 100_000,
            records_max: 1_000,
            rows: Mutex::default(),
            records: Mutex::default(),
        }
    }

    /// Room for so many keys.
    pub fn keys_max(mut self, keys: usize) -> Self {
        self.keys_max = keys;
        self
    }

    /// Room for so many records.
    pub fn records_max(mut self, records: usize) -> Self {
        self.records_max = records;
        self
    }

    /// The records, oldest first.
    pub fn records(&self) -> Vec<CallRecord> {
        let records = self.record_ring();
        records.iter().map(|record| (**record).clone()).collect()
    }

    /// The records of one call: a repeat with the same request id has one of its own.
    pub fn records_of(&self, request_id: &RequestId) -> Vec<CallRecord> {
        let records = self.record_ring();
        let of_call = records
            .iter()
            .filter(|record| record.request_id == *request_id);
        of_call.map(|record| (**record).clone()).collect()
    }

    fn held(&self, scope: &Scope, at: Timestamp) -> Option<Held> {
        let mut rows = self.rows();
        let row = rows.get_mut(scope)?;
        row.age(at);
        Some(row.held(at))
    }

    fn take(&self, request: &ClaimRequest) -> Result<ClaimAnswer, Error> {
        let mut rows = self.rows();
        if rows.len() >= self.keys_max && !rows.contains_key(&request.scope) {
            rows.retain(|_, row| row.is_kept(request.at));
            if rows.len() >= self.keys_max {
                return Err(Error::Full {
                    limit: self.keys_max,
                });
            }
        }
        let lease_until = after(request.at, request.lease);
        let attempt = match rows.get_mut(&request.scope) {
            None => {
                let row = Row {
                    fingerprint: request.fingerprint,
                    effect: request.effect,
                    attempt: 1,
                    state: State::Running { lease_until },
                };
                rows.insert(request.scope.clone(), row);
                1
            }
            Some(row) => {
                row.age(request.at);
                let is_free = matches!(row.state, State::Released);
                if !is_free || row.fingerprint != request.fingerprint {
                    return Ok(ClaimAnswer::Held(row.held(request.at)));
                }
                row.attempt += 1;
                row.state = State::Running { lease_until };
                row.attempt
            }
        };
        Ok(ClaimAnswer::Ours(Claim {
            scope: request.scope.clone(),
            attempt,
            retention: request.retention,
        }))
    }

    fn end(&self, settle: Settle) -> Result<(), Error> {
        let Settle {
            claim,
            outcome,
            record,
            at,
        } = settle;
        let mut rows = self.rows();
        let is_ours = |row: &&mut Row| {
            // An owner that was only thought lost may still say what happened.
            let is_open = matches!(row.state, State::Running { .. } | State::InDoubt);
            row.attempt == claim.attempt && is_open
        };
        let ours = rows.get_mut(&claim.scope).filter(is_ours);
        let is_fenced = ours.is_none();
        if let Some(row) = ours {
            row.state = match outcome {
                Outcome::Succeeded(stored) => State::Succeeded {
                    stored,
                    until: after(at, claim.retention),
                },
                Outcome::Released => State::Released,
                Outcome::InDoubt => State::InDoubt,
            };
        }
        // Also of a fenced owner: what it did late is part of the story.
        self.push(record);
        if is_fenced {
            return Err(Error::Fenced {
                attempt: claim.attempt,
            });
        }
        Ok(())
    }

    fn push(&self, record: Box<CallRecord>) {
        let mut records = self.record_ring();
        let oldest = if records.len() >= self.records_max {
            records.pop_front()
        } else {
            None
        };
        records.push_back(record);
        drop(records);
        // Freed outside the lock: a record is a few dozen small allocations.
        drop(oldest);
    }

    fn rows(&self) -> MutexGuard<'_, HashMap<Scope, Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_ring(&self) -> MutexGuard<'_, VecDeque<Box<CallRecord>>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Row {
    /// Applies what time alone changes.
    fn age(&mut self, at: Timestamp) {
        match self.state {
            State::Running { lease_until } if at >= lease_until => {
                self.state = match self.effect {
                    // Nothing is committed before `settle`, and the fence stops a late one.
                    Effect::Read | Effect::Write => {
                        self.attempt += 1;
                        State::Released
                    }
                    Effect::External => State::InDoubt,
                };
            }
            State::Succeeded { until, .. } if at >= until => {
                let until = until.checked_add(TOMBSTONE).unwrap_or(Timestamp::MAX);
                self.state = State::Tombstone { until };
            }
            State::Running { .. }
            | State::Released
            | State::Succeeded { .. }
            | State::InDoubt
            | State::Tombstone { .. } => {}
        }
    }

    fn is_kept(&mut self, at: Timestamp) -> bool {
        self.age(at);
        match self.state {
            State::Tombstone { until } => at < until,
            State::Running { .. } | State::Released | State::Succeeded { .. } | State::InDoubt => {
                true
            }
        }
    }

    fn held(&self, at: Timestamp) -> Held {
        let state = match &self.state {
            State::Running { lease_until } => {
                let left = lease_until.duration_since(at).as_millis();
                HeldState::Running {
                    retry_after_ms: u64::try_from(left.clamp(50, 1_000)).unwrap_or(1_000),
                }
            }
            State::Released => HeldState::Released,
            State::Succeeded { stored, .. } => HeldState::Succeeded(stored.clone()),
            State::InDoubt => HeldState::InDoubt,
            State::Tombstone { .. } => HeldState::Expired,
        };
        Held {
            fingerprint: self.fingerprint,
            state,
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keys, records) = (self.rows().len(), self.record_ring().len());
        write!(f, "MemoryStore({keys} keys, {records} records)")
    }
}

impl Store for MemoryStore {
    fn lookup<'a>(
        &'a self,
        scope: &'a Scope,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Held>, Error>> {
        Box::pin(std::future::ready(Ok(self.held(scope, at))))
    }

    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> BoxFuture<'a, Result<ClaimAnswer, Error>> {
        Box::pin(std::future::ready(self.take(request)))
    }

    fn settle(&self, settle: Settle) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(std::future::ready(self.end(settle)))
    }

    fn append(&self, record: Box<CallRecord>, _: Durability) -> BoxFuture<'_, Result<(), Error>> {
        // Memory has no batch to wait for.
        self.push(record);
        Box::pin(std::future::ready(Ok(())))
    }
}

fn after(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by)
        .ok()
        .and_then(|by| at.checked_add(by).ok())
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
