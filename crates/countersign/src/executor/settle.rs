//! Step 9: key, state and record become durable together; the answer leaves after that.

use std::time::Duration;

use countersign_contract::{ConflictReason, Effect, ErrorBody, ErrorCode, ReplyEnvelope};

use super::bind::KeyedCall;
use super::claim::{Claimed, Hold, in_doubt, in_flight, standing};
use super::print::StoredReply;
use super::record::{Recorded, Verdict};
use super::stop::Stop;
use super::trail::{Trail, micros};
use super::{Executor, store_fault};
use crate::ledger::{Commit, CommitAnswer, Error, Held, HeldState, KeyChange, Outcome};
use crate::scribe::Draft;
use crate::state::Changes;

/// What is left to do for a call that has run.
pub(super) enum Settled {
    /// Nothing: the reply may leave.
    Committed(Box<ReplyEnvelope>),
    /// There is nothing to commit but the record.
    RecordOnly(Box<Recorded>),
}

/// How often a tool is run again for one call.
const RERUNS_MAX: u32 = 32;

impl Executor {
    /// None where something moved underneath the call: the tool is run again.
    pub(super) async fn settle(
        &self,
        recorded: Recorded,
        claimed: &mut Claimed,
        trail: &mut Trail,
    ) -> Result<Option<Settled>, Stop> {
        let changes = self.changes(&recorded, claimed, trail).await?;
        let key = self.key_change(&recorded, claimed, trail);
        if key.is_none() && changes.writes.is_empty() {
            return Ok(Some(Settled::RecordOnly(Box::new(recorded))));
        }
        self.note_settling(&recorded, trail);
        let Changes {
            reads,
            shapes,
            writes,
        } = changes;
        let record = self.draft(&recorded, &claimed.keys, trail.record.clone(), &trail.facts);
        let commit = Commit {
            key,
            reads,
            shapes,
            writes,
            record,
        };
        let answer = self.parts.store.commit(commit).await;
        match answer {
            Ok(CommitAnswer::Committed) => {
                trail.log();
                Ok(Some(Settled::Committed(recorded.reply)))
            }
            Ok(CommitAnswer::Moved { collection, id }) => {
                self.moved(claimed, &collection, &id).await.map(|()| None)
            }
            Ok(CommitAnswer::Held(held)) => overtaken(held, claimed).map(|()| None),
            Ok(CommitAnswer::Fenced) => Err(self.fenced(claimed).await),
            Err(error) => Err(commit_failed(&error, claimed).into()),
        }
    }

    /// Keeps the record of a call that has committed nothing else, and answers.
    pub(super) async fn finish(&self, recorded: Recorded, mut trail: Trail) -> ReplyEnvelope {
        self.note_settling(&recorded, &mut trail);
        trail.log();
        let request_id = recorded.reply.request_id.clone();
        let Trail { record, facts, .. } = trail;
        let draft = match &facts.keys {
            Some(keys) if self.parts.store.keeps_log() => {
                self.draft(&recorded, keys, record, &facts)
            }
            Some(_) | None => Draft::plain(recorded.id.clone(), record),
        };
        match self.parts.store.append(draft, recorded.durability).await {
            Ok(()) => *recorded.reply,
            // An answer without its record is no answer.
            Err(error) => ReplyEnvelope::failure(request_id, store_fault(&error)),
        }
    }

    /// What the commit itself takes cannot stand in the record that it commits.
    fn note_settling(&self, recorded: &Recorded, trail: &mut Trail) {
        let settling = self.parts.clock.monotonic().saturating_sub(recorded.ended);
        trail.record.phases.settling_us = micros(settling);
    }

    /// What the call has read and written; nothing of it where it failed or was a dry run.
    async fn changes(
        &self,
        recorded: &Recorded,
        claimed: &Claimed,
        trail: &Trail,
    ) -> Result<Changes, Stop> {
        let effect = claimed.entry.spec().behaviour.effect;
        let is_kept = recorded.verdict == Verdict::Succeeded
            && effect.changes_something()
            && !trail.record.dry_run;
        if !is_kept {
            claimed.ctx.state().reset();
            return Ok(Changes::default());
        }
        let changes = claimed.ctx.state().take().await;
        Ok(changes.map_err(|error| Box::new(error.into_body()))?)
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
                let keep = Duration::from_secs(keep);
                match recorded.verdict {
                    Verdict::Failed => Outcome::Failed { reply, keep },
                    Verdict::Succeeded | Verdict::Released | Verdict::InDoubt => {
                        Outcome::Succeeded { reply, keep }
                    }
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
                    request_id: trail.record.request_id.clone(),
                },
            ),
        };
        trail.keyed(&key.scope, attempt, recorded.verdict.as_str());
        Some(change)
    }

    /// Something that the tool has read is not what it was. It runs again, in turn with the others of
    /// this process; an effect elsewhere cannot be taken back and is not repeated.
    async fn moved(&self, claimed: &mut Claimed, collection: &str, id: &str) -> Result<(), Stop> {
        match claimed.entry.spec().behaviour.effect {
            Effect::Read | Effect::Write => {}
            Effect::External => return Err(in_doubt()),
        }
        let now = self.parts.clock.monotonic();
        if claimed.reruns >= RERUNS_MAX || now >= claimed.ctx.deadline {
            let message = format!("what the call has read in {collection} keeps changing");
            return Err(ErrorBody::new(ErrorCode::Conflict, message)
                .reason(ConflictReason::Version)
                .hint("send the same call again, with the same idempotency_key if it has one")
                .into());
        }
        claimed.reruns += 1;
        claimed.ctx.state().reset();
        // The old turn ends before the next one is waited for.
        claimed.turn = None;
        claimed.turn = self.parts.queue.turn(collection, id).await;
        Ok(())
    }

    /// Somebody has taken our claim over, or an operator has resolved it. What counts is theirs.
    async fn fenced(&self, claimed: &Claimed) -> Stop {
        let Some(key) = &claimed.key else {
            return in_flight(0);
        };
        let held = match self.look_up(&key.scope).await {
            Ok(held) => held,
            Err(stop) => return stop,
        };
        let key = KeyedCall {
            scope: key.scope.clone(),
            fingerprint: key.fingerprint.clone(),
            held,
        };
        let recovery = claimed.entry.spec().behaviour.recovery;
        standing(&key, &claimed.keys, recovery).unwrap_or_else(|| in_flight(RETRY_MS))
    }
}

const RETRY_MS: u64 = 200;

/// Another call with the key was faster. Its answer is ours, or it left the key free and we go on.
fn overtaken(held: Held, claimed: &mut Claimed) -> Result<(), Stop> {
    let recovery = claimed.entry.spec().behaviour.recovery;
    let Some(key) = &mut claimed.key else {
        return Err(in_flight(RETRY_MS));
    };
    let attempt = held.attempt;
    let is_free = matches!(held.state, HeldState::Released);
    let keyed = KeyedCall {
        scope: key.scope.clone(),
        fingerprint: key.fingerprint.clone(),
        held: Some(held),
    };
    if let Some(stop) = standing(&keyed, &claimed.keys, recovery) {
        return Err(stop);
    }
    if !is_free || claimed.reruns >= RERUNS_MAX {
        return Err(in_flight(RETRY_MS));
    }
    key.hold = Hold::AtCommit { after: attempt };
    claimed.reruns += 1;
    claimed.ctx.state().reset();
    Ok(())
}

/// The commit was not confirmed. With a key the same call finds out what happened; without one nobody
/// can.
fn commit_failed(error: &Error, claimed: &Claimed) -> ErrorBody {
    let mut body = store_fault(error);
    let is_unknown = match error {
        Error::Unavailable(_) => true,
        Error::DiskLow { .. }
        | Error::Full { .. }
        | Error::Damaged { .. }
        | Error::UnderHold { .. }
        | Error::Forked { .. } => false,
    };
    if is_unknown && claimed.key.is_none() {
        body.details.retryable = false;
        body.details.hint = Some(
            "whether the call was made is not known: look before you send it again, and use an \
             idempotency_key"
                .to_owned(),
        );
    }
    body
}
