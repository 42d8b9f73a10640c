//! Step 3: whether there is budget for it. A call that has been answered before needs none, so the
//! key is looked up first.

use std::sync::Arc;
use std::time::Duration;

use countersign_contract::{ErrorBody, ErrorCode};
use countersign_evidence::seal::UserKey;

use super::authorize::Allowed;
use super::stop::Stop;
use super::trail::Trail;
use super::{Executor, gateway_fault, store_fault};
use crate::ledger::{Held, HeldState, KeyDigest, Scope};
use crate::limit::Admission;

/// A call that is within its limits, and how its key stands.
pub(super) struct Admitted {
    pub(super) allowed: Box<Allowed>,
    /// Everything personal in this call is sealed under it.
    pub(super) keys: Arc<UserKey>,
    /// The caller's own key, where the tool changes something. A read is always fresh.
    pub(super) scope: Option<Scope>,
    pub(super) held: Option<Held>,
    /// Who had left the key in this process before it was looked up.
    pub(super) left: u64,
}

impl Executor {
    pub(super) async fn admit(
        &self,
        allowed: Box<Allowed>,
        trail: &mut Trail,
    ) -> Result<Admitted, Stop> {
        let keys = self.keys_of(&allowed.request.user_id).await?;
        trail.facts.keys = Some(keys.clone());
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
            self.count(&allowed, trail.arrived).await?;
        }
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

    /// How a key stands, and who had left it in this process before that.
    pub(super) async fn look_up(&self, scope: &Scope) -> Result<(Option<Held>, u64), Stop> {
        let left = self.parts.joins.left(scope);
        let held = self.parts.store.lookup(scope).await;
        Ok((held.map_err(|error| store_fault(&error))?, left))
    }

    async fn count(&self, allowed: &Allowed, now: Duration) -> Result<(), Stop> {
        let tool = allowed.entry.name();
        let admission = self
            .parts
            .limiter
            .admit(&allowed.request.user_id, tool, now);
        match admission.await.map_err(|error| gateway_fault(&error))? {
            Admission::Admitted => Ok(()),
            Admission::Limited { retry_after_ms } => {
                let message = format!("the allowance for {tool} is used up");
                Err(ErrorBody::new(ErrorCode::RateLimited, message)
                    .retry_after_ms(retry_after_ms)
                    .hint("wait for retry_after_ms, then send the same call again")
                    .into())
            }
        }
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
