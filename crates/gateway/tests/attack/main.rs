//! The gateway under attack: over HTTP and MCP, on SQLite and on PostgreSQL. Each case has the closed code that
//! must come back. After each group no effect has happened, the log verifies, no caller has seen another's
//! data, and all other callers are answered.
//!
//! A case is one line of a table (`case.rs`). A newly found hole becomes a line here first.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]
#![expect(clippy::too_many_lines, reason = "a table is as long as its cases")]
#![expect(clippy::print_stdout, reason = "each test says how many cases it had")]

mod approvals;
#[path = "../gateway/captured.rs"]
mod captured;
mod case;
mod envelope;
#[expect(dead_code, reason = "the other tests use all of it")]
#[path = "../gateway/http_client.rs"]
mod http_client;
mod issuers;
mod mcp;
mod names;
mod operator;
mod parsing;
#[expect(dead_code, reason = "the other tests use all of it")]
#[path = "../gateway/parts.rs"]
mod parts;
mod races;
mod scopes;
#[path = "../gateway/signer.rs"]
mod signer;
mod tokens;
mod tools;
mod world;

/// Runs each area on each store.
macro_rules! on_both_stores {
    ($($area:ident: $at_least:literal,)*) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $area() {
                crate::$area::attack(crate::world::Backing::Sqlite).await.finish($at_least);
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $area() {
                crate::$area::attack(crate::world::Backing::Postgres).await.finish($at_least);
            })*
        }
    };
}

on_both_stores! {
    approvals: 25,
    envelope: 20,
    mcp: 20,
    names: 15,
    operator: 25,
    parsing: 20,
    races: 10,
    scopes: 25,
    tokens: 30,
}
