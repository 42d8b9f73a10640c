//! `[rules]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Your own rules and texts for the tools of the shop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RuleFolders {
    /// Folder of rules, `NAME/YYYY-MM-DD.toml`. The newest file of each name is used in place of the built-in rules.
    #[schemars(extend("x-flag" = "--rules", "x-path" = true))]
    pub folder: Option<PathBuf>,
    /// Folder of texts (`*.md`) that `knowledge.search` searches in place of the shop's own.
    #[schemars(extend("x-flag" = "--knowledge", "x-path" = true))]
    pub knowledge: Option<PathBuf>,
}
