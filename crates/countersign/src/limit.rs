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
pub use rules::{Counted, LimitRules, Limits, ToolLimit};

/// Admits a call, or says when to retry.
pub trait Limiter: Send + Sync + 'static {
    /// Counts one call. `paces` is the executor's store, for limits that all processes count together.
    fn admit<'a>(
        &'a self,
        attempt: &'a Attempt<'a>,
        paces: &'a dyn Paces,
    ) -> BoxFuture<'a, Result<Admission, Unavailable>>;
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
