//! What in a policy looks like a mistake. None of it makes a policy wrong.

use std::fmt;

use serde::Serialize;

/// A suspect with the sentence about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyWarning {
    /// What was found.
    #[serde(flatten)]
    pub suspect: Suspect,
    /// The same for people, with what to do.
    pub message: String,
}

/// Something that is seldom meant. Closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Suspect {
    /// Nobody may call anything.
    EveryToolDenied,
    /// Nobody may call these, whatever they hold.
    ToolsForNobody {
        /// The tools.
        tools: Vec<String>,
    },
    /// No agent may call anything.
    EveryAgentDenied,
    /// The agents of a pattern may call nothing.
    AgentForNothing {
        /// The pattern.
        agent: String,
    },
    /// A `[[tools]]` entry that matches no tool.
    RuleWithoutTool {
        /// Its pattern.
        rule: String,
    },
    /// A scope that no tool asks for.
    ScopeForNothing {
        /// The scope.
        scope: String,
    },
    /// A pattern of another section that matches no tool.
    PatternWithoutTool {
        /// Where it stands.
        section: String,
        /// The pattern.
        pattern: String,
    },
}

/// How many tools a sentence names.
const NAMED_MAX: usize = 5;

impl fmt::Display for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EveryToolDenied => f.write_str(
                "the policy denies every tool to everybody: add [[tools]] entries, or [defaults] unlisted = \"allow\"",
            ),
            Self::ToolsForNobody { tools } => {
                let named: Vec<&str> = tools.iter().take(NAMED_MAX).map(String::as_str).collect();
                let more = if tools.len() > NAMED_MAX { ", …" } else { "" };
                let named = named.join(", ");
                write!(
                    f,
                    "nobody can call what no [[tools]] entry matches: {named}{more}"
                )
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
