//! Part of step 5: a call that cannot succeed is refused before anybody is asked about it. A person's
//! attention is scarce, and so are the questions that may be open.

use std::time::Duration;

use countersign_contract::Effect;

use super::Executor;
use super::bind::Bound;
use super::record::log_source;
use super::run::{guarded, is_validated_only};
use super::stop::Stop;
use super::trail::Trail;
use crate::context::{CallContext, Request};
use crate::state::State;

impl Executor {
    /// Runs the tool as a dry run would, which needs no confirmation either, and keeps nothing of it: no
    /// key, no money, no write. Its refusal is the answer.
    pub(super) async fn simulate(&self, bound: &mut Bound, trail: &Trail) -> Result<(), Stop> {
        let patience = bound.allowed.call.timeout.unwrap_or(Duration::MAX);
        let own = Duration::from_millis(bound.allowed.entry.spec().behaviour.deadline_ms);
        let left = own.min(self.left_of(patience, trail));
        let ctx = self.simulated_context(bound, trail, left);
        let start = || {
            let tool = bound.allowed.entry.tool();
            tool.call(&ctx, bound.arguments.clone())
        };
        let answer = guarded(start, left, &ctx.cancellation).await;
        // The run itself needs them.
        bound.allowed.call.extensions = ctx.extensions;
        match answer {
            Ok(_) => Ok(()),
            Err(error) => {
                log_source(&error);
                Err(error.into_body().into())
            }
        }
    }

    fn simulated_context(&self, bound: &mut Bound, trail: &Trail, left: Duration) -> CallContext {
        let parts = &self.parts;
        let request = Request {
            dry_run: true,
            ..bound.allowed.request.clone()
        };
        let call = &mut bound.allowed.call;
        CallContext {
            state: State::new(
                parts.store.clone(),
                parts.vault.clone(),
                parts.ids.clone(),
                request.user_id.clone(),
                bound.keys.clone(),
                true,
            ),
            request,
            raw: call.raw.clone(),
            issues: bound.issues.clone(),
            unreadable: bound.unreadable.clone(),
            extensions: std::mem::take(&mut call.extensions),
            trace: trail.trace,
            trace_state: trail.trace_state.clone(),
            cancellation: call.cancellation.clone(),
            clock: parts.clock.clone(),
            ids: parts.ids.clone(),
            deadline: parts.clock.monotonic().saturating_add(left),
            notes: std::sync::Mutex::default(),
            rules: parts.rules.clone(),
            pinned: None,
            frozen_at: None,
            downstream_key: None,
        }
    }
}

/// Whether a dry run of this call runs the tool. One of a read shows what has to be confirmed, so it is none.
pub(super) fn is_simulated(bound: &Bound) -> bool {
    let entry = &bound.allowed.entry;
    match entry.spec().behaviour.effect {
        Effect::Read => false,
        Effect::Write | Effect::External => !is_validated_only(entry),
    }
}
