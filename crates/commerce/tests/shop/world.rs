//! What every test here stands on: all tools, the rules that come with the program, an executor that is exact.

use std::sync::Arc;

use countersign::clock::ManualClock;
use countersign::contract::RequestEnvelope;
use countersign::executor::ExecutorBuilder;
use countersign::ids::SequentialIds;
use countersign::ledger::{MemoryStore, Store};
use countersign::{Catalog, Executor, Principal, ToolCall};
use countersign_commerce::rulebook::RuleFiles;
use countersign_evidence::seal::MasterKey;
use serde_json::{Value, json};

pub(crate) struct World {
    pub(crate) executor: Executor,
    pub(crate) clock: Arc<ManualClock>,
}

impl World {
    /// In memory.
    pub(crate) fn new() -> Self {
        let clock = clock();
        let store = MemoryStore::with_clock(clock.clone()).keeping_log();
        Self::on(Arc::new(store), clock, |builder| builder)
    }

    /// On a store, with other parts.
    pub(crate) fn on(
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        change: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> Self {
        let catalog = countersign_commerce::tools(Catalog::builder())
            .build()
            .unwrap();
        let builder = Executor::builder(catalog)
            .store(store)
            .kms(Arc::new(MasterKey::from_bytes(&[7; 32])))
            .clock(clock.clone())
            .ids(Arc::new(SequentialIds::new()))
            .rules(RuleFiles::embedded().unwrap().rules().unwrap());
        Self {
            executor: change(builder).build(),
            clock,
        }
    }

    /// The whole reply to a call of user `u_1`.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.call_as("u_1", tool, arguments, json!({})).await
    }

    /// The whole reply to a call of a user, with an envelope.
    pub(crate) async fn call_as(
        &self,
        user: &str,
        tool: &str,
        arguments: Value,
        envelope: Value,
    ) -> Value {
        let envelope: RequestEnvelope = serde_json::from_value(envelope).unwrap();
        let call = ToolCall::new(tool, arguments.to_string(), Principal::user(user));
        let reply = self.executor.execute(call.envelope(envelope)).await;
        serde_json::to_value(reply).unwrap()
    }

    pub(crate) fn advance_seconds(&self, seconds: u64) {
        self.clock.advance(std::time::Duration::from_secs(seconds));
    }
}

pub(crate) fn clock() -> Arc<ManualClock> {
    let start = "2026-11-16T12:00:00Z".parse().unwrap();
    Arc::new(ManualClock::starting_at(start))
}

/// The name of a reply's evidence.
#[track_caller]
pub(crate) fn evidence(reply: &Value) -> String {
    let id = &reply["evidence"]["snapshot_id"];
    assert!(id.is_string(), "no evidence in {reply:#}");
    id.as_str().unwrap().to_owned()
}

/// `data` of a success.
#[track_caller]
pub(crate) fn ok(reply: &Value) -> &Value {
    assert_eq!(reply["ok"], true, "{reply:#}");
    &reply["data"]
}

/// The code of a refusal, and the particulars that are asked about.
#[track_caller]
pub(crate) fn check_error(reply: &Value, code: &str, details: &Value) {
    assert_eq!(reply["error"]["code"], code, "{reply:#}");
    for (name, expected) in details.as_object().unwrap() {
        assert_eq!(
            reply["error"]["details"][name], *expected,
            "{name} of {reply:#}"
        );
    }
}
