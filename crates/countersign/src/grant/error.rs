//! Errors of making, showing and revoking grants.

use std::fmt;

use countersign_contract::{ErrorBody, ErrorCode, FaultSource};

use super::Wrong;
use crate::approve::SCOPE_ANSWER;
use crate::consent::{NotAllowed, REASON_CHARS_MAX};
use crate::ledger;
use crate::redact::error_text;
use crate::words::Say;

/// Errors of making, showing or revoking a grant.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No grant that this principal may see has this id. Usually the id is mistyped.
    #[error("there is no grant {0:?}")]
    Unknown(String),
    /// An agent tried to make or revoke a grant. Usually a program uses the agent's key where the user's belongs.
    #[error("an agent cannot make or revoke a grant; the user has to")]
    Agent,
    /// The principal may not make or revoke this grant. Usually a credential of another user, without the scope.
    #[error(
        "only the user, or an approver with the scope {SCOPE_ANSWER}, may make or revoke a grant"
    )]
    NotTheirs,
    /// A member of the grant cannot be used. Usually it is empty, too large or in the past.
    #[error("{field} of the grant cannot be used: {rule}")]
    Invalid {
        /// JSON pointer to the member.
        field: String,
        /// The rule that it breaks.
        rule: Rule,
    },
    /// The condition is wrong. Usually it names a parameter that one of the tools does not have.
    #[error("the condition is wrong at column {}: {wrong}", wrong.offset + 1)]
    Condition {
        /// The mistake.
        wrong: Wrong,
    },
    /// The grant would allow more than the one that it is derived from. Usually it ends later.
    #[error("{field} of the grant is wider than that of its parent")]
    Wider {
        /// JSON pointer to the member.
        field: &'static str,
    },
    /// The user has too many grants in force for this agent. Usually each call got one of its own.
    #[error("there are {most} grants of the user for this agent already")]
    TooMany {
        /// Maximum number.
        most: usize,
    },
    /// The reason is too long, or holds control characters. Usually a whole message was pasted.
    #[error("a reason has at most {REASON_CHARS_MAX} characters, none of them a control character")]
    Reason,
    /// The store failed. Usually the database cannot be reached, or the disk is full.
    #[error(transparent)]
    Store(#[from] ledger::Error),
}

/// Rules for the members of a grant. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The user is named by a visible id.
    User,
    /// A grant is given to an agent or a system.
    Agent,
    /// A grant has some tools, each once.
    Tools,
    /// The tool has to exist.
    Tool,
    /// The end is a moment in the future.
    Until,
    /// At least one call.
    Calls,
    /// An amount of a currency, above zero.
    Amount,
    /// The place of the amount in the arguments.
    AmountAt,
    /// The parent is a grant in force of the same user, at most seven derivations away from the first.
    Parent,
    /// A condition needs a language.
    NoLanguage,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => {
                "it has to be the id of a user"
            }
            Self::Agent => {
                "it has to be an agent or a system"
            }
            Self::Tools => {
                "a grant has 1 to 32 tools, each once"
            }
            Self::Tool => {
                "there is no such tool"
            }
            Self::Until => {
                "it has to be a time in RFC 3339, in the future and at most 366 days away"
            }
            Self::Calls => {
                "it has to be 1 or more"
            }
            Self::Amount => {
                "it has to be an amount above zero in a currency, such as 200.00 and EUR"
            }
            Self::AmountAt => {
                "it has to be a JSON pointer to a parameter that every tool has; without one every tool has to declare terms"
            }
            Self::Parent => {
                "it has to be an active grant of the same user, at most 7 levels deep"
            }
            Self::NoLanguage => {
                "conditions cannot be read here"
            }
        })
    }
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
    pub(super) fn invalid(field: impl Into<String>, rule: Rule) -> Self {
        let field = field.into();
        Self::Invalid { field, rule }
    }

    /// The error for the caller.
    pub fn into_body(self) -> ErrorBody {
        match self {
            Self::Unknown(id) => {
                ErrorBody::new(ErrorCode::NotFound, Say::NoGrant { id }).hint(Say::ListGrants)
            }
            Self::Agent => {
                ErrorBody::new(ErrorCode::Forbidden, Say::AgentCannotGrant).hint(Say::LetUserGrant)
            }
            Self::NotTheirs => {
                let scope = SCOPE_ANSWER.to_owned();
                ErrorBody::new(ErrorCode::Forbidden, Say::NotYoursToGrant { scope })
                    .hint(Say::LetUserGrant)
            }
            Self::Invalid { field, rule } => {
                let message = match rule {
                    Rule::User => Say::GrantUser,
                    Rule::Agent => Say::GrantAgent,
                    Rule::Tools => Say::GrantTools,
                    Rule::Tool => Say::GrantTool,
                    Rule::Until => Say::GrantUntil,
                    Rule::Calls => Say::GrantCalls,
                    Rule::Amount => Say::GrantAmount,
                    Rule::AmountAt => Say::GrantAmountAt,
                    Rule::Parent => Say::GrantParent,
                    Rule::NoLanguage => Say::GrantNoLanguage,
                };
                ErrorBody::new(ErrorCode::InvalidArgument, message).field(field)
            }
            Self::Condition { wrong } => {
                let column = (wrong.offset + 1).to_string();
                let problem = wrong.message;
                ErrorBody::new(
                    ErrorCode::InvalidArgument,
                    Say::GrantCondition { column, problem },
                )
                .field("/when")
                .detail("offset", wrong.offset)
            }
            Self::Wider { field } => ErrorBody::new(ErrorCode::InvalidArgument, Say::GrantWider)
                .field(field)
                .hint(Say::GrantNarrower),
            Self::TooMany { most } => {
                let count = most.to_string();
                ErrorBody::new(ErrorCode::Conflict, Say::TooManyGrants { count })
                    .hint(Say::RevokeGrants)
            }
            Self::Reason => {
                let most = REASON_CHARS_MAX.to_string();
                ErrorBody::new(ErrorCode::InvalidArgument, Say::ReasonForm { most })
                    .field("/reason")
            }
            Self::Store(error) => {
                let error = error_text(&error);
                tracing::error!(error, "grants could not be read or written");
                ErrorBody::new(ErrorCode::UpstreamError, Say::GrantsUnread)
                    .source(FaultSource::Gateway)
                    .hint(Say::TryLater)
            }
        }
    }
}
