//! Approvals: a user's confirmation of a call (A13).
//!
//! A confirmation is a document in the store. It counts for exactly one call: this principal, this user, this tool as
//! it is declared, these bound arguments (or declared [terms](crate::contract::tool::Terms)), this revision of the
//! policy, once, and not for long. The questions are stored, so a restart loses none.
//!
//! ```text
//!            approve                 commit of the effect, or durably before it
//!  pending ───────────► approved ─────────────────────────────────────────────► used
//!     │                     │
//!     │ deny                └────────────┐ time
//!     ├───────► denied ────────────────► expired ──► removed a day later
//!     └──────────────────────────────────┘
//! ```
//!
//! # Single use, and the state after a crash
//!
//! An approval is used by writing its document with the version that was read, so of two calls that race for it one
//! wins on every store. The moment of the use depends on the place of the effect:
//!
//! - **In the store** (`Effect::Write`, and reads that have to be confirmed): the use is part of the
//!   commit of the effect. There is no moment at which one is there without the other. A call that loses
//!   the race has changed nothing, and is asked about again.
//! - **Elsewhere** (`Effect::External`): the key is claimed, then the use is committed, bound to that key,
//!   then the tool runs.
//!   - A crash before the use: the claim is abandoned, the approval is untouched; a retry takes both.
//!   - A crash after the use, before or after the effect: a retry under the same key finds an approval that
//!     is bound to this very key and goes on as the tool's recovery says. Any other call is asked about.
//!   - A failure without an effect releases the key; the approval stays bound to it and good for a retry
//!     until it expires.
//!   - Without a key the use is final: after a crash or a failure the user is asked again. That is the safe side,
//!     because the first call may have had its effect.
//!
//! An answer and its record are one commit, and so are a question and its record: an answer without evidence does not
//! count.
//!
//! # The display for the approver
//!
//! Before a question is asked, the tool says in its own words what the call would do
//! ([`Tool::question`](crate::Tool::question)), and, if it can simulate, what it would answer. Both are stored with the
//! question, sealed, as a [`Display`]. An answer may name the digest of what was rendered; then it counts for that
//! rendering only, and its record says so.
//!
//! Expiry is decided by the clock of the process that asks; processes of one store should agree about the time to
//! within seconds. Single use does not depend on any clock.

use std::time::Duration;

use countersign_contract::approval::ApprovedAmount;
use countersign_contract::evidence::Link;
use countersign_contract::tool::Narrowing;
use countersign_contract::{Actor, Digest, RequestId, Retention, ToolName};
use jiff::Timestamp;
use serde_json::Value;

use crate::BoxFuture;
use crate::ledger::{DocumentRead, DocumentWrite, KeyDigest};
use crate::unavailable::Unavailable;

mod answer;
mod display;
mod inbox;
mod narrow;
mod question;
mod record;
mod refused;
mod stored;
mod terms;
mod waiting;

pub use answer::{Error, Response, SCOPE_ANSWER};
pub use display::Display;
pub use inbox::{OpenQuestion, OpenQuestions, Wanted};
pub(crate) use narrow::{Cut, changes, narrowed};
use question::Question;
pub(crate) use stored::pointers;
pub use stored::{COLLECTION, Limits, StoredApprovals};
pub(crate) use terms::agreed;

/// A call that a person is asked to confirm.
#[derive(Debug, Clone, PartialEq)]
pub struct Confirm {
    /// Request id of the call.
    pub request_id: RequestId,
    /// True if the caller chose that id.
    pub is_id_chosen: bool,
    /// Retention of the call's evidence, and so of what the person was shown.
    pub retention: Retention,
    /// The actor who triggered the call.
    pub actor: Actor,
    /// The actor whose credential proved the call.
    pub principal: Actor,
    /// The user who has to confirm.
    pub user_id: String,
    /// The tool to call.
    pub tool: ToolName,
    /// The tool's name for people.
    pub title: Option<String>,
    /// Description of the tool.
    pub description: String,
    /// The tool's own version.
    pub tool_version: String,
    /// Digest of the tool's declaration.
    pub definition: Digest,
    /// Digest of what has to stay exactly as it is: all arguments, or the declared terms.
    pub exact: Digest,
    /// The same without the currency and the time zone of the request: a denial counts for this.
    pub matter: Digest,
    /// The amount that may fall and not rise, if the tool declares one.
    pub ceiling: Option<ApprovedAmount>,
    /// The session of the call, if it names one: after a denial, its questions about the tool are refused for a while.
    pub session_id: Option<String>,
    /// The currency of the request, if it names one.
    pub currency: Option<String>,
    /// The time zone of the request, if it names one.
    pub timezone: Option<String>,
    /// The arguments that the tool would be given, defaults included, without declared secrets. Approvers see them.
    pub arguments: Value,
    /// The same with every sensitive value replaced, for all other readers.
    pub arguments_redacted: Value,
    /// Revision of the policy that allowed the call.
    pub policy_revision: String,
    /// The call's key, if it has one.
    pub key: Option<KeyDigest>,
    /// True if a call with this key may have had its effect already.
    pub is_resumed: bool,
    /// Parameters that the approver may make smaller.
    pub narrowable: Vec<Narrowing>,
    /// The rest of the display. `None` until it is prepared: an approver who would ask answers
    /// [`Unasked`](Answer::Unasked) then.
    pub display: Option<Display>,
    /// True if two different approvers have to approve.
    pub four_eyes: bool,
    /// Validity of the question and of its answer, if the policy sets one.
    pub valid_for: Option<Duration>,
    /// Time after a denial in which nothing new is asked, if the policy sets one.
    pub cool_down: Option<Duration>,
    /// Time for which the caller waits for the answer.
    pub wait: Duration,
}

/// Asks the user, or looks up the user's earlier answer.
pub trait Approver: Send + Sync + 'static {
    /// Answers at once, or waits for a person as long as the caller does.
    fn ask<'a>(&'a self, confirm: &'a Confirm) -> BoxFuture<'a, Result<Answer, Unavailable>>;

    /// Predicts the answer of [`ask`](Approver::ask), without asking the user. A call that would be asked about is
    /// simulated first if the tool can simulate, so that the user is not asked about a call that cannot succeed; a dry
    /// run reports the prediction.
    fn foresee<'a>(&'a self, _: &'a Confirm) -> BoxFuture<'a, Result<Foreseen, Unavailable>> {
        Box::pin(std::future::ready(Ok(Foreseen::Unknown)))
    }
}

/// Predicted answer to a question. Closed.
#[derive(Debug)]
pub enum Foreseen {
    /// The user has confirmed this call already; the permit states what the call may do, and is not used up.
    Approved(Permit),
    /// The question is open.
    Pending,
    /// The user would be asked now.
    Asked,
    /// The user has declined.
    Denied(Answer),
    /// The approver cannot tell.
    Unknown,
}

/// Answer to a question.
#[derive(Debug)]
pub enum Answer {
    /// The user has confirmed exactly this call.
    Approved(Permit),
    /// The user has not answered yet.
    Pending {
        /// Id under which the answer is given.
        approval_id: String,
        /// End of the question's validity.
        expires_at: Timestamp,
        /// Reason why an earlier question about this call, or its answer, does not count, if there was one.
        because: Option<Because>,
        /// Number of approvers who have approved, and the number that is required.
        approvers: (u8, u8),
    },
    /// The user would be asked now, and the display has to be prepared first.
    Unasked,
    /// The user has declined.
    Denied {
        /// Id of the question.
        approval_id: String,
        /// End of the time in which the same call is refused.
        until: Timestamp,
    },
    /// The user has just denied another call of this tool in this session, and is asked nothing new about it for a
    /// while.
    Cooling {
        /// Id of the denied question.
        approval_id: String,
        /// End of the cool-down, when something new may be asked.
        until: Timestamp,
    },
    /// The user has too many open questions already.
    TooMany {
        /// Maximum number of open questions.
        pending_max: usize,
        /// Delay until the first of them expires.
        retry_after_ms: u64,
    },
}

/// Reasons why an earlier question, or its answer, does not count for a call. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Because {
    /// It was given for other arguments.
    ArgumentsChanged,
    /// It was given for less money.
    AmountRose,
    /// It is too old.
    Expired,
    /// Another call has used it.
    Used,
    /// It was given to another principal.
    OtherPrincipal,
    /// The policy has changed since.
    PolicyChanged,
    /// The tool has changed since.
    ToolChanged,
}

impl Because {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ArgumentsChanged => "arguments_changed",
            Self::AmountRose => "amount_rose",
            Self::Expired => "expired",
            Self::Used => "used",
            Self::OtherPrincipal => "other_principal",
            Self::PolicyChanged => "policy_changed",
            Self::ToolChanged => "tool_changed",
        }
    }
}

/// The right to make one call, once.
#[derive(Debug)]
pub struct Permit(Option<Box<Ticket>>);

/// An approval that is not used yet.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) link: Option<Link>,
    /// Parameters that the approvers have made smaller.
    pub(crate) cuts: Vec<Cut>,
    /// The write that marks the approval as used; `None` if it is bound to this very call already.
    pub(crate) using: Option<Using>,
}

/// The document of an approval, as used.
#[derive(Debug)]
pub(crate) struct Using {
    pub(crate) read: DocumentRead,
    pub(crate) write: DocumentWrite,
    question: Question,
}

impl Permit {
    /// A permit that the approver has used up itself: for approvers that store their approvals elsewhere.
    pub const fn used() -> Self {
        Self(None)
    }

    pub(crate) fn into_ticket(self) -> Option<Box<Ticket>> {
        self.0
    }
}
