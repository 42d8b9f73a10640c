//! A standing grant: a user's yes in advance, within bounds, as lists show it.

use serde::{Deserialize, Serialize};

use crate::envelope::Actor;
use crate::id::{SnapshotId, ToolName};
use crate::tool::AmountUnit;

/// A standing grant: within its bounds, calls of one agent need no confirmation by the user. It never allows what the
/// policy denies, and it never replaces a second approver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Id of the grant; records of calls that used it name it.
    pub id: String,
    /// State of the grant.
    pub state: GrantState,
    /// User who gave it.
    pub user_id: String,
    /// Actor who may use it: the one whose credential proves a call.
    pub to: Actor,
    /// Tools that it covers, as they were declared when it was made.
    pub tools: Vec<ToolName>,
    /// Condition on a call, in the language of the policy's conditions; it has to hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Maximum number of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u32>,
    /// Maximum amount a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<GrantAmount>,
    /// End of the grant, RFC 3339.
    pub until: String,
    /// Grant that it is derived from. Every bound of that one counts as well, and every use is also a use of that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Uses so far, calls that are running included.
    pub used: GrantUse,
    /// Person who made it; never an agent.
    pub made_by: Actor,
    /// Time at which it was made, RFC 3339.
    pub made_at: String,
    /// Evidence id of the record of its making.
    pub evidence: SnapshotId,
    /// Its revocation, if it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<GrantRevocation>,
}

/// A grant that a person wants to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewGrant {
    /// User who gives it; the caller's own user if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Agent or system that may use it.
    pub to: Actor,
    /// Tools that it covers.
    pub tools: Vec<ToolName>,
    /// Condition on a call, in the language of the policy's conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Maximum number of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u32>,
    /// Maximum amount a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<GrantAmount>,
    /// End of the grant, RFC 3339.
    pub until: String,
    /// Grant that it is derived from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// Maximum amount a day of a grant. A day begins at midnight UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GrantAmount {
    /// Amount, as a decimal: `200.00`.
    pub limit: String,
    /// Currency, ISO 4217. A call in another currency is not covered.
    pub currency: String,
    /// JSON pointer to the amount in the arguments. May be left out for tools that declare terms with an amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// JSON pointer to the currency in the arguments. If left out, amounts are in `currency`, unless the call names
    /// another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency_at: Option<String>,
    /// Unit of the amount in the arguments.
    #[serde(default, skip_serializing_if = "AmountUnit::is_major")]
    pub unit: AmountUnit,
}

/// Uses of a grant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GrantUse {
    /// Number of calls.
    pub calls: u64,
    /// Amount today, for people: `12.50 EUR`. Only if the grant has an amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub today: Option<String>,
}

/// Revocation of a grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GrantRevocation {
    /// Person who revoked it.
    pub by: Actor,
    /// Time of the revocation, RFC 3339.
    pub at: String,
    /// Reason, in the person's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Evidence id of the record of the revocation.
    pub evidence: SnapshotId,
}

/// State of a grant. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GrantState {
    /// In force.
    Active,
    /// All calls were made, of this grant or of one that it is derived from.
    UsedUp,
    /// Its time is over, or that of a grant that it is derived from.
    Ended,
    /// Revoked, or derived from a grant that was.
    Revoked,
}

impl GrantState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Active, Self::UsedUp, Self::Ended, Self::Revoked];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::UsedUp => "used_up",
            Self::Ended => "ended",
            Self::Revoked => "revoked",
        }
    }

    /// Returns the state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}
