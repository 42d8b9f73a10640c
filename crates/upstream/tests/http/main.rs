//! Tools of HTTP services, called through an executor over real sockets.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::similar_names,
    clippy::match_same_arms,
    clippy::format_collect,
    clippy::format_push_string,
    reason = "tests stop where they cannot go on, and list one case a line"
)]

mod answers;
mod auth;
mod doubt;
mod faults;
mod guard;
mod headers;
mod leaks;
mod members;
mod overrides;
mod pages;
mod placement;
mod presets;
mod service;
mod world;
