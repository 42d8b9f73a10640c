//! Step 7: the tool runs, between a deadline, the caller's switch and a guard against panics.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};
use std::time::Duration;

use countersign_contract::envelope::Warning;
use countersign_contract::tool::Replay;
use countersign_contract::{Effect, ErrorBody, ErrorCode, FaultSource};

use super::Executor;
use super::authorize::Allowed;
use super::bind::KeyedCall;
use super::claim::Claimed;
use super::confirm::Confirmed;
use super::trail::{Trail, micros};
use crate::BoxFuture;
use crate::cancel::Cancellation;
use crate::catalog::Entry;
use crate::context::{CallContext, Notes};
use crate::state::State;
use crate::tool::{DryRun, Reply, ToolError};
use crate::words::Say;

/// A call that the tool has answered, or that was stopped while it ran.
pub(super) struct Done {
    pub(super) warnings: Vec<Warning>,
    pub(super) notes: Notes,
    pub(super) answer: Result<Reply, ToolError>,
    /// End of the run, in the clock's monotonic time.
    pub(super) ended: Duration,
}

impl Executor {
    /// Prepares the context that the tool will be given, before its key is claimed.
    pub(super) fn context_of(
        &self,
        confirmed: Confirmed,
        trail: &mut Trail,
    ) -> (Claimed, Option<KeyedCall>) {
        let parts = &self.parts;
        let Confirmed {
            bound,
            approved,
            granted,
        } = confirmed;
        let Allowed {
            entry,
            request,
            call,
            must_confirm: _,
            approval_valid_for: _,
            four_eyes: _,
            cool_down: _,
            unkeyed_writes: _,
            unkeyed_window: _,
            conditions: _,
        } = *bound.allowed;
        let may_write = match entry.spec().behaviour.effect {
            Effect::Read => false,
            Effect::Write | Effect::External => true,
        };
        let state = State::new(
            parts.store.clone(),
            parts.vault.clone(),
            parts.ids.clone(),
            request.user_id.clone(),
            bound.keys.clone(),
            may_write,
        );
        let key = bound.key.as_ref();
        let downstream_key =
            key.map(|key| key.scope.service_key(&bound.keys, &key.fingerprint.whole));
        let ctx = CallContext {
            request,
            raw: call.raw,
            issues: bound.issues,
            unreadable: bound.unreadable,
            extensions: call.extensions,
            trace: trail.trace,
            trace_state: trail.trace_state.clone(),
            cancellation: call.cancellation,
            clock: parts.clock.clone(),
            ids: parts.ids.clone(),
            deadline: Duration::MAX,
            notes: std::sync::Mutex::default(),
            state,
            rules: parts.rules.clone(),
            pinned: None,
            frozen_at: None,
            downstream_key,
            caller_token: call.principal.token.clone(),
        };
        let claimed = Claimed {
            entry,
            ctx,
            arguments: bound.arguments,
            keys: bound.keys,
            key: None,
            lease_ends: None,
            found: None,
            approved,
            granted,
            barred: None,
            patience: call.timeout.unwrap_or(Duration::MAX),
            reruns: 0,
            turn: None,
            spending: None,
        };
        (claimed, bound.key)
    }

    pub(super) async fn run(&self, claimed: &mut Claimed, trail: &mut Trail) -> Done {
        let clock = &self.parts.clock;
        let started = clock.monotonic();
        if claimed.reruns == 0 {
            let phases = &mut trail.record.phases;
            phases.queued_us = micros(started.saturating_sub(trail.arrived))
                .saturating_sub(phases.awaiting_approval_us);
            // All runs of one call share its deadline.
            let own = Duration::from_millis(claimed.entry.spec().behaviour.deadline_ms);
            claimed.ctx.deadline = started.saturating_add(own).min(
                claimed
                    .patience
                    .saturating_add(trail.arrived + trail.awaited()),
            );
        }
        if let Some(ends) = claimed.lease_ends {
            claimed.ctx.deadline = claimed.ctx.deadline.min(ends);
            if started >= ends {
                claimed.barred.get_or_insert_with(late);
            }
        }
        if let Some(body) = claimed.barred.take() {
            return barred(claimed, body, started);
        }
        // Each run has its own time; a pure one sees nothing else, so that it can be computed again.
        let ran_at = trail.time_at(started);
        trail.facts.circumstances.ran_at = Some(ran_at);
        claimed.ctx.frozen_at = match claimed.entry.spec().behaviour.replay {
            Replay::Pure { .. } => Some(ran_at),
            Replay::Recorded => None,
        };
        let left = claimed.ctx.deadline.saturating_sub(started);
        let answer = self.answer(claimed, left).await;
        let ended = clock.monotonic();
        trail.record.phases.executing_us += micros(ended.saturating_sub(started));
        let (warnings, notes, answer) = with_notes(&claimed.ctx, answer);
        Done {
            warnings,
            notes,
            answer,
            ended,
        }
    }

    async fn answer(&self, claimed: &mut Claimed, left: Duration) -> Result<Reply, ToolError> {
        if let Some(found) = claimed.found.take() {
            return Ok(found);
        }
        let Claimed {
            entry,
            ctx,
            arguments,
            ..
        } = claimed;
        if ctx.is_dry_run() && is_validated_only(entry) {
            ctx.remark("VALIDATED_ONLY", Say::ValidatedOnly);
            return Ok(Reply::default());
        }
        let start = || entry.tool().call(ctx, arguments.clone());
        guarded(start, left, &ctx.cancellation).await
    }
}

/// The result of a call whose key is claimed and whose tool must not run: it ends like one that failed without an
/// effect, so that the key is free again.
fn barred(claimed: &Claimed, body: ErrorBody, ended: Duration) -> Done {
    let error = ToolError::from(body).without_effect();
    let (warnings, notes, answer) = with_notes(&claimed.ctx, Err(error));
    Done {
        warnings,
        notes,
        answer,
        ended,
    }
}

/// The refusal of a call whose claim was answered so late that another process may hold the key already.
fn late() -> ErrorBody {
    ErrorBody::new(ErrorCode::Timeout, Say::ClaimLate)
        .source(FaultSource::Gateway)
        .hint(Say::SameWithKey)
}

/// True if a dry run stops before the tool: the tool changes something and cannot simulate it (A4).
pub(crate) fn is_validated_only(entry: &Entry) -> bool {
    entry.spec().behaviour.effect.changes_something()
        && match entry.tool().dry_run() {
            DryRun::Validate => true,
            DryRun::Simulate => false,
        }
}

/// Joins the notes that the tool left in its context with its answer.
pub(super) fn with_notes(
    ctx: &CallContext,
    answer: Result<Reply, ToolError>,
) -> (Vec<Warning>, Notes, Result<Reply, ToolError>) {
    let mut notes = ctx.take_notes();
    let mut warnings: Vec<_> = ctx.issues.iter().cloned().map(Warning::Issue).collect();
    let remark = |(code, message)| Warning::Remark { code, message };
    warnings.extend(std::mem::take(&mut notes.remarks).into_iter().map(remark));
    let answer = answer.map(|mut reply| {
        warnings.extend(std::mem::take(&mut reply.remarks).into_iter().map(remark));
        reply.sources.append(&mut notes.sources);
        reply.ttl_seconds = reply.ttl_seconds.or(notes.ttl_seconds);
        reply
    });
    (warnings, notes, answer)
}

/// Drives a tool until it answers, panics, is cancelled or runs out of time.
///
/// The timer and the switch are only set up when the tool is not ready at once, so a tool that
/// answers from memory never pays for them.
pub(crate) async fn guarded<'a, T>(
    start: impl FnOnce() -> BoxFuture<'a, Result<T, ToolError>>,
    left: Duration,
    cancellation: &Cancellation,
) -> Result<T, ToolError> {
    if cancellation.is_cancelled() {
        return Err(cancelled().without_effect());
    }
    if left.is_zero() {
        return Err(overdue(left).without_effect());
    }
    // A tool may panic before it has made its future.
    let Ok(answer) = catch_unwind(AssertUnwindSafe(start)) else {
        return Err(panicked());
    };
    let mut answer = Contained(Some(answer));
    let mut watch = None;
    poll_fn(|cx| {
        if let Poll::Ready(answer) = answer.poll(cx) {
            return Poll::Ready(answer);
        }
        let (stopped, late) = watch.get_or_insert_with(|| {
            let stopped: BoxFuture<'_, ()> = Box::pin(cancellation.cancelled());
            (stopped, Box::pin(tokio::time::sleep(left)))
        });
        if stopped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(cancelled()));
        }
        if late.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(overdue(left)));
        }
        Poll::Pending
    })
    .await
}

/// A tool's future whose panics are contained, also those while it is dropped.
struct Contained<'a, T>(Option<BoxFuture<'a, Result<T, ToolError>>>);

impl<T> Contained<'_, T> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, ToolError>> {
        let Some(future) = &mut self.0 else {
            return Poll::Ready(Err(panicked()));
        };
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)))
            .unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    }
}

impl<T> Drop for Contained<'_, T> {
    fn drop(&mut self) {
        let future = self.0.take();
        if catch_unwind(AssertUnwindSafe(|| drop(future))).is_err() {
            tracing::error!("the tool panicked while it was being cancelled");
        }
    }
}

fn overdue(after: Duration) -> ToolError {
    let ms = after.as_millis().to_string();
    ErrorBody::new(ErrorCode::Timeout, Say::Overdue { ms })
        .source(FaultSource::Tool)
        .hint(Say::SameWithKey)
        .into()
}

fn cancelled() -> ToolError {
    ErrorBody::new(ErrorCode::Timeout, Say::Cancelled)
        .source(FaultSource::Gateway)
        .hint(Say::SameWithKey)
        .into()
}

/// The error for a tool that panicked. The panic's message stays out of the reply and out of our log: it may quote
/// arguments.
fn panicked() -> ToolError {
    tracing::error!("the tool panicked");
    ErrorBody::new(ErrorCode::UpstreamError, Say::ToolFailed)
        .source(FaultSource::Tool)
        .into()
}
