//! Link from a record to an earlier one, with the use that the call made of it.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::id::SnapshotId;

/// An earlier record that a call rests on or looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The name of the record.
    pub id: SnapshotId,
    /// The hash of its leaf, so that the name cannot be given to another record later.
    pub leaf: Digest,
    /// What the call did with it. Absent in version 1, which did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<LinkRole>,
    /// That the linked answer was fresh when the call used it. Only with [`LinkRole::RestsOn`], and only where the
    /// linked answer has a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<Freshness>,
}

/// What a call did with an earlier record. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LinkRole {
    /// The answer depends on it.
    RestsOn,
    /// The call read it, and its answer does not depend on it being fresh: a refusal, a dispute bundle, a
    /// payment under a lock.
    LookedAt,
}

/// When an earlier answer was used, and until when it could be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Freshness {
    /// When the call used it, RFC 3339, by the clock of the gateway that ran the call.
    pub at: String,
    /// The end of its window, RFC 3339: `reply.valid_until` of the linked record.
    pub until: String,
}

impl Link {
    /// A link to a record that the call looked at.
    pub const fn looked_at(id: SnapshotId, leaf: Digest) -> Self {
        Self {
            id,
            leaf,
            role: Some(LinkRole::LookedAt),
            fresh: None,
        }
    }

    /// A link to a record that the call rests on, and that has no window.
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
