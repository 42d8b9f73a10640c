//! What identity and policy stand on: a store with a log, a clock that is set, and keys.

use std::sync::Arc;

use countersign::clock::{Clock, ManualClock};
use countersign::contract::RecordKind;
use countersign::ids::{IdSource, RandomIds};
use countersign::ledger::{LogQuery, MemoryStore, Store};
use countersign::vault::Vault;
use countersign_evidence::seal::MasterKey;
use countersign_gateway::recorder::Recorder;
use serde_json::Value;

pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) vault: Arc<Vault>,
}

impl Parts {
    pub(crate) fn new() -> Self {
        let start = "2026-11-16T12:00:00Z".parse().unwrap();
        let clock = Arc::new(ManualClock::starting_at(start));
        let ids: Arc<dyn IdSource> = Arc::new(RandomIds::new(clock.clone()));
        let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
        Self::on(store, clock, ids)
    }

    /// The same on another store.
    pub(crate) fn on(
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        let master = Arc::new(MasterKey::from_bytes(&[7; 32]));
        let vault = Vault::new(store.clone(), master, clock.clone(), ids.clone());
        Self {
            store,
            clock,
            ids,
            vault: Arc::new(vault),
        }
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    pub(crate) fn recorder(&self) -> Recorder {
        Recorder::new(self.store.clone(), self.clock(), self.ids.clone())
    }

    /// The leaves of what operators changed, oldest first.
    pub(crate) async fn config_records(&self) -> Vec<Value> {
        let query = LogQuery {
            kind: Some(RecordKind::Config),
            limit: 100,
            ..LogQuery::default()
        };
        let mut records = Vec::new();
        for row in self.store.records(&query).await.unwrap().iter().rev() {
            let stored = self.store.record(&row.id).await.unwrap().unwrap();
            records.push(serde_json::from_slice(&stored.leaf).unwrap());
        }
        records
    }
}
