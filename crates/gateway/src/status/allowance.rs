//! Rest of limits and budgets for one caller.

use countersign::Principal;
use countersign::budget::BudgetLeft;
use countersign::contract::{Actor, ActorType, ToolName};
use countersign::ledger;
use countersign::limit::{Attempt, Known, Left};
use countersign::unavailable::Unavailable;
use countersign_evidence::seal::UserKey;
use jiff::Timestamp;
use serde::Serialize;

use crate::gateway::Gateway;

/// The user and the agent whose limits and budgets are shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct About<'a> {
    /// The user; empty if none is meant.
    pub user_id: &'a str,
    /// The agent; `None` for the caller.
    pub agent: Option<&'a str>,
}

/// Rest of a limit on calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LimitStatus {
    /// Subject whose calls it counts: user, agent or tool.
    pub limit: &'static str,
    /// Name of the tool, if it is a limit of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Number of calls that may come at once.
    pub calls: u32,
    /// Time in which the limit refills, in seconds.
    pub per_seconds: u64,
    /// Number of calls that may come now.
    pub left: u32,
    /// True if all processes that share the store count together.
    pub is_shared: bool,
    /// True if all users share it.
    pub is_together: bool,
    /// True if it counts only calls for which its condition holds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_conditional: bool,
}

/// Rest of a budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetStatus {
    /// Name of the budget.
    pub name: String,
    /// Owner: user, agent, session or global.
    pub scope: &'static str,
    /// Maximum amount in a window, with its currency.
    pub limit: String,
    /// Amount that may still be spent; `None` if each session or agent has its own budget and none is meant, or if
    /// the caller may not see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// Time at which it refills; `None` if it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
    /// True if nothing is left.
    pub is_used_up: bool,
}

/// Maximum number of tools with limits of their own that are checked.
const TOOLS_MAX: usize = 32;

impl Gateway {
    /// Returns the rest of limits and budgets; empty if they concern no user, or if the store does not answer,
    /// which is a problem of its own.
    pub(super) async fn allowances(
        &self,
        principal: &Principal,
        about: About<'_>,
    ) -> (Vec<LimitStatus>, Vec<BudgetStatus>) {
        let About { user_id, agent } = about;
        let actor = match agent {
            Some(agent) => &Actor {
                kind: ActorType::Agent,
                id: agent.to_owned(),
            },
            None => &principal.actor,
        };
        let mut budgets = self.budgets_left(actor, user_id).await.unwrap_or_default();
        // Each agent has its own: who names none, and is none, sees no rest.
        let is_agent = actor.kind == ActorType::Agent;
        if !is_agent {
            for budget in budgets.iter_mut().filter(|budget| budget.scope == "agent") {
                (budget.left, budget.is_used_up) = (None, false);
            }
        }
        if user_id.is_empty() {
            budgets.retain(|budget| !["user", "session"].contains(&budget.scope));
            return (Vec::new(), budgets);
        }
        let mut limits = self.limits_left(actor, user_id).await.unwrap_or_default();
        limits.retain(|limit| is_agent || limit.limit != "agent");
        (limits, budgets)
    }

    /// Returns the rest of the limits of a user and of an agent. Of tools with a limit of their
    /// own, only those that were used are listed.
    async fn limits_left(
        &self,
        actor: &Actor,
        user_id: &str,
    ) -> Result<Vec<LimitStatus>, Unavailable> {
        let limits = self.identity().policy().controls().limits();
        let executor = self.executor();
        // A user without a key has made no calls.
        let keys = executor.vault().existing_key(user_id).await;
        let keys = keys.map_err(|error| Unavailable::new("store", error))?;
        let nobody = UserKey::from_bytes(&[0; 32]);
        let keys = keys.as_deref().unwrap_or(&nobody);
        let entries = executor.catalog().list();
        let named = entries.iter().map(|entry| entry.name());
        let mut tools: Vec<&ToolName> = named.filter(|tool| limits.has_limit_of(tool)).collect();
        tools.truncate(TOOLS_MAX);
        let attempt_of = |tool| Attempt {
            user_id,
            keys,
            actor,
            proved_actor: actor,
            session_id: None,
            tool,
            now: executor.clock().monotonic(),
            known: Known::Nothing,
        };
        let store = &**executor.store();
        let mut told = Vec::new();
        // The limits of users and agents are the same for every tool.
        if let Some(any) = entries.first().map(|entry| entry.name()) {
            let left = limits.left(&attempt_of(any), store).await?;
            told.extend(left.into_iter().map(|left| limit_status(&left, any)));
        }
        for tool in tools {
            let left = limits.left_of_tool(&attempt_of(tool), store).await?;
            let used = left.into_iter().filter(|left| left.left < left.calls);
            told.extend(used.map(|left| limit_status(&left, tool)));
        }
        Ok(told)
    }

    async fn budgets_left(
        &self,
        actor: &Actor,
        user_id: &str,
    ) -> Result<Vec<BudgetStatus>, ledger::Error> {
        let budgets = self.identity().policy().controls().budgets();
        let executor = self.executor();
        let store = &**executor.store();
        let left = budgets.left(user_id, actor, store, executor.now());
        Ok(left.await?.into_iter().map(budget_status).collect())
    }
}

fn limit_status(left: &Left, tool: &ToolName) -> LimitStatus {
    LimitStatus {
        limit: left.limit.as_str(),
        tool: left.tools.is_some().then(|| tool.to_string()),
        calls: left.calls,
        per_seconds: left.per.as_secs(),
        left: left.left,
        is_shared: left.is_shared,
        is_together: left.is_together,
        is_conditional: left.is_conditional,
    }
}

fn budget_status(budget: BudgetLeft) -> BudgetStatus {
    let is_used_up = budget.is_used_up();
    BudgetStatus {
        name: budget.name,
        scope: budget.scope.as_str(),
        limit: budget.currency.shown(budget.limit),
        left: budget.left.map(|left| budget.currency.shown(left)),
        resets_at: budget.resets_at,
        is_used_up,
    }
}
