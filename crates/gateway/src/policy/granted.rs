//! The language of a policy's conditions, for standing grants: what an operator writes in a rule, a user writes in a grant.

use countersign::authorize::{Clause, Facts};
use countersign::contract::ToolSpec;
use countersign::grant::{Language, Wrong};

use super::condition::{self, Condition};

/// Conditions of grants, in the language of the rules.
///
/// # Example
///
/// ```
/// use countersign::grant::Language as _;
/// use countersign_gateway::policy::GrantConditions;
///
/// assert!(GrantConditions.read("args.total < 100", &[]).is_ok());
/// assert_eq!(GrantConditions.read("args.total <", &[]).err().map(|wrong| wrong.offset), Some(12));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct GrantConditions;

impl Language for GrantConditions {
    fn read(&self, text: &str, tools: &[&ToolSpec]) -> Result<Box<dyn Clause>, Wrong> {
        let condition = Condition::parse(text).map_err(told)?;
        condition.check(tools).map_err(told)?;
        Ok(Box::new(condition))
    }

    fn has(&self, tool: &ToolSpec, pointer: &str) -> bool {
        condition::check_pointer(tool, pointer).is_ok()
    }

    fn currency_beside(&self, tool: &ToolSpec, amount: &str) -> Option<String> {
        condition::currency_beside(tool, amount)
    }
}

impl Clause for Condition {
    fn holds(&self, facts: &Facts<'_>) -> Option<bool> {
        Condition::holds(self, facts).ok()
    }
}

fn told(wrong: condition::Wrong) -> Wrong {
    Wrong {
        offset: wrong.offset,
        message: wrong.message,
    }
}
