//! Part of step 5: the display that a person sees before they are asked. The tool runs once as a dry run, if it can
//! simulate, and says in its own words what the call would do. A call that cannot succeed is refused before a person is
//! asked about it: a person's attention is scarce, and so are the questions that may be open.

use std::sync::Arc;
use std::time::Duration;

use countersign_args::{Arguments, Unreadable};
use countersign_contract::{Effect, ErrorBody, Issue};
use countersign_evidence::seal::UserKey;

use super::Executor;
use super::bind::Bound;
use super::claim::Claimed;
use super::record::log_source;
use super::run::{guarded, is_validated_only};
use super::trail::Trail;
use crate::approve::Display;
use crate::cancel::Cancellation;
use crate::catalog::Entry;
use crate::context::{CallContext, Request};
use crate::extensions::Extensions;
use crate::state::State;
use crate::tool::ToolError;

/// A call as its tool would be given it, whichever step it has reached.
pub(super) struct Stage<'a> {
    entry: &'a Arc<Entry>,
    request: &'a Request,
    arguments: &'a Arguments,
    raw: &'a Arc<str>,
    issues: &'a [Issue],
    unreadable: &'a [Unreadable],
    extensions: &'a mut Extensions,
    cancellation: &'a Cancellation,
    keys: &'a Arc<UserKey>,
    /// The caller's time limit, from arrival on.
    patience: Duration,
}

impl<'a> Stage<'a> {
    /// A call that is about to be asked about.
    pub(super) fn of_bound(bound: &'a mut Bound) -> Self {
        let allowed = &mut *bound.allowed;
        let call = &mut *allowed.call;
        Self {
            entry: &allowed.entry,
            request: &allowed.request,
            arguments: &bound.arguments,
            raw: &call.raw,
            issues: &bound.issues,
            unreadable: &bound.unreadable,
            extensions: &mut call.extensions,
            cancellation: &call.cancellation,
            keys: &bound.keys,
            patience: call.timeout.unwrap_or(Duration::MAX),
        }
    }

    /// A call whose approval was used by another call.
    pub(super) fn of_claimed(claimed: &'a mut Claimed) -> Self {
        let ctx = &mut claimed.ctx;
        Self {
            entry: &claimed.entry,
            request: &ctx.request,
            arguments: &claimed.arguments,
            raw: &ctx.raw,
            issues: &ctx.issues,
            unreadable: &ctx.unreadable,
            extensions: &mut ctx.extensions,
            cancellation: &ctx.cancellation,
            keys: &claimed.keys,
            patience: claimed.patience,
        }
    }
}

impl Executor {
    /// Makes the display for the approver: the tool's own words, and the answer that the call would get. The tool runs
    /// as in a dry run, which needs no confirmation either, and nothing of it is stored: no key, no money, no write. If
    /// it refuses, that refusal is the answer.
    pub(super) async fn present(
        &self,
        stage: Stage<'_>,
        trail: &Trail,
    ) -> Result<Display, Box<ErrorBody>> {
        let own = Duration::from_millis(stage.entry.spec().behaviour.deadline_ms);
        let left = own.min(self.left_of(stage.patience, trail));
        let (entry, arguments) = (stage.entry.clone(), stage.arguments.clone());
        let extensions = std::mem::take(stage.extensions);
        let ctx = CallContext {
            extensions,
            ..self.simulated_context(&stage, trail, left)
        };
        let shown = presented(&entry, &ctx, &arguments, left).await;
        // The run itself needs them.
        *stage.extensions = ctx.extensions;
        shown.map_err(|error| {
            log_source(&error);
            Box::new(error.into_body())
        })
    }

    fn simulated_context(&self, stage: &Stage<'_>, trail: &Trail, left: Duration) -> CallContext {
        let parts = &self.parts;
        let request = Request {
            dry_run: true,
            ..stage.request.clone()
        };
        CallContext {
            state: State::new(
                parts.store.clone(),
                parts.vault.clone(),
                parts.ids.clone(),
                request.user_id.clone(),
                stage.keys.clone(),
                true,
            ),
            request,
            raw: stage.raw.clone(),
            issues: stage.issues.to_vec(),
            unreadable: stage.unreadable.to_vec(),
            extensions: Extensions::new(),
            trace: trail.trace,
            trace_state: trail.trace_state.clone(),
            cancellation: stage.cancellation.clone(),
            clock: parts.clock.clone(),
            ids: parts.ids.clone(),
            deadline: parts.clock.monotonic().saturating_add(left),
            notes: std::sync::Mutex::default(),
            rules: parts.rules.clone(),
            pinned: None,
            frozen_at: None,
            downstream_key: None,
            caller_token: trail.facts.principal.token.clone(),
        }
    }
}

async fn presented(
    entry: &Entry,
    ctx: &CallContext,
    arguments: &Arguments,
    left: Duration,
) -> Result<Display, ToolError> {
    let tool = entry.tool();
    let would_answer = if is_simulated(entry) {
        let start = || tool.call(ctx, arguments.clone());
        let reply = guarded(start, left, &ctx.cancellation).await?;
        // What the simulation has written is not there.
        ctx.state().reset();
        Some(reply.data)
    } else {
        None
    };
    let start = || tool.question(ctx, arguments.clone());
    let question = guarded(start, left, &ctx.cancellation).await?;
    Ok(Display::new(question.as_ref(), would_answer))
}

/// True if the tool runs for the display. A read does not: its answer is the very thing that has to be confirmed first.
fn is_simulated(entry: &Entry) -> bool {
    match entry.spec().behaviour.effect {
        Effect::Read => false,
        Effect::Write | Effect::External => !is_validated_only(entry),
    }
}
