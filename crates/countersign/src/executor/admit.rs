//! Step 3: rate limits. A call that has been answered before uses no allowance, so its key is looked up first.

use std::sync::Arc;
use std::time::Duration;

use countersign_args::Arguments;
use countersign_contract::{Digest, ErrorBody, ErrorCode};
use countersign_evidence::seal::UserKey;
use serde_json::Value;

use super::authorize::Allowed;
use super::bind::KeyedCall;
use super::stop::Stop;
use super::trail::Trail;
use super::{Executor, gateway_fault, store_fault};
use crate::ledger::{Held, HeldState, KeyDigest, Scope};
use crate::limit::{Admission, Attempt, Known, LimitName};
use crate::words::Say;

/// A call that is within its limits, and the state of its key.
pub(super) struct Admitted {
    pub(super) allowed: Box<Allowed>,
    /// The user's keys, which seal everything personal in this call.
    pub(super) keys: Arc<UserKey>,
    /// The caller's own key, if the tool changes something. A read is always fresh.
    pub(super) scope: Option<Scope>,
    pub(super) held: Option<Held>,
    /// Release counter of the key in this process, read before the look-up.
    pub(super) left: u64,
}

impl Executor {
    pub(super) async fn admit(
        &self,
        allowed: Box<Allowed>,
        trail: &mut Trail,
    ) -> Result<Admitted, Stop> {
        let keys = self.keys_of(&allowed.request.user_id).await?;
        trail.keyed_by(&keys);
        self.warn_of_reuse(&allowed.request.user_id, trail).await?;
        let spec = allowed.entry.spec();
        let key = allowed.request.idempotency_key.as_ref();
        let scope = key
            .filter(|_| spec.behaviour.effect.changes_something())
            .map(|key| scope_of(&allowed, &keys, key));
        let (held, left) = match &scope {
            Some(scope) => self.look_up(scope).await?,
            None => (None, 0),
        };
        if !is_answered(held.as_ref()) || allowed.request.dry_run {
            self.count(&allowed, &keys, trail).await?;
        }
        trail.is_admitted = true;
        Ok(Admitted {
            allowed,
            keys,
            scope,
            held,
            left,
        })
    }

    pub(super) async fn keys_of(&self, user_id: &str) -> Result<Arc<UserKey>, Stop> {
        let keys = self.parts.vault.key(user_id).await;
        Ok(keys.map_err(|error| store_fault(&error))?)
    }

    /// Looks up the state of a key; with the release counter of this process, read before the look-up.
    pub(super) async fn look_up(&self, scope: &Scope) -> Result<(Option<Held>, u64), Stop> {
        let left = self.parts.joins.left(scope);
        let held = self.parts.store.lookup(scope).await;
        Ok((held.map_err(|error| store_fault(&error))?, left))
    }

    async fn count(&self, allowed: &Allowed, keys: &UserKey, trail: &Trail) -> Result<(), Stop> {
        let principal = allowed.named();
        let facts = allowed.facts(&principal, None, &Value::Null, trail);
        let attempt = attempt_of(allowed, keys, trail.arrived, Known::Call(facts));
        Ok(self.count_attempt(&attempt).await?)
    }

    /// Counts a bound call against the limits whose conditions look at the arguments. A call that one of them refuses
    /// has used what it was counted against before.
    pub(super) async fn count_bound(
        &self,
        allowed: &Allowed,
        keys: &UserKey,
        arguments: &Arguments,
        trail: &Trail,
    ) -> Result<(), Stop> {
        if !self.parts.limiter.needs_arguments(allowed.entry.name()) {
            return Ok(());
        }
        let value = arguments.to_value();
        let principal = allowed.named();
        let facts = allowed.facts(&principal, Some(arguments), &value, trail);
        let attempt = attempt_of(allowed, keys, trail.arrived, Known::Arguments(facts));
        Ok(self.count_attempt(&attempt).await?)
    }

    /// Counts an attempt against the limits, or says which of them is used up.
    pub(super) async fn count_attempt(&self, attempt: &Attempt<'_>) -> Result<(), ErrorBody> {
        let admission = self.parts.limiter.admit(attempt, &*self.parts.store).await;
        let (limit, retry_after_ms) = match admission.map_err(|error| gateway_fault(&error))? {
            Admission::Admitted => return Ok(()),
            Admission::Undecided { limit } => {
                let tool = attempt.tool.to_string();
                return Err(
                    ErrorBody::new(ErrorCode::Forbidden, Say::DeniedByRule { tool })
                        .hint(Say::LimitUndecided)
                        .detail("limit", limit.as_str()),
                );
            }
            Admission::Limited {
                limit,
                retry_after_ms,
            } => (limit, retry_after_ms),
        };
        let message = match limit {
            LimitName::User => Say::UserLimit,
            LimitName::Agent => Say::AgentLimit,
            LimitName::Session => Say::SessionLimit,
            LimitName::Tool => Say::ToolLimit {
                tool: attempt.tool.to_string(),
            },
        };
        Err(ErrorBody::new(ErrorCode::RateLimited, message)
            .retry_after_ms(retry_after_ms)
            .hint(Say::WaitThenSame)
            .detail("limit", limit.as_str()))
    }

    /// Stops a model that repeats itself. A call that is sent again under its key is not counted, because a retry is
    /// what the caller was told to do.
    pub(super) async fn count_repeat(
        &self,
        allowed: &Allowed,
        keys: &UserKey,
        digest: &Digest,
        key: Option<&KeyedCall>,
        now: Duration,
    ) -> Result<(), Stop> {
        if key.is_some_and(|key| key.held.is_some()) {
            return Ok(());
        }
        let attempt = attempt_of(allowed, keys, now, Known::Nothing);
        let (breaker, store) = (&self.parts.breaker, &*self.parts.store);
        let counted = breaker.count(&attempt, digest, allowed.request.dry_run, store);
        let Some(repeated) = counted.await.map_err(|error| store_fault(&error))? else {
            return Ok(());
        };
        let message = Say::Repeated {
            tool: attempt.tool.to_string(),
            calls: repeated.calls.to_string(),
            seconds: repeated.within.as_secs().to_string(),
        };
        Err(ErrorBody::new(ErrorCode::RateLimited, message)
            .retry_after_ms(repeated.retry_after_ms)
            .hint(Say::StopRepeating)
            .detail("limit", "identical_calls")
            .into())
    }
}

fn attempt_of<'a>(
    allowed: &'a Allowed,
    keys: &'a UserKey,
    now: Duration,
    known: Known<'a>,
) -> Attempt<'a> {
    let request = &allowed.request;
    Attempt {
        user_id: &request.user_id,
        keys,
        actor: &request.actor,
        proved_actor: &allowed.call.principal.actor,
        session_id: request.session_id.as_deref(),
        tool: allowed.entry.name(),
        now,
        known,
    }
}

/// The scope of a key of this call (A17).
pub(super) fn scope_of(allowed: &Allowed, keys: &UserKey, key: &str) -> Scope {
    Scope {
        user_id: allowed.request.user_id.clone(),
        tool: allowed.entry.name().clone(),
        key: KeyDigest(keys.key_digest(key)),
    }
}

fn is_answered(held: Option<&Held>) -> bool {
    held.is_some_and(|held| match held.state {
        HeldState::Succeeded(_) | HeldState::Failed(_) => true,
        HeldState::Running { .. }
        | HeldState::Abandoned
        | HeldState::Released
        | HeldState::InDoubt
        | HeldState::Expired => false,
    })
}
