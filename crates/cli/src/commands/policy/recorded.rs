//! `countersign policy explain ID`: which line of which policy decided a recorded call.

use std::path::PathBuf;

use countersign::archive::Shown;
use countersign_gateway::policy::{Explanation, Policy};
use serde::{Deserialize, Serialize};

use super::explain::write;
use crate::commands::calls;
use crate::commands::lookup::{Name, Whose};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operations::Operation;
use crate::place::Place;
use crate::terminal::Terminal;
use crate::{catalog, policy};

/// The recorded call that is asked about.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(super) name: Name,
    pub(super) whose: Whose,
}

impl Operation for Recorded {
    const NAME: &'static str = "policy explain";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        for id in self.name.all(place, self.whose.user.as_deref())? {
            let known = calls::record(place, &id)?;
            // Intents and approvals of a call have its id, and no answer.
            if known.record.reply.is_none() {
                continue;
            }
            let (explanation, file) = explain(place, &known)?;
            write(terminal, &explanation, file.as_deref())?;
        }
        Ok(Exit::Ok)
    }
}

fn explain(place: &Place, known: &Shown) -> Result<(Explanation, Option<PathBuf>), Failure> {
    let record = &known.record;
    let revision = record.policy_revision.clone().unwrap_or_default();
    let kept = match policy::kept(&place.folder, &revision)? {
        Some(kept) => Some(kept),
        // A policy that no server has used is kept nowhere else.
        None => configured(place, &revision),
    };
    let (decider, file) = match &kept {
        Some((policy, path)) => (Some(policy), Some(path.clone())),
        None => (None, None),
    };
    let catalog = Explanation::needs_tool(record).then(|| catalog::declared(place.loaded()));
    let catalog = catalog.transpose()?;
    let tool = record.tool.as_ref();
    let entry = tool.and_then(|tool| catalog.as_ref()?.get(&tool.name));
    let spec = entry.as_ref().map(|entry| entry.spec());
    let explanation = Explanation::of_record(record, &known.row.user_id, decider, spec);
    Ok((explanation, file))
}

/// The policy of the configuration, if it is the one that a record names.
fn configured(place: &Place, revision: &str) -> Option<(Policy, PathBuf)> {
    let policy = policy::read(place.loaded()).ok()?;
    let path = policy::file_of(place.loaded())?;
    (**policy.revision() == *revision).then_some((policy, path))
}
