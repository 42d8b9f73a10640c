//! The formats from a third party's view: bundles, and the vectors that every implementation agrees on.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic"
)]

mod bundle;
mod common;
mod vectors;
