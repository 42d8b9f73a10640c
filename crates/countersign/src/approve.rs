//! Whether the user has confirmed a call (A13). A confirmation counts for exactly one call: this
//! principal, this user, this tool, these arguments, once.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use countersign_contract::{Actor, Digest, RequestId, ToolName};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::BoxFuture;
use crate::ids::IdSource;
use crate::unavailable::Unavailable;

/// What a person is asked to confirm.
#[derive(Debug, Clone, PartialEq)]
pub struct Confirm {
    /// The call that asks.
    pub request_id: RequestId,
    /// Who triggered it.
    pub actor: Actor,
    /// Who has to confirm.
    pub user_id: String,
    /// What is to be called.
    pub tool: ToolName,
    /// With exactly these bound arguments.
    pub arguments_digest: Digest,
    /// The arguments for display, with every sensitive value replaced.
    pub arguments_redacted: Value,
    /// When it was asked.
    pub at: Timestamp,
}

/// Asks the user, or looks up what the user has answered.
pub trait Approver: Send + Sync + 'static {
    /// Answers at once or waits for a person; an approval that it reports is used up by that.
    fn ask<'a>(&'a self, confirm: &'a Confirm) -> BoxFuture<'a, Result<Approval, Unavailable>>;
}

/// What became of the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// The user has confirmed exactly this call.
    Approved,
    /// The user has not answered yet.
    Pending {
        /// Under which the answer is given.
        approval_id: String,
        /// How the user can answer.
        hint: String,
    },
    /// The user has declined.
    Denied,
}

/// Questions and answers in memory.
pub struct MemoryApprovals {
    ids: Arc<dyn IdSource>,
    valid_for: SignedDuration,
    questions: Mutex<HashMap<Subject, Question>>,
}

/// What a confirmation is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Subject {
    actor: Actor,
    user_id: String,
    tool: ToolName,
    arguments_digest: Digest,
}

#[derive(Debug, Clone)]
struct Question {
    approval_id: String,
    confirm: Confirm,
    answer: Option<bool>,
}

/// No open question has this id: it was never asked, it has been answered, or it is too old.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no open question {0:?}")]
pub struct UnknownApproval(pub String);

impl MemoryApprovals {
    /// Questions are open for fifteen minutes.
    pub fn new(ids: Arc<dyn IdSource>) -> Self {
        Self {
            ids,
            valid_for: SignedDuration::from_mins(15),
            questions: Mutex::default(),
        }
    }

    /// Questions, and the answers to them, hold for so long.
    pub fn valid_for(mut self, window: Duration) -> Self {
        self.valid_for = SignedDuration::try_from(window).unwrap_or(SignedDuration::MAX);
        self
    }

    /// The open questions, oldest first.
    pub fn pending(&self) -> Vec<(String, Confirm)> {
        let questions = self.lock();
        let mut open: Vec<_> = questions
            .values()
            .filter(|question| question.answer.is_none())
            .map(|question| (question.approval_id.clone(), question.confirm.clone()))
            .collect();
        open.sort_by(|(a_id, a), (b_id, b)| (a.at, a_id).cmp(&(b.at, b_id)));
        open
    }

    /// The user confirms.
    pub fn approve(&self, approval_id: &str) -> Result<(), UnknownApproval> {
        self.answer(approval_id, true)
    }

    /// The user declines.
    pub fn deny(&self, approval_id: &str) -> Result<(), UnknownApproval> {
        self.answer(approval_id, false)
    }

    fn answer(&self, approval_id: &str, approved: bool) -> Result<(), UnknownApproval> {
        self.lock()
            .values_mut()
            .find(|question| question.answer.is_none() && question.approval_id == approval_id)
            .map(|question| question.answer = Some(approved))
            .ok_or_else(|| UnknownApproval(approval_id.to_owned()))
    }

    fn look_up(&self, confirm: &Confirm) -> Approval {
        let subject = Subject {
            actor: confirm.actor.clone(),
            user_id: confirm.user_id.clone(),
            tool: confirm.tool.clone(),
            arguments_digest: confirm.arguments_digest,
        };
        let mut questions = self.lock();
        // Old questions and answers are forgotten here, which also bounds the map.
        questions.retain(|_, asked| confirm.at.duration_since(asked.confirm.at) < self.valid_for);
        let Some(approved) = questions.get(&subject).and_then(|asked| asked.answer) else {
            let question = questions.entry(subject).or_insert_with(|| Question {
                approval_id: self.ids.approval_id(),
                confirm: confirm.clone(),
                answer: None,
            });
            return Approval::Pending {
                approval_id: question.approval_id.clone(),
                hint: "let the user confirm, then send the same call again".to_owned(),
            };
        };
        // Single use, whichever way it was answered.
        questions.remove(&subject);
        if approved {
            Approval::Approved
        } else {
            Approval::Denied
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Subject, Question>> {
        self.questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryApprovals {
    /// Only how many: a question holds arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryApprovals({})", self.lock().len())
    }
}

impl Approver for MemoryApprovals {
    fn ask<'a>(&'a self, confirm: &'a Confirm) -> BoxFuture<'a, Result<Approval, Unavailable>> {
        Box::pin(std::future::ready(Ok(self.look_up(confirm))))
    }
}
