//! Claims: a key being taken. Scope (user, tool, key) (A17), bound to the fingerprint of the arguments until it is
//! released.
//!
//! ```text
//!             claim                    commit
//!  (absent) ────────► running ──────────────────► succeeded | failed ──► tombstone ──► (absent)
//!     │                 │  │ commit(Released)            ▲      retention      a month
//!     │                 │  └──────────► released ─┐      │
//!     │                 │ lease over    ▲  ▲      │claim │ commit by the same attempt,
//!     │                 ▼               │  │      ▼      │ or an operator
//!     │             in_doubt ───────────┘  └── running   │
//!     │                 └────────────────────────────────┘
//!     └── commit(Take): taken and settled in one piece, never seen as running
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use countersign_contract::tool::Recovery;
use countersign_contract::{RequestId, ToolName};
use jiff::Timestamp;

use super::documents::{DocumentRead, DocumentWrite, ShapeRead};
use super::pots::{Overdrawn, Reserve, SpendChange};
use super::{Error, Hex};
use crate::BoxFuture;
use crate::scribe::Draft;

/// Keeps claims, and commits what a call has done.
///
/// Rules that every implementation keeps:
///
/// - at most one caller holds a scope at a time, whatever races with it;
/// - `attempt` only rises, a row is never deleted while it could be claimed again, and every write of a
///   claim names its attempt: an older one changes nothing;
/// - a settled scope is never executed again: it is replayed until its retention is over and refused
///   after that;
/// - only a released scope takes other arguments than its last attempt had, and then stands for those;
/// - what an answer says is read from one version of the row, never put together from two;
/// - `in_doubt` is left only by its own attempt, or by an operator; time alone never ends it.
pub trait Claims: Send + Sync + 'static {
    /// How a scope stands, taking nothing. No fsync.
    fn lookup<'a>(&'a self, scope: &'a Scope) -> BoxFuture<'a, Result<Option<Held>, Error>>;

    /// Takes a scope for an effect elsewhere. The claim is durable before this answers, because it is
    /// the mark that the effect may have begun.
    ///
    /// A `running` row whose lease is over goes by the [`Recovery`] of its owner, not of the request:
    /// `Retry`, and `DownstreamKey` within four fifths of its window (counted from the first claim), are
    /// taken over with the next attempt; everything else is marked in doubt and answered as such.
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> BoxFuture<'a, Result<ClaimAnswer, Error>>;

    /// Commits key, state and record in one piece: all of it is durable when this answers
    /// [`CommitAnswer::Committed`], and none of it was done with any other answer, but for the record
    /// of a fenced owner.
    ///
    /// Calling it again with the same record is safe: where the record was kept, the answer is the first
    /// one's again, committed or fenced, however the scope stands by now. A lost answer of the database
    /// is found out in this way, never guessed.
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<CommitAnswer, Error>>;

    /// Claims for operators, oldest first.
    fn claims<'a>(&'a self, query: &'a ClaimQuery) -> BoxFuture<'a, Result<Vec<ClaimRow>, Error>>;

    /// Does what time alone decides, for at most `limit` rows of each kind: settled rows past their
    /// retention become tombstones, tombstones past theirs go, owners whose lease is over and whose
    /// recovery allows no takeover are marked in doubt, reservations of lost owners end by their
    /// [`Lapse`](super::Lapse), and pots go [some time](super::POT_KEPT) after their window.
    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, Error>>;
}

/// For how long a key is refused after its answer is gone.
pub const TOMBSTONE: Duration = Duration::from_hours(720);

/// What a key is unique in: the same key of another user or for another tool is another key (A17).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// On whose behalf.
    pub user_id: String,
    /// The canonical name, so that an alias does not make a second scope.
    pub tool: ToolName,
    /// Digest of the caller's key, or of the derived one, under the user's own key.
    pub key: KeyDigest,
}

/// A key's digest: keys often hold e-mail addresses or order texts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyDigest(pub [u8; 32]);

impl fmt::Display for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyDigest({self})")
    }
}

/// Asks for a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Which one.
    pub scope: Scope,
    /// Of the canonical bound arguments, before defaults: the same call has the same one.
    pub fingerprint: [u8; 32],
    /// Sealed: what tells later which arguments differ. Kept as it is.
    pub parts: Vec<u8>,
    /// What a lost owner leaves behind.
    pub recovery: Recovery,
    /// For how long the owner may be silent.
    pub lease: Duration,
    /// How many attempts there may be.
    pub attempts_max: u32,
    /// The call that asks, for operators.
    pub request_id: RequestId,
    /// Money that is set aside with the claim, in one piece: there is no claim where there is not enough.
    /// What earlier attempts have set aside is given back first.
    pub spend: Option<Reserve>,
}

/// What became of a request for a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimAnswer {
    /// It is ours to run.
    Ours(Claim),
    /// Somebody was there before.
    Held(Held),
    /// It failed without an effect as often as it may.
    Exhausted {
        /// How often.
        attempts: u32,
    },
    /// It is free, and there is not enough money. Nothing was taken.
    Over(Overdrawn),
}

/// A scope that is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Which one.
    pub scope: Scope,
    /// The fence: an owner that was overtaken holds an older number.
    pub attempt: u32,
}

/// How a scope stands that somebody has taken before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Of the arguments that it was taken for.
    pub fingerprint: [u8; 32],
    /// As it was given with the claim.
    pub parts: Arc<[u8]>,
    /// The newest attempt.
    pub attempt: u32,
    /// How long ago that attempt was claimed, by the store's clock.
    pub age: Duration,
    /// What became of it.
    pub state: HeldState,
}

/// What became of a scope that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldState {
    /// The owner has not finished, and its lease is not over.
    Running {
        /// When asking again makes sense.
        retry_after_ms: u64,
    },
    /// The owner's lease is over. A claim decides what that means.
    Abandoned,
    /// It failed without an effect; the next call may take it, with whatever arguments.
    Released,
    /// It worked; the sealed answer.
    Succeeded(Arc<[u8]>),
    /// It failed for good; the sealed answer.
    Failed(Arc<[u8]>),
    /// Whether it had its effect is not known.
    InDoubt,
    /// It is settled, and the answer is no longer kept.
    Expired,
}

/// Everything that becomes durable in one piece.
#[derive(Debug)]
pub struct Commit {
    /// What becomes of the call's key; none for a call without one.
    pub key: Option<KeyChange>,
    /// What was read: a version that has moved stops the commit.
    pub reads: Vec<DocumentRead>,
    /// Which collections were scanned: an insert or delete since stops the commit.
    pub shapes: Vec<ShapeRead>,
    /// What is written. A key occurs at most once, and its version is in `reads`.
    pub writes: Vec<DocumentWrite>,
    /// What becomes of the money that was set aside for the call.
    pub spend: Option<SpendChange>,
    /// The record; the store seals it before it commits.
    pub record: Draft,
}

/// What a commit does with the call's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyChange {
    /// Takes the scope and settles it at once: the effect is in this very commit, so nobody ever sees
    /// the scope running.
    Take {
        /// Which one.
        scope: Scope,
        /// As in a claim.
        fingerprint: [u8; 32],
        /// As in a claim.
        parts: Vec<u8>,
        /// The newest attempt that was seen: 0 where there was no row. Ours is the next one; the row
        /// must be absent, or `released` by exactly this attempt.
        after: u32,
        /// How it ended; never in doubt and never abandoned.
        outcome: Outcome,
        /// The call that asks, for operators.
        request_id: RequestId,
    },
    /// Ends a claim that was taken before the effect. The row must be `running` or `in_doubt` by exactly
    /// this attempt: an owner that was only thought lost may still say what happened.
    Settle {
        /// What was ours.
        claim: Claim,
        /// How it ended.
        outcome: Outcome,
    },
}

/// How a claim ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It worked; a repeat gets this answer (A18).
    Succeeded {
        /// The sealed answer.
        reply: Vec<u8>,
        /// For how long it is kept, by the store's clock.
        keep: Duration,
    },
    /// It failed for good; a repeat gets this answer.
    Failed {
        /// The sealed answer.
        reply: Vec<u8>,
        /// For how long it is kept, by the store's clock.
        keep: Duration,
    },
    /// It failed and changed nothing; the next call may try again, with whatever arguments.
    Released,
    /// It failed and may have changed something, and its [`Recovery`] may let the very same call run again: the
    /// scope stands as if its owner's lease were over.
    Abandoned,
    /// It failed and may have changed something; nothing runs until that is resolved.
    InDoubt,
}

/// What became of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitAnswer {
    /// Everything is durable.
    Committed,
    /// The scope was not free any more; this is how it stands. Nothing was done.
    Held(Held),
    /// Something that was read has changed since. Nothing was done.
    Moved {
        /// What changed: the first that was found.
        collection: String,
        /// Its id; empty where the collection's shape changed.
        id: String,
    },
    /// The money that was set aside for this commit was given up, because its owner was silent for too
    /// long. Nothing was done.
    Lapsed,
    /// The claim was overtaken, or settled by an operator. Only the record was kept: what an owner did
    /// late is part of the story.
    Fenced,
}

/// Which claims an operator wants to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimQuery {
    /// In this state only.
    pub state: Option<ClaimState>,
    /// Of this user only.
    pub user_id: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// The states of a claim. Closed; the numbers are what stores keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ClaimState {
    /// Definitely no effect; may be claimed again.
    Released = 0,
    /// The owner may be causing the effect.
    Running = 1,
    /// Settled with an answer.
    Succeeded = 2,
    /// Settled with a final failure.
    Failed = 3,
    /// The effect may have happened.
    InDoubt = 4,
    /// Settled, and the answer is gone.
    Tombstone = 5,
}

impl ClaimState {
    /// Every state.
    pub const ALL: [Self; 6] = [
        Self::Released,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::InDoubt,
        Self::Tombstone,
    ];

    /// The name for people and records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::InDoubt => "in_doubt",
            Self::Tombstone => "tombstone",
        }
    }

    /// The state that a store has kept as this number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|state| i64::from(*state as u8) == number)
    }
}

/// A claim as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRow {
    /// Which one.
    pub scope: Scope,
    /// How it stands.
    pub state: ClaimState,
    /// The newest attempt.
    pub attempt: u32,
    /// The call that took it last.
    pub request_id: RequestId,
    /// When it was claimed last.
    pub claimed_at: Timestamp,
    /// Until when the owner may be silent, where it runs.
    pub lease_until: Option<Timestamp>,
    /// Its sealed fingerprint parts.
    pub parts: Arc<[u8]>,
}

/// What a sweep has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Answers that were dropped.
    pub tombstones: usize,
    /// Tombstones that are gone.
    pub removed: usize,
    /// Owners that were given up.
    pub in_doubt: usize,
    /// Reservations of lost owners that were ended.
    pub lapsed: usize,
    /// Pots that are gone, long after their window.
    pub pots: usize,
}

impl Swept {
    /// Whether there was anything to do; then there may be more.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}
