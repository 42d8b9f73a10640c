//! Real processes that are killed, paused and raced, and ledgers outside of them that count what they
//! did. `cargo xtask torture` runs it in large numbers, the tests in small ones.
//!
//! A [`worker`] runs keyed calls and says on its standard output what was answered. It dies by its own
//! hand at a named [`point`], or by the driver's at any moment. The [`driver`] starts workers until every
//! call has been answered, and then compares: what was acknowledged, what happened, what the store says.

pub mod driver;
pub mod point;
pub mod server;
pub mod tools;
pub mod worker;
