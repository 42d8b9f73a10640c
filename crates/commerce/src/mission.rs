//! Missions: a user's goal, over several visits. A mission is a note for the next agent and no order: it changes
//! nothing but itself, and the amounts in it are not binding.
//!
//! Two agents may work on one mission at the same time. So each change names the version that it is based on, and a
//! change based on an older version is refused instead of undoing the other.

use std::fmt;

use countersign::catalog::CatalogBuilder;
use countersign::contract::{ConflictReason, Parameter, ValueKind};
use countersign::state::Collection;
use countersign::{ArgValue, CallContext, ToolArgs, ToolError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::{CurrencyCode, MinorUnits, Money, exponent};
use crate::words::Say;

mod create;
mod get;
mod update;

pub use get::MissionList;

/// The missions, kept for each user; they are erased with the user.
const MISSIONS: Collection = Collection::of_user("mission").indexed(&[("status", "/status")]);

/// The maximum number of open or paused missions of a user.
pub const MISSIONS_MAX: usize = 200;

/// The maximum number of notes of a mission.
pub const NOTES_MAX: usize = 50;

/// A mission: a goal of a user.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Mission {
    /// Id of the mission.
    pub mission_id: String,
    /// Version number; each change raises it.
    pub version: u32,
    /// Status.
    pub status: Status,
    /// Goal, in the user's own words.
    pub goal: String,
    /// Maximum cost, everything included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Money>,
    /// Further conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// Destination country, two letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_country: Option<String>,
    /// Deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Id of the cart for this mission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cart_id: Option<String>,
    /// Id of the draft order that was made for this mission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_order_id: Option<String>,
    /// Notes, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Shows its id, version and status only: the rest is personal.
impl fmt::Debug for Mission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mission")
            .field("mission_id", &self.mission_id)
            .field("version", &self.version)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// A note about a mission.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Note {
    /// Time of the note.
    pub at: Timestamp,
    /// Text of the note.
    pub text: String,
}

/// Shows the time only: the text is personal.
impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Note")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

/// Status of a mission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize, ToolArgs)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Open: the agent works on it.
    Open,
    /// Paused.
    Paused,
    /// Done: the user has what they wanted.
    Done,
    /// Cancelled: the user does not want it any more.
    #[serde(alias = "canceled")]
    Cancelled,
}

impl Status {
    /// The statuses that may follow. Done and cancelled are final: a new mission can be made instead.
    pub fn next(self) -> &'static [Self] {
        match self {
            Self::Open => &[Self::Paused, Self::Done, Self::Cancelled],
            Self::Paused => &[Self::Open, Self::Done, Self::Cancelled],
            Self::Done | Self::Cancelled => &[],
        }
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Mission {
    /// Reads the mission of this user. Another user's mission is answered exactly like a missing one.
    async fn of(ctx: &CallContext, mission_id: &str) -> Result<Self, ToolError> {
        let kept = ctx.state().get(&MISSIONS, mission_id).await?;
        kept.ok_or_else(|| {
            let mission_id = mission_id.to_owned();
            ToolError::not_found(Say::NoMission { mission_id })
                .field("/mission_id")
                .hint(Say::ListMissions)
        })
    }

    async fn keep(&self, ctx: &CallContext) -> Result<(), ToolError> {
        ctx.state().put(&MISSIONS, &self.mission_id, self).await
    }

    /// Refuses a change that is based on another version.
    fn check_version(&self, expected: u32) -> Result<(), ToolError> {
        if self.version == expected {
            return Ok(());
        }
        let message = Say::MissionVersion {
            version: self.version.to_string(),
            expected: expected.to_string(),
        };
        Err(ToolError::conflict(ConflictReason::Version, message)
            .field("/expected_version")
            .detail("version", self.version)
            .hint(Say::ReadMission))
    }
}

/// An amount as an argument.
#[derive(Debug, Clone, Deserialize, ToolArgs)]
pub(crate) struct BudgetArgs {
    /// Amount of the budget.
    #[arg(min = 1, example = 20_000)]
    amount: MinorUnits,
    /// Currency: three letters, ISO 4217.
    #[arg(example = "EUR")]
    currency: CurrencyCode,
}

impl BudgetArgs {
    fn money(&self) -> Result<Money, ToolError> {
        let currency = self.currency.code();
        exponent(&currency).map_err(|error| ToolError::from(error).field("/budget/currency"))?;
        Ok(Money::new(self.amount.amount(), &currency))
    }
}

/// A country as an argument: two letters.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
struct Country(String);

impl Country {
    fn code(&self) -> String {
        self.0.to_ascii_uppercase()
    }
}

impl ArgValue for Country {
    const KIND: ValueKind = ValueKind::String;

    fn describe(mut parameter: Parameter) -> Parameter {
        parameter.bounds.pattern = Some("^[A-Za-z]{2}$".to_owned());
        parameter
    }
}

/// Refuses a deadline that has passed.
fn check_deadline(ctx: &CallContext, deadline: Option<Timestamp>) -> Result<(), ToolError> {
    let now = ctx.now();
    match deadline {
        Some(deadline) if deadline <= now => {
            let (deadline, now) = (deadline.to_string(), now.to_string());
            let message = Say::DeadlinePassed { deadline, now };
            Err(ToolError::invalid("/deadline", message).hint(Say::LaterDeadline))
        }
        Some(_) | None => Ok(()),
    }
}

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
        .tool(create::Create)
        .tool(update::Update)
        .tool(get::Get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_says_nothing_that_the_user_said() {
        let now = Timestamp::UNIX_EPOCH;
        let mission = Mission {
            mission_id: "mis_1".to_owned(),
            version: 1,
            status: Status::Open,
            goal: "secret".to_owned(),
            budget: None,
            constraints: vec!["secret".to_owned()],
            destination_country: None,
            deadline: None,
            cart_id: None,
            draft_order_id: None,
            notes: vec![Note {
                at: now,
                text: "secret".to_owned(),
            }],
            created_at: now,
            updated_at: now,
        };
        let shown = format!("{mission:?} {:?}", mission.notes);
        assert!(!shown.contains("secret"), "{shown}");
        assert!(shown.contains("mis_1"), "{shown}");
    }
}
