//! Whether the user has confirmed a call (A13).
//!
//! A confirmation is a document in the store. It counts for exactly one call: this principal, this user,
//! this tool as it is declared, these bound arguments (or declared [terms](crate::contract::tool::Terms)),
//! this revision of the policy, once, and not for long. Whoever keeps the store keeps the questions: a
//! restart loses none.
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
//! # Single use, and what a crash leaves behind
//!
//! An approval is used by writing its document with the version that was read, so of two calls that race
//! for it one wins on every store. When that happens depends on where the effect is:
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
//!   - Without a key the use is final: after a crash or a failure the user is asked again. That is the
//!     safe side: nobody can tell whether the first one had its effect.
//!
//! An answer and its record are one commit, and so are a question and its record: no answer counts of which
//! there is no evidence.
//!
//! # What a person sees
//!
//! Before a question is asked, the tool says in its own words what the call would do ([`Tool::question`](crate::Tool::question)), and where it can
//! simulate, what it would answer. Both are kept with the question, sealed, as a [`Display`]. An answer may name the digest of what
//! was rendered; then it counts for that rendering only, and its record says so.
//!
//! Whether something has expired is decided by the clock of the process that asks; processes of one store
//! should agree about the time to within seconds. Single use does not depend on any clock.

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
pub use inbox::Wanted;
pub(crate) use narrow::{Cut, changes, narrowed};
use question::Question;
pub(crate) use stored::pointers;
pub use stored::{COLLECTION, Limits, StoredApprovals};
pub(crate) use terms::agreed;

/// What a person is asked to confirm.
#[derive(Debug, Clone, PartialEq)]
pub struct Confirm {
    /// The call that asks.
    pub request_id: RequestId,
    /// True if the caller chose that id.
    pub is_id_chosen: bool,
    /// For how long the evidence of the call is kept, and so is what the person was shown.
    pub retention: Retention,
    /// Who triggered it.
    pub actor: Actor,
    /// Whose credential proved it.
    pub principal: Actor,
    /// Who has to confirm.
    pub user_id: String,
    /// What is to be called.
    pub tool: ToolName,
    /// The tool's name for people.
    pub title: Option<String>,
    /// What the tool does.
    pub description: String,
    /// The tool's own version.
    pub tool_version: String,
    /// Digest of the tool's declaration.
    pub definition: Digest,
    /// What has to stay exactly as it is: all arguments, or the declared terms.
    pub exact: Digest,
    /// The same without the currency and the time zone of the request: what a no holds for.
    pub matter: Digest,
    /// What may fall and not rise, where the tool declares it.
    pub ceiling: Option<ApprovedAmount>,
    /// The conversation that asks, where the call names one: a no holds all its questions about the tool back for a while.
    pub session_id: Option<String>,
    /// The currency of the request, where it names one.
    pub currency: Option<String>,
    /// The time zone of the request, where it names one.
    pub timezone: Option<String>,
    /// The arguments that the tool would be given, defaults included, without declared secrets. Who may answer sees them.
    pub arguments: Value,
    /// The same with every sensitive value replaced, for everybody else.
    pub arguments_redacted: Value,
    /// Which revision of the policy let the call come so far.
    pub policy_revision: String,
    /// The call's key, where it has one.
    pub key: Option<KeyDigest>,
    /// Whether a call with this key may have had its effect already.
    pub is_resumed: bool,
    /// What the answer may make smaller.
    pub narrowable: Vec<Narrowing>,
    /// What else a person is shown. None until it is prepared: an approver who would ask answers [`Unasked`](Answer::Unasked) then.
    pub display: Option<Display>,
    /// True if two different approvers have to say yes.
    pub four_eyes: bool,
    /// For how long the question can be answered, and the answer be used, where the policy says so.
    pub valid_for: Option<Duration>,
    /// For how long nothing new is asked after a no, where the policy says so.
    pub cool_down: Option<Duration>,
    /// How long the caller waits for the answer.
    pub wait: Duration,
}

/// Asks the user, or looks up what the user has answered.
pub trait Approver: Send + Sync + 'static {
    /// Answers at once, or waits for a person as long as the caller does.
    fn ask<'a>(&'a self, confirm: &'a Confirm) -> BoxFuture<'a, Result<Answer, Unavailable>>;

    /// What [`ask`](Approver::ask) would answer, without asking anybody. A call that would be asked about is
    /// simulated first where it can be, so that nobody is asked about one that cannot succeed; a dry run says what
    /// it found.
    fn foresee<'a>(&'a self, _: &'a Confirm) -> BoxFuture<'a, Result<Foreseen, Unavailable>> {
        Box::pin(std::future::ready(Ok(Foreseen::Unknown)))
    }
}

/// What a question would be answered. Closed.
#[derive(Debug)]
pub enum Foreseen {
    /// The user has confirmed this call already.
    Approved,
    /// The question is open.
    Pending,
    /// The user would be asked now.
    Asked,
    /// The user has declined.
    Denied(Answer),
    /// The approver cannot tell.
    Unknown,
}

/// What became of the question.
#[derive(Debug)]
pub enum Answer {
    /// The user has confirmed exactly this call.
    Approved(Permit),
    /// The user has not answered yet.
    Pending {
        /// Under which the answer is given.
        approval_id: String,
        /// Until when.
        expires_at: Timestamp,
        /// Why an earlier question about this call, or its answer, does not count, where there was one.
        because: Option<Because>,
        /// How many approvers have said yes, of how many.
        approvers: (u8, u8),
    },
    /// The user would be asked now, and what there is to show has to be prepared first.
    Unasked,
    /// The user has declined.
    Denied {
        /// Under which it was asked.
        approval_id: String,
        /// Until when the same call is refused.
        until: Timestamp,
    },
    /// The user has declined another call of this tool in this session a moment ago, and is asked nothing new about it for a while.
    Cooling {
        /// Under which it was asked.
        approval_id: String,
        /// When something new may be asked.
        until: Timestamp,
    },
    /// The user has too many open questions already.
    TooMany {
        /// How many there may be.
        pending_max: usize,
        /// When the first of them is over.
        retry_after_ms: u64,
    },
}

/// Why an earlier question, or its answer, does not count for a call. Closed.
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
    /// It was given to somebody else.
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

/// The right to make one call; what is left to do is to use it up.
#[derive(Debug)]
pub struct Permit(Option<Box<Ticket>>);

/// An approval that is still to be used.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) link: Option<Link>,
    /// What whoever answered has made smaller.
    pub(crate) cuts: Vec<Cut>,
    /// Writes the approval as used; none where it is bound to this very call already.
    pub(crate) using: Option<Using>,
}

/// The document of an approval, as it becomes used.
#[derive(Debug)]
pub(crate) struct Using {
    pub(crate) read: DocumentRead,
    pub(crate) write: DocumentWrite,
    question: Question,
}

impl Permit {
    /// A permit that the approver has used up itself: for those who keep their approvals elsewhere.
    pub const fn used() -> Self {
        Self(None)
    }

    pub(crate) fn into_ticket(self) -> Option<Box<Ticket>> {
        self.0
    }
}
