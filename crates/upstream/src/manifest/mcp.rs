//! The settings of an MCP server that no other upstream has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auths::Auths;

/// Definitions of an MCP server's tools that are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Definitions that an operator has approved with `countersign upstreams approve`. A tool that is new or has changed is not called.
    #[default]
    Approved,
    /// Definitions as first seen are approved. A tool that is new or has changed later is not called until it is approved.
    FirstUse,
}

/// Listing of an MCP server's tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Discovery {
    /// Credential for listing the tools, in place of `auth`. Needed where `auth` is a credential of the user, because the list is
    /// fetched without a user.
    #[serde(skip_serializing_if = "Auths::is_empty")]
    pub auth: Auths,
    /// Time after which the tools are listed again, in seconds, for a server that does not say when they change.
    pub refresh_seconds: u64,
    /// Time for which the last known tools of a server that cannot be reached stay in the catalog, in seconds. A call to one of them is
    /// answered with `UPSTREAM_ERROR`, and may be repeated.
    pub grace_seconds: u64,
}

/// Connections to an MCP server, or its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Connections {
    /// Most connections or children at the same time. The one that was not used for longest makes room for another.
    pub count_max: u32,
    /// Time after which one that is not used is closed, in seconds.
    pub idle_seconds: u64,
    /// Longest time until a server has answered for the first time, in milliseconds. A child that is downloaded first needs some.
    pub start_ms: u64,
}

impl Default for Discovery {
    fn default() -> Self {
        Self {
            auth: Auths::default(),
            refresh_seconds: 300,
            grace_seconds: 3_600,
        }
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            count_max: 64,
            idle_seconds: 600,
            start_ms: 30_000,
        }
    }
}
