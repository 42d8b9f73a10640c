//! Tools of MCP servers, called through an executor: servers in this process over HTTP, children over pipes, and servers that are
//! made with the usual libraries.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::large_futures,
    clippy::too_many_lines,
    clippy::format_push_string,
    reason = "tests stop where they cannot go on, and list one case a line"
)]

mod child;
mod hostile;
mod over_http;
mod pins;
mod real;
#[expect(dead_code, reason = "the tests over HTTP use more of it")]
#[path = "../http/service.rs"]
mod service;
mod shelf;
mod talk;
mod watches;
mod world;
