//! State of a scope, read from one version of its row.

use std::sync::Arc;
use std::time::Duration;

use countersign::ledger::{ClaimState, Held, HeldState};
use tokio_postgres::Row;

use super::failure::Failure;
use super::unsigned;

/// The columns that [`held`] reads, of a claim that the statement calls `c`.
pub(super) const COLUMNS: &str = "c.state, c.attempt, c.fingerprint, c.parts, c.reply, \
     (extract(epoch FROM now() - c.claimed_at) * 1000000)::bigint AS age_us, \
     (extract(epoch FROM c.lease_until - now()) * 1000000)::bigint AS left_us, \
     coalesce(c.until <= now(), false) AS is_over";

/// Reads the state from the columns.
pub(super) fn held(row: &Row) -> Result<Held, Failure> {
    let reply = || row.get::<_, Option<&[u8]>>("reply").map(Arc::<[u8]>::from);
    let missing = || Failure::damaged("the answer of a claim");
    let is_over: bool = row.get("is_over");
    let state = match state(row)? {
        ClaimState::Running => match row.get::<_, Option<i64>>("left_us") {
            Some(left_us) if left_us > 0 => HeldState::Running {
                retry_after_ms: unsigned(left_us / 1_000).clamp(50, 1_000),
            },
            Some(_) | None => HeldState::Abandoned,
        },
        ClaimState::Released => HeldState::Released,
        ClaimState::Succeeded | ClaimState::Failed if is_over => HeldState::Expired,
        ClaimState::Succeeded => HeldState::Succeeded(reply().ok_or_else(missing)?),
        ClaimState::Failed => HeldState::Failed(reply().ok_or_else(missing)?),
        ClaimState::InDoubt => HeldState::InDoubt,
        ClaimState::Tombstone => HeldState::Expired,
    };
    Ok(Held {
        fingerprint: digest(row, "fingerprint")?,
        parts: row.get::<_, &[u8]>("parts").into(),
        attempt: attempt(row),
        // The clock of the statement was read before it waited for the row.
        age: Duration::from_micros(unsigned(row.get("age_us"))),
        state,
    })
}

pub(super) fn state(row: &Row) -> Result<ClaimState, Failure> {
    let number: i16 = row.get("state");
    ClaimState::from_number(number.into()).ok_or_else(|| Failure::damaged("the state of a claim"))
}

pub(super) fn attempt(row: &Row) -> u32 {
    u32::try_from(row.get::<_, i64>("attempt")).unwrap_or(u32::MAX)
}

/// Reads 32 bytes from a column.
pub(super) fn digest(row: &Row, column: &str) -> Result<[u8; 32], Failure> {
    let bytes: &[u8] = row.get(column);
    bytes
        .try_into()
        .map_err(|_| Failure::damaged(format!("the column {column}")))
}
