//! Tools of others behind Countersign: a service that speaks HTTP becomes a tool with every guarantee of one that is
//! written in Rust.
//!
//! Read the modules in this order:
//!
//! 1. [`manifest`]: the configuration of upstreams and tools, as types; no I/O;
//! 2. [`declare`]: the declaration of a tool, made from its entry;
//! 3. [`overridden`]: tools of the program itself, with what an entry says on top;
//! 4. [`upstreams`]: all upstreams while the gateway runs, and their tools;
//! 5. [`http`]: requests to HTTP services; [`select`]: filters over their answers;
//! 6. [`user_token`]: tokens that users keep for upstreams.
//!
//! A kind of upstream has a folder of its own. MCP servers will have `mcp/`.

pub mod declare;
pub mod http;
pub mod manifest;
mod output;
pub mod overridden;
pub mod select;
pub mod upstreams;
pub mod user_token;
mod words;

pub use manifest::{Manifest, ToolEntry, Upstream};
pub use upstreams::Upstreams;
