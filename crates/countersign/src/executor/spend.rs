//! Spending: the amount of a call is reserved before it runs, and spent or given back in the commit that settles it.

use countersign_contract::{Actor, Effect, ErrorBody, ErrorCode, FaultSource};

use super::bind::{Bound, KeyedCall};
use super::claim::{Claimed, lease_of};
use super::record::{Recorded, Verdict};
use super::stop::Stop;
use super::trail::Trail;
use super::{Executor, store_fault};
use crate::budget::spent::{Spent, pseudonym};
use crate::budget::{Call, DrawnOn, Plan};
use crate::ledger::{
    Claim, Lapse, Overdrawn, ReservationId, Reserve, ReserveAnswer, SpendChange, SpendEnd,
};
use crate::vault::SHARED;
use crate::words::Say;

/// Money that is set aside for a call, or is going to be.
pub(super) struct Spending {
    id: ReservationId,
    lapse: Lapse,
    /// The plan; `None` if an earlier attempt has made the reservation.
    plan: Option<Plan>,
}

impl Executor {
    /// The budgets that a call draws on; `None` if no budget covers its tool. Their conditions are decided for the
    /// arguments that the tool gets, also if an approver has narrowed them.
    pub(super) fn drawn_on(&self, bound: &Bound, trail: &Trail) -> Result<Option<DrawnOn>, Stop> {
        let allowed = &bound.allowed;
        if !self.parts.budgets.covers(allowed.entry.name()) {
            return Ok(None);
        }
        let value = bound.arguments.to_value();
        let principal = allowed.named();
        let facts = allowed.facts(&principal, Some(&bound.arguments), &value, trail);
        Ok(Some(self.parts.budgets.drawn_on(&facts)?))
    }

    /// Plans the spending of a call; `None` if it draws on no budget, and no grant answered for it.
    pub(super) fn plan_spending(
        &self,
        claimed: &Claimed,
        proved_actor: &Actor,
        key: Option<&KeyedCall>,
        drawn_on: Option<&DrawnOn>,
    ) -> Result<Option<Spending>, Stop> {
        let tool = claimed.entry.name();
        if drawn_on.is_none() && claimed.granted.is_none() {
            return Ok(None);
        }
        let request = &claimed.ctx.request;
        let effect = claimed.entry.spec().behaviour.effect;
        let call = Call {
            user_id: &request.user_id,
            // The one that the credential proves: another name in the envelope opens no other pot.
            actor: proved_actor,
            session_id: request.session_id.as_deref(),
            currency: request.currency.as_deref(),
            tool,
            arguments: &claimed.arguments.to_value(),
            // A dry run claims nothing, so it needs no key.
            has_key: key.is_some_and(|key| !key.is_own) || request.dry_run,
            is_read: !effect.changes_something(),
            keys: &claimed.keys,
        };
        let plan = match drawn_on {
            Some(drawn_on) => Plan::of(&call, drawn_on.iter())?,
            None => None,
        };
        let plan = match &claimed.granted {
            Some(fit) => Some(Plan::with_grant(plan, &fit.id, tool, &fit.draws)),
            None => plan,
        };
        let lapse = match effect {
            Effect::Write => Lapse::Release,
            Effect::External if key.is_some_and(|key| !key.is_own) => Lapse::ByClaim,
            Effect::Read | Effect::External => Lapse::Spend,
        };
        Ok(plan.map(|plan| Spending {
            id: ReservationId {
                user_id: request.user_id.clone(),
                id: self.parts.ids.snapshot_id(),
            },
            lapse,
            plan: Some(plan),
        }))
    }

    /// Reserves the money for a call that takes no claim before it runs. A dry run only checks that there would be
    /// enough.
    pub(super) async fn reserve(&self, claimed: &Claimed) -> Result<(), Stop> {
        let Some(request) = reserve_of(claimed) else {
            return Ok(());
        };
        let answer = if claimed.ctx.is_dry_run() {
            self.parts.store.check(&request.draws).await
        } else {
            self.parts.store.reserve(&request).await
        };
        match answer.map_err(|error| store_fault(&error))? {
            ReserveAnswer::Reserved => Ok(()),
            ReserveAnswer::Over(over) => Err(over_budget(claimed, &over)),
        }
    }

    /// The reservation of an earlier attempt whose effect was found.
    pub(super) async fn spending_of(&self, claim: &Claim) -> Result<Option<Spending>, Stop> {
        let id = self.parts.store.reserved(claim).await;
        let id = id.map_err(|error| store_fault(&error))?;
        Ok(id.map(|id| Spending {
            id,
            lapse: Lapse::ByClaim,
            plan: None,
        }))
    }

    /// The amounts by which a commit charges its pots at least, for its record. None are named where the record cannot know: for the
    /// reservation of an earlier attempt, and where it may have lapsed unnoticed.
    pub(super) async fn spent(
        &self,
        recorded: &Recorded,
        claimed: &Claimed,
        change: Option<&SpendChange>,
    ) -> Result<Vec<Spent>, Stop> {
        let (Some(change), Some(spending)) = (change, &claimed.spending) else {
            return Ok(Vec::new());
        };
        let actual = match &change.end {
            SpendEnd::Released => return Ok(Vec::new()),
            SpendEnd::Spent(actual) | SpendEnd::SpentHere(actual) => actual,
        };
        let may_have_lapsed =
            recorded.verdict == Verdict::InDoubt && spending.lapse == Lapse::Release;
        let Some(plan) = spending.plan.as_ref().filter(|_| !may_have_lapsed) else {
            return Ok(Vec::new());
        };
        let mut spent = Vec::with_capacity(plan.draws.len());
        for (n, draw) in plan.draws.iter().enumerate() {
            let is_shared = draw.pot.user_id.is_empty();
            let pot = if is_shared {
                let keys = self.parts.vault.key(SHARED).await;
                pseudonym(&*keys.map_err(|error| store_fault(&error))?, &draw.pot)
            } else {
                pseudonym(&claimed.keys, &draw.pot)
            };
            let actual = actual.get(n).copied().flatten();
            spent.push(Spent {
                pot,
                window_seconds: draw.pot.window_seconds,
                // A lost owner's reservation is charged as it was set aside.
                amount: actual.map_or(draw.amount, |actual| actual.min(draw.amount)),
                is_shared,
            });
        }
        Ok(spent)
    }

    /// Gives back the reservation for a commit that will not happen. If that fails, it is given back when its lease is
    /// over.
    pub(super) async fn give_back(&self, claimed: &mut Claimed) {
        let Some(spending) = claimed.spending.take() else {
            return;
        };
        match spending.lapse {
            Lapse::Release => {
                if let Err(error) = self.parts.store.release(&spending.id).await {
                    store_fault(&error);
                }
            }
            // The effect may be there: its claim decides, or it counts as spent.
            Lapse::Spend | Lapse::ByClaim => {}
        }
    }
}

/// The reservation that a call requests from the store; `None` if it spends nothing, or if an earlier attempt has made
/// it.
pub(super) fn reserve_of(claimed: &Claimed) -> Option<Reserve> {
    let spending = claimed.spending.as_ref()?;
    Some(Reserve {
        id: spending.id.clone(),
        lease: lease_of(&claimed.entry.spec().behaviour),
        lapse: spending.lapse,
        draws: spending.plan.as_ref()?.draws.clone(),
    })
}

/// The change to a call's reservation in its commit; `None` if there is none, for a dry run, or as long as its claim is
/// in doubt.
pub(super) fn spend_change(claimed: &Claimed, recorded: &Recorded) -> Option<SpendChange> {
    if claimed.ctx.is_dry_run() {
        return None;
    }
    let Spending { id, lapse, plan } = claimed.spending.as_ref()?;
    let actual = || {
        let plan = plan.as_ref();
        plan.map_or_else(Vec::new, |plan| plan.actual(&recorded.reply.data))
    };
    let end = match (recorded.verdict, lapse) {
        (Verdict::Succeeded, Lapse::Release) => SpendEnd::SpentHere(actual()),
        (Verdict::Succeeded, Lapse::Spend | Lapse::ByClaim) => SpendEnd::Spent(actual()),
        (Verdict::Failed | Verdict::Released | Verdict::Abandoned, _) => SpendEnd::Released,
        (Verdict::InDoubt, Lapse::ByClaim) => return None,
        // Nobody can look it up, so it counts.
        (Verdict::InDoubt, Lapse::Release | Lapse::Spend) => SpendEnd::Spent(Vec::new()),
    };
    Some(SpendChange {
        id: id.clone(),
        end,
    })
}

/// The refusal of a call that a pot has not enough money for.
pub(super) fn over_budget(claimed: &Claimed, over: &Overdrawn) -> Stop {
    let plan = claimed.spending.as_ref().and_then(|it| it.plan.as_ref());
    plan.map_or_else(lapsed, |plan| plan.refusal(over).into())
}

/// The refusal of a call whose reservation lapsed because its owner was silent for too long. Nothing was done.
pub(super) fn lapsed() -> Stop {
    ErrorBody::new(ErrorCode::Timeout, Say::MoneyLapsed)
        .source(FaultSource::Gateway)
        .hint(Say::SameWithKey)
        .into()
}
