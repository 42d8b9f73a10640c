//! Step 6: the key is claimed. From here on exactly one call runs for this user, tool and key (A17).
//!
//! A tool's changes to its state are committed with the key, so the key is only looked at here and claimed by that very
//! commit. An external effect needs a durable claim before it begins.

use std::sync::Arc;
use std::time::Duration;

use countersign_args::Arguments;
use countersign_contract::tool::Recovery;
use countersign_contract::{Behaviour, ConflictReason, Effect, ErrorBody, ErrorCode};
use countersign_evidence::seal::UserKey;

use super::bind::KeyedCall;
use super::confirm::{Approved, Confirmed};
use super::joins::{Joined, Patience, Waited};
use super::print::{Fingerprint, StoredReply};
use super::queue::Turn;
use super::reconcile::{LookUp, Reconciliation};
use super::spend::{Spending, over_budget, reserve_of};
use super::stop::Stop;
use super::trail::Trail;
use super::{Executor, store_fault};
use crate::catalog::Entry;
use crate::context::CallContext;
use crate::grant::Fit;
use crate::ledger::{Claim, ClaimAnswer, ClaimRequest, Held, HeldState, Scope};
use crate::seat::CallSeat;
use crate::tool::Reply;
use crate::words::Say;

/// A call that may run: it holds its key, or it has none.
pub(super) struct Claimed {
    pub(super) entry: Arc<Entry>,
    pub(super) ctx: CallContext,
    pub(super) arguments: Arguments,
    pub(super) keys: Arc<UserKey>,
    pub(super) key: Option<HeldKey>,
    /// Time at which the tool has to have ended, because the lease of the claim may be over then; in the clock's monotonic time.
    pub(super) lease_ends: Option<Duration>,
    /// Reply of the first call, if it could be looked up; the tool is not run again.
    pub(super) found: Option<Reply>,
    /// The user's confirmation, if one is required.
    pub(super) approved: Option<Approved>,
    /// The standing grant that answered in the user's place, if one did.
    pub(super) granted: Option<Box<Fit>>,
    /// The error if the tool must not run after all, though its key is claimed.
    pub(super) barred: Option<ErrorBody>,
    /// The caller's time limit, from arrival on, without the time of waiting for the user.
    pub(super) patience: Duration,
    /// Number of reruns because a document changed that the tool had read.
    pub(super) reruns: u32,
    /// Turn among the calls of this process, held from the first collision on.
    pub(super) turn: Option<Turn>,
    /// Money that the call is going to spend, if a budget covers it.
    pub(super) spending: Option<Spending>,
}

impl Claimed {
    /// True if the caller can send the same call again under its key.
    pub(super) fn has_callers_key(&self) -> bool {
        self.key.as_ref().is_some_and(|key| !key.is_own)
    }
}

/// A key that this call holds.
pub(super) struct HeldKey {
    pub(super) scope: Scope,
    pub(super) fingerprint: Fingerprint,
    pub(super) hold: Hold,
    /// Window of the call that took the key.
    pub(super) window: Option<Duration>,
    /// True if the caller does not know the key.
    pub(super) is_own: bool,
    _joined: Joined,
}

/// The way in which a call holds its key.
pub(super) enum Hold {
    /// The commit takes it, if this is still the newest attempt.
    AtCommit {
        /// The newest attempt that was seen; 0 if there was none.
        after: u32,
    },
    /// It was claimed before the effect.
    Claimed(Claim),
}

enum Taking {
    Ours(Hold),
    Found(Claim, Reply),
    /// A call in another process holds the key.
    Elsewhere {
        retry_after_ms: u64,
    },
    /// The key changed while we looked.
    Again,
}

impl Executor {
    pub(super) async fn claim(
        &self,
        confirmed: Confirmed,
        trail: &mut Trail,
    ) -> Result<Claimed, Stop> {
        let drawn_on = self.drawn_on(&confirmed.bound, trail)?;
        let (mut claimed, key) = self.context_of(confirmed, trail);
        let actor = &trail.facts.principal.actor;
        claimed.spending = self.plan_spending(&claimed, actor, key.as_ref(), drawn_on.as_ref())?;
        // A dry run takes nothing (A4).
        let key = key.filter(|_| !claimed.ctx.is_dry_run());
        let Some(mut key) = key else {
            self.reserve(&claimed).await?;
            return Ok(claimed);
        };
        let behaviour = &claimed.entry.spec().behaviour;
        let join = Duration::from_millis(behaviour.idempotency.join_ms);
        let left = self.left_of(claimed.patience, trail);
        let mut patience = Patience::new(join.min(left));
        let mut retry_after_ms = RETRY_SOON_MS;
        let mut is_known = true;
        let mut tries = 0;
        loop {
            let entering = self.parts.joins.enter(&key.scope, &patience);
            let entered = trail.seat.unless_crowded(entering).await;
            let Some((joined, waited)) = entered.flatten() else {
                return Err(in_flight(retry_after_ms));
            };
            // Somebody of this process may have come and gone since the key was looked up.
            if waited || !is_known || key.left != self.parts.joins.left(&key.scope) {
                (key.held, key.left) = self.look_up(&key.scope).await?;
                if let Some(stop) = key.standing(&claimed.keys, behaviour.recovery) {
                    return Err(stop);
                }
            }
            is_known = false;
            // The lease begins when the store claims the key, which is not before it is asked.
            let asked = self.parts.clock.monotonic();
            let hold = match self.take(&claimed, &key, trail).await? {
                Taking::Ours(hold) => hold,
                Taking::Found(claim, reply) => {
                    claimed.spending = self.spending_of(&claim).await?;
                    claimed.found = Some(reply);
                    Hold::Claimed(claim)
                }
                Taking::Elsewhere { retry_after_ms: ms } => {
                    drop(joined);
                    retry_after_ms = ms;
                    if trail.seat.unless_crowded(patience.pause()).await != Some(true) {
                        return Err(in_flight(retry_after_ms));
                    }
                    continue;
                }
                Taking::Again if tries < TRIES_MAX => {
                    tries += 1;
                    continue;
                }
                Taking::Again => return Err(in_flight(retry_after_ms)),
            };
            if let Hold::Claimed(claim) = &hold
                && claimed.found.is_none()
            {
                let lease = lease_of(behaviour).saturating_sub(SETTLING);
                claimed.lease_ends = Some(asked.saturating_add(lease));
                self.note_intent(&mut claimed, claim, &key, trail).await;
            }
            claimed.key = Some(HeldKey {
                scope: key.scope,
                fingerprint: key.fingerprint,
                window: key.window,
                is_own: key.is_own,
                hold,
                _joined: joined,
            });
            return Ok(claimed);
        }
    }

    /// Waits for a call that runs under the same key, before a person is asked to confirm the same thing twice. Holds
    /// nothing.
    pub(super) async fn join(
        &self,
        key: &mut KeyedCall,
        keys: &UserKey,
        behaviour: &Behaviour,
        limit: Duration,
        seat: &CallSeat,
    ) -> Result<(), Stop> {
        let join = Duration::from_millis(behaviour.idempotency.join_ms);
        let mut patience = Patience::new(join.min(limit));
        loop {
            let running = key.held.as_ref().and_then(|held| match held.state {
                HeldState::Running { retry_after_ms } => Some(retry_after_ms),
                HeldState::Abandoned
                | HeldState::Released
                | HeldState::Succeeded(_)
                | HeldState::Failed(_)
                | HeldState::InDoubt
                | HeldState::Expired => None,
            });
            let waiting = self.parts.joins.wait(&key.scope, &patience);
            let waited = match (seat.unless_crowded(waiting).await, running) {
                (Some(Waited::ForNobody), None) => return Ok(()),
                (Some(Waited::ForNobody), Some(_)) => {
                    seat.unless_crowded(patience.pause()).await == Some(true)
                }
                (Some(Waited::ForOwner), _) => true,
                // The caller comes back later, as if patience had run out.
                (Some(Waited::TooLong) | None, _) => false,
            };
            if !waited {
                return Err(in_flight(running.unwrap_or(RETRY_SOON_MS)));
            }
            (key.held, key.left) = self.look_up(&key.scope).await?;
            if let Some(stop) = key.standing(keys, behaviour.recovery) {
                return Err(stop);
            }
        }
    }

    /// Time that is left of the caller's time limit, counted from arrival.
    pub(super) fn left_of(&self, patience: Duration, trail: &Trail) -> Duration {
        let elapsed = self.parts.clock.monotonic().saturating_sub(trail.arrived);
        patience.saturating_sub(elapsed.saturating_sub(trail.awaited()))
    }

    async fn take(
        &self,
        claimed: &Claimed,
        key: &KeyedCall,
        trail: &Trail,
    ) -> Result<Taking, Stop> {
        let behaviour = &claimed.entry.spec().behaviour;
        match behaviour.effect {
            Effect::Read | Effect::Write => {
                let taking = take_at_commit(key, key.attempts_max(behaviour))?;
                if matches!(taking, Taking::Ours(_)) {
                    self.reserve(claimed).await?;
                }
                return Ok(taking);
            }
            Effect::External => {}
        }
        let request = ClaimRequest {
            scope: key.scope.clone(),
            fingerprint: key.fingerprint.whole,
            parts: key
                .fingerprint
                .seal(&claimed.keys, &key.scope, &*self.parts.ids),
            recovery: behaviour.recovery,
            lease: lease_of(behaviour),
            attempts_max: key.attempts_max(behaviour),
            request_id: trail.recorded_id(&claimed.keys),
            sealed_under: Some(claimed.keys.id()),
            spend: reserve_of(claimed),
        };
        let answer = self.parts.store.claim(&request).await;
        let held = match answer.map_err(|error| store_fault(&error))? {
            ClaimAnswer::Ours(claim) => return Ok(Taking::Ours(Hold::Claimed(claim))),
            ClaimAnswer::Exhausted { attempts } => return Err(exhausted(attempts)),
            ClaimAnswer::Over(over) => return Err(over_budget(claimed, &over)),
            ClaimAnswer::Erased => return Err(self.erased(&key.scope.user_id)),
            ClaimAnswer::Held(held) => held,
        };
        let (scope, print, keys) = (&key.scope, &key.fingerprint, &claimed.keys);
        if let Some(stop) = standing(&held, scope, print, keys, behaviour.recovery) {
            return Err(stop);
        }
        match held.state {
            HeldState::Running { retry_after_ms } => Ok(Taking::Elsewhere { retry_after_ms }),
            HeldState::InDoubt => self.take_in_doubt(claimed, key, &held).await,
            // Left between our claim and the store's answer: the next try takes it.
            HeldState::Abandoned
            | HeldState::Released
            | HeldState::Succeeded(_)
            | HeldState::Failed(_)
            | HeldState::Expired => Ok(Taking::Again),
        }
    }

    /// Asks the tool for the result of a call whose owner was lost.
    async fn take_in_doubt(
        &self,
        claimed: &Claimed,
        key: &KeyedCall,
        held: &Held,
    ) -> Result<Taking, Stop> {
        let grace = match claimed.entry.spec().behaviour.recovery {
            Recovery::Reconcile { grace_seconds } => Duration::from_secs(grace_seconds),
            Recovery::Operator | Recovery::Retry | Recovery::DownstreamKey { .. } => {
                return Err(in_doubt());
            }
        };
        let claim = Claim {
            scope: key.scope.clone(),
            attempt: held.attempt,
        };
        let look = LookUp {
            entry: &claimed.entry,
            ctx: &claimed.ctx,
            arguments: &claimed.arguments,
            keys: &claimed.keys,
            claim: &claim,
            by: None,
        };
        let found = Box::pin(self.reconcile(&look, held.age, grace)).await;
        match found.map_err(|error| store_fault(&error))? {
            Reconciliation::Happened(reply) => Ok(Taking::Found(claim, reply)),
            Reconciliation::DidNot(_) => Ok(Taking::Again),
            Reconciliation::Unknown => Err(in_doubt()),
            Reconciliation::TooEarly { retry_after_ms } => Err(in_doubt_until(retry_after_ms)),
        }
    }
}

/// Lease of a claim: the time for which its owner may be silent.
pub(super) fn lease_of(behaviour: &Behaviour) -> Duration {
    Duration::from_millis(behaviour.deadline_ms) + LEASE_MARGIN
}

/// Time that an owner has for settling after its deadline.
const LEASE_MARGIN: Duration = Duration::from_secs(5);

/// Part of a lease in which its owner runs nothing: another process may take over at its end.
const SETTLING: Duration = Duration::from_secs(1);

const RETRY_SOON_MS: u64 = 50;

/// Maximum attempts to take a key that changes each time it is looked at.
const TRIES_MAX: u32 = 16;

impl KeyedCall {
    /// Decides if this call stops, by the state of its key when it was looked up; `None` if the call may go on.
    pub(super) fn standing(&self, keys: &UserKey, recovery: Recovery) -> Option<Stop> {
        let held = self.held.as_ref()?;
        standing(held, &self.scope, &self.fingerprint, keys, recovery)
    }

    /// Maximum number of attempts that fail without an effect. A key that the executor made is no promise of the
    /// caller's, so it has no maximum.
    fn attempts_max(&self, behaviour: &Behaviour) -> u32 {
        match self.window {
            Some(_) => u32::MAX,
            None => behaviour.idempotency.attempts_max,
        }
    }

    /// The reason why the call could not take its key now; `None` if it could. For a dry run, which takes none.
    pub(super) fn taken_now(&self, behaviour: &Behaviour) -> Option<Stop> {
        let held = self.held.as_ref()?;
        let attempts_max = self.attempts_max(behaviour);
        match held.state {
            HeldState::Running { retry_after_ms } => Some(in_flight(retry_after_ms)),
            HeldState::Released if held.attempt >= attempts_max => Some(exhausted(held.attempt)),
            HeldState::Abandoned
            | HeldState::InDoubt
            | HeldState::Released
            | HeldState::Succeeded(_)
            | HeldState::Failed(_)
            | HeldState::Expired => None,
        }
    }
}

impl HeldKey {
    /// Decides if this call stops, by the state of its key as the store answered it; `None` if the call may go on.
    pub(super) fn standing(&self, held: &Held, keys: &UserKey, recovery: Recovery) -> Option<Stop> {
        standing(held, &self.scope, &self.fingerprint, keys, recovery)
    }
}

/// Decides if a call with these arguments stops, by the state of a key that was taken before; `None` if the call may go
/// on and take the key, or wait for it.
fn standing(
    held: &Held,
    scope: &Scope,
    fingerprint: &Fingerprint,
    keys: &UserKey,
    recovery: Recovery,
) -> Option<Stop> {
    if let Some(way_out) = way_out(&held.state)
        && held.fingerprint != fingerprint.whole
    {
        let differing = fingerprint.differing(keys, scope, &held.parts);
        return Some(key_reused(differing, way_out));
    }
    match &held.state {
        // A claim decides whether an abandoned key may be taken over; a running one is waited for.
        HeldState::Released | HeldState::Running { .. } | HeldState::Abandoned => None,
        HeldState::InDoubt => match recovery {
            // The claim lets the tool look it up.
            Recovery::Reconcile { .. } => None,
            Recovery::Operator | Recovery::Retry | Recovery::DownstreamKey { .. } => {
                Some(in_doubt())
            }
        },
        HeldState::Succeeded(sealed) | HeldState::Failed(sealed) => {
            Some(match StoredReply::open(keys, scope, sealed) {
                Some(stored) => Stop::Replayed(Box::new(stored)),
                None => store_fault(&crate::ledger::Error::Damaged {
                    what: "the answer of a settled call".to_owned(),
                })
                .into(),
            })
        }
        HeldState::Expired => Some(conflict(
            ConflictReason::KeyExpired,
            Say::KeyExpired,
            Say::NewKeyForNewCall,
        )),
    }
}

/// A key that the commit will take: absent, or released by an earlier attempt.
fn take_at_commit(key: &KeyedCall, attempts_max: u32) -> Result<Taking, Stop> {
    let Some(held) = &key.held else {
        return Ok(Taking::Ours(Hold::AtCommit { after: 0 }));
    };
    match held.state {
        // Taken while the tool still had an effect elsewhere.
        HeldState::Running { retry_after_ms } => Ok(Taking::Elsewhere { retry_after_ms }),
        HeldState::Abandoned | HeldState::InDoubt => Err(in_doubt()),
        HeldState::Released if held.attempt >= attempts_max => Err(exhausted(held.attempt)),
        HeldState::Released
        | HeldState::Succeeded(_)
        | HeldState::Failed(_)
        | HeldState::Expired => Ok(Taking::Ours(Hold::AtCommit {
            after: held.attempt,
        })),
    }
}

pub(super) fn exhausted(attempts: u32) -> Stop {
    let attempts = attempts.to_string();
    let mut body = ErrorBody::new(ErrorCode::RateLimited, Say::Exhausted { attempts })
        .hint(Say::FindOutThenNewKey);
    body.details.retryable = false;
    body.into()
}

/// The hint for a caller who has used a key for other arguments; `None` if that is allowed, because the key was
/// released.
fn way_out(state: &HeldState) -> Option<Say> {
    match state {
        HeldState::Released => None,
        HeldState::Running { .. } => Some(Say::WaitThenOtherArguments),
        HeldState::Abandoned | HeldState::InDoubt => Some(Say::FirstMayHaveHappened),
        HeldState::Succeeded(_) | HeldState::Failed(_) => Some(Say::NewKeyOrFirstArguments),
        HeldState::Expired => Some(Say::NewKeyForNewCall),
    }
}

fn key_reused(paths: Vec<String>, way_out: Say) -> Stop {
    let message = if paths.is_empty() {
        Say::KeyReused
    } else {
        let shown = paths.iter().take(PATHS_SHOWN).map(String::as_str);
        let shown: Vec<_> = shown.collect();
        let paths = shown.join(", ");
        Say::KeyReusedAt { paths }
    };
    let mut body = ErrorBody::new(ErrorCode::Conflict, message)
        .reason(ConflictReason::KeyReused)
        .hint(way_out);
    if let Some(first) = paths.first() {
        body = body.field(first.clone()).detail("differing", paths);
    }
    body.into()
}

/// Maximum number of paths that a message names; all are in the details.
const PATHS_SHOWN: usize = 5;

pub(super) fn in_flight(retry_after_ms: u64) -> Stop {
    ErrorBody::new(ErrorCode::Conflict, Say::InFlight)
        .reason(ConflictReason::InFlight)
        .retry_after_ms(retry_after_ms)
        .hint(Say::WaitSameKey)
        .into()
}

pub(super) fn in_doubt() -> Stop {
    conflict(ConflictReason::InDoubt, Say::InDoubt, Say::LookUpFirst)
}

fn in_doubt_until(retry_after_ms: u64) -> Stop {
    ErrorBody::new(ErrorCode::Conflict, Say::InDoubtYet)
        .reason(ConflictReason::InDoubt)
        .retry_after_ms(retry_after_ms)
        .hint(Say::WaitSameKey)
        .into()
}

fn conflict(reason: ConflictReason, message: Say, hint: Say) -> Stop {
    ErrorBody::new(ErrorCode::Conflict, message)
        .reason(reason)
        .hint(hint)
        .into()
}
