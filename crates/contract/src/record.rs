//! Record of every call: its caller, its tool, its outcome and the time of each phase.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::envelope::Actor;
use crate::error_code::ErrorCode;
use crate::id::{RequestId, SnapshotId, ToolName};
use crate::issue::{BindStatus, Issue, IssueCode};
use crate::trace::Trace;

/// The record of one call that got past decoding, denials and errors included.
///
/// It holds digests and redacted text, never the arguments themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct CallRecord {
    /// Id of the call.
    pub request_id: RequestId,
    /// Name of the tool: the canonical name, or the name in the call if there is no such tool.
    pub tool: String,
    /// Version of the tool, if it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<String>,
    /// Actor that triggered the call.
    pub actor: Actor,
    /// User for whom the call was made.
    pub user_id: String,
    /// Id of the conversation or visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Revision of the policy that decided; `None` if the call ended earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_revision: Option<String>,
    /// The trace it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// Id of the evidence record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<SnapshotId>,
    /// Time of arrival, RFC 3339.
    pub at: String,
    /// Error code; `None` if the call succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// True for a dry run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// True if the reply was the stored one of an earlier call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Digest of the canonical JSON of the bound arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_digest: Option<String>,
    /// The bound arguments with every sensitive value replaced.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub arguments_redacted: Value,
    /// Digest of the canonical JSON of `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_digest: Option<String>,
    /// Result of binding (B19).
    pub binding: BindSummary,
    /// Time in each phase.
    pub phases: PhaseTimes,
}

/// Result of binding: a measure of the quality of a model's output (B19).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct BindSummary {
    /// Status; `None` if the call ended before binding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<BindStatus>,
    /// Number of times that each issue occurred.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub issues: BTreeMap<IssueCode, u32>,
}

impl BindSummary {
    /// Counts the issues of a bound call.
    pub fn new(status: BindStatus, issues: &[Issue]) -> Self {
        let mut counts = BTreeMap::new();
        for issue in issues {
            *counts.entry(issue.code).or_insert(0) += 1;
        }
        Self {
            status: Some(status),
            issues: counts,
        }
    }

    /// True if the binder changed something, so that the call could run.
    pub fn is_repaired(&self) -> bool {
        match self.status {
            Some(BindStatus::Repaired) => true,
            Some(BindStatus::Exact | BindStatus::Incomplete | BindStatus::Refused) | None => false,
        }
    }
}

/// Time that a call spent in each phase. Waiting for a person is a phase of its own: without it an unanswered
/// question looks like a slow tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct PhaseTimes {
    /// From arrival until the tool could start: look-up, policy, binding, claim.
    pub queued_us: u64,
    /// Waiting for the user's decision.
    pub awaiting_approval_us: u64,
    /// Inside the tool.
    pub executing_us: u64,
    /// Recording and committing.
    pub settling_us: u64,
}

impl PhaseTimes {
    /// Duration of the call in microseconds, without waiting for a person.
    pub const fn worked_us(&self) -> u64 {
        self.queued_us
            .saturating_add(self.executing_us)
            .saturating_add(self.settling_us)
    }
}

/// Fields of a record for a log line or a span: names and values, nothing sensitive.
impl CallRecord {
    /// The record as flat fields for telemetry, in a fixed order.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("request_id", self.request_id.to_string()),
            ("tool", self.tool.clone()),
            ("code", self.code.map_or("OK", ErrorCode::as_str).to_owned()),
            ("queued_us", self.phases.queued_us.to_string()),
            (
                "awaiting_approval_us",
                self.phases.awaiting_approval_us.to_string(),
            ),
            ("executing_us", self.phases.executing_us.to_string()),
            ("settling_us", self.phases.settling_us.to_string()),
        ];
        for (code, count) in &self.binding.issues {
            fields.push((code.as_str(), count.to_string()));
        }
        fields
    }

    /// The canonical tool name, where the tool was found.
    pub fn tool_name(&self) -> Option<ToolName> {
        self.tool_version
            .as_ref()
            .and_then(|_| ToolName::new(&self.tool).ok())
    }
}
