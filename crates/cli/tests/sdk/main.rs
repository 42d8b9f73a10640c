//! Tools in Python, TypeScript and Go behind a real server: `sdk/`, `examples/` and the page of the contract, with real `FastAPI`
//! and Express.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod bare;
mod contract;
mod doubt;
mod files;
mod forged;
mod tap;
mod world;
