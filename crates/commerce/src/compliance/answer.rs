//! The report of a compliance check.

use countersign::contract::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::destination::Destination;
use crate::shop::Text;

/// Compliance of a basket for a destination.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct ComplianceReport {
    /// The cart that it counts for, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cart_id: Option<String>,
    /// Digest of the checked items.
    pub basket: Digest,
    /// Destination.
    pub destination: Destination,
    /// The worst decision of all lines.
    pub decision: Decision,
    /// By line of the basket.
    pub lines: Vec<ComplianceLine>,
    /// The version of the rule set, as `compliance.policy_ruleset_version` says it.
    pub ruleset_version: String,
}

/// Compliance of one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct ComplianceLine {
    /// Stock keeping unit.
    pub sku: String,
    /// Its category.
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
    /// It may.
    Allowed,
    /// It may, if the buyer or the seller does something first.
    Conditional,
    /// It may not.
    Blocked,
}

/// A rule that had something to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Finding {
    /// Which rule of the rule set.
    pub rule: String,
    /// Severity.
    pub severity: Severity,
    /// For people, in the language of the call.
    pub message: String,
    /// Possible remedies, and who can apply them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mitigations: Vec<String>,
    /// The part of it that the buyer has to agree to, in both languages because it is shown again later; empty if
    /// only others have to act.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked_of_buyer: Vec<Text>,
    /// The facts that a rule needs and that are missing; it is then blocked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The law or standard that the rule stands for; nothing where the check itself failed closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Severity of a finding.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something has to be done or acknowledged.
    Warning,
    /// It may not be sent.
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
