//! Real processes that are killed, paused and raced, and ledgers outside of them that count their effects. `cargo xtask
//! torture` runs it in large numbers, the tests in small ones.
//!
//! A [`worker`] runs keyed calls and writes the answers to its standard output. It kills itself at a named [`point`],
//! or the driver kills it at any moment. The [`driver`] starts workers until every call has been answered, and then
//! compares the acknowledged answers, the effects and the store. [`clocks`] lies about the time instead.

pub mod clocks;
pub mod driver;
pub mod point;
pub mod server;
pub mod tools;
pub mod upstream;
pub mod worker;
