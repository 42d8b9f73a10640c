//! `policy`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A policy, or the file that holds it. What is in it is read by the gateway, as a policy file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("x-form" = "the path of a policy file, or a table with a policy"))]
pub enum PolicySource {
    /// The path of a policy file.
    File(PathBuf),
    /// The policy itself.
    Inline(Map<String, Value>),
}
