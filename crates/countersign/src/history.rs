//! What a conversation keeps of a call, and shows to the model again (B16).

use countersign_contract::ReplyEnvelope;
use serde::{Deserialize, Serialize};

/// One call in a conversation: asked, run, answered.
///
/// # Example
///
/// ```
/// use countersign::contract::{ReplyEnvelope, RequestId};
/// use countersign::history::HistoryEntry;
///
/// let reply = ReplyEnvelope::success(RequestId::new("req_1")?, 3.into());
/// let entry = HistoryEntry::new("call_1", "sample.count", "{}", reply);
/// assert_eq!(entry.content(), "3");
/// assert!(!entry.is_error());
/// # Ok::<(), countersign::contract::id::InvalidId>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The provider's id of the call, by which the answer finds its question.
    pub call_id: String,
    /// The tool, as the model named it.
    pub tool: String,
    /// The arguments as the model wrote them, byte for byte (B7).
    pub arguments: String,
    /// What came of it.
    pub reply: ReplyEnvelope,
}

impl HistoryEntry {
    /// Joins a question with its answer.
    pub fn new(
        call_id: impl Into<String>,
        tool: impl Into<String>,
        arguments: impl Into<String>,
        reply: ReplyEnvelope,
    ) -> Self {
        Self {
            call_id: call_id.into(),
            tool: tool.into(),
            arguments: arguments.into(),
            reply,
        }
    }

    /// Whether the model has to do something about it.
    pub fn is_error(&self) -> bool {
        !self.reply.ok
    }

    /// What the model reads: the data, or the error with its hint and issues; as JSON text.
    pub fn content(&self) -> String {
        match &self.reply.error {
            // An error body holds only texts and JSON values, which can always be written.
            Some(error) => serde_json::to_string(error).unwrap_or_else(|_| error.to_string()),
            None => self.reply.data.to_string(),
        }
    }
}
