//! Step 5: whether the user has confirmed exactly this call (A13).

use countersign_contract::tool::Confirmation;
use countersign_contract::{ErrorBody, ErrorCode};

use super::bind::Bound;
use super::stop::Stop;
use super::trail::{Trail, micros};
use super::{Executor, gateway_fault};
use crate::approve::{Approval, Confirm};

/// A call that needs no confirmation, or has one.
pub(super) struct Confirmed(pub(super) Bound);

impl Executor {
    pub(super) async fn confirm(&self, bound: Bound, trail: &mut Trail) -> Result<Confirmed, Stop> {
        let behaviour = &bound.allowed.entry.spec().behaviour;
        // A dry run of a write changes nothing; one of a read would show what has to be confirmed.
        let is_harmless = bound.allowed.request.dry_run && behaviour.effect.changes_something();
        match behaviour.confirmation {
            Confirmation::Always if !is_harmless => self.ask(&bound, trail).await?,
            Confirmation::Always | Confirmation::Never => {}
        }
        Ok(Confirmed(bound))
    }

    async fn ask(&self, bound: &Bound, trail: &mut Trail) -> Result<(), Stop> {
        let parts = &self.parts;
        let request = &bound.allowed.request;
        let confirm = Confirm {
            request_id: request.request_id.clone(),
            actor: request.actor.clone(),
            user_id: request.user_id.clone(),
            tool: bound.allowed.entry.name().clone(),
            arguments_digest: bound.digest,
            arguments_redacted: trail.record.arguments_redacted.clone(),
            at: parts.clock.now(),
        };
        let asked = parts.clock.monotonic();
        let approval = parts.approver.ask(&confirm).await;
        let waited = parts.clock.monotonic().saturating_sub(asked);
        trail.record.phases.awaiting_approval_us = micros(waited);
        match approval.map_err(|error| gateway_fault(&error))? {
            Approval::Approved => Ok(()),
            Approval::Pending { approval_id, hint } => {
                let message = format!("the user has to confirm this call of {}", confirm.tool);
                Err(ErrorBody::new(ErrorCode::NeedsUserConfirmation, message)
                    .hint(hint)
                    .detail("approval_id", approval_id)
                    .into())
            }
            Approval::Denied => {
                let message = format!("the user has declined this call of {}", confirm.tool);
                Err(ErrorBody::new(ErrorCode::Forbidden, message)
                    .hint("do not send it again unless the user asks for it")
                    .into())
            }
        }
    }
}
