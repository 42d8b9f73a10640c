//! Operations of operators and auditors on the log, and on a log that was tampered with.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod case;
mod denied;
mod doubt;
mod erase;
mod export;
mod links;
mod locate;
mod open;
mod resolve;
mod sequencer;
mod shop;
mod tampered;
mod trail;
mod verify;
#[path = "../executor/world.rs"]
#[expect(dead_code, reason = "the executor's tests use the rest of it")]
mod world;
