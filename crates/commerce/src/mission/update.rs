//! `mission.update`: changes a mission.

use countersign::contract::Behaviour;
use countersign::contract::tool::Change;
use countersign::{CallContext, DryRun, Tool, ToolArgs, ToolError};
use jiff::Timestamp;
use serde::Deserialize;

use super::{BudgetArgs, Country, Mission, NOTES_MAX, Note, Status, check_deadline};
use crate::behaviour;
use crate::cart::Cart;
use crate::checkout::Kept;
use crate::id::Id;
use crate::words::Say;

pub(super) struct Update;

/// Arguments of `mission.update`. A member that is left out stays unchanged.
#[derive(Deserialize, ToolArgs)]
pub(super) struct UpdateArgs {
    /// `mission_id` from `mission.create`.
    #[arg(example = "mis_0123456789abcdef")]
    mission_id: Id,
    /// The `version` as last read.
    #[arg(min = 1)]
    expected_version: u32,
    /// New goal.
    #[arg(min_length = 1, max_length = 2000, sensitive = "personal")]
    goal: Option<String>,
    /// New maximum cost, everything included.
    budget: Option<BudgetArgs>,
    /// Further conditions; they replace the earlier ones.
    #[arg(max_items = 20, max_length = 300, sensitive = "personal")]
    constraints: Option<Vec<String>>,
    /// Destination country: two letters, ISO 3166-1.
    #[arg(example = "DE")]
    destination_country: Option<Country>,
    /// New deadline: date and time with offset, such as 2027-01-31T12:00:00Z.
    deadline: Option<Timestamp>,
    /// New status. `open` and `paused` can change into each other; `done` and `cancelled` are final.
    status: Option<Status>,
    /// Id of the cart for this mission.
    cart_id: Option<Id>,
    /// Id of the draft order that was made for this mission.
    draft_order_id: Option<Id>,
    /// Note, in one or two sentences.
    #[arg(min_length = 1, max_length = 500, sensitive = "personal")]
    note: Option<String>,
    /// Members to remove, by name.
    #[arg(max_items = 6, example = ["deadline"])]
    clear: Option<Vec<Clear>>,
}

/// Members that can be removed from a mission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToolArgs)]
#[serde(rename_all = "snake_case")]
pub(super) enum Clear {
    Budget,
    Constraints,
    DestinationCountry,
    Deadline,
    CartId,
    DraftOrderId,
}

impl Tool for Update {
    const NAME: &'static str = "mission.update";
    const DESCRIPTION: &'static str = "Changes a mission or adds a note to it. CONFLICT: another call changed it first, and nothing was \
        changed.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = UpdateArgs;
    type Output = Mission;

    fn behaviour() -> Behaviour {
        Behaviour {
            change: Change::Replaces,
            ..behaviour::write_once()
        }
    }

    async fn call(&self, ctx: &CallContext, args: UpdateArgs) -> Result<Mission, ToolError> {
        let mut mission = Mission::of(ctx, &args.mission_id).await?;
        mission.check_version(args.expected_version)?;
        if mission.status.next().is_empty() {
            let status = mission.status.name().to_owned();
            let message = Say::MissionOver { status };
            return Err(ToolError::invalid("/mission_id", message).hint(Say::NewMission));
        }
        check_deadline(ctx, args.deadline)?;
        if let Some(cart_id) = &args.cart_id {
            Cart::of(ctx, cart_id).await?;
        }
        if let Some(draft_order_id) = &args.draft_order_id {
            Kept::of(ctx, draft_order_id).await?;
        }
        let before = mission.clone();
        mission.change(ctx, args)?;
        if mission == before {
            return Err(ToolError::invalid("", Say::NothingChanges).hint(Say::NameChange));
        }
        mission.version = mission.version.saturating_add(1);
        mission.updated_at = ctx.now();
        mission.keep(ctx).await?;
        Ok(mission)
    }
}

impl Mission {
    fn change(&mut self, ctx: &CallContext, args: UpdateArgs) -> Result<(), ToolError> {
        for clear in args.clear.unwrap_or_default() {
            match clear {
                Clear::Budget => self.budget = None,
                Clear::Constraints => self.constraints.clear(),
                Clear::DestinationCountry => self.destination_country = None,
                Clear::Deadline => self.deadline = None,
                Clear::CartId => self.cart_id = None,
                Clear::DraftOrderId => self.draft_order_id = None,
            }
        }
        if let Some(status) = args.status {
            self.become_status(status)?;
        }
        if let Some(goal) = args.goal {
            self.goal = goal;
        }
        if let Some(budget) = args.budget {
            self.budget = Some(budget.money()?);
        }
        if let Some(constraints) = args.constraints {
            self.constraints = constraints;
        }
        if let Some(country) = args.destination_country {
            self.destination_country = Some(country.code());
        }
        self.deadline = args.deadline.or(self.deadline);
        self.cart_id = args.cart_id.map(String::from).or(self.cart_id.take());
        let draft_order_id = args.draft_order_id.map(String::from);
        self.draft_order_id = draft_order_id.or(self.draft_order_id.take());
        match args.note {
            None => Ok(()),
            Some(text) => self.note(ctx.now(), text),
        }
    }

    fn become_status(&mut self, status: Status) -> Result<(), ToolError> {
        let next = self.status.next();
        if status != self.status && !next.contains(&status) {
            let names: Vec<&str> = next.iter().map(|status| status.name()).collect();
            let message = Say::CannotBecome {
                from: self.status.name().to_owned(),
                to: status.name().to_owned(),
            };
            let names = names.join(", ");
            return Err(ToolError::invalid("/status", message).hint(Say::CanBecome { names }));
        }
        self.status = status;
        Ok(())
    }

    fn note(&mut self, at: Timestamp, text: String) -> Result<(), ToolError> {
        if self.notes.len() >= NOTES_MAX {
            let most = NOTES_MAX.to_string();
            return Err(ToolError::invalid("/note", Say::NotesFull { most }).hint(Say::SumUpNotes));
        }
        self.notes.push(Note { at, text });
        Ok(())
    }
}
