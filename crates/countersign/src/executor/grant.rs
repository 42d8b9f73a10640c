//! Part of step 5: a standing grant that answers in the user's place. Grants are explained in [`crate::grant`].

use countersign_contract::{ErrorBody, ToolName};

use super::bind::Bound;
use super::confirm::question;
use super::stop::Stop;
use super::trail::Trail;
use super::{Executor, store_fault};
use crate::approve::{Answer, Foreseen};
use crate::budget::grant_over;
use crate::grant::{Fit, Sought};
use crate::ledger::ReserveAnswer;
use crate::words::Say;

impl Executor {
    /// The grant that answers the question about a call; `None` if the user has to be asked. The reply of a dry run names
    /// it.
    pub(super) async fn grant_for(
        &self,
        bound: &Bound,
        is_harmless: bool,
        trail: &mut Trail,
    ) -> Result<Option<Box<Fit>>, Stop> {
        // Nobody agrees in the place of two people. A dry run of a read shows its answer and would count no use.
        if bound.allowed.four_eyes || (bound.allowed.request.dry_run && !is_harmless) {
            return Ok(None);
        }
        let fits = self.fitting(bound, trail).await?;
        if fits.is_empty() || self.is_answered(bound, trail).await? {
            return Ok(None);
        }
        let Some(fit) = self.with_enough(fits, bound, trail).await? else {
            return Ok(None);
        };
        if is_harmless {
            let grant = fit.id.clone();
            trail.warn("GRANTED", &Say::WouldBeGranted { grant });
        }
        trail.facts.links.extend(fit.links.iter().cloned());
        trail.facts.grant_id = Some(fit.id.as_str().into());
        Ok(Some(Box::new(fit)))
    }

    async fn fitting(&self, bound: &Bound, trail: &Trail) -> Result<Vec<Fit>, Stop> {
        let allowed = &bound.allowed;
        let arguments = bound.arguments.to_value();
        let principal = allowed.named();
        let sought = Sought {
            user_id: &allowed.request.user_id,
            // The one that the credential proves: another name in the envelope has no other grants.
            principal: &trail.facts.principal.actor,
            keys: &bound.keys,
            tool: allowed.entry.name(),
            definition: allowed.entry.digest(),
            currency: allowed.request.currency.as_deref(),
            arguments: &arguments,
            facts: allowed.facts(&principal, Some(&bound.arguments), &arguments, trail),
        };
        let fits = self.parts.grants.fitting(&sought).await;
        Ok(fits.map_err(|error| store_fault(&error))?)
    }

    /// True if the user has answered about this very call: a yes is used before a grant is, and a no stays a no.
    async fn is_answered(&self, bound: &Bound, trail: &Trail) -> Result<bool, Stop> {
        let question = question(bound, trail);
        Ok(match self.foresee(&question).await? {
            Foreseen::Approved(_) => true,
            Foreseen::Denied(answer) => match answer {
                // Somebody who asks too much may not ask; a grant asks nothing.
                Answer::Cooling { .. } => false,
                Answer::Denied { .. }
                | Answer::Approved(_)
                | Answer::Pending { .. }
                | Answer::Unasked
                | Answer::TooMany { .. } => true,
            },
            Foreseen::Pending | Foreseen::Asked | Foreseen::Unknown => false,
        })
    }

    /// The first grant whose pots have enough. A call that goes on where an earlier attempt was lost takes over what that
    /// one has reserved, so its claim decides.
    async fn with_enough(
        &self,
        fits: Vec<Fit>,
        bound: &Bound,
        trail: &Trail,
    ) -> Result<Option<Fit>, Stop> {
        let mut lacking = None;
        for fit in fits {
            let answer = self.parts.store.check(&fit.draws).await;
            match answer.map_err(|error| store_fault(&error))? {
                ReserveAnswer::Reserved => return Ok(Some(fit)),
                ReserveAnswer::Over(_) => {
                    lacking.get_or_insert(fit);
                }
            }
        }
        Ok(lacking.filter(|_| question(bound, trail).is_resumed))
    }

    /// The error of a call whose grant was revoked since it was found; `None` if it was not.
    pub(super) async fn grant_is_over(&self, fit: &Fit, tool: &ToolName) -> Option<ErrorBody> {
        match self.parts.grants.are_unchanged(&fit.reads).await {
            Ok(true) => None,
            Ok(false) => Some(grant_over(&fit.id, tool)),
            Err(error) => Some(store_fault(&error)),
        }
    }
}
