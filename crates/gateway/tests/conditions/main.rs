//! Conditions of rules, limits and budgets: what they say, what they refuse to say, and what becomes of calls.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod actors;
mod again;
mod calls;
mod changed;
mod counted;
mod doubts;
mod explained;
mod expressions;
mod hostile;
mod world;
