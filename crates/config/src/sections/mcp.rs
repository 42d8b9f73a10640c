//! `[mcp]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The Model Context Protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    /// Maximum number of sessions, for clients of the protocol versions before 2026-07-28. With sessions, the server
    /// can ask their users questions, but they must return to the same process. With 0, every request is independent.
    #[schemars(extend("x-flag" = "--mcp-sessions"))]
    pub sessions_max: usize,
    /// Maximum number of open event streams, and never more than a quarter of the connections. A further one is
    /// refused with HTTP 429.
    pub streams_max: usize,
    /// Maximum number of event streams of one caller, or the number of sessions if that is higher.
    pub streams_per_caller_max: usize,
    /// Offers the test tools of the MCP conformance suite as well. Not for production.
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
