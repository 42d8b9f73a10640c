//! Answers, and the principals who may give them. An agent never may, with any scope and any claimed name: the proved
//! principal counts.

use std::collections::BTreeMap;

use countersign_args::{Binder, Reading};
use countersign_contract::approval::{Approval, ApprovalDecision, ApprovalState};
use countersign_contract::{
    ActorType, BindStatus, Digest, ErrorBody, ErrorCode, FaultSource, Issue, Language,
};
use serde_json::{Value, json};

use super::narrow::{self, Cut};
use super::question::{Given, Proof, Question, Standing, later};
use super::record::{Event, Shown};
use super::stored::{KIND, StoredApprovals};
use crate::consent::{NotAllowed, REASON_CHARS_MAX, TRIES_MAX, check_may_decide, is_reason, unit};
use crate::executor::refusal_of;
use crate::ledger;
use crate::principal::Principal;
use crate::redact::error_text;
use crate::state::document::Stamp;
use crate::words::Say;

/// Scope that lets a person or a system, never an agent, see and answer the questions of all users.
pub const SCOPE_ANSWER: &str = "approvals:answer";

/// An answer as a person gives it.
///
/// # Example
///
/// ```
/// use countersign::approve::Response;
///
/// let no = Response::deny().because(Some("not this month"));
/// assert!(no.shown_digest.is_none());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The decision.
    pub decision: ApprovalDecision,
    /// The reason.
    pub reason: Option<String>,
    /// The `shown_digest` of what the person was shown. The answer then counts for that rendering only.
    ///
    /// It may be left out, because a question never changes under its id: another question has another id.
    pub shown_digest: Option<Digest>,
    /// Smaller values for arguments, by JSON pointer, as far as the tool declares it: the call runs with these. Only
    /// with an approval.
    pub narrowed: BTreeMap<String, Value>,
    /// The language of the approval that is answered with; without a `shown_digest` also the language of what was
    /// shown, for the record.
    pub language: Language,
}

impl Response {
    /// An approval.
    pub const fn approve() -> Self {
        Self::new(ApprovalDecision::Approve)
    }

    /// A denial.
    pub const fn deny() -> Self {
        Self::new(ApprovalDecision::Deny)
    }

    /// An answer with this decision.
    pub const fn new(decision: ApprovalDecision) -> Self {
        Self {
            decision,
            reason: None,
            shown_digest: None,
            narrowed: BTreeMap::new(),
            language: Language::English,
        }
    }

    /// Adds a reason; an empty one counts as none.
    pub fn because(mut self, reason: Option<&str>) -> Self {
        self.reason = reason
            .filter(|reason| !reason.is_empty())
            .map(str::to_owned);
        self
    }

    /// Binds the answer to the rendering with this digest.
    pub fn to(mut self, shown_digest: Option<Digest>) -> Self {
        self.shown_digest = shown_digest;
        self
    }
}

/// Errors of answering or showing a question.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no approval with this id that this principal may see. Usually the id is mistyped, or the approval was
    /// removed a day after it expired.
    #[error("there is no approval {0:?}")]
    Unknown(String),
    /// An agent tried to answer. Usually a program uses the agent's key where the user's belongs.
    #[error("an agent cannot answer an approval; the user has to")]
    Agent,
    /// The principal may see the question, but not answer it. Usually a credential of another user, without the scope.
    #[error("only the user who is asked, or an approver with the scope {SCOPE_ANSWER}, may answer")]
    NotTheirs,
    /// The first of two approvers tried to be the second as well. Usually one person has answered twice.
    #[error("the second approver has to be a different person")]
    SameApprover,
    /// The caller tried to be one of the two approvers.
    /// Usually the user of the call answers, although two others have to.
    #[error("the caller cannot be one of the two approvers")]
    Asker,
    /// The answer is for another rendering than the current one. Usually the first of two approvers has narrowed the
    /// call meanwhile.
    #[error("the answer is for another rendering of the approval")]
    OtherRendering,
    /// The tool does not declare that this parameter may be made smaller, or the value is not a smaller one.
    /// Usually the approver has entered a larger value than was asked for.
    #[error(
        "{pointer:?} cannot be changed so: an answer may only make smaller what the tool declares"
    )]
    NotNarrower {
        /// JSON pointer to the parameter.
        pointer: String,
        /// True if the tool declares the parameter, and the value is not a smaller one.
        is_declared: bool,
    },
    /// The tool's declaration does not accept the narrowed arguments.
    /// Usually a smaller value is below the declared minimum.
    #[error("the tool does not accept the narrowed arguments: {}", .0.message)]
    Narrowed(Box<ErrorBody>),
    /// Arguments cannot be narrowed, because this process does not know the tool as it was declared when it was asked
    /// about.
    #[error(
        "arguments cannot be narrowed here, because the tool is not known as it was asked about"
    )]
    NoCatalog,
    /// The question is no longer open: it was answered, or it has expired. Usually another approver was faster.
    #[error("the approval {id:?} is {}", state.as_str())]
    NotOpen {
        /// Id of the approval.
        id: String,
        /// State of the approval.
        state: ApprovalState,
    },
    /// The reason is too long, or holds control characters. Usually a whole message was pasted.
    #[error("a reason has at most {REASON_CHARS_MAX} characters, none of them a control character")]
    Reason,
    /// The store failed. Usually the database cannot be reached, or the disk is full.
    #[error(transparent)]
    Store(#[from] ledger::Error),
}

impl From<NotAllowed> for Error {
    fn from(not: NotAllowed) -> Self {
        match not {
            NotAllowed::Agent => Self::Agent,
            NotAllowed::NotTheirs => Self::NotTheirs,
        }
    }
}

impl Error {
    /// The error for the caller.
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
            Self::SameApprover => {
                ErrorBody::new(ErrorCode::Forbidden, Say::SameApprover).hint(Say::SecondApprover {
                    scope: SCOPE_ANSWER.to_owned(),
                })
            }
            Self::Asker => {
                let scope = SCOPE_ANSWER.to_owned();
                ErrorBody::new(ErrorCode::Forbidden, Say::AskerCannotAnswer)
                    .hint(Say::SecondApprover { scope })
            }
            Self::OtherRendering => ErrorBody::new(ErrorCode::Conflict, Say::OtherRendering)
                .field("/shown_digest")
                .hint(Say::LookAgain),
            Self::NotNarrower {
                pointer,
                is_declared,
            } => {
                let message = if is_declared {
                    Say::NotNarrower {
                        pointer: pointer.clone(),
                    }
                } else {
                    Say::NotNarrowable {
                        pointer: pointer.clone(),
                    }
                };
                ErrorBody::new(ErrorCode::InvalidArgument, message)
                    .field("/narrowed")
                    .hint(Say::NarrowOnly)
                    .detail("pointer", pointer)
            }
            Self::Narrowed(body) => *body,
            Self::NoCatalog => ErrorBody::new(ErrorCode::Conflict, Say::NarrowElsewhere)
                .field("/narrowed")
                .hint(Say::CallAsksAnew),
            Self::NotOpen { id, state } => not_open(id, state),
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

fn not_open(id: String, state: ApprovalState) -> ErrorBody {
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

impl StoredApprovals {
    /// Answers a question with yes. `by` is the proved principal.
    pub async fn approve(
        &self,
        id: &str,
        by: &Principal,
        reason: Option<&str>,
    ) -> Result<Approval, Error> {
        let yes = Response::approve().because(reason);
        self.decide(id, by, &yes).await
    }

    /// Answers a question with no. The same call is then refused until the answer expires.
    pub async fn deny(
        &self,
        id: &str,
        by: &Principal,
        reason: Option<&str>,
    ) -> Result<Approval, Error> {
        let no = Response::deny().because(reason);
        self.decide(id, by, &no).await
    }

    /// Answers a question. Answer and record are one commit. A refused attempt is recorded, too.
    pub async fn decide(
        &self,
        id: &str,
        by: &Principal,
        response: &Response,
    ) -> Result<Approval, Error> {
        let decided = self.decide_open(id, by, response).await;
        if let Err(error) = &decided {
            self.note_refusal(id, by, error).await;
        }
        decided
    }

    async fn decide_open(
        &self,
        id: &str,
        by: &Principal,
        response: &Response,
    ) -> Result<Approval, Error> {
        if !response.reason.as_deref().is_none_or(is_reason) {
            return Err(Error::Reason);
        }
        for _ in 0..TRIES_MAX {
            let (question, version) = self.visible(id, by).await?;
            check_may_decide(by, &question.user_id)?;
            let now = self.believed.now().await?;
            let state = question.state(now);
            if state != ApprovalState::Pending {
                let id = question.id;
                return Err(Error::NotOpen { id, state });
            }
            check_is_another(by, &question, response.decision)?;
            let shown = shown(&question, response)?;
            let cuts = self.cuts_of(&question, response)?;
            let given = (response, shown, cuts);
            let answered = self.write_answer((question, version), by, given);
            if let Some(answered) = answered.await? {
                self.answered.notify_waiters();
                return Ok(answered.shown_to(by, now, shown.language));
            }
        }
        Err(KIND.busy().into())
    }

    /// Writes the answer. `None` if the question changed meanwhile.
    async fn write_answer(
        &self,
        (question, version): (Question, u64),
        by: &Principal,
        (response, shown, cuts): (&Response, Shown, Vec<Cut>),
    ) -> Result<Option<Question>, Error> {
        let keys = self.vault.key(&question.user_id).await?;
        let at = self.clock.now();
        let is_first_of_two = question.four_eyes && question.first.is_none();
        let event = match response.decision {
            ApprovalDecision::Approve if is_first_of_two => Event::Confirmed,
            ApprovalDecision::Approve => Event::Approved,
            ApprovalDecision::Deny => Event::Denied,
        };
        let stamp = [Stamp::to_come(&keys, &question.place(&keys), version)];
        let how = (shown, &*cuts, &stamp[..]);
        let (entry, link) = self.record_shown(&question, event, &by.actor, at, &keys, how);
        let given = Given {
            by: by.actor.clone(),
            at,
            reason: response.reason.clone(),
            link,
            cuts,
            proof: Some(Proof::of(by)),
        };
        let expires_at = later(at, question.valid_for);
        let answered = match response.decision {
            // The second has as long as the first had.
            ApprovalDecision::Approve if is_first_of_two => Question {
                first: Some(given),
                ..question
            },
            ApprovalDecision::Approve => Question {
                standing: Standing::Approved(given),
                expires_at,
                ..question
            },
            ApprovalDecision::Deny => Question {
                standing: Standing::Denied(given),
                expires_at,
                ..question
            },
        };
        let commit = unit([answered.write(&keys, version, &*self.ids)], entry);
        let is_done = self.shelf().commit(&answered.user_id, commit).await?;
        Ok(is_done.then_some(answered))
    }

    /// The cuts that an answer makes. The remaining arguments are bound again, as if the agent had sent them.
    fn cuts_of(&self, question: &Question, response: &Response) -> Result<Vec<Cut>, Error> {
        let before = question.cuts();
        if response.narrowed.is_empty() {
            return Ok(before.to_vec());
        }
        let not_narrower = |pointer: String, is_declared| Error::NotNarrower {
            pointer,
            is_declared,
        };
        let first = response.narrowed.keys().next().cloned().unwrap_or_default();
        let asked = match (&question.arguments, response.decision) {
            (Some(asked), ApprovalDecision::Approve) => asked,
            (Some(_), ApprovalDecision::Deny) | (None, _) => return Err(not_narrower(first, true)),
        };
        let cuts = narrow::cuts(&question.narrowable, asked, before, &response.narrowed);
        let cuts = cuts.map_err(|not| not_narrower(not.pointer, not.is_declared))?;
        let entry = self
            .catalog
            .as_ref()
            .and_then(|catalog| catalog.get(question.tool.as_str()));
        let entry = entry.filter(|entry| entry.digest() == question.definition);
        let entry = entry.ok_or(Error::NoCatalog)?;
        let text = narrow::narrowed(&asked.to_string(), &cuts);
        let text = text.ok_or_else(|| not_narrower(first, true))?;
        check_is_accepted(entry.binder(), &text, asked, response.language)?;
        Ok(cuts)
    }
}

/// Refuses narrowed arguments that the declaration does not accept as they are. A secret is not
/// checked, because the approver does not see its value.
fn check_is_accepted(
    binder: &Binder,
    text: &str,
    asked: &Value,
    language: Language,
) -> Result<(), Error> {
    let locale = match language {
        Language::English => "en",
        Language::Chinese => "zh",
    };
    let bound = binder.bind_with(text, &Reading::new(Some(locale), None));
    let is_hidden = |issue: &Issue| asked.pointer(&issue.path) == Some(&json!("[secret]"));
    let issues: Vec<Issue> = bound
        .issues
        .into_iter()
        .filter(|issue| !is_hidden(issue))
        .collect();
    let is_accepted = bound.status == BindStatus::Exact || issues.is_empty();
    if is_accepted {
        return Ok(());
    }
    Err(Error::Narrowed(Box::new(refusal_of(issues))))
}

/// Refuses an approval that would make one person both approvers, or make the caller one of them. A denial needs no
/// second person.
fn check_is_another(
    by: &Principal,
    question: &Question,
    decision: ApprovalDecision,
) -> Result<(), Error> {
    match decision {
        ApprovalDecision::Deny => return Ok(()),
        ApprovalDecision::Approve if !question.four_eyes => return Ok(()),
        ApprovalDecision::Approve => {}
    }
    let is_asked = by.actor.kind == ActorType::User && by.actor.id == question.user_id;
    if !is_asked && [&question.actor, &question.principal].contains(&&by.actor) {
        return Err(Error::Asker);
    }
    if question.has_answered(by) {
        return Err(Error::SameApprover);
    }
    Ok(())
}

/// The rendering that the approver saw.
fn shown(question: &Question, response: &Response) -> Result<Shown, Error> {
    match response.shown_digest {
        // Somebody has changed the arguments under this id, so it has to be said which were seen.
        None if !question.cuts().is_empty() => Err(Error::OtherRendering),
        None => Ok(Shown {
            language: response.language,
            is_checked: false,
        }),
        Some(digest) => {
            let language = question.language_of(digest);
            language
                .map(|language| Shown {
                    language,
                    is_checked: true,
                })
                .ok_or(Error::OtherRendering)
        }
    }
}
