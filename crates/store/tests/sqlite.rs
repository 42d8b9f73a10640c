//! The SQLite store keeps the contract of a store, and does what the model in memory does.

use std::sync::Arc;

use countersign::BoxFuture;
use countersign::clock::ManualClock;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::ledger::{Fixture, Fresh, lockstep};
use countersign_testkit::ledger_contract;

struct Sqlite;

impl Fixture for Sqlite {
    fn fresh(&self) -> BoxFuture<'_, Fresh> {
        let start = "2026-11-15T12:00:00Z".parse().expect("a time");
        let clock = Arc::new(ManualClock::starting_at(start));
        let options = SqliteOptions {
            clock: clock.clone(),
            ..SqliteOptions::default()
        };
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(folder.path().join("store.db"), options);
        let store = Arc::new(store.expect("a new file can be opened"));
        Box::pin(async move { Fresh::new(store).by(clock).keeping(folder) })
    }
}

ledger_contract!(Sqlite);

/// A4, A17: the same calls get the same answers as in the model.
#[test]
fn the_store_and_the_model_agree() {
    lockstep(&Sqlite, 64);
}
