//! Rate limits for each user, agent, session and tool ([`Limits`]), and a breaker for a model that repeats itself
//! ([`Breaker`]).
//!
//! Both count in this process by default: with several replicas each process counts for itself, so that up to as many
//! times the limit can pass as there are replicas. A [shared](Rate::shared) count is valid for all processes that share
//! a store, and costs one request to the store for each call.

use std::time::Duration;

use countersign_contract::{Actor, ToolName};
use countersign_evidence::seal::UserKey;

use crate::BoxFuture;
use crate::authorize::Facts;
use crate::ledger::Paces;
use crate::unavailable::Unavailable;

mod breaker;
mod cells;
mod left;
mod rate;
mod rules;
mod shared;

pub use breaker::{Breaker, Repeats};
pub use left::Left;
pub use rate::Rate;
pub use rules::{Counted, Limit, LimitRules, Limits, ToolLimit};

/// Admits a call, or says when to retry.
pub trait Limiter: Send + Sync + 'static {
    /// Counts one call. `paces` is the executor's store, for limits that all processes count together.
    fn admit<'a>(
        &'a self,
        attempt: &'a Attempt<'a>,
        paces: &'a dyn Paces,
    ) -> BoxFuture<'a, Result<Admission, Unavailable>>;

    /// True if a limit looks at the arguments of calls of this tool: such a call asks for admission a second time, after
    /// they are bound.
    fn needs_arguments(&self, _tool: &ToolName) -> bool {
        false
    }
}

/// A call that asks for admission.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The user on whose behalf it runs.
    pub user_id: &'a str,
    /// The key of that user: counts for the user in a store are named by it, and by nothing that can be guessed.
    pub keys: &'a UserKey,
    /// The actor that the call names. A caller that may act for others can name any actor here.
    pub actor: &'a Actor,
    /// The actor that was proved: the limit for an agent counts this one.
    pub proved_actor: &'a Actor,
    /// The session, if it is known.
    pub session_id: Option<&'a str>,
    /// The tool.
    pub tool: &'a ToolName,
    /// The current monotonic time.
    pub now: Duration,
    /// The parts of the call that conditions of limits may look at.
    pub known: Known<'a>,
}

/// The parts of a call that are known when it asks for admission. They decide which limits count it: each limit counts a
/// call once. Closed.
#[derive(Debug, Clone, Copy)]
pub enum Known<'a> {
    /// Nothing is called: limits with a condition do not count.
    Nothing,
    /// A call whose arguments are not bound yet: every limit counts whose condition, if it has one, needs none.
    Call(Facts<'a>),
    /// A call that was admitted before and is bound now: the limits count whose conditions look at the arguments.
    Arguments(Facts<'a>),
}

/// Answer of a limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The call is admitted.
    Admitted,
    /// A limit is reached. Nothing was counted, by this limit or any other.
    Limited {
        /// The limit that was reached; the one with the longest wait if there are several.
        limit: LimitName,
        /// Time until the same call would be admitted.
        retry_after_ms: u64,
    },
    /// The condition of a limit cannot be decided for the call, so the call is refused. Nothing was counted.
    Undecided {
        /// The limit.
        limit: LimitName,
    },
}

/// The limits, by what they count. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitName {
    /// All calls for a user.
    User,
    /// All calls of an agent, for any user.
    Agent,
    /// All calls of a session.
    Session,
    /// All calls of a tool.
    Tool,
}

impl LimitName {
    /// The name on the wire, in `error.details.limit`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
            Self::Session => "session",
            Self::Tool => "tool",
        }
    }
}

/// A limiter without any limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlimited;

impl Limiter for Unlimited {
    fn admit<'a>(
        &'a self,
        _: &'a Attempt<'a>,
        _: &'a dyn Paces,
    ) -> BoxFuture<'a, Result<Admission, Unavailable>> {
        Box::pin(std::future::ready(Ok(Admission::Admitted)))
    }
}
