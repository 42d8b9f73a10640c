//! `mission.get`: one mission, or the missions that an agent can go on with.

use countersign::contract::Behaviour;
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MISSIONS, Mission, Status};
use crate::behaviour;
use crate::id::Id;

/// The maximum number of missions in one answer.
const LISTED_MAX: usize = 50;

/// The maximum number of missions that are read to find the newest. All open or paused ones are among them; of those
/// that are done or cancelled, only this many are considered.
const READ_MAX: usize = 1_000;

pub(super) struct Get;

/// Arguments of `mission.get`.
#[derive(Deserialize, ToolArgs)]
pub(super) struct GetArgs {
    /// Id of a mission. Without it, all missions with the given status are listed.
    #[arg(example = "mis_0123456789abcdef")]
    mission_id: Option<Id>,
    /// Status to list if there is no `mission_id`. The default is `open`.
    status: Option<Status>,
}

/// Missions of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct MissionList {
    /// The missions, the last changed one first.
    pub missions: Vec<Mission>,
    /// True if there are more missions than listed.
    pub is_cut: bool,
}

impl Tool for Get {
    const NAME: &'static str = "mission.get";
    const DESCRIPTION: &'static str =
        "Shows one mission of the user, or all open ones. Call it at the start of a visit.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = GetArgs;
    type Output = MissionList;

    fn behaviour() -> Behaviour {
        behaviour::read()
    }

    async fn call(&self, ctx: &CallContext, args: GetArgs) -> Result<MissionList, ToolError> {
        if let Some(mission_id) = &args.mission_id {
            return Ok(MissionList {
                missions: vec![Mission::of(ctx, mission_id).await?],
                is_cut: false,
            });
        }
        let status = args.status.unwrap_or(Status::Open);
        let found = ctx
            .state()
            .find::<Mission>(&MISSIONS, "status", status.name(), READ_MAX)
            .await?;
        let is_cut = found.len() > LISTED_MAX;
        let mut missions: Vec<Mission> = found.into_iter().map(|(_, mission)| mission).collect();
        missions.sort_by(|left, right| {
            let newest = right.updated_at.cmp(&left.updated_at);
            newest.then_with(|| left.mission_id.cmp(&right.mission_id))
        });
        missions.truncate(LISTED_MAX);
        Ok(MissionList { missions, is_cut })
    }
}
