//! Claims: a key being taken. Scope (user, tool, key) (A17), bound to the fingerprint of the arguments until it is
//! released.
//!
//! ```text
//!             claim                    commit
//!  (absent) ────────► running ──────────────────► succeeded | failed ──► tombstone
//!     │                 │  │ commit(Released)            ▲      retention
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
use countersign_evidence::seal::{KeyId, UserKey};
use jiff::Timestamp;

use super::documents::{DocumentRead, DocumentWrite, ShapeRead};
use super::pots::{Overdrawn, Reserve, SpendChange};
use super::{Error, Hex};
use crate::BoxFuture;
use crate::scribe::Draft;

/// Stores claims, and commits the effects of calls.
///
/// Rules that every implementation keeps:
///
/// - at most one caller holds a scope at a time, under any race;
/// - `attempt` only rises, a row is never deleted while it could be claimed again, and every write of a
///   claim names its attempt: an older one changes nothing;
/// - a settled scope is never executed again: it is replayed until its retention is over and refused
///   after that, until its user is erased or an operator forgets it; time alone never frees it;
/// - only a released scope accepts other arguments than its last attempt had, and then is bound to those;
/// - an answer is read from one version of the row, never put together from two;
/// - `in_doubt` is left only by its own attempt, or by an operator; time alone never ends it.
pub trait Claims: Send + Sync + 'static {
    /// Reads the state of a scope without taking it; `None` if there is no claim. No fsync.
    fn lookup<'a>(&'a self, scope: &'a Scope) -> BoxFuture<'a, Result<Option<Held>, Error>>;

    /// Claims a scope for an external effect. The claim is durable before this answers, because it is the mark that the
    /// effect may have begun.
    ///
    /// For a `running` row whose lease is over, the [`Recovery`] of its owner counts, not that of the request: `Retry`,
    /// and `DownstreamKey` within four fifths of its window (counted from the first claim), are taken over with the
    /// next attempt; everything else is marked in doubt and answered as such.
    ///
    /// Nothing is taken under a key that is no longer the user's.
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> BoxFuture<'a, Result<ClaimAnswer, Error>>;

    /// Commits key, state and record in one transaction: all of it is durable when this answers
    /// [`CommitAnswer::Committed`], and nothing was done with any other answer, except for the record of a fenced
    /// owner.
    ///
    /// Nothing of a user is written under a key that is no longer the user's: the claim and the documents of a user who
    /// was erased meanwhile do not come back. Erasing and committing wait for each other, so that one of them is first.
    /// A commit that writes nothing of the user is done, and its record is stored as [`append`](super::Log::append)
    /// does.
    ///
    /// A retry with the same record is safe: if the record was stored, the answer is the first one again, committed or
    /// fenced, whatever the state of the scope is by now. The result of a commit whose answer was lost is found out in
    /// this way, never guessed.
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<CommitAnswer, Error>>;

    /// Lists claims for operators, oldest first.
    fn claims<'a>(&'a self, query: &'a ClaimQuery) -> BoxFuture<'a, Result<Vec<ClaimRow>, Error>>;

    /// The claims of these keys, each a user's, of whatever tool, oldest first, at most `limit`. It costs a look-up for
    /// each tool that a user has claims of, however many claims there are.
    fn claims_of<'a>(
        &'a self,
        keys: &'a [(String, KeyDigest)],
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ClaimRow>, Error>>;

    /// Gives up lost owners, for at most `limit` rows of each kind: running claims whose lease is over and whose
    /// recovery allows no takeover are marked in doubt, and reservations end by their [`Lapse`](super::Lapse). What is
    /// removed for good is a matter of [`dispose`](super::Timekeeping::dispose).
    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, Error>>;
}

/// The space in which a key is unique: the same key of another user or for another tool is another key (A17).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// The user on whose behalf the call runs.
    pub user_id: String,
    /// The canonical name, so that an alias does not make a second scope.
    pub tool: ToolName,
    /// Digest of the caller's key, or of the derived one, under the user's own key.
    pub key: KeyDigest,
}

impl Scope {
    /// Derives the key that the service of the tool gets for a call with these arguments. A key that was released takes
    /// other arguments, and for the service that is another call.
    pub(crate) fn service_key(&self, keys: &UserKey, fingerprint: &[u8; 32]) -> String {
        let call = format!("{}/{}", self.key, Hex(fingerprint));
        keys.downstream_key(self.tool.as_str(), &call)
    }
}

/// A key's digest: keys often hold e-mail addresses or order texts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyDigest(pub [u8; 32]);

impl KeyDigest {
    /// Reads the digest from its hexadecimal digits, as it is shown.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut digest = [0; 32];
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        for (place, digits) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).ok()?;
            *place = u8::from_str_radix(digits, 16).ok()?;
        }
        Some(Self(digest))
    }
}

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

/// A request to claim a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The scope to claim.
    pub scope: Scope,
    /// Fingerprint of the canonical bound arguments, before defaults: the same call has the same one.
    pub fingerprint: [u8; 32],
    /// Sealed fingerprint parts, from which a later call can tell which arguments differ. Stored as given.
    pub parts: Vec<u8>,
    /// Recovery mode: decides what happens if the owner is lost.
    pub recovery: Recovery,
    /// Lease: the time for which the owner may be silent.
    pub lease: Duration,
    /// Maximum number of attempts.
    pub attempts_max: u32,
    /// Request id of the call that claims, for operators.
    pub request_id: RequestId,
    /// The user's key that key, fingerprint and parts were made with; `None` if the store is not to check it.
    pub sealed_under: Option<KeyId>,
    /// Money that is reserved with the claim, in one commit: without enough money there is no claim. Reservations of
    /// earlier attempts are given back first.
    pub spend: Option<Reserve>,
}

/// Answer to a [`ClaimRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimAnswer {
    /// The scope is claimed; the caller runs the effect.
    Ours(Claim),
    /// Another call holds the scope, or has settled it.
    Held(Held),
    /// The scope was released without an effect as often as it may be.
    Exhausted {
        /// Number of attempts so far.
        attempts: u32,
    },
    /// The scope is free, but a pot has not enough money. Nothing was taken.
    Over(Overdrawn),
    /// The key that it was asked with is no longer the user's: the user was erased. Nothing was taken.
    Erased,
}

/// A claim that the caller holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The claimed scope.
    pub scope: Scope,
    /// The fence: an owner that was overtaken holds an older number.
    pub attempt: u32,
}

/// State of a scope that another call took before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Fingerprint of the arguments that the scope was taken for.
    pub fingerprint: [u8; 32],
    /// Sealed fingerprint parts, as given with the claim.
    pub parts: Arc<[u8]>,
    /// The newest attempt.
    pub attempt: u32,
    /// Time since that attempt was claimed, by the store's clock.
    pub age: Duration,
    /// State of that attempt.
    pub state: HeldState,
}

/// State of a scope that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldState {
    /// The owner has not finished, and its lease is not over.
    Running {
        /// Delay in milliseconds after which a retry makes sense.
        retry_after_ms: u64,
    },
    /// The owner's lease is over. The next claim decides by the recovery mode what that means.
    Abandoned,
    /// The attempt failed without an effect; the next call may claim the scope, with any arguments.
    Released,
    /// The attempt succeeded; the sealed reply.
    Succeeded(Arc<[u8]>),
    /// The attempt failed for good; the sealed reply.
    Failed(Arc<[u8]>),
    /// The effect may have happened: it is not known.
    InDoubt,
    /// The scope is settled, and the reply is no longer stored.
    Expired,
}

/// Everything that becomes durable in one piece.
#[derive(Debug)]
pub struct Commit {
    /// Change to the call's idempotency key; `None` for a call without one.
    pub key: Option<KeyChange>,
    /// Versions that the call has read: a version that has changed since stops the commit.
    pub reads: Vec<DocumentRead>,
    /// Shapes of the collections that the call has scanned: an insert or delete since stops the commit.
    pub shapes: Vec<ShapeRead>,
    /// Documents to write. A key occurs at most once, and its version is in `reads`.
    pub writes: Vec<DocumentWrite>,
    /// Change to the money that was reserved for the call; `None` if none was.
    pub spend: Option<SpendChange>,
    /// The record; the store seals it before it commits.
    pub record: Draft,
}

impl Commit {
    /// True if the key or a document of this user is written.
    pub fn writes_of(&self, user_id: &str) -> bool {
        self.key.is_some() || self.writes.iter().any(|write| write.key.user_id == user_id)
    }
}

/// Change that a commit makes to the call's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyChange {
    /// Takes the scope and settles it at once: the effect is in this very commit, so no other call ever sees the scope
    /// running.
    Take {
        /// The scope to take.
        scope: Scope,
        /// As in a claim.
        fingerprint: [u8; 32],
        /// As in a claim.
        parts: Vec<u8>,
        /// The newest attempt that was seen; 0 if there was no row. Ours is the next one; the row must be absent, or
        /// `released` by exactly this attempt.
        after: u32,
        /// Outcome of the call; never in doubt and never abandoned.
        outcome: Outcome,
        /// Request id of the call that takes the scope, for operators.
        request_id: RequestId,
    },
    /// Ends a claim that was taken before the effect. The row must be `running` or `in_doubt` by exactly this attempt:
    /// an owner that was wrongly taken for lost may still report its outcome.
    Settle {
        /// The claim to settle.
        claim: Claim,
        /// Outcome of the call.
        outcome: Outcome,
    },
}

/// Outcome of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The call succeeded; a repeat gets this reply (A18).
    Succeeded {
        /// The sealed reply.
        reply: Vec<u8>,
        /// Retention of the reply, by the store's clock.
        keep: Duration,
    },
    /// The call failed for good; a repeat gets this reply.
    Failed {
        /// The sealed reply.
        reply: Vec<u8>,
        /// Retention of the reply, by the store's clock.
        keep: Duration,
    },
    /// The call failed and changed nothing; the next call may try again, with any arguments.
    Released,
    /// The call failed and may have changed something, and its [`Recovery`] may let the very same call run again: the
    /// scope is treated as if its owner's lease were over.
    Abandoned,
    /// The call failed and may have changed something; nothing runs until that is resolved.
    InDoubt,
}

/// Answer to a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitAnswer {
    /// Everything is durable.
    Committed,
    /// The scope was not free any more; this is its state. Nothing was done.
    Held(Held),
    /// Something that was read has changed since. Nothing was done.
    Moved {
        /// Collection of the first change that was found.
        collection: String,
        /// Its id; empty if the collection's shape changed.
        id: String,
    },
    /// The reservation for this commit has lapsed, because its owner was silent for too long. Nothing was done.
    Lapsed,
    /// The key that it was sealed under is no longer the user's: the user was erased. Nothing was done.
    Erased,
    /// The claim was overtaken, or settled by an operator. Only the record was stored, so that the log shows what the
    /// late owner did.
    Fenced,
}

/// Filter for the claims that an operator lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimQuery {
    /// Only claims in this state.
    pub state: Option<ClaimState>,
    /// Only claims of this user.
    pub user_id: Option<String>,
    /// Only claims of this tool.
    pub tool: Option<ToolName>,
    /// Only claims of the key with this digest.
    pub key: Option<KeyDigest>,
    /// Only claims that were taken last at this time or before.
    pub until: Option<Timestamp>,
    /// Only claims behind this one: the last of the page before, by the time of its claim and its scope.
    pub after: Option<(Timestamp, Scope)>,
    /// Maximum number of rows.
    pub limit: usize,
}

impl ClaimQuery {
    /// True if a claim matches everything but the state.
    pub fn matches(&self, scope: &Scope, claimed_at: Timestamp) -> bool {
        let user_id = self.user_id.as_ref();
        let after = self.after.as_ref();
        user_id.is_none_or(|user_id| *user_id == scope.user_id)
            && self.tool.as_ref().is_none_or(|tool| *tool == scope.tool)
            && self.key.is_none_or(|key| key == scope.key)
            && self.until.is_none_or(|until| claimed_at <= until)
            && after.is_none_or(|(at, last)| (claimed_at, scope) > (*at, last))
    }
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
    /// The claimed scope.
    pub scope: Scope,
    /// State of the claim.
    pub state: ClaimState,
    /// The newest attempt.
    pub attempt: u32,
    /// Request id of the call that took it last.
    pub request_id: RequestId,
    /// Time of the last claim.
    pub claimed_at: Timestamp,
    /// End of the owner's lease, if the claim is running.
    pub lease_until: Option<Timestamp>,
    /// Its sealed fingerprint parts.
    pub parts: Arc<[u8]>,
}

/// Counts of what a sweep has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Running claims that were marked in doubt.
    pub in_doubt: usize,
    /// Reservations of lost owners that were ended.
    pub lapsed: usize,
}

impl Swept {
    /// True if the sweep found nothing to do. If false, there may be more to sweep.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}
