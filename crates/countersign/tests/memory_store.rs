//! The model keeps the contract of a store.

use std::sync::Arc;

use countersign::BoxFuture;
use countersign::clock::ManualClock;
use countersign::ledger::MemoryStore;
use countersign_testkit::ledger::{Fixture, Fresh};
use countersign_testkit::ledger_contract;

struct Memory;

impl Fixture for Memory {
    fn fresh(&self) -> BoxFuture<'_, Fresh> {
        let start = "2026-11-15T12:00:00Z".parse().expect("a time");
        let clock = Arc::new(ManualClock::starting_at(start));
        let store = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
        Box::pin(async move { Fresh::new(store).by(clock) })
    }
}

ledger_contract!(Memory);
