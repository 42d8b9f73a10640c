//! Probable mistakes in a policy. None of them makes a policy invalid.

use std::fmt;

use countersign::contract::{Language, Message as _};
use serde::Serialize;

use crate::words::Say;

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
    /// A condition holds for no call: it compares with a value that there is not.
    NeverHolds {
        /// The entry.
        entry: String,
        /// Line of the comparison.
        line: usize,
        /// Column of the comparison, in characters.
        column: usize,
    },
    /// A condition compares an amount in one currency only, and lets calls in other currencies through.
    OtherCurrencies {
        /// The entry.
        entry: String,
        /// The currency that it names.
        currency: String,
        /// Line of the comparison.
        line: usize,
        /// Column of the comparison, in characters.
        column: usize,
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

impl Suspect {
    /// The sentence about it in a language.
    pub fn text(&self, language: Language) -> String {
        let say = match self.clone() {
            Self::EveryToolDenied => Say::EveryToolDenied,
            Self::ToolsForNobody { tools } => Say::ToolsForNobody {
                tools: named(&tools),
            },
            Self::OnlyObserved => Say::OnlyObserved,
            Self::ToolsAlwaysDenied { tools } => Say::ToolsAlwaysDenied {
                tools: named(&tools),
            },
            Self::NeverHolds {
                entry,
                line,
                column,
            } => Say::NeverHolds {
                entry,
                line: line.to_string(),
                column: column.to_string(),
            },
            Self::OtherCurrencies {
                entry,
                currency,
                line,
                column,
            } => Say::OtherCurrencies {
                entry,
                currency,
                line: line.to_string(),
                column: column.to_string(),
            },
            Self::EveryAgentDenied => Say::EveryAgentDenied,
            Self::AgentForNothing { agent } => Say::AgentForNothing { agent },
            Self::RuleWithoutTool { rule } => Say::RuleWithoutTool { rule },
            Self::ScopeForNothing { scope } => Say::ScopeForNothing { scope },
            Self::PatternWithoutTool { section, pattern } => {
                Say::PatternWithoutTool { section, pattern }
            }
        };
        say.text(language)
    }
}

/// The first of these tools.
fn named(tools: &[String]) -> String {
    let named: Vec<&str> = tools.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = if tools.len() > NAMED_MAX { ", …" } else { "" };
    format!("{}{more}", named.join(", "))
}

impl fmt::Display for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Language::English))
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
