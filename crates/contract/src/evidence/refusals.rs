//! Refused calls that have one record together.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::SnapshotId;

/// The `act` of a denial that stands for several refused calls of one caller, tool and reason. Caller, tool and code are
/// members of the record itself.
///
/// # Example
///
/// ```
/// use countersign_contract::evidence::CountedRefusals;
///
/// let act = serde_json::json!({
///     "event": "refusals_counted", "count": 19_998, "reason": "user",
///     "first_at": "2026-11-15T12:00:00Z", "last_at": "2026-11-15T12:00:59Z", "first": "ev_1",
/// });
/// assert_eq!(CountedRefusals::from_act(&act).map(|counted| counted.count), Some(19_998));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountedRefusals {
    event: Event,
    /// The number of calls that have no record of their own.
    pub count: u64,
    /// Reason that is more exact than the code: the name of the limit, or the place in the envelope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time at which the first of them arrived, RFC 3339.
    pub first_at: String,
    /// Time at which the last of them arrived, RFC 3339.
    pub last_at: String,
    /// The record of the refusal before them, which was recorded alone. Absent where that could not be kept; then it is
    /// counted here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<SnapshotId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    RefusalsCounted,
}

impl CountedRefusals {
    /// Counts this number of refusals between these times.
    pub fn new(count: u64, first_at: impl Into<String>, last_at: impl Into<String>) -> Self {
        Self {
            event: Event::RefusalsCounted,
            count,
            reason: None,
            first_at: first_at.into(),
            last_at: last_at.into(),
            first: None,
        }
    }

    /// Reads the act of a record; `None` if it is another act.
    pub fn from_act(act: &Value) -> Option<Self> {
        Self::deserialize(act).ok()
    }
}
