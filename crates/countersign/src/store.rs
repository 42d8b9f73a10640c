//! Where claims and records are kept. One trait, so that effect, claim and record can be one commit.
//!
//! A claim is a key being taken: scope (user, tool, key) (A17), bound to the digest of the arguments.
//! Time is passed in; an implementation reads no clock.

use std::sync::Arc;
use std::time::Duration;

use countersign_contract::{CallRecord, Digest, Effect, ReplyEnvelope, ToolName};
use jiff::Timestamp;

use crate::BoxFuture;
use crate::unavailable::Unavailable;

mod memory;

pub use memory::MemoryStore;

/// Keeps claims and records.
///
/// Rules that every implementation keeps:
///
/// - at most one caller holds a scope at a time, whatever races with it;
/// - `attempt` only rises, and [`settle`](Store::settle) is refused for an older one;
/// - a settled success is never executed again: it is replayed until its retention is over and
///   refused after that;
/// - a lease that ran out lets the next caller of a [`Effect::Write`] take over, because its effect
///   is committed by `settle` or not at all; an [`Effect::External`] is in doubt from then on.
pub trait Store: Send + Sync + 'static {
    /// How a scope stands, taking nothing. A replay is found by this before budget and confirmation
    /// are looked at again.
    fn lookup<'a>(
        &'a self,
        scope: &'a Scope,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Held>, Error>>;

    /// Takes a scope, or says how it stands.
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> BoxFuture<'a, Result<ClaimAnswer, Error>>;

    /// Ends a claim: outcome and record become durable together, or neither does.
    fn settle(&self, settle: Settle) -> BoxFuture<'_, Result<(), Error>>;

    /// Keeps the record of a call that held no claim.
    fn append(
        &self,
        record: Box<CallRecord>,
        durability: Durability,
    ) -> BoxFuture<'_, Result<(), Error>>;
}

/// What a key is unique in: the same key of another user or for another tool is another key (A17).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    /// On whose behalf.
    pub user_id: String,
    /// The canonical name, so that an alias does not make a second scope.
    pub tool: ToolName,
    /// The caller's key, or the derived one.
    pub key: String,
}

/// Asks for a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Which one.
    pub scope: Scope,
    /// Digest of the canonical bound arguments, before defaults: the same call has the same one.
    pub fingerprint: Digest,
    /// What the call changes; decides what a lost owner leaves behind.
    pub effect: Effect,
    /// The present.
    pub at: Timestamp,
    /// For how long the owner may be silent.
    pub lease: Duration,
    /// For how long a success is replayed.
    pub retention: Duration,
}

/// What became of a request for a scope.
#[derive(Debug, Clone, PartialEq)]
pub enum ClaimAnswer {
    /// It is ours to run.
    Ours(Claim),
    /// Somebody was there before.
    Held(Held),
}

/// A scope that is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Which one.
    pub scope: Scope,
    /// The fence: an owner that was overtaken holds an older number.
    pub attempt: u32,
    /// For how long a success is replayed.
    pub retention: Duration,
}

/// How a scope stands that somebody has taken before.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// Of the arguments that it was taken for.
    pub fingerprint: Digest,
    /// What became of it.
    pub state: HeldState,
}

/// What became of a scope that was taken.
#[derive(Debug, Clone, PartialEq)]
pub enum HeldState {
    /// The owner has not finished.
    Running {
        /// When asking again makes sense.
        retry_after_ms: u64,
    },
    /// It failed without an effect; the same call may take it again.
    Released,
    /// It worked; this was the answer.
    Succeeded(Arc<StoredReply>),
    /// Whether it had its effect is not known.
    InDoubt,
    /// It worked, and the answer is no longer kept.
    Expired,
}

/// The answer of a call that worked, and when it was given.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReply {
    /// The whole envelope.
    pub reply: ReplyEnvelope,
    /// From when its window of validity counts.
    pub at: Timestamp,
}

/// The end of a claim, with everything that is committed in one piece.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Settle {
    /// What was ours.
    pub claim: Claim,
    /// What became of it.
    pub outcome: Outcome,
    /// What stays behind of the call.
    pub record: Box<CallRecord>,
    /// The present.
    pub at: Timestamp,
}

impl Settle {
    /// Everything that is committed in one piece.
    pub fn new(claim: Claim, outcome: Outcome, record: Box<CallRecord>, at: Timestamp) -> Self {
        Self {
            claim,
            outcome,
            record,
            at,
        }
    }
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It worked; a repeat gets this answer (A18).
    Succeeded(Arc<StoredReply>),
    /// It failed and changed nothing; the same call may try again.
    Released,
    /// It failed and may have changed something; nothing runs until that is resolved.
    InDoubt,
}

/// Whether a record has to be durable before the reply leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// With the next batch.
    Batched,
    /// Before the answer.
    Committed,
}

/// The store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not answer; whether it has committed is not known.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// Another owner has taken the claim over; nothing of this one was kept but its record.
    #[error("attempt {attempt} of the claim was overtaken")]
    Fenced {
        /// The older number.
        attempt: u32,
    },
    /// No further key fits.
    #[error("the store holds {limit} keys and takes no more")]
    Full {
        /// How many it holds.
        limit: usize,
    },
}
