//! `mission.create`: stores a goal of the user.

use countersign::contract::Behaviour;
use countersign::{CallContext, DryRun, Tool, ToolArgs, ToolError};
use jiff::Timestamp;
use serde::Deserialize;

use super::{BudgetArgs, Country, MISSIONS, MISSIONS_MAX, Mission, Status, check_deadline};
use crate::behaviour;
use crate::words::Say;

pub(super) struct Create;

/// Arguments of `mission.create`.
#[derive(Deserialize, ToolArgs)]
pub(super) struct CreateArgs {
    /// Goal, in the user's own words.
    #[arg(
        min_length = 1,
        max_length = 2000,
        sensitive = "personal",
        example = "a warm jacket for a trip to Norway in February"
    )]
    goal: String,
    /// Maximum cost, everything included.
    budget: Option<BudgetArgs>,
    /// Further conditions, one sentence each.
    #[arg(max_items = 20, max_length = 300, sensitive = "personal")]
    constraints: Option<Vec<String>>,
    /// Destination country: two letters, ISO 3166-1.
    #[arg(example = "DE")]
    destination_country: Option<Country>,
    /// Deadline: date and time with offset, such as 2027-01-31T12:00:00Z.
    #[arg(example = "2027-01-31T12:00:00Z")]
    deadline: Option<Timestamp>,
}

impl Tool for Create {
    const NAME: &'static str = "mission.create";
    const DESCRIPTION: &'static str = "Stores what the user wants, so that a later visit can continue: goal, budget, constraints, \
        destination, deadline.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = CreateArgs;
    type Output = Mission;

    fn behaviour() -> Behaviour {
        behaviour::write_once()
    }

    async fn call(&self, ctx: &CallContext, args: CreateArgs) -> Result<Mission, ToolError> {
        check_deadline(ctx, args.deadline)?;
        check_room(ctx).await?;
        let now = ctx.now();
        let mission = Mission {
            mission_id: ctx.new_id("mis_"),
            version: 1,
            status: Status::Open,
            goal: args.goal,
            budget: args.budget.map(|budget| budget.money()).transpose()?,
            constraints: args.constraints.unwrap_or_default(),
            destination_country: args.destination_country.map(|country| country.code()),
            deadline: args.deadline,
            cart_id: None,
            draft_order_id: None,
            notes: Vec::new(),
            created_at: now,
            updated_at: now,
        };
        mission.keep(ctx).await?;
        Ok(mission)
    }
}

/// Refuses a mission beyond [`MISSIONS_MAX`], so that an agent in a loop cannot fill the store.
async fn check_room(ctx: &CallContext) -> Result<(), ToolError> {
    let mut there = 0;
    for status in [Status::Open, Status::Paused] {
        let found = ctx
            .state()
            .find::<Mission>(&MISSIONS, "status", status.name(), MISSIONS_MAX)
            .await?;
        there += found.len();
    }
    if there < MISSIONS_MAX {
        return Ok(());
    }
    let most = MISSIONS_MAX.to_string();
    Err(ToolError::invalid("/goal", Say::MissionsFull { most }).hint(Say::EndMissions))
}
