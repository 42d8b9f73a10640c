//! Step 3: whether there is budget for it. A call that has been answered before needs none, so the
//! key is looked up first.

use std::time::Duration;

use countersign_contract::{ErrorBody, ErrorCode};

use super::authorize::Allowed;
use super::stop::Stop;
use super::trail::Trail;
use super::{Executor, gateway_fault};
use crate::limit::Admission;
use crate::store::{Held, HeldState, Scope};

/// A call that is within its limits, and how its key stands.
pub(super) struct Admitted {
    pub(super) allowed: Box<Allowed>,
    /// The caller's own key, where the tool changes something. A read is always fresh.
    pub(super) scope: Option<Scope>,
    pub(super) held: Option<Held>,
}

impl Executor {
    pub(super) async fn admit(
        &self,
        allowed: Box<Allowed>,
        trail: &Trail,
    ) -> Result<Admitted, Stop> {
        let spec = allowed.entry.spec();
        let key = allowed.request.idempotency_key.as_ref();
        let scope = key
            .filter(|_| spec.behaviour.effect.changes_something())
            .map(|key| Scope {
                user_id: allowed.request.user_id.clone(),
                tool: spec.name.clone(),
                key: key.clone(),
            });
        let held = match &scope {
            Some(scope) => self.look_up(scope).await?,
            None => None,
        };
        if !is_answered(held.as_ref()) || allowed.request.dry_run {
            self.count(&allowed, trail.arrived).await?;
        }
        Ok(Admitted {
            allowed,
            scope,
            held,
        })
    }

    pub(super) async fn look_up(&self, scope: &Scope) -> Result<Option<Held>, Stop> {
        let held = self.parts.store.lookup(scope, self.parts.clock.now());
        Ok(held.await.map_err(|error| gateway_fault(&error))?)
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

fn is_answered(held: Option<&Held>) -> bool {
    held.is_some_and(|held| match held.state {
        HeldState::Succeeded(_) => true,
        HeldState::Running { .. }
        | HeldState::Released
        | HeldState::InDoubt
        | HeldState::Expired => false,
    })
}
