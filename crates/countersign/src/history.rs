//! History: the calls that a conversation keeps and shows to the model again (B16).

use countersign_args::Arguments;
use countersign_contract::{Issue, IssueCode, Language, ReplyEnvelope, Warning};
use serde::{Deserialize, Serialize};

use crate::dialect::{ProviderCall, text};
use crate::executor::without_declaration;

/// One call in a conversation: asked, run, answered.
///
/// # Example
///
/// ```
/// use countersign::contract::{ReplyEnvelope, RequestId};
/// use countersign::history::HistoryEntry;
///
/// let reply = ReplyEnvelope::success(RequestId::new("req_1")?, 3.into());
/// let entry = HistoryEntry::new("call_1", "sample_count", "{}", reply);
/// assert_eq!(entry.content(), "3");
/// assert!(!entry.is_error());
/// # Ok::<(), countersign::contract::id::InvalidId>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The provider's id of the call, by which the answer finds its question.
    pub call_id: String,
    /// The tool, as the model named it: in front of a provider, its alias.
    pub tool: String,
    /// The arguments as the model wrote them, byte for byte (B7).
    pub arguments: String,
    /// The arguments as they were parsed without a declaration: of an unknown tool, and of one that declares
    /// nothing (B8). `None` if the tool has a declaration, or if no arguments were found in the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parsed: Option<Arguments>,
    /// The reply.
    pub reply: ReplyEnvelope,
}

impl HistoryEntry {
    /// Joins a call with its reply.
    pub fn new(
        call_id: impl Into<String>,
        tool: impl Into<String>,
        arguments: impl Into<String>,
        reply: ReplyEnvelope,
    ) -> Self {
        let mut entry = Self {
            call_id: call_id.into(),
            tool: tool.into(),
            arguments: arguments.into(),
            parsed: None,
            reply,
        };
        let missing = |issue: &Issue| issue.code == IssueCode::ToolDefinitionMissing;
        if entry.issues().any(missing) {
            entry.parsed = without_declaration(&entry.arguments, Language::default()).arguments;
        }
        entry
    }

    /// True if the call failed, so that the model has to react.
    pub fn is_error(&self) -> bool {
        !self.reply.ok
    }

    /// The text for the model: the data and the notes about it, or the error and the next step. Every dialect that
    /// sends one text sends this one.
    pub fn content(&self) -> String {
        text::whole(&self.reply)
    }

    /// The binder's changes, or the issues for which it refused (B19).
    pub fn issues(&self) -> impl Iterator<Item = &Issue> {
        let refused = self.reply.error.iter().flat_map(|e| &e.details.issues);
        let changed = self
            .reply
            .warnings
            .iter()
            .filter_map(|warning| match warning {
                Warning::Issue(issue) => Some(issue),
                Warning::Remark { .. } => None,
            });
        refused.chain(changed)
    }
}

impl From<(ProviderCall, ReplyEnvelope)> for HistoryEntry {
    /// A provider's call that has been answered.
    fn from((call, reply): (ProviderCall, ReplyEnvelope)) -> Self {
        Self::new(call.id_or_place(), call.name, call.arguments.text, reply)
    }
}
