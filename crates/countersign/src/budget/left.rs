//! Remaining money in the pots of a user and an actor. Reading it reserves nothing.

use std::collections::BTreeSet;

use countersign_contract::Actor;
use jiff::{SignedDuration, Timestamp};

use super::draw::owner;
use super::{Budget, BudgetScope, Budgets, Currency, Money};
use crate::ledger::{self, Draw, Pots, ReserveAnswer, window_start};

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

/// A budget that is spent in its present window, by at least one of those whom it counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpentBudget {
    /// Its name.
    pub name: String,
    /// Start of the window in seconds since 1970; 0 if there is only one.
    pub window_start: i64,
}

impl Budgets {
    /// The budgets that are spent in their present window, and true if every pot was looked at. Amounts that are only
    /// reserved do not count: they may be given back.
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
                pot == row.key && row.spent >= budget.limit.0
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

fn next_window(now: Timestamp, window_seconds: u64) -> Option<Timestamp> {
    let window = i64::try_from(window_seconds)
        .ok()
        .filter(|window| *window > 0)?;
    let start = Timestamp::from_second(window_start(now.as_second(), window_seconds)).ok()?;
    start.checked_add(SignedDuration::from_secs(window)).ok()
}
