//! Claims in memory.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use countersign_contract::RequestId;
use countersign_contract::tool::Recovery;
use jiff::Timestamp;

use super::{Inner, MemoryStore, after};
use crate::BoxFuture;
use crate::ledger::{
    Claim, ClaimAnswer, ClaimQuery, ClaimRequest, ClaimRow, ClaimState, Claims, Commit,
    CommitAnswer, Error, Forgotten, Held, HeldState, KeyChange, KeyDigest, Names, Outcome, Scope,
    Swept,
};

fn oldest_first(rows: &mut Vec<ClaimRow>, limit: usize) {
    rows.sort_by(|a, b| (a.claimed_at, &a.scope).cmp(&(b.claimed_at, &b.scope)));
    rows.truncate(limit);
}

/// One scope. It is never removed while it could be claimed again, so `attempt` never goes back.
pub(super) struct Row {
    fingerprint: [u8; 32],
    parts: Arc<[u8]>,
    recovery: Recovery,
    attempt: u32,
    request_id: RequestId,
    first_claim: Timestamp,
    claimed_at: Timestamp,
    state: State,
}

enum State {
    Running { lease_until: Timestamp },
    Released,
    Succeeded { reply: Arc<[u8]>, until: Timestamp },
    Failed { reply: Arc<[u8]>, until: Timestamp },
    InDoubt,
    Tombstone,
}

impl Claims for MemoryStore {
    fn lookup<'a>(&'a self, scope: &'a Scope) -> BoxFuture<'a, Result<Option<Held>, Error>> {
        let now = self.clock.now();
        let inner = self.lock();
        let held = inner.claims.get(scope).map(|row| row.held(now));
        Box::pin(ready(Ok(held)))
    }

    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> BoxFuture<'a, Result<ClaimAnswer, Error>> {
        Box::pin(ready(self.take(request)))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<CommitAnswer, Error>> {
        Box::pin(ready(self.commit_now(commit)))
    }

    fn claims<'a>(&'a self, query: &'a ClaimQuery) -> BoxFuture<'a, Result<Vec<ClaimRow>, Error>> {
        let inner = self.lock();
        let mut rows: Vec<_> = inner
            .claims
            .iter()
            .map(|(scope, row)| row.shown(scope))
            .filter(|row| query.state.is_none_or(|state| row.state == state))
            .filter(|row| query.matches(&row.scope, row.claimed_at))
            .collect();
        oldest_first(&mut rows, query.limit);
        Box::pin(ready(Ok(rows)))
    }

    fn claims_of<'a>(
        &'a self,
        keys: &'a [(String, KeyDigest)],
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ClaimRow>, Error>> {
        let is_meant = |scope: &Scope| {
            let mut keys = keys.iter();
            keys.any(|(user_id, key)| *user_id == scope.user_id && *key == scope.key)
        };
        let inner = self.lock();
        let claims = inner.claims.iter().filter(|(scope, _)| is_meant(scope));
        let mut rows: Vec<_> = claims.map(|(scope, row)| row.shown(scope)).collect();
        oldest_first(&mut rows, limit);
        Box::pin(ready(Ok(rows)))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, Error>> {
        let now = self.clock.now();
        let mut swept = Swept::default();
        let mut inner = self.lock();
        let believed = inner.time.believed(now);
        for row in inner.claims.values_mut() {
            match row.state {
                State::Running { lease_until }
                    if now >= lease_until
                        && !row.may_take_over(believed)
                        && swept.in_doubt < limit =>
                {
                    row.state = State::InDoubt;
                    swept.in_doubt += 1;
                }
                State::Running { .. }
                | State::Released
                | State::Succeeded { .. }
                | State::Failed { .. }
                | State::InDoubt
                | State::Tombstone => {}
            }
        }
        swept.lapsed = inner.end_lost(now, limit);
        Box::pin(ready(Ok(swept)))
    }
}

impl MemoryStore {
    fn take(&self, request: &ClaimRequest) -> Result<ClaimAnswer, Error> {
        let now = self.clock.now();
        let mut inner = self.lock();
        if inner.has_lost_key(&request.scope.user_id, request.sealed_under) {
            return Ok(ClaimAnswer::Erased);
        }
        let windows = inner.time.windows(now);
        let lease_until = after(now, request.lease);
        let Some(row) = inner.claims.get(&request.scope) else {
            self.make_room(&inner)?;
            if let Some(over) = inner.till.take_with_claim(request, 1, (now, windows)) {
                return Ok(ClaimAnswer::Over(over));
            }
            let row = Row {
                fingerprint: request.fingerprint,
                parts: request.parts.clone().into(),
                recovery: request.recovery,
                attempt: 1,
                request_id: request.request_id.clone(),
                first_claim: now,
                claimed_at: now,
                state: State::Running { lease_until },
            };
            inner.claims.insert(request.scope.clone(), row);
            return Ok(ours(request, 1));
        };
        let is_same = row.fingerprint == request.fingerprint;
        let is_free = match &row.state {
            State::Released => true,
            State::Running { lease_until } if is_same && now >= *lease_until => {
                if !row.may_take_over(inner.time.believed(now)) {
                    return Ok(ClaimAnswer::Held(inner.give_up(&request.scope, now)?));
                }
                true
            }
            State::Running { .. }
            | State::Succeeded { .. }
            | State::Failed { .. }
            | State::InDoubt
            | State::Tombstone => false,
        };
        if !is_free {
            return Ok(ClaimAnswer::Held(row.held(now)));
        }
        if row.attempt >= request.attempts_max {
            return Ok(ClaimAnswer::Exhausted {
                attempts: row.attempt,
            });
        }
        let attempt = row.attempt + 1;
        if let Some(over) = inner.till.take_with_claim(request, attempt, (now, windows)) {
            return Ok(ClaimAnswer::Over(over));
        }
        let Some(row) = inner.claims.get_mut(&request.scope) else {
            return Err(lost_row());
        };
        row.attempt = attempt;
        row.fingerprint = request.fingerprint;
        row.parts = request.parts.clone().into();
        row.recovery = request.recovery;
        row.request_id.clone_from(&request.request_id);
        row.claimed_at = now;
        row.state = State::Running { lease_until };
        Ok(ours(request, attempt))
    }

    fn make_room(&self, inner: &Inner) -> Result<(), Error> {
        if inner.claims.len() < self.keys_max {
            return Ok(());
        }
        Err(Error::Full {
            limit: self.keys_max,
        })
    }

    fn commit_now(&self, commit: Commit) -> Result<CommitAnswer, Error> {
        let now = self.clock.now();
        let mut inner = self.lock();
        if let Some(answer) = inner.answered(commit.record.id()) {
            return Ok(answer);
        }
        let user_id = commit.record.user_id();
        if commit.writes_of(user_id) && inner.has_lost_key(user_id, commit.record.sealed_under()) {
            return Ok(CommitAnswer::Erased);
        }
        if let Some(key) = &commit.key {
            let is_fenced = match key {
                KeyChange::Take { .. } => {
                    if let Some(held) = inner.taken(key, now) {
                        return Ok(CommitAnswer::Held(held));
                    }
                    self.room_for(&inner, key)?;
                    false
                }
                KeyChange::Settle { claim, .. } => !inner.holds_claim(claim),
            };
            if is_fenced {
                self.keep_draft(&mut inner, commit.record, true);
                return Ok(CommitAnswer::Fenced);
            }
        }
        if let Some(spend) = &commit.spend
            && inner.till.has_lapsed(spend)
        {
            return Ok(CommitAnswer::Lapsed);
        }
        if let Some(moved) = inner.moved(&commit) {
            return Ok(moved);
        }
        if let Some(spend) = &commit.spend {
            inner.till.end(&spend.id, &spend.end);
        }
        for write in commit.writes {
            inner.write(write);
        }
        if let Some(key) = commit.key {
            inner.change_key(key, now);
        }
        self.keep_draft(&mut inner, commit.record, false);
        Ok(CommitAnswer::Committed)
    }

    fn room_for(&self, inner: &Inner, key: &KeyChange) -> Result<(), Error> {
        match key {
            KeyChange::Take { scope, .. } if !inner.claims.contains_key(scope) => {
                self.make_room(inner)
            }
            KeyChange::Take { .. } | KeyChange::Settle { .. } => Ok(()),
        }
    }
}

impl Inner {
    /// Drops the replies of settled claims past their retention; tombstones stay.
    pub(super) fn drop_replies(&mut self, now: Timestamp, limit: usize) -> usize {
        let over = self.claims.values_mut().filter(|row| match row.state {
            State::Succeeded { until, .. } | State::Failed { until, .. } => now >= until,
            State::Running { .. } | State::Released | State::InDoubt | State::Tombstone => false,
        });
        let mut dropped = 0;
        for row in over.take(limit) {
            row.state = State::Tombstone;
            row.parts = Arc::default();
            dropped += 1;
        }
        dropped
    }

    /// Removes the tombstones that an operator wants to be forgotten.
    pub(super) fn forget(&mut self, which: &Forgotten) -> Names {
        let mut forgotten = Names::default();
        self.claims.retain(|scope, row| {
            let is_meant = matches!(row.state, State::Tombstone)
                && row.claimed_at < which.claimed_before
                && which.user_id.as_ref().is_none_or(|of| scope.user_id == *of)
                && which.tool.as_ref().is_none_or(|of| scope.tool == *of)
                && which.key.is_none_or(|of| scope.key == of)
                && forgotten.len() < which.limit;
            if is_meant {
                forgotten.add_key(scope.tool.as_str(), &scope.key);
            }
            !is_meant
        });
        forgotten
    }

    /// Marks a claim in doubt because its owner is lost.
    fn give_up(&mut self, scope: &Scope, now: Timestamp) -> Result<Held, Error> {
        let row = self.claims.get_mut(scope).ok_or_else(lost_row)?;
        row.state = State::InDoubt;
        Ok(row.held(now))
    }

    /// True if the claim is running or in doubt, by exactly this attempt.
    pub(super) fn is_open(&self, claim: &Claim) -> bool {
        self.holds_claim(claim)
    }

    /// State of the scope; `None` if it is free to be taken.
    fn taken(&self, key: &KeyChange, now: Timestamp) -> Option<Held> {
        let KeyChange::Take { scope, after, .. } = key else {
            return None;
        };
        let row = self.claims.get(scope)?;
        let is_free = matches!(row.state, State::Released) && row.attempt == *after;
        (!is_free).then(|| row.held(now))
    }

    fn holds_claim(&self, claim: &Claim) -> bool {
        self.claims.get(&claim.scope).is_some_and(|row| {
            let is_open = matches!(row.state, State::Running { .. } | State::InDoubt);
            row.attempt == claim.attempt && is_open
        })
    }

    fn change_key(&mut self, key: KeyChange, now: Timestamp) {
        // A clock that is behind the latest time that was believed shortens no retention.
        let from = self.time.believed(now);
        match key {
            KeyChange::Take {
                scope,
                fingerprint,
                parts,
                after,
                outcome,
                request_id,
            } => {
                let first_claim = self.claims.get(&scope).map(|row| row.first_claim);
                let row = Row {
                    fingerprint,
                    parts: parts.into(),
                    recovery: Recovery::Operator,
                    attempt: after + 1,
                    request_id,
                    first_claim: first_claim.unwrap_or(now),
                    claimed_at: now,
                    state: ended(outcome, now, from),
                };
                self.claims.insert(scope, row);
            }
            KeyChange::Settle { claim, outcome } => {
                if let Some(row) = self.claims.get_mut(&claim.scope) {
                    row.state = ended(outcome, now, from);
                }
            }
        }
    }
}

fn lost_row() -> Error {
    Error::Damaged {
        what: "a claim that was there".to_owned(),
    }
}

/// State of a claim that has ended; a reply is kept from this time on.
fn ended(outcome: Outcome, now: Timestamp, from: Timestamp) -> State {
    match outcome {
        Outcome::Succeeded { reply, keep } => State::Succeeded {
            reply: reply.into(),
            until: after(from, keep),
        },
        Outcome::Failed { reply, keep } => State::Failed {
            reply: reply.into(),
            until: after(from, keep),
        },
        Outcome::Released => State::Released,
        Outcome::Abandoned => State::Running { lease_until: now },
        Outcome::InDoubt => State::InDoubt,
    }
}

fn ours(request: &ClaimRequest, attempt: u32) -> ClaimAnswer {
    ClaimAnswer::Ours(Claim {
        scope: request.scope.clone(),
        attempt,
    })
}

impl Row {
    /// True if another call may take over from an owner whose lease is over.
    fn may_take_over(&self, now: Timestamp) -> bool {
        match self.recovery {
            Recovery::Retry => true,
            Recovery::DownstreamKey { window_seconds } => {
                let usable = Duration::from_secs(window_seconds).mul_f64(0.8);
                now < after(self.first_claim, usable)
            }
            Recovery::Operator | Recovery::Reconcile { .. } => false,
        }
    }

    fn held(&self, now: Timestamp) -> Held {
        let state = match &self.state {
            State::Running { lease_until } if now >= *lease_until => HeldState::Abandoned,
            State::Running { lease_until } => {
                let left = lease_until.duration_since(now).as_millis();
                HeldState::Running {
                    retry_after_ms: u64::try_from(left.clamp(50, 1_000)).unwrap_or(1_000),
                }
            }
            State::Released => HeldState::Released,
            State::Succeeded { until, .. } | State::Failed { until, .. } if now >= *until => {
                HeldState::Expired
            }
            State::Succeeded { reply, .. } => HeldState::Succeeded(reply.clone()),
            State::Failed { reply, .. } => HeldState::Failed(reply.clone()),
            State::InDoubt => HeldState::InDoubt,
            State::Tombstone => HeldState::Expired,
        };
        let age = now.duration_since(self.claimed_at);
        Held {
            fingerprint: self.fingerprint,
            parts: self.parts.clone(),
            attempt: self.attempt,
            age: Duration::try_from(age).unwrap_or_default(),
            state,
        }
    }

    pub(super) fn shown(&self, scope: &Scope) -> ClaimRow {
        let (state, lease_until) = match self.state {
            State::Running { lease_until } => (ClaimState::Running, Some(lease_until)),
            State::Released => (ClaimState::Released, None),
            State::Succeeded { .. } => (ClaimState::Succeeded, None),
            State::Failed { .. } => (ClaimState::Failed, None),
            State::InDoubt => (ClaimState::InDoubt, None),
            State::Tombstone => (ClaimState::Tombstone, None),
        };
        ClaimRow {
            scope: scope.clone(),
            state,
            attempt: self.attempt,
            request_id: self.request_id.clone(),
            claimed_at: self.claimed_at,
            lease_until,
            parts: self.parts.clone(),
        }
    }
}
