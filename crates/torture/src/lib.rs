//! Real processes that are killed, paused and raced, and ledgers outside of them that count their effects. `cargo xtask
//! torture` runs it in large numbers, the tests in small ones.
//!
//! A [`worker`] runs keyed calls and writes the answers to its standard output. It kills itself at a named [`point`],
//! or the driver kills it at any moment. The [`driver`] starts workers until every call has been answered, and then
//! compares the acknowledged answers, the effects and the store. [`clocks`] lies about the time instead, and [`faults`] has the disk fail under a real server, and
//! [`rows`] changes the database behind its back. [`failover`] has another server lead a
//! cluster. [`simulation`] plays processes, faults and clocks on one thread.

pub mod clocks;
pub mod driver;
pub mod failover;
pub mod faults;
pub mod point;
pub mod rows;
pub mod server;
pub mod simulation;
pub mod tools;
pub mod upstream;
pub mod worker;
