//! Step 9: key, state and record become durable together; the reply leaves after that.

use std::time::Duration;

use countersign_contract::{ConflictReason, Effect, ErrorBody, ErrorCode, ReplyEnvelope};

use super::claim::{Claimed, Hold, exhausted, in_flight};
use super::draft::Written;
use super::print::StoredReply;
use super::record::{Recorded, Verdict, forbid_repeat, is_harmless_again, may_repeat};
use super::spend::{lapsed, spend_change};
use super::stop::Stop;
use super::trail::{Trail, micros};
use super::{Executor, store_fault};
use crate::approve::COLLECTION;
use crate::budget::grant_over;
use crate::grant;
use crate::ledger::{Commit, CommitAnswer, Error, Held, HeldState, KeyChange, Outcome};
use crate::scribe::{Draft, FENCED};
use crate::state::Changes;
use crate::words::Say;

/// The remaining work for a call that has run.
pub(super) enum Settled {
    /// Nothing: the reply may leave.
    Committed(Box<ReplyEnvelope>),
    /// A commit of the record only.
    RecordOnly(Box<Recorded>),
}

/// Maximum number of reruns of a tool for one call.
const RERUNS_MAX: u32 = 32;

impl Executor {
    /// Commits a call. `None` if a document that it has read changed meanwhile: the tool is run again.
    pub(super) async fn settle(
        &self,
        recorded: Recorded,
        claimed: &mut Claimed,
        trail: &mut Trail,
    ) -> Result<Option<Settled>, Stop> {
        let settled = self.settle_once(recorded, claimed, trail).await;
        if settled.is_err() {
            self.give_back(claimed).await;
        }
        settled
    }

    async fn settle_once(
        &self,
        recorded: Recorded,
        claimed: &mut Claimed,
        trail: &mut Trail,
    ) -> Result<Option<Settled>, Stop> {
        let mut changes = self.changes(&recorded, claimed, trail).await?;
        let key = self.key_change(&recorded, claimed, trail);
        let uses_approval = take_approval(&mut changes, &recorded, claimed);
        rest_on_grant(&mut changes, &recorded, claimed);
        let spend = spend_change(claimed, &recorded);
        let user_id = trail.record.user_id.as_str();
        let shared = match claimed.entry.spec().behaviour.effect {
            Effect::Read | Effect::Write => None,
            Effect::External => Some(changes.without(user_id)),
        };
        if key.is_none() && spend.is_none() && changes.writes.is_empty() {
            return Ok(Some(Settled::RecordOnly(Box::new(recorded))));
        }
        self.note_settling(&recorded, trail);
        let Changes {
            reads,
            shapes,
            writes,
        } = changes;
        let told = trail.record.clone();
        let written = Written {
            documents: &writes,
            spent: self.spent(&recorded, claimed, spend.as_ref()).await?,
        };
        let record = self.draft(&recorded, &claimed.keys, told, &trail.facts, &written);
        let commit = Commit {
            key,
            reads,
            shapes,
            writes,
            spend,
            record,
        };
        let answer = self.parts.store.commit(commit).await;
        match answer {
            Ok(CommitAnswer::Committed) => Ok(Some(Settled::Committed(recorded.reply))),
            // Another call has used the approval. What this one did is not there, and stays so.
            Ok(CommitAnswer::Moved { collection, .. })
                if uses_approval && collection == COLLECTION =>
            {
                trail.key_stands("refused");
                Err(self.approval_lost(claimed, trail).await)
            }
            // The grant was revoked meanwhile. What the call did is not there either.
            Ok(CommitAnswer::Moved { collection, .. }) if collection == grant::COLLECTION => {
                trail.key_stands("refused");
                Err(grant_lost(claimed))
            }
            Ok(CommitAnswer::Moved { collection, id }) => {
                let what = (collection.as_str(), id.as_str());
                self.moved(recorded, claimed, trail, what).await
            }
            Ok(CommitAnswer::Held(held)) => overtaken(&held, claimed, trail).map(|()| None),
            Ok(CommitAnswer::Lapsed) => {
                trail.key_stands("refused");
                Err(lapsed())
            }
            Ok(CommitAnswer::Fenced) => Err(self.fenced(claimed, trail).await),
            Ok(CommitAnswer::Erased) => {
                let erased = self.settle_erased(recorded, shared, claimed, trail);
                erased.await.map(Some)
            }
            Err(error) => Err(commit_failed(&error, claimed, recorded.verdict, trail).into()),
        }
    }

    /// Ends a call whose user was erased while it ran. An effect in the store is not made, because only its shared part
    /// could still be written. An effect elsewhere may have happened: the caller gets its answer, shared documents are
    /// written, and the record stays, without a name, as the erasure left the others.
    async fn settle_erased(
        &self,
        recorded: Recorded,
        shared: Option<Changes>,
        claimed: &Claimed,
        trail: &mut Trail,
    ) -> Result<Settled, Stop> {
        let erased = self.erased(&trail.record.user_id);
        let Some(shared) = shared else {
            trail.key_stands("refused");
            return Err(erased);
        };
        let told = trail.record.clone();
        let written = Written {
            documents: &shared.writes,
            spent: Vec::new(),
        };
        let record = self.draft(&recorded, &claimed.keys, told, &trail.facts, &written);
        let commit = Commit {
            key: None,
            reads: shared.reads,
            shapes: shared.shapes,
            writes: shared.writes,
            spend: spend_change(claimed, &recorded),
            record,
        };
        match self.parts.store.commit(commit).await {
            Ok(CommitAnswer::Committed) => Ok(Settled::Committed(recorded.reply)),
            Ok(
                CommitAnswer::Moved { .. }
                | CommitAnswer::Held(_)
                | CommitAnswer::Lapsed
                | CommitAnswer::Erased
                | CommitAnswer::Fenced,
            ) => Err(doubtful(claimed.has_callers_key()).into()),
            Err(error) => Err(commit_failed(&error, claimed, recorded.verdict, trail).into()),
        }
    }

    /// The refusal of a call whose user was erased meanwhile. The key that it was going to be sealed under is forgotten.
    pub(super) fn erased(&self, user_id: &str) -> Stop {
        self.parts.vault.forget(user_id);
        ErrorBody::new(ErrorCode::Conflict, Say::UserErased)
            .reason(ConflictReason::Version)
            .hint(Say::UserErasedHint)
            .into()
    }

    async fn approval_lost(&self, claimed: &mut Claimed, trail: &Trail) -> Stop {
        match &claimed.approved {
            Some(_) => Box::pin(self.ask_again(claimed, trail)).await.into(),
            None => in_flight(RETRY_MS),
        }
    }

    /// Stores the record of a call that has committed nothing else, and answers.
    pub(super) async fn finish(&self, recorded: Recorded, mut trail: Trail) -> ReplyEnvelope {
        self.note_settling(&recorded, &mut trail);
        let closing = self.closing(&trail);
        let request_id = recorded.reply.request_id.clone();
        let Trail {
            record,
            facts,
            language,
            ..
        } = trail;
        let draft = match &facts.keys {
            Some(keys) if self.parts.store.keeps_log() => {
                self.draft(&recorded, keys, record, &facts, &Written::default())
            }
            Some(_) | None => Draft::plain(recorded.id.clone(), record),
        };
        let reply = match self.parts.store.append(draft, recorded.durability).await {
            Ok(()) => *recorded.reply,
            // An answer without its record is no answer.
            Err(error) => {
                let mut body = store_fault(&error);
                if !recorded.is_repeatable {
                    forbid_repeat(&mut body);
                }
                ReplyEnvelope::failure(request_id, body.in_language(language))
            }
        };
        self.tell(closing, &reply);
        reply
    }

    /// Notes the time that settling took. It cannot be in the record that the commit itself writes.
    fn note_settling(&self, recorded: &Recorded, trail: &mut Trail) {
        let settling = self.parts.clock.monotonic().saturating_sub(recorded.ended);
        trail.record.phases.settling_us = micros(settling);
    }

    /// Reads and writes of the call; empty if it was a dry run, or if it failed and may be tried again. A final failure
    /// relies on what was read like a success does.
    async fn changes(
        &self,
        recorded: &Recorded,
        claimed: &Claimed,
        trail: &Trail,
    ) -> Result<Changes, Stop> {
        let effect = claimed.entry.spec().behaviour.effect;
        let is_final = match recorded.verdict {
            Verdict::Succeeded | Verdict::Failed => true,
            Verdict::Released | Verdict::Abandoned | Verdict::InDoubt => false,
        };
        if !is_final || !effect.changes_something() || trail.record.dry_run {
            claimed.ctx.state().reset();
            return Ok(Changes::default());
        }
        let changes = claimed.ctx.state().take().await;
        let mut changes = changes.map_err(|error| Box::new(error.into_body()))?;
        if recorded.verdict == Verdict::Failed {
            changes.writes.clear();
        }
        Ok(changes)
    }

    fn key_change(
        &self,
        recorded: &Recorded,
        claimed: &Claimed,
        trail: &mut Trail,
    ) -> Option<KeyChange> {
        let key = claimed.key.as_ref()?;
        let parts = &self.parts;
        let behaviour = &claimed.entry.spec().behaviour;
        let outcome = match recorded.verdict {
            Verdict::Released => Outcome::Released,
            Verdict::Abandoned => Outcome::Abandoned,
            Verdict::InDoubt => Outcome::InDoubt,
            Verdict::Succeeded | Verdict::Failed => {
                let stored = StoredReply {
                    at: recorded.at,
                    reply: (*recorded.reply).clone(),
                };
                let reply = stored.seal(&claimed.keys, &key.scope, &*parts.ids);
                // A20: at least as long as the answer may be relied on, and a day more.
                let window = recorded.reply.ttl_seconds.unwrap_or_default();
                let keep = u64::from(window) + behaviour.idempotency.retention_seconds;
                // A key that the executor made is looked up within its window, and in the one after it.
                let keep = match key.window {
                    Some(window) => window.saturating_mul(3),
                    None => Duration::from_secs(keep),
                };
                match recorded.verdict {
                    Verdict::Failed => Outcome::Failed { reply, keep },
                    Verdict::Succeeded
                    | Verdict::Released
                    | Verdict::Abandoned
                    | Verdict::InDoubt => Outcome::Succeeded { reply, keep },
                }
            }
        };
        let (attempt, change) = match &key.hold {
            Hold::Claimed(claim) => (
                claim.attempt,
                KeyChange::Settle {
                    claim: claim.clone(),
                    outcome,
                },
            ),
            Hold::AtCommit { after } => (
                after + 1,
                KeyChange::Take {
                    scope: key.scope.clone(),
                    fingerprint: key.fingerprint.whole,
                    parts: key.fingerprint.seal(&claimed.keys, &key.scope, &*parts.ids),
                    after: *after,
                    outcome,
                    request_id: trail.recorded_id(&claimed.keys),
                },
            ),
        };
        trail.keyed(&key.scope, attempt, recorded.verdict.as_str());
        Some(change)
    }

    /// Handles a document that changed after the tool read it. The tool runs again, in turn with the others of this
    /// process; an external effect is repeated only if that does no harm.
    async fn moved(
        &self,
        mut recorded: Recorded,
        claimed: &mut Claimed,
        trail: &mut Trail,
        (collection, id): (&str, &str),
    ) -> Result<Option<Settled>, Stop> {
        let behaviour = &claimed.entry.spec().behaviour;
        let has_key = claimed.key.is_some();
        let may_run_again = match behaviour.effect {
            Effect::Read | Effect::Write => true,
            Effect::External => is_harmless_again(behaviour.recovery, has_key),
        };
        if !may_run_again {
            recorded.verdict = Verdict::InDoubt;
            let given_up = self.give_up(
                recorded,
                claimed,
                trail,
                doubtful(claimed.has_callers_key()),
            );
            return given_up.await.map(Some);
        }
        if claimed.reruns < RERUNS_MAX {
            claimed.reruns += 1;
            claimed.ctx.state().reset();
            // The old turn ends before the next one is waited for.
            claimed.turn = None;
            let turn = self.parts.queue.turn(collection, id);
            // Those in front of us may take longer than we have.
            let left = claimed.ctx.remaining().min(TURN_MAX);
            let turn = trail.seat.left_for(tokio::time::timeout(left, turn));
            if let Some(Ok(turn)) = turn.await {
                claimed.turn = turn;
                return Ok(None);
            }
        }
        let collection = collection.to_owned();
        let body = ErrorBody::new(ErrorCode::Conflict, Say::KeepsChanging { collection })
            .reason(ConflictReason::Version)
            .hint(Say::SameWithKey);
        recorded.verdict = match behaviour.effect {
            Effect::Read | Effect::Write => Verdict::Released,
            Effect::External => Verdict::Abandoned,
        };
        let given_up = self.give_up(recorded, claimed, trail, body);
        given_up.await.map(Some)
    }

    /// Ends a call that has run and whose state could not be written. Its claim is settled, so that no other call waits
    /// for its lease; the tool's answer stays in the record.
    async fn give_up(
        &self,
        mut recorded: Recorded,
        claimed: &Claimed,
        trail: &mut Trail,
        body: ErrorBody,
    ) -> Result<Settled, Stop> {
        let is_claimed = match claimed.key.as_ref().map(|key| &key.hold) {
            Some(Hold::Claimed(_)) => true,
            Some(Hold::AtCommit { .. }) | None => false,
        };
        if !is_claimed {
            trail.key_stands("refused");
            return Err(body.into());
        }
        trail.record.code = Some(body.code);
        let request_id = trail.record.request_id.clone();
        let evidence = recorded.reply.evidence.take();
        let body = body.in_language(trail.language);
        let failed = ReplyEnvelope::failure(request_id, body);
        recorded.reply = Box::new(ReplyEnvelope { evidence, ..failed });
        let commit = Commit {
            key: self.key_change(&recorded, claimed, trail),
            reads: Vec::new(),
            shapes: Vec::new(),
            writes: Vec::new(),
            spend: spend_change(claimed, &recorded),
            record: self.draft(
                &recorded,
                &claimed.keys,
                trail.record.clone(),
                &trail.facts,
                &Written::default(),
            ),
        };
        match self.parts.store.commit(commit).await {
            Ok(CommitAnswer::Committed) => Ok(Settled::Committed(recorded.reply)),
            Ok(
                CommitAnswer::Fenced
                | CommitAnswer::Held(_)
                | CommitAnswer::Moved { .. }
                | CommitAnswer::Lapsed,
            ) => Err(self.fenced(claimed, trail).await),
            Ok(CommitAnswer::Erased) => {
                self.parts.vault.forget(&trail.record.user_id);
                Err(doubtful(claimed.has_callers_key()).into())
            }
            Err(error) => Err(commit_failed(&error, claimed, recorded.verdict, trail).into()),
        }
    }

    /// Answers a call whose claim was taken over, or resolved by an operator: that result counts.
    async fn fenced(&self, claimed: &Claimed, trail: &mut Trail) -> Stop {
        trail.key_stands(FENCED);
        let Some(key) = &claimed.key else {
            return in_flight(RETRY_MS);
        };
        let held = match self.look_up(&key.scope).await {
            Ok((held, _)) => held,
            Err(stop) => return stop,
        };
        let recovery = claimed.entry.spec().behaviour.recovery;
        held.and_then(|held| key.standing(&held, &claimed.keys, recovery))
            .unwrap_or_else(|| in_flight(RETRY_MS))
    }
}

/// Adds the use of the call's approval to its commit, if the call succeeded; a failure leaves the approval as it is.
/// True if there is one.
fn take_approval(changes: &mut Changes, recorded: &Recorded, claimed: &Claimed) -> bool {
    let ticket = claimed.approved.as_ref().and_then(|it| it.ticket.as_ref());
    let Some(using) = ticket.and_then(|ticket| ticket.using.as_ref()) else {
        return false;
    };
    match recorded.verdict {
        Verdict::Succeeded => {
            changes.reads.push(using.read.clone());
            changes.writes.push(using.write.clone());
            true
        }
        Verdict::Failed | Verdict::Released | Verdict::Abandoned | Verdict::InDoubt => false,
    }
}

/// Makes the commit of a call fail if its grant, or one that it is derived from, is revoked before it. An effect elsewhere
/// cannot be called back, so its record does not depend on that.
fn rest_on_grant(changes: &mut Changes, recorded: &Recorded, claimed: &Claimed) {
    let is_here = match claimed.entry.spec().behaviour.effect {
        Effect::Read | Effect::Write => true,
        Effect::External => false,
    };
    let is_done = match recorded.verdict {
        Verdict::Succeeded => true,
        Verdict::Failed | Verdict::Released | Verdict::Abandoned | Verdict::InDoubt => false,
    };
    if is_here
        && is_done
        && !claimed.ctx.is_dry_run()
        && let Some(fit) = &claimed.granted
    {
        changes.reads.extend(fit.reads.iter().cloned());
    }
}

/// The refusal of a call whose grant was revoked while it ran.
fn grant_lost(claimed: &Claimed) -> Stop {
    match &claimed.granted {
        Some(fit) => grant_over(&fit.id, claimed.entry.name()).into(),
        None => in_flight(RETRY_MS),
    }
}

const RETRY_MS: u64 = 200;

/// Maximum wait for a turn: the timer has this upper limit.
const TURN_MAX: Duration = Duration::from_hours(24);

/// The error for an effect that happened, but whose state could not be stored.
fn doubtful(has_key: bool) -> ErrorBody {
    let body =
        ErrorBody::new(ErrorCode::Conflict, Say::EffectNotStored).reason(ConflictReason::InDoubt);
    if has_key {
        body.hint(Say::LookUpFirst)
    } else {
        body.hint(Say::LookUpFirstNoKey)
    }
}

/// Handles a key that another call took first: its answer is ours, or it left the key free and we go on.
fn overtaken(held: &Held, claimed: &mut Claimed, trail: &mut Trail) -> Result<(), Stop> {
    trail.key_stands("refused");
    let behaviour = &claimed.entry.spec().behaviour;
    let Some(key) = &mut claimed.key else {
        return Err(in_flight(RETRY_MS));
    };
    if let Some(stop) = key.standing(held, &claimed.keys, behaviour.recovery) {
        return Err(stop);
    }
    let is_free = matches!(held.state, HeldState::Released);
    if !is_free || claimed.reruns >= RERUNS_MAX {
        return Err(in_flight(RETRY_MS));
    }
    if held.attempt >= behaviour.idempotency.attempts_max {
        return Err(exhausted(held.attempt));
    }
    key.hold = Hold::AtCommit {
        after: held.attempt,
    };
    claimed.reruns += 1;
    claimed.ctx.state().reset();
    Ok(())
}

/// The error for a commit that was not confirmed. With a key, the same call finds out what happened; without one, it
/// cannot be found out.
fn commit_failed(
    error: &Error,
    claimed: &Claimed,
    verdict: Verdict,
    trail: &mut Trail,
) -> ErrorBody {
    let mut body = store_fault(error);
    let is_unknown = match error {
        Error::Unavailable(_) => true,
        Error::DiskLow { .. }
        | Error::Full { .. }
        | Error::Damaged { .. }
        | Error::UnderHold { .. }
        | Error::Forked { .. } => false,
    };
    trail.key_stands(if is_unknown { "unknown" } else { "refused" });
    if (is_unknown && !claimed.has_callers_key()) || !may_repeat(claimed, verdict) {
        forbid_repeat(&mut body);
    }
    body
}
