//! Probable mistakes in a policy. None of them makes a policy invalid.

use std::fmt;

use serde::Serialize;

/// A probable mistake with a sentence about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyWarning {
    /// The probable mistake.
    #[serde(flatten)]
    pub suspect: Suspect,
    /// Message for people, with what to do.
    pub message: String,
}

/// A rule that is rarely intended. The enum is exhaustive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Suspect {
    /// No caller may call any tool.
    EveryToolDenied,
    /// No caller may call these tools, whatever their scopes.
    ToolsForNobody {
        /// Names of the tools.
        tools: Vec<String>,
    },
    /// The whole policy is only observed.
    OnlyObserved,
    /// A rule without a condition denies every call of these tools.
    ToolsAlwaysDenied {
        /// Names of the tools.
        tools: Vec<String>,
    },
    /// No agent may call any tool.
    EveryAgentDenied,
    /// The agents of a pattern may call no tool.
    AgentForNothing {
        /// Pattern of the agents.
        agent: String,
    },
    /// A `[[tools]]` entry matches no tool.
    RuleWithoutTool {
        /// Pattern of the entry.
        rule: String,
    },
    /// No tool needs a scope.
    ScopeForNothing {
        /// Name of the scope.
        scope: String,
    },
    /// A pattern of another section matches no tool.
    PatternWithoutTool {
        /// Section of the pattern.
        section: String,
        /// The pattern.
        pattern: String,
    },
}

/// Maximum number of tools that a sentence names.
const NAMED_MAX: usize = 5;

impl fmt::Display for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EveryToolDenied => f.write_str(
                "the policy denies every tool to every caller: add [[tools]] entries, or [defaults] unlisted = \"allow\"",
            ),
            Self::ToolsForNobody { tools } => {
                let named: Vec<&str> = tools.iter().take(NAMED_MAX).map(String::as_str).collect();
                let more = if tools.len() > NAMED_MAX { ", …" } else { "" };
                let named = named.join(", ");
                write!(
                    f,
                    "no caller can call tools that no [[tools]] entry matches: {named}{more}"
                )
            }
            Self::OnlyObserved => f.write_str(
                "the whole policy is only observed, so every authenticated caller may call every tool: remove mode = \"observe\" to enforce it",
            ),
            Self::ToolsAlwaysDenied { tools } => {
                let named: Vec<&str> = tools.iter().take(NAMED_MAX).map(String::as_str).collect();
                let more = if tools.len() > NAMED_MAX { ", …" } else { "" };
                let named = named.join(", ");
                write!(f, "no caller can call what a rule without a condition denies: {named}{more}")
            }
            Self::EveryAgentDenied => f.write_str(
                "no agent may call any tool: look at [[agents]] and [defaults] unlisted_agents",
            ),
            Self::AgentForNothing { agent } => {
                write!(f, "the agent {agent:?} may call nothing: look at every [[agents]] entry that matches it")
            }
            Self::RuleWithoutTool { rule } => {
                write!(f, "the [[tools]] entry {rule:?} matches no tool")
            }
            Self::ScopeForNothing { scope } => write!(f, "no tool needs the scope {scope:?}"),
            Self::PatternWithoutTool { section, pattern } => {
                write!(f, "{pattern:?} in {section} matches no tool")
            }
        }
    }
}

impl From<Suspect> for PolicyWarning {
    fn from(suspect: Suspect) -> Self {
        Self {
            message: suspect.to_string(),
            suspect,
        }
    }
}
