//! Services and MCP servers behind a running gateway, and the commands about them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

#[path = "upstreams/commands.rs"]
mod commands;
#[path = "upstreams/installation.rs"]
mod installation;
#[path = "upstreams/questions.rs"]
mod questions;
#[path = "upstreams/servers.rs"]
mod servers;
#[path = "upstreams/services.rs"]
mod services;
