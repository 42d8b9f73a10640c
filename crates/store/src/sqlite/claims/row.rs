//! A stored claim, and its meaning at a given time.

use std::sync::Arc;
use std::time::Duration;

use countersign::ledger::{ClaimRow, ClaimState, Held, HeldState, Scope};
use countersign_contract::tool::Recovery;
use rusqlite::Row;

use crate::sqlite::failure::Failure;
use crate::sqlite::time::{between, later, timestamp};
use crate::sqlite::values::{bytes32, parsed, unsigned};
use crate::transfer::StoredClaim;

/// Columns that [`Stored::read`] reads, in its order.
macro_rules! columns {
    () => {
        "state, attempt, recovery, recovery_seconds, first_claim, claimed_at, lease_until, until, \
         fingerprint, parts, reply, request_id"
    };
}

/// Selects one claim by its scope.
pub(super) const SELECT_ONE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM claim WHERE user_id = ?1 AND tool = ?2 AND key = ?3"
);

/// Selects claims with their scopes.
pub(in crate::sqlite) const SELECT: &str =
    concat!("SELECT ", columns!(), ", user_id, tool, key FROM claim");

pub(in crate::sqlite) struct Stored {
    pub(super) state: ClaimState,
    pub(super) attempt: u32,
    pub(super) recovery: Recovery,
    pub(super) first_claim: i64,
    pub(super) claimed_at: i64,
    pub(super) lease_until: Option<i64>,
    pub(super) until: Option<i64>,
    pub(super) fingerprint: [u8; 32],
    pub(super) parts: Arc<[u8]>,
    pub(super) reply: Option<Arc<[u8]>>,
}

impl Stored {
    pub(in crate::sqlite) fn read(row: &Row<'_>) -> Result<Self, Failure> {
        let number = row.get(0)?;
        let state = ClaimState::from_number(number);
        Ok(Self {
            state: state.ok_or_else(|| Failure::damaged(format!("a claim in state {number}")))?,
            attempt: row.get(1)?,
            recovery: recovery(row.get(2)?, unsigned(row.get(3)?))?,
            first_claim: row.get(4)?,
            claimed_at: row.get(5)?,
            lease_until: row.get(6)?,
            until: row.get(7)?,
            fingerprint: bytes32(row, 8)?,
            parts: row
                .get_ref(9)?
                .as_blob()
                .map_err(rusqlite::Error::from)?
                .into(),
            reply: row.get(10)?,
        })
    }

    /// True if an owner whose lease is over may be replaced.
    pub(super) fn may_take_over(&self, now: i64) -> bool {
        match self.recovery {
            Recovery::Retry => true,
            Recovery::DownstreamKey { window_seconds } => {
                let usable = Duration::from_millis(window_seconds.saturating_mul(800));
                now < later(self.first_claim, usable)
            }
            Recovery::Operator | Recovery::Reconcile { .. } => false,
        }
    }

    pub(super) fn lease_is_over(&self, now: i64) -> bool {
        self.lease_until.is_none_or(|until| now >= until)
    }

    pub(super) fn held(self, now: i64) -> Result<Held, Failure> {
        let is_kept = self.until.is_some_and(|until| now < until);
        let reply = || {
            let reply = self.reply.clone();
            reply.ok_or_else(|| Failure::damaged("a settled claim without its answer"))
        };
        let state = match self.state {
            ClaimState::Running if self.lease_is_over(now) => HeldState::Abandoned,
            ClaimState::Running => {
                let left = between(now, self.lease_until.unwrap_or(now)).as_millis();
                HeldState::Running {
                    retry_after_ms: u64::try_from(left.clamp(50, 1_000)).unwrap_or(1_000),
                }
            }
            ClaimState::Released => HeldState::Released,
            ClaimState::Succeeded if is_kept => HeldState::Succeeded(reply()?),
            ClaimState::Failed if is_kept => HeldState::Failed(reply()?),
            ClaimState::InDoubt => HeldState::InDoubt,
            ClaimState::Succeeded | ClaimState::Failed | ClaimState::Tombstone => {
                HeldState::Expired
            }
        };
        Ok(Held {
            fingerprint: self.fingerprint,
            parts: self.parts,
            attempt: self.attempt,
            age: between(self.claimed_at, now),
            state,
        })
    }

    /// Converts a row of [`SELECT`] to the form that operators see.
    pub(super) fn shown(self, row: &Row<'_>) -> Result<ClaimRow, Failure> {
        Ok(ClaimRow {
            scope: scope_of(row)?,
            state: self.state,
            attempt: self.attempt,
            request_id: parsed(row, 11)?,
            claimed_at: timestamp(self.claimed_at),
            lease_until: self.lease_until.map(timestamp),
            parts: self.parts,
        })
    }

    /// Converts a row of [`SELECT`] to the form that is moved to another store.
    pub(in crate::sqlite) fn moved(self, row: &Row<'_>) -> Result<StoredClaim, Failure> {
        Ok(StoredClaim {
            scope: scope_of(row)?,
            fingerprint: self.fingerprint,
            parts: self.parts.to_vec(),
            recovery: self.recovery,
            attempt: self.attempt,
            request_id: parsed(row, 11)?,
            first_claim: timestamp(self.first_claim),
            claimed_at: timestamp(self.claimed_at),
            state: self.state,
            lease_until: self.lease_until.map(timestamp),
            reply: self.reply.map(|reply| reply.to_vec()),
            until: self.until.map(timestamp),
        })
    }
}

/// Reads the scope, which [`SELECT`] has after the other columns.
fn scope_of(row: &Row<'_>) -> Result<Scope, Failure> {
    Ok(Scope {
        user_id: row.get(12)?,
        tool: parsed(row, 13)?,
        key: countersign::ledger::KeyDigest(bytes32(row, 14)?),
    })
}

/// Converts a recovery to its two numbers; the schema explains them.
pub(super) fn recovery_numbers(recovery: Recovery) -> (i64, i64) {
    // No clock counts more than this, and sums of it do not overflow.
    let bounded = |seconds: u64| i64::try_from(seconds).map_or(SECONDS_MAX, |s| s.min(SECONDS_MAX));
    match recovery {
        Recovery::Operator => (0, 0),
        Recovery::Retry => (1, 0),
        Recovery::DownstreamKey { window_seconds } => (2, bounded(window_seconds)),
        Recovery::Reconcile { grace_seconds } => (3, bounded(grace_seconds)),
    }
}

const SECONDS_MAX: i64 = 1_000_000_000_000;

fn recovery(number: i64, seconds: u64) -> Result<Recovery, Failure> {
    Ok(match number {
        0 => Recovery::Operator,
        1 => Recovery::Retry,
        2 => Recovery::DownstreamKey {
            window_seconds: seconds,
        },
        3 => Recovery::Reconcile {
            grace_seconds: seconds,
        },
        number => return Err(Failure::damaged(format!("a claim with recovery {number}"))),
    })
}
