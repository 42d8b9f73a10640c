//! `[mcp]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The Model Context Protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    /// The most sessions of clients of the eras before 2026-07-28. With some, their users can be asked there, but they
    /// have to come back to the same process; with 0, each request stands alone.
    #[schemars(extend("x-flag" = "--mcp-sessions"))]
    pub sessions_max: usize,
    /// The most streams of clients that listen, but never more than a quarter of the connections. One more is
    /// refused with HTTP 429.
    pub streams_max: usize,
    /// The most streams of one caller; as many as there are sessions where that is more.
    pub streams_per_caller_max: usize,
    /// Also offers the fixtures of the MCP conformance suite. Never for real use.
    #[schemars(extend("x-flag" = "--conformance"))]
    pub conformance: bool,
}

impl Default for Mcp {
    fn default() -> Self {
        Self {
            sessions_max: 0,
            streams_max: 256,
            streams_per_caller_max: 16,
            conformance: false,
        }
    }
}
