//! Who may answer a question, and the answer. An agent never may, whatever it holds and whoever it says
//! it is: what counts is the proved principal.

use countersign_contract::approval::{Approval, ApprovalDecision, ApprovalState};
use countersign_contract::{ActorType, ErrorBody, ErrorCode, FaultSource};

use super::question::{Given, Question, Standing, Writing, later};
use super::record::Event;
use super::stored::{StoredApprovals, TRIES_MAX, is_done};
use crate::ledger::{self, Commit};
use crate::principal::Principal;
use crate::redact::error_text;
use crate::scribe::Draft;
use crate::unavailable::Unavailable;
use crate::words::Say;

/// Lets a person or a system, never an agent, see and answer the questions of all users.
pub const SCOPE_ANSWER: &str = "approvals:answer";

/// The longest reason, in characters.
const REASON_CHARS_MAX: usize = 500;

/// A question could not be answered or shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none of this id, or none that this principal may know of.
    #[error("there is no approval {0:?}")]
    Unknown(String),
    /// An agent tried to answer.
    #[error("an agent cannot answer an approval; the user has to")]
    Agent,
    /// The principal may see it and not answer it.
    #[error("only the user who is asked, or somebody with the scope {SCOPE_ANSWER}, may answer")]
    NotTheirs,
    /// It is no longer open.
    #[error("the approval {id:?} is {}", state.as_str())]
    NotOpen {
        /// Which one.
        id: String,
        /// What became of it.
        state: ApprovalState,
    },
    /// The reason is too long, or holds control characters.
    #[error("a reason has at most {REASON_CHARS_MAX} characters, none of them a control character")]
    Reason,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ledger::Error),
}

impl Error {
    /// What a caller is told.
    pub fn into_body(self) -> ErrorBody {
        match self {
            Self::Unknown(id) => {
                ErrorBody::new(ErrorCode::NotFound, Say::NoApproval { id }).hint(Say::ListApprovals)
            }
            Self::Agent => ErrorBody::new(ErrorCode::Forbidden, Say::AgentCannotAnswer)
                .hint(Say::LetUserAnswer),
            Self::NotTheirs => {
                let scope = SCOPE_ANSWER.to_owned();
                ErrorBody::new(ErrorCode::Forbidden, Say::NotYoursToAnswer { scope })
                    .hint(Say::UseAskedCredential)
            }
            Self::NotOpen { id, state } => {
                let message = match state {
                    ApprovalState::Pending => Say::ApprovalPending { id },
                    ApprovalState::Approved => Say::ApprovalApproved { id },
                    ApprovalState::Denied => Say::ApprovalDenied { id },
                    ApprovalState::Used => Say::ApprovalUsed { id },
                    ApprovalState::Expired => Say::ApprovalExpired { id },
                };
                ErrorBody::new(ErrorCode::Conflict, message)
                    .hint(Say::CallAsksAnew)
                    .detail("state", state.as_str())
            }
            Self::Reason => {
                let most = REASON_CHARS_MAX.to_string();
                ErrorBody::new(ErrorCode::InvalidArgument, Say::ReasonForm { most })
                    .field("/reason")
            }
            Self::Store(error) => {
                let error = error_text(&error);
                tracing::error!(error, "approvals could not be read or written");
                ErrorBody::new(ErrorCode::UpstreamError, Say::ApprovalsUnread)
                    .source(FaultSource::Gateway)
                    .hint(Say::TryLater)
            }
        }
    }
}

impl StoredApprovals {
    /// Answers a question with yes. `by` is the proved principal.
    pub async fn approve(
        &self,
        id: &str,
        by: &Principal,
        reason: Option<&str>,
    ) -> Result<Approval, Error> {
        self.decide(id, by, ApprovalDecision::Approve, reason).await
    }

    /// Answers a question with no. The same call is then refused until the answer expires.
    pub async fn deny(
        &self,
        id: &str,
        by: &Principal,
        reason: Option<&str>,
    ) -> Result<Approval, Error> {
        self.decide(id, by, ApprovalDecision::Deny, reason).await
    }

    /// Answers a question. Answer and record are one commit.
    pub async fn decide(
        &self,
        id: &str,
        by: &Principal,
        decision: ApprovalDecision,
        reason: Option<&str>,
    ) -> Result<Approval, Error> {
        let reason = reason.filter(|reason| !reason.is_empty());
        if !reason.is_none_or(is_reason) {
            return Err(Error::Reason);
        }
        for _ in 0..TRIES_MAX {
            let (question, version) = self.visible(id, by).await?;
            check_may_answer(by, &question)?;
            let now = self.clock.now();
            let state = question.state(now);
            if state != ApprovalState::Pending {
                let id = question.id;
                return Err(Error::NotOpen { id, state });
            }
            let answered = self.write_answer(question, version, by, decision, reason);
            if let Some(answered) = answered.await? {
                self.answered.notify_waiters();
                return Ok(answered.shown_to(by, now));
            }
        }
        let busy = Unavailable::new("approvals", "the question keeps changing");
        Err(ledger::Error::from(busy).into())
    }

    /// None where the question moved underneath the answer.
    async fn write_answer(
        &self,
        question: Question,
        version: u64,
        by: &Principal,
        decision: ApprovalDecision,
        reason: Option<&str>,
    ) -> Result<Option<Question>, Error> {
        let keys = self.vault.key(&question.user_id).await?;
        let at = self.clock.now();
        let event = match decision {
            ApprovalDecision::Approve => Event::Approved,
            ApprovalDecision::Deny => Event::Denied,
        };
        let (entry, link) = self.record(&question, event, &by.actor, at, &keys);
        let given = Given {
            by: by.actor.clone(),
            at,
            reason: reason.map(str::to_owned),
            link,
        };
        let answered = Question {
            standing: match decision {
                ApprovalDecision::Approve => Standing::Approved(given),
                ApprovalDecision::Deny => Standing::Denied(given),
            },
            expires_at: later(at, question.valid_for),
            ..question
        };
        let Writing { read, write } = answered.write(&keys, version, &*self.ids);
        let commit = Commit {
            key: None,
            reads: vec![read],
            shapes: Vec::new(),
            writes: vec![write],
            spend: None,
            record: Draft::from(entry),
        };
        let is_done = is_done(&self.store.commit(commit).await?);
        Ok(is_done.then_some(answered))
    }
}

/// Whether a principal sees the questions of all users.
pub(super) fn sees_all(by: &Principal) -> bool {
    match by.actor.kind {
        ActorType::User | ActorType::System => by.holds(SCOPE_ANSWER),
        ActorType::Agent => false,
    }
}

/// Refuses a principal who may not answer a question.
pub(super) fn check_may_answer(by: &Principal, question: &Question) -> Result<(), Error> {
    let is_asked = by.actor.id == question.user_id && by.user_id == question.user_id;
    match by.actor.kind {
        ActorType::Agent => Err(Error::Agent),
        ActorType::User if is_asked => Ok(()),
        ActorType::User | ActorType::System if by.holds(SCOPE_ANSWER) => Ok(()),
        ActorType::User | ActorType::System => Err(Error::NotTheirs),
    }
}

fn is_reason(reason: &str) -> bool {
    reason.chars().count() <= REASON_CHARS_MAX && !reason.chars().any(char::is_control)
}
