//! Remaining money in the pots of a user and an actor. Reading it reserves nothing.

use std::collections::BTreeSet;

use countersign_contract::Actor;
use jiff::{SignedDuration, Timestamp};

use super::draw::{PERSON, owner};
use super::{Budget, BudgetScope, Budgets, Currency, Money};
use crate::ledger::{self, Draw, PotKey, Pots, ReserveAnswer, window_start};

/// The remaining money of a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetLeft {
    /// The budget.
    pub name: String,
    /// Scope of the budget.
    pub scope: BudgetScope,
    /// Its currency.
    pub currency: Currency,
    /// Limit of a window.
    pub limit: Money,
    /// Amount that may still be spent; `None` if each session has a pot of its own.
    pub left: Option<Money>,
    /// Start of the next window; `None` if there is only one.
    pub resets_at: Option<Timestamp>,
}

impl BudgetLeft {
    /// True if nothing may be spent.
    pub fn is_used_up(&self) -> bool {
        self.left.is_some_and(|left| left.0 <= 0)
    }
}

/// A budget of which at most a tenth is left in its present window, for at least one of those whom it counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpentBudget {
    /// Its name.
    pub name: String,
    /// Start of the window in seconds since 1970; 0 if there is only one.
    pub window_start: i64,
}

/// A pot with little or nothing left in its present window, as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowPot {
    /// The budget, with the rest of this pot.
    pub budget: BudgetLeft,
    /// User that the pot belongs to; `None` if it belongs to no single user.
    pub user_id: Option<String>,
    /// Agent that the pot belongs to, as `agent:ID` or `system:ID`; `None` if it belongs to no agent.
    pub agent: Option<String>,
}

/// A pot is low if at most this part of its limit is left: one of this many.
const LOW_PART: i64 = 10;

impl Budgets {
    /// Pots of the present window of which at most a tenth is left, those of agents and of all callers first. Pots of sessions
    /// are left out: they end with their session. Amounts that are only reserved do not count: they may be given back.
    pub async fn low(
        &self,
        pots: &dyn Pots,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<LowPot>, ledger::Error> {
        let budgets = self.current();
        if budgets.is_empty() {
            return Ok(Vec::new());
        }
        let mut low = Vec::new();
        for row in pots.pots(None, limit).await? {
            let key = &row.key;
            let is_it = |budget: &&Budget| {
                budget.pot(&key.user_id, key.holder.clone()) == *key && is_of(budget.scope, key)
            };
            let Some(budget) = budgets.iter().find(is_it) else {
                continue;
            };
            let left = budget.limit.0.saturating_sub(row.spent);
            if row.window_start != window_start(now.as_second(), key.window_seconds)
                || !is_low(budget, row.spent)
            {
                continue;
            }
            let is_agents = budget.scope == BudgetScope::Agent && key.user_id.is_empty();
            low.push(LowPot {
                budget: BudgetLeft {
                    name: budget.name.clone(),
                    scope: budget.scope,
                    currency: budget.currency.clone(),
                    limit: budget.limit,
                    left: Some(Money(left)),
                    resets_at: next_window(now, key.window_seconds),
                },
                user_id: (!key.user_id.is_empty()).then(|| key.user_id.clone()),
                agent: is_agents.then(|| key.holder.clone()),
            });
        }
        Ok(low)
    }

    /// The budgets of which at most a tenth is left in their present window, and true if every pot was looked at. A call that costs
    /// more than the rest is refused, so a pot is seldom spent to the last cent. Amounts that are only reserved do not count:
    /// they may be given back.
    pub async fn spent(
        &self,
        pots: &dyn Pots,
        now: Timestamp,
        limit: usize,
    ) -> Result<(Vec<SpentBudget>, bool), ledger::Error> {
        let budgets = self.current();
        if budgets.is_empty() {
            return Ok((Vec::new(), true));
        }
        let rows = pots.pots(None, limit).await?;
        let is_complete = rows.len() < limit;
        let mut spent = BTreeSet::new();
        for row in rows {
            let is_it = |budget: &&Budget| {
                let pot = budget.pot(&row.key.user_id, row.key.holder.clone());
                pot == row.key && is_low(budget, row.spent)
            };
            let start = window_start(now.as_second(), row.key.window_seconds);
            if row.window_start == start
                && let Some(budget) = budgets.iter().find(is_it)
            {
                spent.insert(SpentBudget {
                    name: budget.name.clone(),
                    window_start: start,
                });
            }
        }
        Ok((spent.into_iter().collect(), is_complete))
    }

    /// The remaining money of each budget for a user and an actor, as a call of theirs would find it.
    pub async fn left(
        &self,
        user_id: &str,
        actor: &Actor,
        pots: &dyn Pots,
        now: Timestamp,
    ) -> Result<Vec<BudgetLeft>, ledger::Error> {
        let mut all = Vec::new();
        for budget in self.current().iter() {
            let left = match owner(budget.scope, user_id, actor) {
                None => None,
                Some((user_id, holder)) => {
                    // More than any pot has, so that the answer says what it has.
                    let draw = Draw {
                        pot: budget.pot(user_id, holder),
                        amount: i64::MAX,
                        limit: budget.limit.0,
                    };
                    match pots.check(&[draw]).await? {
                        ReserveAnswer::Over(over) => Some(Money(over.left)),
                        ReserveAnswer::Reserved => None,
                    }
                }
            };
            let window = budget.window.map_or(0, |window| window.as_secs());
            all.push(BudgetLeft {
                name: budget.name.clone(),
                scope: budget.scope,
                currency: budget.currency.clone(),
                limit: budget.limit,
                left,
                resets_at: next_window(now, window),
            });
        }
        Ok(all)
    }
}

/// True if at most a tenth of a budget is left.
fn is_low(budget: &Budget, spent: i64) -> bool {
    budget.limit.0.saturating_sub(spent) <= budget.limit.0 / LOW_PART
}

/// True if a pot is one that a budget of this scope draws on. A budget whose scope was changed leaves pots of the old one.
fn is_of(scope: BudgetScope, key: &PotKey) -> bool {
    let (has_user, has_holder) = (!key.user_id.is_empty(), !key.holder.is_empty());
    match scope {
        BudgetScope::Global => !has_user && !has_holder,
        BudgetScope::User => has_user && !has_holder,
        BudgetScope::Agent => has_holder && (!has_user || key.holder == PERSON),
        BudgetScope::Session => false,
    }
}

fn next_window(now: Timestamp, window_seconds: u64) -> Option<Timestamp> {
    let window = i64::try_from(window_seconds)
        .ok()
        .filter(|window| *window > 0)?;
    let start = Timestamp::from_second(window_start(now.as_second(), window_seconds)).ok()?;
    start.checked_add(SignedDuration::from_secs(window)).ok()
}
