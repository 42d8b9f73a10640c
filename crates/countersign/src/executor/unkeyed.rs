//! Part of step 4: a write that comes without a key (A5, A17).
//!
//! Agent frameworks send a call again when its answer is lost, and half of them cannot send a key. The executor then
//! makes a key of its own, from the caller, the session, the tool, the arguments and the time: the same call within the
//! window gets the first answer, with a warning. A model that means it again adds the argument `again`, with any value;
//! that value is part of the key, so such a call is made once as well.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign_args::Reading;
use countersign_contract::tool::Change;
use countersign_contract::{ActorType, Digest, Effect, Issue, IssueCode};
use countersign_evidence::seal::UserKey;
use serde_json::json;
use serde_json::value::RawValue;

use super::admit::scope_of;
use super::authorize::Allowed;
use super::stop::Stop;
use super::{Executor, store_fault};
use crate::again::{self, AGAIN};
use crate::authorize::UnkeyedWrites;
use crate::catalog::Entry;
use crate::ledger::{ClaimQuery, ClaimState, Held, HeldState, Scope};
use crate::observe::Surface;

/// The key of a call, the caller's or one that the executor made, and its state.
pub(super) struct MadeKey {
    pub(super) scope: Scope,
    pub(super) held: Option<Held>,
    pub(super) left: u64,
    /// Window of the key; `None` if it has no end.
    pub(super) window: Option<Duration>,
    /// True if no other call can have it: its caller sent none, and only the executor, the upstream and an operator use it.
    pub(super) is_own: bool,
}

impl Allowed {
    /// The rule for this call if it writes and has no key.
    pub(super) fn unkeyed(&self) -> UnkeyedWrites {
        let is_of_model = match self.call.origin.surface {
            Surface::Mcp | Surface::Provider => true,
            Surface::InProcess | Surface::Http => {
                self.call.principal.actor.kind == ActorType::Agent
            }
        };
        // What is said to change nothing may have another answer by now.
        let is_hinted = self.entry.spec().behaviour.change == Change::Nothing;
        let usual = if is_of_model && !is_hinted {
            UnkeyedWrites::Derive
        } else {
            UnkeyedWrites::Allow
        };
        self.unkeyed_writes.unwrap_or(usual)
    }
}

impl Executor {
    /// Finds the key of a call like this one within the window; makes a new one otherwise.
    pub(super) async fn key_of_window(
        &self,
        allowed: &Allowed,
        keys: &UserKey,
        digest: Digest,
        again: Option<&str>,
    ) -> Result<MadeKey, Stop> {
        let window = allowed.unkeyed_window;
        let seconds = i64::try_from(window.as_secs()).unwrap_or(i64::MAX).max(1);
        let now = self.parts.clock.now().as_second().div_euclid(seconds);
        let scope = |bucket: i64| scope_of(allowed, keys, &text(allowed, digest, again, bucket));
        // The first call may have been made just before the time of a new key began.
        let earlier = scope(now.saturating_sub(1));
        let is_running = self.parts.joins.is_running(&earlier);
        let (held, left) = self.look_up(&earlier).await?;
        if is_running || held.as_ref().is_some_and(|held| counts(held, window)) {
            return Ok(MadeKey {
                scope: earlier,
                held,
                left,
                window: Some(window),
                is_own: false,
            });
        }
        let current = scope(now);
        let (mut held, mut left) = self.look_up(&current).await?;
        let mut found = current;
        if held.is_none()
            && let Some(unfinished) = self.unfinished(allowed, seconds, &scope).await?
        {
            (held, left) = self.look_up(&unfinished).await?;
            found = unfinished;
        }
        Ok(MadeKey {
            scope: found,
            held,
            left,
            window: Some(window),
            is_own: false,
        })
    }

    /// Finds the key of a call like this one whose effect elsewhere may still happen or may have happened, however long
    /// ago it was made: time alone does not make the same call another one while its outcome is unknown.
    async fn unfinished(
        &self,
        allowed: &Allowed,
        seconds: i64,
        scope: &(dyn Fn(i64) -> Scope + Sync),
    ) -> Result<Option<Scope>, Stop> {
        match allowed.entry.spec().behaviour.effect {
            Effect::Read | Effect::Write => return Ok(None),
            Effect::External => {}
        }
        for state in [ClaimState::InDoubt, ClaimState::Running] {
            let query = ClaimQuery {
                state: Some(state),
                user_id: Some(allowed.request.user_id.clone()),
                tool: Some(allowed.entry.name().clone()),
                limit: UNFINISHED_MAX,
                ..ClaimQuery::default()
            };
            let rows = self.parts.store.claims(&query).await;
            let rows = rows.map_err(|error| store_fault(&error))?;
            let found = rows.into_iter().find(|row| {
                let claimed = row.claimed_at.as_second().div_euclid(seconds);
                // A call may have waited for its user between its key and its claim.
                let windows = claimed.saturating_sub(WINDOWS_BACK)..=claimed.saturating_add(1);
                windows.rev().any(|at| scope(at).key == row.scope.key)
            });
            if let Some(row) = found {
                return Ok(Some(row.scope));
            }
        }
        Ok(None)
    }

    /// Makes a key that only this call has. An external effect is claimed and recorded before it begins, even if the
    /// caller sends no key, so that a crash leaves a trace of it; and the upstream gets a key that is the same for
    /// every attempt.
    pub(super) fn own_key(&self, allowed: &Allowed, keys: &UserKey) -> MadeKey {
        let text = format!("own:{}", self.parts.ids.snapshot_id());
        MadeKey {
            scope: scope_of(allowed, keys, &text),
            held: None,
            left: 0,
            window: Some(allowed.unkeyed_window),
            is_own: true,
        }
    }
}

/// Maximum number of a user's unfinished calls of a tool that a repeat is looked for in.
const UNFINISHED_MAX: usize = 256;

/// Number of windows before its claim in which the key of a call may have been made.
const WINDOWS_BACK: i64 = 8;

/// True if an earlier call still counts as the same call as a repeat.
fn counts(held: &Held, window: Duration) -> bool {
    match held.state {
        HeldState::Succeeded(_) | HeldState::Failed(_) => held.age <= window,
        // What has not ended may still have its effect, however long ago it began.
        HeldState::Running { .. } | HeldState::Abandoned | HeldState::InDoubt => true,
        HeldState::Released | HeldState::Expired => false,
    }
}

/// The text that a made key is the digest of: two calls with the same text are the same call.
fn text(allowed: &Allowed, digest: Digest, again: Option<&str>, bucket: i64) -> String {
    let request = &allowed.request;
    let proved = &allowed.call.principal.actor;
    // A model names each of its calls: where that name arrives, it tells a repeat from a second call.
    let call_id = match allowed.call.origin.surface {
        Surface::Provider => allowed.call.origin.call_id.as_deref(),
        Surface::Mcp | Surface::Http | Surface::InProcess => None,
    };
    let parts = json!([
        "unkeyed",
        [proved, request.actor],
        [request.session_id, call_id],
        [request.currency, request.timezone],
        digest.to_string(),
        again,
        bucket,
    ]);
    parts.to_string()
}

/// The arguments without `again`, and its value, if the text has it and the declaration does not.
pub(super) fn without_again(
    entry: &Entry,
    raw: &str,
    reading: &Reading,
) -> Option<(String, Option<String>)> {
    let binder = entry.again.get_or_init(|| {
        let binder = again::binder(entry.spec())?;
        Some(binder.with_limits(*entry.binder.limits()))
    });
    let binder = binder.as_ref()?;
    let bound = binder.bind_with(raw, reading);
    let arguments = bound.arguments.filter(|_| bound.status.is_executable())?;
    // Numbers stay the text that they are.
    let mut members: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(arguments.as_json()).ok()?;
    let again = members.remove(AGAIN)?;
    let is_meant = !matches!(again.get(), "false" | "null" | "0" | "1");
    let rest = serde_json::to_string(&members).ok()?;
    Some((rest, is_meant.then(|| again.get().to_owned())))
}

/// True if the binder did not know the name `again`.
pub(super) fn is_unknown(issues: &[Issue]) -> bool {
    issues.iter().any(|issue| {
        issue.path.strip_prefix('/') == Some(AGAIN)
            && matches!(
                issue.code,
                IssueCode::UnknownKey | IssueCode::UnknownKeyDropped
            )
    })
}
