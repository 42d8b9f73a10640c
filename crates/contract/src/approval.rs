//! A question that a person has to answer before a call runs (A13), as inboxes show it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::envelope::Actor;
use crate::id::{RequestId, SnapshotId, ToolName};
use crate::tool::{AmountUnit, Narrowing};

/// An approval: a question to a user about one call, and its answer. It is valid once, for a short time, and only for
/// this principal, this tool, these arguments or terms, and this revision of the policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// Id of the approval; an answer names it.
    pub id: String,
    /// State of the approval.
    pub state: ApprovalState,
    /// User who has to answer.
    pub user_id: String,
    /// Actor that made the call. If there is a `principal`, the principal named this actor.
    pub actor: Actor,
    /// Holder of the credential, if it is not the actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Actor>,
    /// Name of the tool to be called.
    pub tool: ToolName,
    /// Title of the tool, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description of the tool.
    pub description: String,
    /// Arguments that the tool would get, defaults included. Approvers see all of them except declared secrets;
    /// hidden characters are written as their numbers. Other readers see placeholders for sensitive values.
    pub arguments: Value,
    /// The question in the words of the tool and the reader's language. Only for approvers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<ApprovalQuestion>,
    /// Data that the call would answer, as the tool simulated it before the question. Only for approvers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_answer: Option<Value>,
    /// Parameters that an approver may make smaller, and how.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub narrowable: Vec<Narrowing>,
    /// Maximum price, if the tool declares terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<ApprovedAmount>,
    /// Currency of the request, if it has one. The approval is not valid for another currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Time zone of the request, if it has one. The approval is not valid for another time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Id of the call that asked first.
    pub request_id: RequestId,
    /// Revision of the policy that allowed the call.
    pub policy_revision: String,
    /// Time of the question, RFC 3339.
    pub asked_at: String,
    /// Expiry of the question and of its answer, RFC 3339.
    pub expires_at: String,
    /// True if two different approvers have to say yes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub four_eyes: bool,
    /// The first approval, if two are needed and one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<ApprovalAnswer>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ApprovalAnswer>,
    /// SHA-256 of the canonical JSON of all other members except `state`, `confirmed` and `answer`. Only for
    /// approvers, while the approval is open. An answer that sends it back is valid for exactly this rendering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_digest: Option<Digest>,
}

/// The question about a call in the words of its tool, for the approver. It is bounded text to display: control
/// characters, line breaks and characters that move others are written as their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalQuestion {
    /// Title, one line.
    pub title: String,
    /// Details: what is done, to whom, for how much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<ApprovalLine>,
    /// Consequences that cannot be undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub irreversible: Vec<String>,
}

/// One line of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalLine {
    /// Label, such as `Total`.
    pub label: String,
    /// Value, such as `EUR 211.31`.
    pub value: String,
}

/// State of an approval. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Waiting for an answer.
    Pending,
    /// Approved: the call may be made once.
    Approved,
    /// Denied: the call is refused.
    Denied,
    /// Used: the call was made.
    Used,
    /// Expired: not answered, or not used, in time.
    Expired,
}

/// The two possible answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// Approve the call.
    Approve,
    /// Deny the call.
    Deny,
}

/// An answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalAnswer {
    /// Decision.
    pub decision: ApprovalDecision,
    /// Person who answered; never an agent.
    pub by: Actor,
    /// Time of the answer, RFC 3339.
    pub at: String,
    /// Reason, in the person's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Parameters that the answer made smaller. Only for approvers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub narrowed: Vec<ApprovalNarrowed>,
    /// Evidence id of the record of the answer.
    pub evidence: SnapshotId,
}

/// A parameter that an answer made smaller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalNarrowed {
    /// JSON pointer to the parameter.
    pub pointer: String,
    /// Value in the question.
    pub before: Value,
    /// Value that the tool gets.
    pub after: Value,
}

/// An amount of the arguments, with a text for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovedAmount {
    /// Amount, as a decimal.
    pub amount: String,
    /// Currency: ISO 4217, or another code that the tool accepts.
    pub currency: String,
    /// Unit of `amount`.
    #[serde(default, skip_serializing_if = "AmountUnit::is_major")]
    pub unit: AmountUnit,
    /// Text for people, whatever the unit: `EUR 12.50`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl fmt::Display for ApprovedAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            // Of a question that was asked before there were texts.
            None => write!(f, "{} {}", self.currency, self.amount),
        }
    }
}

impl ApprovalState {
    /// Every state.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Approved,
        Self::Denied,
        Self::Used,
        Self::Expired,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Used => "used",
            Self::Expired => "expired",
        }
    }

    /// Returns the state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}
