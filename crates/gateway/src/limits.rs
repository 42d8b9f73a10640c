//! Limits and budgets of the policy file, in force: the executor counts by them. A new file changes them while
//! calls are counted; counts and spent amounts are kept.

use std::num::NonZeroU32;
use std::sync::Arc;

use countersign::budget::{self, Budgets, Currency, Direction, ToolAmount};
use countersign::executor::ExecutorBuilder;
use countersign::limit::{self, Breaker, Limit, LimitRules, Limits, Repeats, ToolLimit};
use countersign::pattern::ToolPattern;

use crate::policy::limits::{Budget, BudgetScope, Counted, Rate, Spender, Unit};
use crate::policy::{Glob, Period, PolicyFile, Written};

/// Counters of calls and money, for as long as the process runs. Clones share them.
#[derive(Debug, Clone)]
pub struct Controls {
    limits: Arc<Limits>,
    breaker: Arc<Breaker>,
    budgets: Arc<Budgets>,
}

impl Controls {
    /// Creates the counters of a policy, all at zero.
    pub fn new(file: &PolicyFile) -> Self {
        let controls = Self {
            limits: Arc::new(Limits::new(LimitRules::default())),
            breaker: Arc::default(),
            budgets: Arc::default(),
        };
        controls.replace(file);
        controls
    }

    /// Replaces the limits and budgets by those of another policy.
    pub fn replace(&self, file: &PolicyFile) {
        self.limits.replace(rules(file));
        self.breaker.replace(repeats(file));
        // They were checked when the file was read, so this cannot fail; if it did, the old ones stay.
        let replaced = budgets(&file.budgets).and_then(|new| {
            let replaced = self.budgets.replace(new);
            replaced.map_err(|error| error.to_string())
        });
        if let Err(error) = replaced {
            tracing::error!(
                error,
                "the budgets of the new policy could not be applied; the earlier ones stay in force"
            );
        }
    }

    /// Returns the limits on calls.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the budgets.
    pub fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// Makes an executor count by them.
    pub fn install(&self, builder: ExecutorBuilder) -> ExecutorBuilder {
        builder
            .limiter(self.limits.clone())
            .breaker(self.breaker.clone())
            .budgets(self.budgets.clone())
    }
}

fn rules(file: &PolicyFile) -> LimitRules {
    let limits = &file.limits;
    let tools = limits.tools.iter().flat_map(|(tools, rates)| {
        let tools = pattern(tools);
        rates.iter().filter_map(move |rate| {
            Some(ToolLimit {
                tools: tools.clone()?,
                rate: pace(rate.calls, rate.per, rate.shared),
                counted: match rate.counted {
                    Counted::EachUser => limit::Counted::ForEachUser,
                    Counted::Together => limit::Counted::Together,
                },
                when: rate.when.as_ref().and_then(Written::when),
            })
        })
    });
    LimitRules {
        user: limits.user.iter().map(over_all).collect(),
        agent: limits.agent.iter().map(over_all).collect(),
        session: limits.session.iter().map(over_all).collect(),
        tools: tools.collect(),
    }
}

fn over_all(rate: &Rate) -> Limit {
    Limit {
        rate: pace(rate.calls, rate.per, rate.shared),
        when: rate.when.as_ref().and_then(Written::when),
    }
}

fn pace(calls: NonZeroU32, per: Period, shared: bool) -> limit::Rate {
    let pace = limit::Rate::new(calls.get(), per.duration());
    if shared { pace.shared() } else { pace }
}

fn repeats(file: &PolicyFile) -> Option<Repeats> {
    let breaker = file.breaker.as_ref()?;
    Some(Repeats {
        calls_max: breaker.identical.get(),
        within: breaker.per.duration(),
        except: breaker.except.iter().filter_map(pattern).collect(),
        is_shared: breaker.shared,
    })
}

/// Converts a glob of the file to a pattern. One that could not be converted would match no tool.
fn pattern(glob: &Glob) -> Option<ToolPattern> {
    ToolPattern::new(glob.as_str()).ok()
}

/// Converts the budgets to the executor's form; the error says why that is not possible.
pub(crate) fn budgets(file: &[Budget]) -> Result<Vec<budget::Budget>, String> {
    let budgets = file.iter().map(budget).collect::<Result<Vec<_>, _>>()?;
    Budgets::new(budgets.clone()).map_err(|error| error.to_string())?;
    Ok(budgets)
}

fn budget(budget: &Budget) -> Result<budget::Budget, String> {
    let of = |error: budget::InvalidMoney| format!("the budget {:?}: {error}", &*budget.name);
    let currency = Currency::new(&budget.currency).map_err(of)?;
    Ok(budget::Budget {
        name: budget.name.to_string(),
        scope: match budget.scope {
            BudgetScope::Global => budget::BudgetScope::Global,
            BudgetScope::User => budget::BudgetScope::User,
            BudgetScope::Agent => budget::BudgetScope::Agent,
            BudgetScope::Session => budget::BudgetScope::Session,
        },
        limit: currency.amount(&budget.limit).map_err(of)?,
        currency,
        window: budget.per.map(Period::duration),
        tools: budget.tools.iter().map(spender).collect::<Result<_, _>>()?,
    })
}

fn spender(spender: &Spender) -> Result<ToolAmount, String> {
    let tools = ToolPattern::new(spender.tool.as_str());
    Ok(ToolAmount {
        tools: tools.map_err(|error| error.to_string())?,
        amount: spender.amount.to_string(),
        currency: spender.currency.as_ref().map(|pointer| pointer.to_string()),
        spent: spender.spent.as_ref().map(|pointer| pointer.to_string()),
        unit: match spender.unit {
            Unit::Major => budget::Unit::Major,
            Unit::Minor => budget::Unit::Minor,
        },
        direction: if spender.refund {
            Direction::Refund
        } else {
            Direction::Spend
        },
        when: spender.when.as_ref().and_then(Written::when),
    })
}
