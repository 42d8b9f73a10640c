//! Tools of third parties behind Countersign: a service that speaks HTTP, or an MCP server, becomes tools with every guarantee of those
//! that are written in Rust.
//!
//! Read the modules in this order:
//!
//! 1. [`manifest`]: the configuration of upstreams and tools, as types; no I/O;
//! 2. [`declare`]: the declaration of a tool, made from its entry;
//! 3. [`overridden`]: tools of the program itself, with what an entry says on top;
//! 4. [`upstreams`]: all upstreams while the gateway runs, and their tools;
//! 5. [`http`]: requests to HTTP services; [`select`]: filters over their answers; [`output`]: their declared schemas;
//! 6. [`mcp`]: calls to MCP servers, and what was approved of their tools;
//! 7. [`user_token`]: tokens that users keep for upstreams;
//! 8. [`openapi`]: documents of services as a manifest; no I/O.
//!
//! A kind of upstream has a folder of its own.

pub mod declare;
pub mod http;
pub mod manifest;
pub mod mcp;
pub mod openapi;
pub mod output;
pub mod overridden;
mod preset;
mod probe;
mod scrub;
pub mod select;
pub mod upstreams;
pub mod user_token;
mod words;

pub use manifest::{Manifest, ToolEntry, Upstream};
pub use upstreams::{Keep, Upstreams};
