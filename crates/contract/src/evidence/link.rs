//! Link from a record to an earlier one, with the use that the call made of it.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::id::SnapshotId;

/// A link to an earlier record that a call depends on or looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Id of the earlier record.
    pub id: SnapshotId,
    /// Hash of its leaf, so that the id cannot be given to another record later.
    pub leaf: Digest,
    /// Use of the earlier record. Missing in version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<LinkRole>,
    /// Claim that the linked answer was valid when the call used it. Only with [`LinkRole::RestsOn`], and only if the
    /// linked answer has a validity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<Freshness>,
}

/// Use of an earlier record by a call. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LinkRole {
    /// The answer depends on the earlier answer.
    RestsOn,
    /// The call read it, but its answer does not depend on its validity: a refusal, a dispute bundle, a payment under
    /// a lock.
    LookedAt,
}

/// Time at which an earlier answer was used, and the end of its validity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Freshness {
    /// Time of use, RFC 3339, by the clock of the gateway that ran the call.
    pub at: String,
    /// End of its validity, RFC 3339: `reply.valid_until` of the linked record.
    pub until: String,
}

impl Link {
    /// Creates a link to a record that the call looked at.
    pub const fn looked_at(id: SnapshotId, leaf: Digest) -> Self {
        Self {
            id,
            leaf,
            role: Some(LinkRole::LookedAt),
            fresh: None,
        }
    }

    /// Creates a link to a record that the call depends on and that has no end of validity.
    pub const fn rests_on(id: SnapshotId, leaf: Digest) -> Self {
        Self {
            id,
            leaf,
            role: Some(LinkRole::RestsOn),
            fresh: None,
        }
    }
}

impl LinkRole {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RestsOn => "rests_on",
            Self::LookedAt => "looked_at",
        }
    }
}
