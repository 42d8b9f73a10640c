//! Pages that are run: their files are written and their commands are run in order, in one shell, as a new user would.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod first_blocks;
mod http_tool;
mod own_tool;
mod page;
mod shell;
mod tutorial;
