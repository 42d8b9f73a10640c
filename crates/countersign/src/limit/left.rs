//! Remaining allowances of the rate limits. Reading them counts nothing.

use std::time::Duration;

use countersign_contract::ActorType;

use super::cells::CellKey;
use super::rate::Rate;
use super::shared::{SharedPaces, unavailable};
use super::{Attempt, Counted, Limit, LimitName, Limits};
use crate::ledger::Paces;
use crate::unavailable::Unavailable;

/// The remaining allowance of one limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The limit.
    pub limit: LimitName,
    /// The pattern of the tools, if it is a limit of tools.
    pub tools: Option<String>,
    /// True if all users share it.
    pub is_together: bool,
    /// True if all processes count together.
    pub is_shared: bool,
    /// Number of calls that may come at once.
    pub calls: u32,
    /// The time in which as many calls are allowed again.
    pub per: Duration,
    /// Number of calls that may come now.
    pub left: u32,
    /// True if only calls for which a condition holds are counted.
    pub is_conditional: bool,
}

impl Limits {
    /// The remaining allowances of a user and an agent, as a call of this attempt would find them. Limits of sessions
    /// are left out: a caller that asks for its allowances has no session.
    pub async fn left(
        &self,
        attempt: &Attempt<'_>,
        paces: &dyn Paces,
    ) -> Result<Vec<Left>, Unavailable> {
        let rules = self.rules();
        let mut left = Vec::new();
        for Limit { rate, when } in &rules.user {
            let (name, when) = (LimitName::User, when.as_ref());
            let mut shared = SharedPaces::default();
            if let Some(rule) = rate.shared_rule() {
                shared.add_of_user(name, rule, attempt, &[], when);
            }
            let key = self.of_user(attempt.user_id, when);
            let found = self.of(name, *rate, key, &shared, attempt, paces).await?;
            left.push(Left {
                is_conditional: when.is_some(),
                ..found
            });
        }
        let is_person = attempt.proved_actor.kind == ActorType::User;
        for Limit { rate, when } in rules.agent.iter().filter(|_| !is_person) {
            let (name, when) = (LimitName::Agent, when.as_ref());
            let mut shared = SharedPaces::default();
            if let Some(rule) = rate.shared_rule() {
                shared.add_agent(rule, attempt.proved_actor, when);
            }
            let key = self.of_agent(attempt.proved_actor, when);
            let found = self.of(name, *rate, key, &shared, attempt, paces).await?;
            left.push(Left {
                is_conditional: when.is_some(),
                ..found
            });
        }
        Ok(left)
    }

    /// The remaining allowances of the limits of a tool.
    pub async fn left_of_tool(
        &self,
        attempt: &Attempt<'_>,
        paces: &dyn Paces,
    ) -> Result<Vec<Left>, Unavailable> {
        let rules = self.rules();
        let mut left = Vec::new();
        for limit in rules
            .tools
            .iter()
            .filter(|limit| limit.tools.matches(attempt.tool))
        {
            let mut shared = SharedPaces::default();
            if let Some(rule) = limit.rate.shared_rule() {
                shared.add_tool(rule, limit, attempt);
            }
            let key = self.of_tool(limit, attempt.tool, attempt.user_id);
            let found = self.of(LimitName::Tool, limit.rate, key, &shared, attempt, paces);
            left.push(Left {
                tools: Some(limit.tools.to_string()),
                is_together: limit.counted == Counted::Together,
                is_conditional: limit.when.is_some(),
                ..found.await?
            });
        }
        Ok(left)
    }

    /// True if a limit covers this tool.
    pub fn has_limit_of(&self, tool: &countersign_contract::ToolName) -> bool {
        self.rules()
            .tools
            .iter()
            .any(|limit| limit.tools.matches(tool))
    }

    async fn of(
        &self,
        limit: LimitName,
        rate: Rate,
        key: CellKey,
        shared: &SharedPaces,
        attempt: &Attempt<'_>,
        paces: &dyn Paces,
    ) -> Result<Left, Unavailable> {
        let until_whole = match shared.paces.first() {
            Some(pace) => paces.until_whole(&pace.key).await.map_err(unavailable)?,
            None => self.until_whole(key, attempt.now),
        };
        let (calls, per) = rate.allowance();
        Ok(Left {
            limit,
            tools: None,
            is_together: false,
            is_shared: rate.is_shared(),
            calls,
            per,
            left: rate.left(until_whole),
            is_conditional: false,
        })
    }
}
