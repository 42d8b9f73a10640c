//! The sections of a policy file, as they are parsed.

use std::fmt;
use std::ops::Deref;

use countersign::Effects;
use countersign::authorize::UnkeyedWrites;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::issuer::{IssuerRule, IssuerTable};
use super::limits::{Breaker, Budgets, Limits};
use super::value::{Glob, Pause, Period, ScopeName, is_short_name};

/// A policy file. An unknown member is an error, because a misspelt rule would have no effect.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyFile {
    /// Name of this revision. It is in every record, with a digest of the text.
    pub revision: Option<Name>,
    /// Enforcement of the rights to call tools. Issuers, limits and budgets are always enforced.
    pub mode: Mode,
    /// Defaults, if no rule matches.
    pub defaults: Defaults,
    /// Rules for callers of tools (`docs/policy.md`). A call must satisfy every rule that matches its tool.
    pub tools: Vec<ToolRule>,
    /// Rules for agents. An agent must satisfy every rule that matches it.
    pub agents: Vec<AgentRule>,
    /// Rules that look at a call (`docs/conditions.md`). They only make a decision stricter.
    pub rules: Vec<CallRule>,
    /// Issuers whose tokens are accepted (`docs/identity.md`).
    #[schemars(with = "Vec<IssuerTable>")]
    pub issuers: Vec<IssuerRule>,
    /// Settings of approvals.
    pub approvals: Approvals,
    /// Limits on calls (`docs/limits.md`).
    pub limits: Limits,
    /// Circuit breaker: stops a session that repeats the same call. Without the table there is none.
    pub breaker: Option<Breaker>,
    /// Budgets of money (`docs/limits.md`). Each has a name of its own.
    pub budgets: Budgets,
}

/// Defaults, if no rule matches.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Defaults {
    /// Rule for tools that no `[[tools]]` entry matches.
    pub unlisted: Unlisted,
    /// Rule for agents that no `[[agents]]` entry matches.
    pub unlisted_agents: Unlisted,
    /// True if a call that changes something needs a user.
    pub writes_need_user: bool,
    /// Rule for writes without an idempotency key; if left out, a key is derived for calls of agents.
    pub unkeyed_writes: Option<UnkeyedWrites>,
    /// Time for which a repeat counts as the same call, if a key is derived.
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

/// Decision about tools or agents that no rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unlisted {
    /// They are allowed.
    Allow,
    /// They are denied.
    Deny,
}

/// Rule for callers of a tool.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolRule {
    /// Pattern of the tools.
    #[serde(rename = "match")]
    pub tool: Glob,
    /// Scopes of which one is needed; if empty, none is needed.
    #[serde(default)]
    pub scopes: Vec<ScopeName>,
    /// Rule for confirmations by the user; if left out, the tool decides.
    #[serde(default)]
    pub confirm: Option<ConfirmRule>,
    /// True if two different approvers have to confirm.
    #[serde(default)]
    pub four_eyes: bool,
    /// Time for which an approval of these tools can be given and used; the shortest one counts.
    #[serde(default)]
    pub valid_for: Option<Period>,
}

/// Rule that looks at a call. It only makes a decision stricter.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallRule {
    /// Name in replies, records and reports.
    pub name: Name,
    /// Pattern of the tools.
    #[serde(rename = "match")]
    pub tool: Glob,
    /// Condition in CEL; if left out, the rule holds for every call.
    #[serde(default)]
    pub when: Option<String>,
    /// Consequence for a call for which the condition holds.
    pub then: Then,
    /// Time for which an approval can be given and used; the shortest one counts.
    #[serde(default)]
    pub valid_for: Option<Period>,
    /// Enforcement of the rule.
    #[serde(default)]
    pub mode: Mode,
}

/// Consequence of a rule for a call. The enum is exhaustive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// The call is refused.
    Deny,
    /// The user confirms it.
    Confirm,
    /// Two different approvers confirm it.
    FourEyes,
}

impl Then {
    /// The word in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Confirm => "confirm",
            Self::FourEyes => "four_eyes",
        }
    }
}

/// Enforcement of a rule. The enum is exhaustive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It is enforced.
    #[default]
    Enforce,
    /// It is decided and recorded, and changes nothing.
    Observe,
}

/// Rule for confirmations by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfirmRule {
    /// The user confirms each call.
    Always,
}

/// Rule for an agent.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentRule {
    /// Pattern of the agents.
    pub id: Glob,
    /// Only these tools are allowed; if left out, all are.
    #[serde(default)]
    pub allow: Option<Vec<Glob>>,
    /// These tools are denied, even if another entry allows them.
    #[serde(default)]
    pub deny: Vec<Glob>,
    /// Only tools with these effects are allowed; if left out, any are.
    #[serde(default)]
    #[schemars(with = "Option<Vec<countersign::contract::Effect>>")]
    pub effects: Option<Effects>,
}

/// Settings of approvals.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Approvals {
    /// Time for which an approval can be given and used.
    pub valid_for: Option<Period>,
    /// Time after a denial in which the declined caller, or the same session, cannot ask about the tool again;
    /// `0s` disables it.
    pub cool_down: Option<Pause>,
}

/// A name that the file gives itself or a part of it.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(extend("x-form" = NAME_FORM))]
pub struct Name(String);

const NAME_FORM: &str = "1 to 64 letters, digits and _ . -";

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
        Err(D::Error::custom(format!(
            "{text:?} is not a name: {NAME_FORM}"
        )))
    }
}
