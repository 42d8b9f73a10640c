//! A question that a person has to answer before a call runs (A13), as inboxes show it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::envelope::Actor;
use crate::id::{RequestId, SnapshotId, ToolName};
use crate::tool::{AmountUnit, Narrowing};

/// One question, with what became of it. It counts for one call: this principal, this tool, these
/// arguments or terms, this revision of the policy, once, and not for long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// Under which it is answered.
    pub id: String,
    /// What became of it.
    pub state: ApprovalState,
    /// Who has to answer.
    pub user_id: String,
    /// Who asks; where there is a `principal`, only according to it.
    pub actor: Actor,
    /// Whose credential it was, where that is not who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Actor>,
    /// What is to be called.
    pub tool: ToolName,
    /// The tool's name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the tool does.
    pub description: String,
    /// The arguments that the tool would be given, defaults included. Who may answer sees all of it but declared secrets, with characters that
    /// hide or that move others written as their numbers. For everybody else every sensitive value is replaced.
    pub arguments: Value,
    /// The call in the words of its tool, in the reader's language; only for those who may answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<ApprovalQuestion>,
    /// The data that the call would answer, as the tool has simulated it before the question was asked; only for those who may answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_answer: Option<Value>,
    /// What the answer may make smaller, and in which way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub narrowable: Vec<Narrowing>,
    /// What it may cost at most, where the tool declares terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<ApprovedAmount>,
    /// The currency of the request, where it names one; an approval holds for no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The time zone of the request, where it names one; an approval holds for no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The call that asked first.
    pub request_id: RequestId,
    /// Which revision of the policy let the call come so far.
    pub policy_revision: String,
    /// When it was asked, RFC 3339.
    pub asked_at: String,
    /// Until when it can be answered, or the answer be used, RFC 3339.
    pub expires_at: String,
    /// True if two different approvers have to say yes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub four_eyes: bool,
    /// The first yes, where two are needed and one is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<ApprovalAnswer>,
    /// Who answered, and what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ApprovalAnswer>,
    /// SHA-256 of the canonical JSON of everything else here but `state`, `confirmed` and `answer`; only for those who may answer, while it is open.
    /// An answer that sends it back counts for exactly this rendering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_digest: Option<Digest>,
}

/// A call in the words of its tool, for the person who decides. It is text to display, and bounded: control characters, line breaks and
/// characters that move others are written as their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalQuestion {
    /// One line.
    pub title: String,
    /// What is done, to whom, for how much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<ApprovalLine>,
    /// What cannot be undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub irreversible: Vec<String>,
}

/// One line of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalLine {
    /// Such as `Total`.
    pub label: String,
    /// Such as `EUR 211.31`.
    pub value: String,
}

/// What became of a question. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has answered yet.
    Pending,
    /// The call may be made, once.
    Approved,
    /// The call is refused.
    Denied,
    /// The call was made.
    Used,
    /// It was not answered, or not used, in time.
    Expired,
}

/// The two answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// The call may be made.
    Approve,
    /// It may not.
    Deny,
}

/// An answer that was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalAnswer {
    /// Which one.
    pub decision: ApprovalDecision,
    /// Who gave it; never an agent.
    pub by: Actor,
    /// When, RFC 3339.
    pub at: String,
    /// Why, in their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the answer has made smaller; only for those who may answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub narrowed: Vec<ApprovalNarrowed>,
    /// The record of the answer.
    pub evidence: SnapshotId,
}

/// A parameter that an answer has made smaller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalNarrowed {
    /// JSON pointer to it.
    pub pointer: String,
    /// As it was asked.
    pub before: Value,
    /// As the tool is given it.
    pub after: Value,
}

/// An amount as it stood in the arguments, and as people read it: that is what it is displayed as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovedAmount {
    /// A decimal.
    pub amount: String,
    /// ISO 4217, or whatever the tool takes for it.
    pub currency: String,
    /// How `amount` is written.
    #[serde(default, skip_serializing_if = "AmountUnit::is_major")]
    pub unit: AmountUnit,
    /// As people read it, whatever the unit: `EUR 12.50`.
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

    /// The state of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}
