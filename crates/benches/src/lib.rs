//! Inputs for measuring: calls as models write them, the same calls damaged, and texts that are made
//! to be expensive. All of it is computed, the same on every machine; nothing is taken from anywhere.
//!
//! What is measured, and how, is in `benches/table.rs`; `cargo xtask bench` runs it.

pub mod calls;
pub mod damage;
pub mod hostile;
