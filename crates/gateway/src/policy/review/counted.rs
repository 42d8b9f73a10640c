//! Limits and budgets of a policy, with the tools that they count.

use countersign::contract::ToolSpec;
use serde::Serialize;

use super::matched;
use crate::policy::limits::{BudgetScope, Counted, Rate, Spender, ToolRate};
use crate::policy::{Glob, Policy, Written};

/// A limit on calls.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewedLimit {
    /// Callers that share it: each `user`, `agent` or `session` over all tools; for a pattern of tools `each_user`, or all callers
    /// `together`.
    pub of: &'static str,
    /// Pattern of the tools; `None` if it counts the calls of all tools together.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Number of calls.
    pub calls: u32,
    /// Period in which they refill.
    pub per: String,
    /// True if all processes that share the store count together.
    pub shared: bool,
    /// Condition of the calls that it counts; `None` if it counts all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Tools that the pattern matches; empty if there is no pattern.
    pub tools: Vec<String>,
}

/// The limit on identical calls of one session.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewedBreaker {
    /// Number of identical calls that are allowed.
    pub identical: u32,
    /// Period in which they are counted.
    pub per: String,
    /// Tools that may be called repeatedly.
    pub except: Vec<String>,
}

/// A budget.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewedBudget {
    /// Name in messages.
    pub name: String,
    /// Owner: each `user`, `agent` or `session`, or all callers (`global`).
    pub scope: &'static str,
    /// Maximum amount.
    pub limit: String,
    /// Currency.
    pub currency: String,
    /// Period; `None` if it never refills.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    /// Tools that spend it.
    pub spenders: Vec<ReviewedSpender>,
}

/// Tools that spend a budget.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewedSpender {
    /// Pattern of the tools.
    #[serde(rename = "match")]
    pub pattern: String,
    /// True if the amount is refunded.
    pub refund: bool,
    /// Condition of the calls; `None` if all calls spend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Tools that the pattern matches.
    pub tools: Vec<String>,
}

impl Policy {
    pub(super) fn reviewed_limits(&self, tools: &[&ToolSpec]) -> Vec<ReviewedLimit> {
        let limits = &self.file.limits;
        let over_all = [
            ("user", &limits.user),
            ("agent", &limits.agent),
            ("session", &limits.session),
        ];
        let over_all = over_all.into_iter().flat_map(|(of, rates)| {
            let rates = rates.iter();
            rates.map(move |rate| of_all_tools(of, rate))
        });
        let of_tools = limits.tools.iter().flat_map(|(pattern, rates)| {
            let rates = rates.iter();
            rates.map(move |rate| of_some_tools(pattern, rate, tools))
        });
        over_all.chain(of_tools).collect()
    }

    pub(super) fn reviewed_breaker(&self, tools: &[&ToolSpec]) -> Option<ReviewedBreaker> {
        let breaker = self.file.breaker.as_ref()?;
        let except = breaker.except.iter();
        Some(ReviewedBreaker {
            identical: breaker.identical.get(),
            per: breaker.per.to_string(),
            except: except.flat_map(|pattern| matched(pattern, tools)).collect(),
        })
    }

    pub(super) fn reviewed_budgets(&self, tools: &[&ToolSpec]) -> Vec<ReviewedBudget> {
        let budgets = self.file.budgets.iter().map(|budget| {
            let spenders = budget.tools.iter();
            ReviewedBudget {
                name: budget.name.to_string(),
                scope: match budget.scope {
                    BudgetScope::User => "user",
                    BudgetScope::Agent => "agent",
                    BudgetScope::Session => "session",
                    BudgetScope::Global => "global",
                },
                limit: budget.limit.to_string(),
                currency: budget.currency.to_string(),
                per: budget.per.map(|per| per.to_string()),
                spenders: spenders.map(|spender| spends(spender, tools)).collect(),
            }
        });
        budgets.collect()
    }
}

fn of_all_tools(of: &'static str, rate: &Rate) -> ReviewedLimit {
    ReviewedLimit {
        of,
        pattern: None,
        calls: rate.calls.get(),
        per: rate.per.to_string(),
        shared: rate.shared,
        when: when(rate.when.as_ref()),
        tools: Vec::new(),
    }
}

fn of_some_tools(pattern: &Glob, rate: &ToolRate, tools: &[&ToolSpec]) -> ReviewedLimit {
    ReviewedLimit {
        of: match rate.counted {
            Counted::EachUser => "each_user",
            Counted::Together => "together",
        },
        pattern: Some(pattern.as_str().to_owned()),
        calls: rate.calls.get(),
        per: rate.per.to_string(),
        shared: rate.shared,
        when: when(rate.when.as_ref()),
        tools: matched(pattern, tools),
    }
}

fn spends(spender: &Spender, tools: &[&ToolSpec]) -> ReviewedSpender {
    ReviewedSpender {
        pattern: spender.tool.as_str().to_owned(),
        refund: spender.refund,
        when: when(spender.when.as_ref()),
        tools: matched(&spender.tool, tools),
    }
}

fn when(written: Option<&Written>) -> Option<String> {
    written.map(|when| when.as_str().to_owned())
}
