//! The shop's tools, each shown by whole replies of a real executor: time stands still, ids count from one.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]
#![expect(clippy::too_many_lines, reason = "a whole reply is as long as it is")]

mod arguments;
mod cart;
mod catalog;
mod checkout;
mod compliance;
mod descriptions;
mod evidence;
mod examples;
mod flow;
mod identity;
mod interop;
mod knowledge;
mod known_failures;
mod language;
mod lock;
mod mission;
mod obs;
mod oversell;
mod payment;
mod place;
mod prices;
mod pricing;
mod rulebook;
mod shipping;
mod tax;
mod totals;
mod world;
