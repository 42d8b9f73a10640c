//! The sections of a policy file, as they are read.

use std::fmt;
use std::ops::Deref;

use countersign::Effects;
use countersign::authorize::UnkeyedWrites;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::issuer::IssuerRule;
use super::limits::{Breaker, Budgets, Limits};
use super::value::{Glob, Pause, Period, ScopeName, is_short_name};

/// A policy file. A member that is not known is an error, because a rule that is misspelt would be no rule.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyFile {
    /// What the file calls itself.
    pub revision: Option<Name>,
    /// What holds where no rule says anything.
    pub defaults: Defaults,
    /// Who may call a tool.
    pub tools: Vec<ToolRule>,
    /// What an agent may call.
    pub agents: Vec<AgentRule>,
    /// Whose tokens count.
    pub issuers: Vec<IssuerRule>,
    /// How the user confirms.
    pub approvals: Approvals,
    /// How many calls there may be.
    pub limits: Limits,
    /// When a call that is made again and again is stopped.
    pub breaker: Option<Breaker>,
    /// How much money may be spent.
    pub budgets: Budgets,
}

/// What holds where no rule says anything.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Defaults {
    /// Tools that no `[[tools]]` entry matches.
    pub unlisted: Unlisted,
    /// Agents that no `[[agents]]` entry matches.
    pub unlisted_agents: Unlisted,
    /// Whether what changes something needs a user on whose behalf.
    pub writes_need_user: bool,
    /// The rule for writes that come without a key; left out, a key is derived for what agents send.
    pub unkeyed_writes: Option<UnkeyedWrites>,
    /// For how long a repeat counts as the same call, where a key is derived.
    pub unkeyed_window: Option<Period>,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            unlisted: Unlisted::Deny,
            unlisted_agents: Unlisted::Allow,
            writes_need_user: true,
            unkeyed_writes: None,
            unkeyed_window: None,
        }
    }
}

/// What becomes of what no rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unlisted {
    /// It is allowed.
    Allow,
    /// It is not.
    Deny,
}

/// Who may call a tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRule {
    /// Which tools.
    #[serde(rename = "match")]
    pub tool: Glob,
    /// One of these is needed; none where there are none.
    #[serde(default)]
    pub scopes: Vec<ScopeName>,
    /// Whether the user has to confirm.
    #[serde(default)]
    pub confirm: Option<ConfirmRule>,
    /// True if two different approvers have to confirm.
    #[serde(default)]
    pub four_eyes: bool,
    /// For how long an approval of these tools can be given and used; the shortest that there is counts.
    #[serde(default)]
    pub valid_for: Option<Period>,
}

/// When the user has to confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfirmRule {
    /// Each time.
    Always,
}

/// What an agent may call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRule {
    /// Which agents.
    pub id: Glob,
    /// Nothing but these; everything where it is left out.
    #[serde(default)]
    pub allow: Option<Vec<Glob>>,
    /// None of these, whatever else is allowed.
    #[serde(default)]
    pub deny: Vec<Glob>,
    /// Only tools with these effects; any where it is left out.
    #[serde(default)]
    pub effects: Option<Effects>,
}

/// How the user confirms.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Approvals {
    /// For how long an approval can be given and used.
    pub valid_for: Option<Period>,
    /// For how long nothing new is asked about a tool in a session after a no; `0s` is not at all.
    pub cool_down: Option<Pause>,
}

/// A name that the file gives itself or something in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(String);

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if is_short_name(&text) {
            return Ok(Self(text));
        }
        let form = "1 to 64 letters, digits and _ . -";
        Err(D::Error::custom(format!("{text:?} is no name: {form}")))
    }
}
