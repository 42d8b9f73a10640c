//! `[catalog]`, `[results]` and `[[profile]]`: the part of a large catalog that a model is shown.

use countersign_contract::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::NamePattern;

/// The list of tools that models are shown, over MCP and in the formats of providers; see `docs/big-catalogs.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CatalogView {
    /// Facade: `search_tools`, `describe_tool` and `call_tool` replace a long list. `auto`: for callers whose list is
    /// longer than the two settings below. `on`: for every caller. `off`: never.
    #[schemars(extend("x-live" = true))]
    pub facade: Facade,
    /// Maximum number of tools in a list. A caller with more tools sees the facade.
    #[schemars(extend("x-live" = true))]
    pub listed_tools_max: usize,
    /// Maximum number of tokens in a list, estimated as a quarter of its bytes. A caller with a longer list sees the
    /// facade.
    #[schemars(extend("x-live" = true))]
    pub listed_tokens_max: usize,
    /// Tools that are listed in addition to the facade; `*` stands for any characters.
    #[schemars(extend("x-live" = true))]
    pub pinned: Vec<NamePattern>,
}

/// The use of the facade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Facade {
    /// For callers with a long list.
    #[default]
    Auto,
    /// For every client.
    On,
    /// For no client.
    Off,
}

impl Default for CatalogView {
    fn default() -> Self {
        Self {
            facade: Facade::Auto,
            listed_tools_max: 128,
            listed_tokens_max: 30_000,
            pinned: Vec::new(),
        }
    }
}

/// Maximum size of answers that models are shown, over MCP and in the formats of providers. Plain HTTP is not
/// affected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Results {
    /// Maximum size of an answer, in bytes of JSON. A longer answer is cut, and `fetch_rest` returns the other parts.
    /// By default answers are not cut. A token is about four bytes.
    #[schemars(range(min = 256), extend("x-live" = true))]
    pub bytes_max: Option<usize>,
    /// Different sizes for some tools. The first rule that matches a tool is used.
    #[schemars(extend("x-live" = true))]
    pub rules: Vec<ResultRule>,
}

/// The size of the answers of some tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultRule {
    /// Name of the tool, in which `*` stands for any characters.
    pub tool: NamePattern,
    /// The most bytes of an answer; left out, answers of these tools are whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 256))]
    pub bytes_max: Option<usize>,
}

/// A profile: the tools that some callers are offered. A caller gets the first profile that matches. A caller without
/// a profile is offered everything that the policy allows. A profile only removes tools: it never offers one that the
/// policy forbids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name of the profile, for people.
    pub name: String,
    /// API keys that get this profile, by label or id; `*` stands for any characters. If several of `keys`, `agents`,
    /// `scopes` and `clients` are set, all of them must match. Without any of them the profile matches every caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Agents that get this profile, by the id in their credential; `*` stands for any characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Scopes of which the credential must have one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Names that MCP clients send, such as `claude-code`; `*` stands for any characters. A client can send any name,
    /// so this is a convenience and not a protection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<String>,
    /// Tools that are offered, by name; `*` stands for any characters. Left out, all are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<NamePattern>,
    /// Effects of the tools that are offered. Left out, all are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// Facade of these callers, in place of `catalog.facade`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facade: Option<Facade>,
    /// Most tools of a list of these callers, in place of `catalog.listed_tools_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_tools_max: Option<usize>,
    /// Most tokens of a list of these callers, in place of `catalog.listed_tokens_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_tokens_max: Option<usize>,
    /// Tools that are listed beside the facade, in place of `catalog.pinned`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Vec<NamePattern>>,
    /// Most bytes of an answer for these callers, where that is less than `[results]` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 256))]
    pub result_bytes_max: Option<usize>,
}
