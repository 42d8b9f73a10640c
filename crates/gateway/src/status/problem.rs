//! Problems, in the order of their severity.

use std::time::Duration;

use countersign::contract::{Language, Message as _};
use serde::Serialize;

use super::{Status, View};
use crate::gateway::Gateway;
use crate::metrics::Stored;
use crate::witness::Trouble;
use crate::words::Say;

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Code from a closed set, for programs.
    pub code: &'static str,
    /// Description of the problem.
    pub message: String,
    /// Hint what to do.
    pub hint: String,
}

/// Time limit for the signature of a record.
const SIGNED_WITHIN: Duration = Duration::from_mins(1);

/// Maximum number of entries that a problem names.
const NAMED_MAX: usize = 5;

/// Problems, written down in the language of their reader.
struct Problems {
    language: Language,
    found: Vec<Problem>,
}

impl Problems {
    fn add(&mut self, code: &'static str, message: &Say, hint: &Say) {
        self.found.push(Problem {
            code,
            message: message.text(self.language),
            hint: hint.text(self.language),
        });
    }
}

/// Returns the problems of everyone, then of operators, then of the caller.
pub(super) fn found(
    gateway: &Gateway,
    stored: Option<Stored>,
    status: &Status,
    view: View,
    language: Language,
) -> Vec<Problem> {
    let mut problems = Problems {
        language,
        found: Vec::new(),
    };
    for_everybody(gateway, stored, &mut problems);
    if view == View::Operator {
        of_misfits(gateway, &mut problems);
        for_operators(stored, status, &mut problems);
        of_witnesses(gateway, &mut problems);
    }
    of_allowances(status, &mut problems);
    problems.found
}

fn for_everybody(gateway: &Gateway, stored: Option<Stored>, problems: &mut Problems) {
    let health = gateway.health();
    if health.is_leaving() || health.is_draining() {
        problems.add("stopping", &Say::Stopping, &Say::SendElsewhere);
    }
    match stored {
        None => problems.add(
            "store_silent",
            &Say::StoreSilent,
            &Say::RefusedUntilStoreAnswers,
        ),
        Some(stored) if !stored.vitals.is_writable => problems.add(
            "store_read_only",
            &Say::StoreReadOnly,
            &Say::MakeStoreWritable,
        ),
        Some(_) => {}
    }
    if health.is_log_stopped() {
        problems.add("signing_stopped", &Say::SigningStopped, &Say::VerifyAll);
    }
}

fn for_operators(stored: Option<Stored>, status: &Status, problems: &mut Problems) {
    let policy = &status.policy;
    if let (Some(false), Some(rejected)) = (policy.is_file_in_force, &policy.rejected) {
        let place = match (rejected.line, rejected.column) {
            (0, _) => String::new(),
            (line, column) => Say::InLine {
                line: line.to_string(),
                column: column.to_string(),
            }
            .text(problems.language),
        };
        let message = Say::PolicyRejected {
            place,
            message: rejected.message.clone(),
            revision: policy.revision.clone(),
        };
        problems.add("policy_rejected", &message, &Say::CorrectPolicy);
    }
    let config = status
        .server
        .as_ref()
        .and_then(|server| server.config.as_ref());
    if let Some(config) = config.filter(|config| !config.is_file_in_force)
        && let Some(refused) = &config.refused
    {
        let place = match (refused.line, refused.column) {
            (0, _) => refused.file.clone(),
            (line, column) => format!("{}:{line}:{column}", refused.file),
        };
        let message = Say::ConfigRejected {
            place,
            key: refused.key.clone(),
            message: refused.message.clone(),
        };
        let file = config.file.clone();
        problems.add("config_refused", &message, &Say::CorrectConfig { file });
    }
    if let Some(stored) = &stored {
        of_store(stored, problems);
    }
}

/// Adds entries of the policy that do not fit tools which have changed.
fn of_misfits(gateway: &Gateway, problems: &mut Problems) {
    let misfits = gateway.identity().policy().misfits();
    let enforced = misfits.iter().filter(|misfit| misfit.is_enforced);
    let named = enforced.map(|misfit| match misfit.line {
        0 => format!("{}: {}", misfit.entry, misfit.message),
        line => format!("{} (line {line}): {}", misfit.entry, misfit.message),
    });
    let mut named: Vec<String> = named.collect();
    if named.is_empty() {
        return;
    }
    if named.len() > NAMED_MAX {
        named.truncate(NAMED_MAX);
        named.push("…".to_owned());
    }
    let misfits = named.join("; ");
    problems.add(
        "policy_misfit",
        &Say::PolicyMisfit { misfits },
        &Say::CorrectMisfit,
    );
}

/// Adds what is wrong with the store: signing, clock, calls in doubt.
fn of_store(stored: &Stored, problems: &mut Problems) {
    let unsigned = stored.unsigned();
    if unsigned > 0 && stored.checkpoint_age > SIGNED_WITHIN {
        let message = Say::SigningLate {
            records: unsigned.to_string(),
            seconds: stored.checkpoint_age.as_secs().to_string(),
        };
        problems.add("signing_late", &message, &Say::LogSaysWhy);
    }
    if let Some(passage) = stored
        .vitals
        .passage
        .filter(|passage| passage.jump().is_some())
    {
        let passage = passage.to_string();
        problems.add(
            "clock_jumped",
            &Say::ClockJumped { passage },
            &Say::SetClock,
        );
    }
    if stored.vitals.in_doubt > 0 {
        let count = stored.vitals.in_doubt.to_string();
        problems.add(
            "calls_in_doubt",
            &Say::CallsInDoubt { count },
            &Say::SettleDoubts,
        );
    }
}

/// Adds witnesses that have cosigned another history of the log.
fn of_witnesses(gateway: &Gateway, problems: &mut Problems) {
    let states = gateway.witnesses().map(|witnesses| witnesses.states());
    for state in states.unwrap_or_default() {
        match state.trouble {
            Some(Trouble::Refuses(_)) => problems.add(
                "witness_refuses",
                &Say::WitnessRefuses { name: state.name },
                &Say::FindNewestFolder,
            ),
            Some(Trouble::Silent(_)) | None => {}
        }
    }
}

/// Adds limits and budgets that are used up: the next call is refused.
fn of_allowances(status: &Status, problems: &mut Problems) {
    for limit in status.limits.iter().filter(|limit| limit.left == 0) {
        let message = Say::LimitReached {
            calls: limit.calls.to_string(),
            of: limit.tool.as_deref().unwrap_or(limit.limit).to_owned(),
        };
        problems.add("limit_used_up", &message, &Say::WaitForCalls);
    }
    for budget in status.budgets.iter().filter(|budget| budget.is_used_up) {
        let name = budget.name.clone();
        let hint = match budget.resets_at {
            Some(at) => Say::FullAgain { at: at.to_string() },
            None => Say::RaiseBudget,
        };
        problems.add("budget_used_up", &Say::BudgetUsedUp { name }, &hint);
    }
}
