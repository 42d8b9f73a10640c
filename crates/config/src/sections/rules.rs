//! `[rules]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules and texts of one's own for the tools of the shop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RuleFolders {
    /// A folder of rules, `NAME/YYYY-MM-DD.toml`. The last of each name is in force, before those of the program.
    #[schemars(extend("x-flag" = "--rules", "x-path" = true))]
    pub folder: Option<PathBuf>,
    /// A folder of texts, `*.md`, that `knowledge.search` searches instead of the shop's own.
    #[schemars(extend("x-flag" = "--knowledge", "x-path" = true))]
    pub knowledge: Option<PathBuf>,
}
