//! The model keeps the contract of a store.

use std::sync::Arc;

use countersign::BoxFuture;
use countersign::clock::ManualClock;
use countersign::ledger::MemoryStore;
use countersign_testkit::ledger::build::bound_to;
use countersign_testkit::ledger::{Fixture, Fresh, lockstep};
use countersign_testkit::ledger_contract;

#[path = "memory_store/reference.rs"]
mod reference;

struct Memory;

impl Fixture for Memory {
    fn fresh(&self) -> BoxFuture<'_, Fresh> {
        let clock = clock();
        let store = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
        store.bind(&bound_to(1)).expect("it has no keys yet");
        Box::pin(async move { Fresh::new(store).by(clock) })
    }
}

fn clock() -> Arc<ManualClock> {
    let start = "2026-11-15T12:00:00Z".parse().expect("a time");
    Arc::new(ManualClock::starting_at(start))
}

ledger_contract!(Memory);

/// The comparison that is used for the durable stores raises no false alarm.
#[test]
fn two_models_agree() {
    lockstep(&Memory, 100);
}

/// And it does raise an alarm: this store goes by another clock than the one that it lends.
#[test]
#[should_panic(expected = "minimal failing input")]
fn a_model_by_another_clock_is_told_apart() {
    struct Stopped;

    impl Fixture for Stopped {
        fn fresh(&self) -> BoxFuture<'_, Fresh> {
            let store = Arc::new(MemoryStore::with_clock(clock()).keeping_log());
            Box::pin(async move { Fresh::new(store).by(clock()) })
        }
    }

    lockstep(&Stopped, 100);
}
