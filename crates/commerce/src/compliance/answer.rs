//! The report of a compliance check.

use countersign::contract::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::destination::Destination;
use crate::shop::Text;

/// Compliance of a basket for a destination.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct ComplianceReport {
    /// Id of the cart that the answer is valid for, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cart_id: Option<String>,
    /// Digest of the checked items.
    pub basket: Digest,
    /// Destination.
    pub destination: Destination,
    /// Decision for the basket: the worst of all lines.
    pub decision: Decision,
    /// Decision by item.
    pub lines: Vec<ComplianceLine>,
    /// Version of the rule set, as in `compliance.policy_ruleset_version`.
    pub ruleset_version: String,
}

/// Compliance of one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct ComplianceLine {
    /// Stock keeping unit.
    pub sku: String,
    /// Category of the item.
    pub category: String,
    /// Decision.
    pub decision: Decision,
    /// Findings; empty if the item is allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

/// Compliance decision, ordered from good to bad.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The item may be shipped.
    Allowed,
    /// The item may be shipped if the buyer or the seller meets a condition first.
    Conditional,
    /// The item may not be shipped.
    Blocked,
}

/// A rule that applies to the item, and its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Finding {
    /// Id of the rule.
    pub rule: String,
    /// Severity.
    pub severity: Severity,
    /// Message for people, in the language of the call.
    pub message: String,
    /// Possible remedies, with the party that can apply each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mitigations: Vec<String>,
    /// Text that the buyer has to agree to, in both languages because it is shown again later; empty if only other parties have to act.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked_of_buyer: Vec<Text>,
    /// Facts that the rule needs but the call did not give. The item is blocked until they are given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Law or standard behind the rule; missing if the check itself failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Severity of a finding.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For information only.
    Info,
    /// An action or an acknowledgement is required.
    Warning,
    /// The item may not be shipped.
    Block,
}

impl Decision {
    /// The decision by the worst finding.
    pub fn of(findings: &[Finding]) -> Self {
        let worst = findings.iter().map(|finding| finding.severity).max();
        match worst {
            None | Some(Severity::Info) => Self::Allowed,
            Some(Severity::Warning) => Self::Conditional,
            Some(Severity::Block) => Self::Blocked,
        }
    }
}
