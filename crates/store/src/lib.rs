//! Countersign's durable stores: [`sqlite`], one file for one process, and [`postgres`], for many.
//!
//! Both keep the promises of [`countersign::ledger`]; the modules of both have the same names, so that
//! what one does can be read beside what the other does.

pub mod migrate;
pub mod postgres;
pub mod sqlite;
pub mod transfer;
