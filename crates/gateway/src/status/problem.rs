//! Problems, in the order of their severity.

use std::time::Duration;

use serde::Serialize;

use super::{Status, View};
use crate::gateway::Gateway;
use crate::metrics::Stored;

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

impl Problem {
    fn new(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: hint.into(),
        }
    }
}

/// Returns the problems of everyone, then of operators, then of the caller.
pub(super) fn found(
    gateway: &Gateway,
    stored: Option<Stored>,
    status: &Status,
    view: View,
) -> Vec<Problem> {
    let mut problems = for_everybody(gateway, stored);
    if view == View::Operator {
        problems.extend(for_operators(stored, status));
    }
    problems.extend(of_allowances(status));
    problems
}

fn for_everybody(gateway: &Gateway, stored: Option<Stored>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let health = gateway.health();
    if health.is_draining() {
        let hint = "send calls to another server";
        problems.push(Problem::new("stopping", "the server is stopping", hint));
    }
    match stored {
        None => problems.push(Problem::new(
            "store_silent",
            "the store does not answer",
            "the server's log says why; calls are refused until it answers",
        )),
        Some(stored) if !stored.vitals.is_writable => problems.push(Problem::new(
            "store_read_only",
            "the store refuses writes",
            "make room on its disk, or make its database writable; reads still work",
        )),
        Some(_) => {}
    }
    if health.is_log_stopped() {
        problems.push(Problem::new(
            "signing_stopped",
            "the evidence log is no longer signed",
            "the server's log says why; `countersign verify --all` names what is wrong",
        ));
    }
    problems
}

fn for_operators(stored: Option<Stored>, status: &Status) -> Vec<Problem> {
    let mut problems = Vec::new();
    let policy = &status.policy;
    if let (Some(false), Some(rejected)) = (policy.is_file_in_force, &policy.rejected) {
        let place = match (rejected.line, rejected.column) {
            (0, _) => String::new(),
            (line, column) => format!("line {line}, column {column}: "),
        };
        problems.push(Problem::new(
            "policy_rejected",
            format!(
                "the policy file was rejected: {place}{}; {} stays in force",
                rejected.message, policy.revision
            ),
            "correct the file; `countersign serve --policy FILE --check` checks it",
        ));
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
        let (key, message) = (&refused.key, &refused.message);
        problems.push(Problem::new(
            "config_refused",
            format!(
                "the configuration was rejected: {place}: {key}: {message}; the earlier one stays in force"
            ),
            format!("correct it; `countersign lint {}` checks it", config.file),
        ));
    }
    problems.extend(stored.iter().flat_map(of_store));
    problems
}

/// Returns what is wrong with the store: signing, clock, calls in doubt.
fn of_store(stored: &Stored) -> Vec<Problem> {
    let mut problems = Vec::new();
    let unsigned = stored.unsigned();
    if unsigned > 0 && stored.checkpoint_age > SIGNED_WITHIN {
        problems.push(Problem::new(
            "signing_late",
            format!(
                "{unsigned} records wait for a signature, and the newest checkpoint is {} seconds old",
                stored.checkpoint_age.as_secs()
            ),
            "the server's log says why signing fails",
        ));
    }
    if let Some(passage) = stored
        .vitals
        .passage
        .filter(|passage| passage.jump().is_some())
    {
        problems.push(Problem::new(
            "clock_jumped",
            format!("{passage}; nothing that is past its time is removed"),
            "set the clock; if it is right, `countersign store trust-clock` says so",
        ));
    }
    if stored.vitals.in_doubt > 0 {
        problems.push(Problem::new(
            "calls_in_doubt",
            format!(
                "calls in doubt, whose effect may or may not have happened: {}",
                stored.vitals.in_doubt
            ),
            "`countersign claims list --state in_doubt` lists them, `countersign claims resolve` settles one",
        ));
    }
    problems
}

/// Returns limits and budgets that are used up: the next call is refused.
fn of_allowances(status: &Status) -> Vec<Problem> {
    let limits = status.limits.iter().filter(|limit| limit.left == 0);
    let limits = limits.map(|limit| {
        let of = limit.tool.as_deref().unwrap_or(limit.limit);
        let message = format!(
            "the rate limit of {} calls for {of} is reached",
            limit.calls
        );
        Problem::new(
            "limit_used_up",
            message,
            "wait; calls become available evenly over time",
        )
    });
    let budgets = status.budgets.iter().filter(|budget| budget.is_used_up);
    let budgets = budgets.map(|budget| {
        let message = format!("the budget {} is used up", budget.name);
        let hint = match budget.resets_at {
            Some(at) => format!("it is full again at {at}"),
            None => "the operator has to raise it in the policy".to_owned(),
        };
        Problem::new("budget_used_up", message, hint)
    });
    limits.chain(budgets).collect()
}
