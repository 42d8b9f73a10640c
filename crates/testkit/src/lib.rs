//! Helpers that the tests of the workspace share: the cases that every store has to pass, a store that fails on demand, deadlines, and a
//! PostgreSQL server for a run of the tests.
//!
//! The checks on the workspace itself are in `tests/`: `tidy` checks the layers, the error codes and the source files, `docs` the pages,
//! `contracts` the files for other languages.
//!
//! Without the feature `ledger` it uses the standard library only, because `cargo xtask` is built with it.

#[cfg(feature = "ledger")]
pub mod faulty;
#[cfg(feature = "ledger")]
pub mod ledger;
pub mod patience;
pub mod postgres;
