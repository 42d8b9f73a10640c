//! Conditions of rules: what they say, what they refuse to say, and what becomes of calls.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod calls;
mod expressions;
mod hostile;
mod world;
