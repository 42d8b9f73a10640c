//! Budgets of money: named pots that tools draw on, one currency each.
//!
//! A [`Budget`] says how much may be spent in which window and by whom, and how the amount of a call is
//! found. What was spent is in the store ([`Pots`](crate::ledger::Pots)), so it is the same for all
//! processes that share one. The executor sets the amount aside before the tool runs, and spends it or
//! gives it back with the commit of the call.
//!
//! Whatever cannot be counted is refused: a call without a readable amount, in another currency than the
//! pot's, or without the session that a pot belongs to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use countersign_contract::ToolName;

mod draw;
mod left;
mod money;

pub(crate) use draw::{Call, Plan};
pub use left::BudgetLeft;
pub use money::{Currency, InvalidMoney, Money};

use crate::pattern::ToolPattern;

/// A pot, and who draws on it.
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
    /// Whose money it is.
    pub scope: BudgetScope,
    /// What may be spent. It may change at any time; what was spent stays spent.
    pub limit: Money,
    /// The only one that it takes. Another one is another pot.
    pub currency: Currency,
    /// In which time; once and for all where there is none. Windows begin at multiples of their length
    /// since 1970, so a day begins at midnight UTC. Another one is another pot.
    pub window: Option<Duration>,
    /// Which tools draw on it. The first that matches counts.
    pub tools: Vec<ToolAmount>,
}

/// Who shares a pot. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BudgetScope {
    /// Everybody.
    Global,
    /// Each user has one.
    User,
    /// Each agent has one, over all users.
    Agent,
    /// Each session of a user has one.
    Session,
}

/// Where the amount of a call is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAmount {
    /// Of which tools.
    pub tools: ToolPattern,
    /// JSON pointer to the amount in the bound arguments: a number, or a text that is one.
    pub amount: String,
    /// JSON pointer to its currency. Where there is none, amounts are in the currency of the pot, unless
    /// the envelope of the call names another one, which is refused.
    pub currency: Option<String>,
    /// JSON pointer to what was really spent, in the data of the answer; it counts, be it less or more
    /// than what was set aside. Where it cannot be read, what was set aside counts.
    pub spent: Option<String>,
    /// How amounts are written.
    pub unit: Unit,
    /// Whether money goes out or comes back.
    pub direction: Direction,
}

/// How amounts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// `12.50` is twelve and a half euros.
    Major,
    /// `1250` is twelve and a half euros.
    Minor,
}

/// Whether money goes out or comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The call spends.
    Spend,
    /// The call refunds: it needs a key, so that it is credited once, and no pot gets fuller than it was.
    Refund,
}

impl ToolAmount {
    /// Tools that spend what the pointer names, in the currency of the pot.
    pub fn spends(tools: ToolPattern, amount: impl Into<String>) -> Self {
        Self {
            tools,
            amount: amount.into(),
            currency: None,
            spent: None,
            unit: Unit::Major,
            direction: Direction::Spend,
        }
    }

    /// Tools that refund it.
    pub fn refunds(tools: ToolPattern, amount: impl Into<String>) -> Self {
        Self {
            direction: Direction::Refund,
            ..Self::spends(tools, amount)
        }
    }
}

/// A set of budgets cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBudgets {
    /// Two budgets would share a pot.
    #[error("there are two budgets named {name:?}")]
    Duplicate {
        /// Their name.
        name: String,
    },
    /// A name is empty, too long, or has characters that no name has.
    #[error("{name:?} is no name of a budget: 1 to {NAME_BYTES_MAX} letters, digits, -, _ or .")]
    Name {
        /// The name.
        name: String,
    },
    /// A pointer is none.
    #[error("{pointer:?} of the budget {name:?} is no JSON pointer: it starts with /")]
    Pointer {
        /// The budget.
        name: String,
        /// The pointer.
        pointer: String,
    },
    /// A window is shorter than a second, or no whole number of seconds.
    #[error("the window of the budget {name:?} is no whole number of seconds")]
    Window {
        /// The budget.
        name: String,
    },
}

/// The longest name of a budget.
const NAME_BYTES_MAX: usize = 64;

/// The budgets that hold. They can be exchanged while calls are made; what was spent is in the store and
/// stays, as long as name, scope, currency and window are the same.
pub struct Budgets {
    current: ArcSwap<Vec<Budget>>,
}

impl Budgets {
    /// These ones.
    pub fn new(budgets: Vec<Budget>) -> Result<Self, InvalidBudgets> {
        check(&budgets)?;
        Ok(Self {
            current: ArcSwap::from_pointee(budgets),
        })
    }

    /// Others from now on; the old ones stay where the new ones cannot be used.
    pub fn replace(&self, budgets: Vec<Budget>) -> Result<(), InvalidBudgets> {
        check(&budgets)?;
        self.current.store(Arc::new(budgets));
        Ok(())
    }

    /// Whether any of them is about this tool; nothing is allocated.
    pub(crate) fn covers(&self, tool: &ToolName) -> bool {
        let budgets = self.current.load();
        budgets.iter().any(|budget| budget.tool(tool).is_some())
    }

    pub(crate) fn current(&self) -> Arc<Vec<Budget>> {
        self.current.load_full()
    }
}

impl Default for Budgets {
    /// None.
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

impl Budget {
    fn tool(&self, tool: &ToolName) -> Option<&ToolAmount> {
        self.tools.iter().find(|amount| amount.tools.matches(tool))
    }
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
                r#""" is no name of a budget: 1 to 64 letters, digits, -, _ or ."#,
                r#""a b" is no name of a budget: 1 to 64 letters, digits, -, _ or ."#,
                r#"there are two budgets named "a""#,
                r#""amount" of the budget "a" is no JSON pointer: it starts with /"#,
                r#"the window of the budget "a" is no whole number of seconds"#,
            ]
        );
        assert!(Budgets::new(vec![budget("a"), budget("b")]).is_ok());
    }
}
