//! `[catalog]`, `[results]` and `[[profile]]`: the part of a large catalog that a model is shown.

use countersign_contract::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::NamePattern;

/// The list of tools that models are shown, over MCP and in the words of providers; `docs/big-catalogs.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CatalogView {
    /// The facade: `search_tools`, `describe_tool` and `call_tool` in place of a long list. With `auto`, a caller sees it whose list
    /// would be longer than the two settings below allow; with `on` every caller does; with `off` nobody does.
    #[schemars(extend("x-live" = true))]
    pub facade: Facade,
    /// The most tools of a list. A caller who may call more sees the facade.
    #[schemars(extend("x-live" = true))]
    pub listed_tools_max: usize,
    /// The most tokens of a list, estimated as a quarter of its bytes. A caller whose list takes more sees the facade.
    #[schemars(extend("x-live" = true))]
    pub listed_tokens_max: usize,
    /// Tools that are listed beside the facade: names, in which `*` stands for any characters.
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
    /// For everybody.
    On,
    /// For nobody.
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

/// The size of answers that models are shown, over MCP and in the words of providers. Plain HTTP is not affected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Results {
    /// The most bytes of an answer, as JSON. A longer one is cut, and `fetch_rest` gives its other parts. Left out, answers are whole.
    /// A token is about four bytes.
    #[schemars(range(min = 256), extend("x-live" = true))]
    pub bytes_max: Option<usize>,
    /// Other sizes for some tools. The first rule that fits a tool counts for it.
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

/// A profile: the tools that some callers are offered. A caller has the first profile that fits; one whom none fits is offered all that the
/// policy allows. A profile only takes away: no tool that the policy forbids is offered by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name of the profile, for people.
    pub name: String,
    /// API keys that have it, by label or id; `*` stands for any characters. Each of the four lists that has entries has to fit; without any
    /// of them the profile fits every caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Agents that have it, by the id that their credential proves; `*` stands for any characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Scopes of which the credential holds one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Names that MCP clients give themselves, such as `claude-code`; `*` stands for any characters. Anybody can use any name: it chooses what
    /// is useful, and forbids nothing.
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
