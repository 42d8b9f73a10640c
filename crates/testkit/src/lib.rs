//! What the tests of the workspace share: a PostgreSQL server for a run of the tests.
//!
//! The checks on the workspace itself are in `tests/`: `tidy` holds the layers, the error codes and the
//! source files, `docs` the pages, `contracts` the files for other languages.
//!
//! Without the feature `ledger` it uses the standard library only, because `cargo xtask` is built of it.

#[cfg(feature = "ledger")]
pub mod faulty;
pub mod postgres;
