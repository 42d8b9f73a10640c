//! The PostgreSQL store keeps the contract of a store, on a real server and with two replicas.

use std::sync::Arc;

use countersign::BoxFuture;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_testkit::ledger::{Fixture, Fresh, lockstep};
use countersign_testkit::ledger_contract;
use countersign_testkit::postgres::shared_postgres;

struct Replicas;

impl Fixture for Replicas {
    fn fresh(&self) -> BoxFuture<'_, Fresh> {
        let url = shared_postgres().fresh_database();
        let options = PostgresOptions::new(url).connections_max(6);
        Box::pin(async move {
            let store = PostgresStore::open(options.clone()).await;
            let replica = PostgresStore::open(options).await;
            let store = Arc::new(store.expect("a fresh database"));
            let replica = Arc::new(replica.expect("one that is there already"));
            Fresh::new(store).with_replica(replica)
        })
    }
}

ledger_contract!(Replicas);

#[test]
fn it_answers_as_the_model_does() {
    lockstep(&Replicas, 24);
}
