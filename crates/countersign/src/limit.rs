//! How many calls may be made: a pace for each user, agent, session and tool ([`Limits`]), and an end to
//! a model that repeats itself ([`Breaker`]).
//!
//! Both count in this process, unless they are told to count in the store: behind several replicas each
//! process counts for itself, so that what passes in all is up to as many times the limit as there are
//! replicas. A [shared](Rate::shared) count holds for all processes that share a store, and costs a question
//! to it for each call.

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

/// Lets a call in, or says when to come back.
pub trait Limiter: Send + Sync + 'static {
    /// Counts one call. `paces` is the store of the executor, for what all processes count together.
    fn admit<'a>(
        &'a self,
        attempt: &'a Attempt<'a>,
        paces: &'a dyn Paces,
    ) -> BoxFuture<'a, Result<Admission, Unavailable>>;
}

/// A call that wants in.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// On whose behalf.
    pub user_id: &'a str,
    /// The key of that user: what is counted for them in a store is named by it, and by nothing that can be
    /// guessed.
    pub keys: &'a UserKey,
    /// Who makes it, as the call says. Whoever may act for others can name anybody here.
    pub actor: &'a Actor,
    /// Who makes it, as was proved: the limit for an agent counts this one.
    pub proved_actor: &'a Actor,
    /// In which conversation, where that is known.
    pub session_id: Option<&'a str>,
    /// Which tool.
    pub tool: &'a ToolName,
    /// This moment of the clock's monotonic time.
    pub now: Duration,
}

/// What a limiter answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Come in.
    Admitted,
    /// A limit is used up. Nothing was counted, by this limit or any other.
    Limited {
        /// Which one; the one that takes longest where there are several.
        limit: LimitName,
        /// When the same call would be let in.
        retry_after_ms: u64,
    },
}

/// What a limit counts the calls of. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitName {
    /// All calls for a user.
    User,
    /// All calls of an agent, for whomever.
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

/// No limit.
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
