//! The shop's tools, each shown by whole replies of a real executor: time stands still, ids count from one.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod rulebook;
mod world;
