//! Witnesses of logs (C2SP tlog-witness): a second party that cosigns a checkpoint only if it continues the one before, so
//! that a log with two histories is noticed.
//!
//! [`Witness`] is such a party, which `countersign witness` runs. [`Witnesses`] are those that cosign the log of this
//! server.

mod client;
mod server;

pub use client::{Trouble, WitnessState, Witnesses};
pub use server::{Uncosigned, Witness, log_id};
