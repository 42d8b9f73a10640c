//! Countersign's durable stores: [`sqlite`], one file for one process, and [`postgres`], for many.
//!
//! Both keep the promises of [`countersign::ledger`]. Their modules have the same names, so that the two
//! implementations can be read side by side.

mod backlog;
mod leaves;
pub mod migrate;
pub mod postgres;
pub mod sqlite;
pub mod transfer;
