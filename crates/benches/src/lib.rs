//! Inputs for measuring: calls as models write them, the same calls damaged, and texts that are made
//! to be expensive. All of it is computed, the same on every machine; nothing is taken from anywhere.
//!
//! `work` has the measured functions; `benches/estimates.rs` (criterion) and `benches/table.rs` (in turns) measure the same ones;
//! `benches/ledger.rs` measures the stores and `benches/gateway.rs` the server. `cargo xtask bench` runs them all and prints tables.

pub mod awake;
pub mod calls;
pub mod damage;
pub mod declarations;
pub mod hostile;
pub mod ledger;
pub mod load;
pub mod mcp;
pub mod peers;
pub mod process;
pub mod target;
pub mod turns;
pub mod work;
pub mod written;
