//! Budgets of money: named pots that tools draw on, one currency each.
//!
//! A [`Budget`] names the limit, the window and the scope, and the place of the amount in a call. The spent amounts are
//! in the store ([`Pots`](crate::ledger::Pots)), so they are the same for all processes that share one. The executor
//! reserves the amount before the tool runs, and spends it or gives it back with the commit of the call.
//!
//! A call that cannot be counted is refused: one without a readable amount, in another currency than the pot's, or
//! without the session that a pot belongs to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use countersign_contract::{ErrorBody, ErrorCode, ToolName};

mod draw;
mod left;
mod money;
pub(crate) mod spent;

pub(crate) use draw::{Call, Plan, grant_over};
pub use left::{BudgetLeft, LowPot, SpentBudget};
pub use money::{Currency, InvalidMoney, Money};

use crate::authorize::{Facts, When};
use crate::pattern::ToolPattern;
use crate::words::Say;

/// A pot, and the tools that draw on it.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use countersign::budget::{Budget, BudgetScope, Currency, ToolAmount};
/// use countersign::pattern::ToolPattern;
///
/// let euro = Currency::new("EUR")?;
/// let purchases = Budget {
///     name: "purchases".into(),
///     scope: BudgetScope::User,
///     limit: euro.amount("500.00")?,
///     currency: euro,
///     window: Some(Duration::from_hours(24)),
///     tools: vec![ToolAmount::spends(ToolPattern::new("shop.*")?, "/total")],
/// };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Its name, for people. The same name, currency and window are the same pot.
    pub name: String,
    /// Scope of the budget.
    pub scope: BudgetScope,
    /// Maximum amount in a window. It may change at any time; spent amounts stay spent.
    pub limit: Money,
    /// Its only currency. Another currency is another pot.
    pub currency: Currency,
    /// Length of the window; `None` if there is only one, which never ends. Windows begin at multiples of their length
    /// since 1970, so a day begins at midnight UTC. Another length is another pot.
    pub window: Option<Duration>,
    /// Tools that draw on it. The first that matches, and whose condition holds, counts.
    pub tools: Vec<ToolAmount>,
}

/// The callers that share a pot. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BudgetScope {
    /// All callers share one.
    Global,
    /// Each user has one.
    User,
    /// Each agent has one, over all users.
    Agent,
    /// Each session of a user has one.
    Session,
}

/// The place of the amount in a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAmount {
    /// The tools that this applies to.
    pub tools: ToolPattern,
    /// JSON pointer to the amount in the bound arguments: a number, or a text that is one.
    pub amount: String,
    /// JSON pointer to its currency. If `None`, amounts are in the currency of the pot, unless the envelope of the call
    /// names another one, which is refused.
    pub currency: Option<String>,
    /// JSON pointer to the amount that was really spent, in the data of the answer; it counts, even if it is less or
    /// more than what was reserved. If it cannot be read, the reserved amount counts.
    pub spent: Option<String>,
    /// Unit of amounts.
    pub unit: Unit,
    /// Direction of the money.
    pub direction: Direction,
    /// The calls that it applies to; `None` for all. It is decided for the bound arguments.
    pub when: Option<When>,
}

/// Unit of amounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// `12.50` is twelve and a half euros.
    Major,
    /// `1250` is twelve and a half euros.
    Minor,
}

/// Direction of the money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The call spends.
    Spend,
    /// The call refunds: it needs a key, so that it is credited once; a refund never raises a pot above its limit.
    Refund,
}

impl ToolAmount {
    /// Tools that spend the amount under this pointer, in the currency of the pot.
    pub fn spends(tools: ToolPattern, amount: impl Into<String>) -> Self {
        Self {
            tools,
            amount: amount.into(),
            currency: None,
            spent: None,
            unit: Unit::Major,
            direction: Direction::Spend,
            when: None,
        }
    }

    /// Tools that refund the amount under this pointer.
    pub fn refunds(tools: ToolPattern, amount: impl Into<String>) -> Self {
        Self {
            direction: Direction::Refund,
            ..Self::spends(tools, amount)
        }
    }
}

/// Errors of a set of budgets that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBudgets {
    /// Two budgets have the same name, so they would share a pot. Usually an entry was copied and not renamed.
    #[error("there are two budgets named {name:?}")]
    Duplicate {
        /// Their name.
        name: String,
    },
    /// A name is empty, too long, or has characters that no name has. Usually it was written as a sentence.
    #[error("{name:?} is not a budget name: 1 to {NAME_BYTES_MAX} letters, digits, -, _ or .")]
    Name {
        /// The name.
        name: String,
    },
    /// A JSON pointer is invalid: it does not start with `/`.
    /// Usually the name of the member was written without the slash.
    #[error("{pointer:?} of the budget {name:?} is not a JSON pointer: it has to start with /")]
    Pointer {
        /// The budget.
        name: String,
        /// The pointer.
        pointer: String,
    },
    /// A window is shorter than a second, or no whole number of seconds. Usually it was written in milliseconds.
    #[error("the window of the budget {name:?} is not a whole number of seconds")]
    Window {
        /// The budget.
        name: String,
    },
}

/// Maximum length of a budget name.
const NAME_BYTES_MAX: usize = 64;

/// The budgets in force. They can be replaced while calls are made; spent amounts are in the store and stay, as long as
/// name, scope, currency and window are the same.
pub struct Budgets {
    current: ArcSwap<Vec<Budget>>,
}

impl Budgets {
    /// A set of these budgets.
    pub fn new(budgets: Vec<Budget>) -> Result<Self, InvalidBudgets> {
        check(&budgets)?;
        Ok(Self {
            current: ArcSwap::from_pointee(budgets),
        })
    }

    /// Replaces the budgets; the old ones stay in force if the new ones are invalid.
    pub fn replace(&self, budgets: Vec<Budget>) -> Result<(), InvalidBudgets> {
        check(&budgets)?;
        self.current.store(Arc::new(budgets));
        Ok(())
    }

    /// True if a budget covers this tool; allocates nothing.
    pub(crate) fn covers(&self, tool: &ToolName) -> bool {
        let budgets = self.current.load();
        let mut tools = budgets.iter().flat_map(|budget| &budget.tools);
        tools.any(|amount| amount.tools.matches(tool))
    }

    /// The budgets that a call draws on; a refusal if a condition cannot be decided for it.
    pub(crate) fn drawn_on(&self, facts: &Facts<'_>) -> Result<DrawnOn, Box<ErrorBody>> {
        let budgets = self.current();
        let mut entries = Vec::new();
        for (index, budget) in budgets.iter().enumerate() {
            let amounts = budget.tools.iter().enumerate();
            for (at, amount) in amounts.filter(|(_, it)| it.tools.matches(&facts.tool.name)) {
                let holds = amount.when.as_ref().map_or(Some(true), |when| {
                    // The stricter of two actors: more is spent, and less is given back.
                    match amount.direction {
                        Direction::Spend => when.holds(facts),
                        Direction::Refund => when.holds_for_all(facts),
                    }
                });
                match holds {
                    Some(true) => {
                        entries.push((index, at));
                        break;
                    }
                    Some(false) => {}
                    None => return Err(Box::new(undecided(budget, facts))),
                }
            }
        }
        Ok(DrawnOn { budgets, entries })
    }

    pub(crate) fn current(&self) -> Arc<Vec<Budget>> {
        self.current.load_full()
    }
}

impl Default for Budgets {
    /// No budgets.
    fn default() -> Self {
        Self {
            current: ArcSwap::from_pointee(Vec::new()),
        }
    }
}

impl fmt::Debug for Budgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let budgets = self.current.load();
        let names = budgets.iter().map(|budget| &budget.name);
        f.debug_list().entries(names).finish()
    }
}

impl BudgetScope {
    /// Its name in policies and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::User => "user",
            Self::Agent => "agent",
            Self::Session => "session",
        }
    }
}

/// The budgets that a call draws on.
pub(crate) struct DrawnOn {
    budgets: Arc<Vec<Budget>>,
    /// Indices of a budget, and of the one of its tools that counts.
    entries: Vec<(usize, usize)>,
}

impl DrawnOn {
    /// Each budget, with the place of the amount.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Budget, &ToolAmount)> {
        self.entries.iter().filter_map(|(budget, amount)| {
            let budget = self.budgets.get(*budget)?;
            Some((budget, budget.tools.get(*amount)?))
        })
    }
}

/// The refusal of a call that a budget may or may not count.
fn undecided(budget: &Budget, facts: &Facts<'_>) -> ErrorBody {
    let message = Say::DeniedByRule {
        tool: facts.tool.name.to_string(),
    };
    let budget = budget.name.clone();
    ErrorBody::new(ErrorCode::Forbidden, message)
        .hint(Say::BudgetUndecided {
            budget: budget.clone(),
        })
        .detail("limit", "budget")
        .detail("budget", budget)
}

fn check(budgets: &[Budget]) -> Result<(), InvalidBudgets> {
    for (index, budget) in budgets.iter().enumerate() {
        let name = budget.name.clone();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_name) {
            return Err(InvalidBudgets::Name { name });
        }
        if budgets.iter().take(index).any(|other| other.name == name) {
            return Err(InvalidBudgets::Duplicate { name });
        }
        let is_whole = |window: Duration| window.as_secs() > 0 && window.subsec_nanos() == 0;
        if !budget.window.is_none_or(is_whole) {
            return Err(InvalidBudgets::Window { name });
        }
        let pointers = budget.tools.iter().flat_map(|tool| {
            let others = [&tool.currency, &tool.spent].into_iter().flatten();
            std::iter::once(&tool.amount).chain(others)
        });
        for pointer in pointers {
            if !pointer.starts_with('/') {
                let pointer = pointer.clone();
                return Err(InvalidBudgets::Pointer { name, pointer });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(name: &str) -> Budget {
        let currency = Currency::new("EUR").unwrap();
        Budget {
            name: name.to_owned(),
            scope: BudgetScope::Global,
            limit: currency.amount("10").unwrap(),
            currency,
            window: None,
            tools: vec![ToolAmount::spends(ToolPattern::EVERY, "/amount")],
        }
    }

    #[test]
    fn budgets_that_cannot_be_counted_are_refused() {
        let pointer = Budget {
            tools: vec![ToolAmount::spends(ToolPattern::EVERY, "amount")],
            ..budget("a")
        };
        let window = Budget {
            window: Some(Duration::from_millis(1_500)),
            ..budget("a")
        };
        let refusals = [
            vec![budget("")],
            vec![budget("a b")],
            vec![budget("a"), budget("a")],
            vec![pointer],
            vec![window],
        ]
        .map(|budgets| Budgets::new(budgets).unwrap_err().to_string());
        assert_eq!(
            refusals,
            [
                r#""" is not a budget name: 1 to 64 letters, digits, -, _ or ."#,
                r#""a b" is not a budget name: 1 to 64 letters, digits, -, _ or ."#,
                r#"there are two budgets named "a""#,
                r#""amount" of the budget "a" is not a JSON pointer: it has to start with /"#,
                r#"the window of the budget "a" is not a whole number of seconds"#,
            ]
        );
        assert!(Budgets::new(vec![budget("a"), budget("b")]).is_ok());
    }
}
