//! Tools of others behind Countersign: a service that speaks HTTP becomes a tool with every guarantee of one that is
//! written in Rust.
//!
//! Read the modules in this order:
//!
//! 1. [`manifest`]: the configuration of upstreams and tools, as types; no I/O;
//! 2. [`declare`]: the declaration of a tool, made from its entry.
//!
//! A kind of upstream has a folder of its own. MCP servers will have `mcp/`.

pub mod declare;
pub mod manifest;

pub use manifest::{Manifest, ToolEntry, Upstream};
