//! `POST /v1/evidence/{id}/replay`: verifies a recorded call, or computes it again and compares.

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use countersign::contract::{ErrorCode, SnapshotId};
use countersign::denials::Denial;
use countersign::replay::{self, RulesAt};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{self, Kind, Refusal};
use super::{body, evidence};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::strict;
use crate::words::Say;

/// Request of a replay.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Wanted {
    mode: Mode,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// Checks that the stored content is what was recorded.
    Verify,
    /// Computes the answer again, with the rules of the record.
    #[default]
    Recompute,
    /// Computes the answer by the rules in force.
    InForce,
}

/// Result of a replay.
#[derive(Serialize)]
struct Outcome {
    evidence: SnapshotId,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    result: &'static str,
    differences: Vec<Difference>,
}

#[derive(Serialize)]
struct Difference {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    computed: Option<Value>,
}

pub(super) async fn replay(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
    body: Body,
) -> Result<Response, Refusal> {
    let id = evidence::find_for("replay", &gateway, &caller, id).await?;
    let body = body::read(body, gateway.settings()).await?;
    let wanted = if body.is_empty() {
        Ok(Wanted::default())
    } else {
        strict::from_slice(&body)
    };
    let Ok(Wanted { mode }) = wanted else {
        let message = Say::NotAMode;
        return Err(Refusal::new(ErrorCode::InvalidArgument, message)
            .field("/mode")
            .hint(Say::SendMode));
    };
    let principal = (*caller.principal).clone();
    let replayer = match gateway.archive().replayer(principal) {
        Ok(replayer) => replayer,
        Err(error) => {
            let denial = Denial::new("replay", &caller.principal, "missing_scope");
            let denials = gateway.archive().denials();
            denials.note(denial.about(id.as_str())).await;
            return Err(error.into());
        }
    };
    let at = match mode {
        Mode::Verify => {
            let verified = replayer.verify(&id).await?;
            return Ok(answer::json(&Outcome {
                evidence: id,
                tool: None,
                result: if verified.is_intact() {
                    "intact"
                } else {
                    "broken"
                },
                differences: listed(verified.breaches.into_iter().map(replay::Difference::from)),
            }));
        }
        Mode::Recompute => RulesAt::Recorded,
        Mode::InForce => RulesAt::InForce,
    };
    let executor = gateway.executor();
    let target = replayer.local(executor.catalog().clone(), executor.rules().clone(), at);
    let done = replayer.replay(&id, &target).await?;
    Ok(answer::json(&Outcome {
        evidence: done.id,
        tool: done.tool,
        result: done.verdict.as_str(),
        differences: listed(done.verdict.into_differences()),
    }))
}

impl From<replay::Difference> for Difference {
    fn from(one: replay::Difference) -> Self {
        Self {
            path: one.path,
            recorded: one.recorded,
            computed: one.computed,
        }
    }
}

fn listed(differences: impl IntoIterator<Item = replay::Difference>) -> Vec<Difference> {
    differences.into_iter().map(Difference::from).collect()
}

impl From<replay::Error> for Refusal {
    fn from(error: replay::Error) -> Self {
        match &error {
            replay::Error::NotAllowed => {
                Self::new(ErrorCode::Forbidden, error.to_string()).hint(Say::UseScope {
                    scope: replay::SCOPE.to_string(),
                })
            }
            replay::Error::NoSuchRecord { id } => answer::not_found(Kind::Record, id.as_str()),
            replay::Error::Store(_) | replay::Error::Aborted(_) => answer::gateway_failed(&error),
        }
    }
}
