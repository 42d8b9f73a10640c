//! The base of every test here: all tools, the rules of the program, and a deterministic executor.

use std::sync::{Arc, LazyLock};

use countersign::approve::Wanted;
use countersign::clock::ManualClock;
use countersign::contract::{Approval, ApprovalState, Digest, RequestEnvelope};
use countersign::executor::ExecutorBuilder;
use countersign::ids::{RandomIds, SequentialIds};
use countersign::ledger::{MemoryStore, Store};
use countersign::rules::Rules;
use countersign::{Catalog, Executor, Principal, ToolCall};
use countersign_commerce::rulebook::RuleFiles;
use countersign_evidence::seal::MasterKey;
use countersign_evidence::tree::leaf_hash;
use serde_json::{Value, json};

/// The rules, read once for all tests.
static RULES: LazyLock<Rules> = LazyLock::new(|| RuleFiles::embedded().unwrap().rules().unwrap());

pub(crate) struct World {
    pub(crate) executor: Executor,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
}

impl World {
    /// A world in memory.
    pub(crate) fn new() -> Self {
        let clock = clock();
        let store = MemoryStore::with_clock(clock.clone()).keeping_log();
        Self::on(Arc::new(store), clock, |builder| builder)
    }

    /// A world on a store, with other parts.
    pub(crate) fn on(
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        change: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> Self {
        let catalog = countersign_commerce::tools(Catalog::builder())
            .build()
            .unwrap();
        let builder = Executor::builder(catalog)
            .store(store.clone())
            .kms(Arc::new(MasterKey::from_bytes(&[7; 32])))
            .clock(clock.clone())
            .ids(Arc::new(SequentialIds::new()))
            .rules(RULES.clone());
        Self {
            executor: change(builder).build(),
            store,
            clock,
        }
    }

    /// The same shop after its operator has changed a rule file: the same store, the same time.
    pub(crate) fn with_rules(&self, name: &str, text: String) -> Self {
        let files = RuleFiles::embedded().unwrap();
        let rules = files
            .with(name, "9999-12-31", text)
            .unwrap()
            .rules()
            .unwrap();
        Self::on(self.store.clone(), self.clock.clone(), |builder| {
            let ids = Arc::new(RandomIds::new(self.clock.clone()));
            builder.rules(rules).ids(ids)
        })
    }

    /// The pending approvals of a user.
    pub(crate) async fn questions(&self, user: &str) -> Vec<Approval> {
        let pending = Wanted {
            state: Some(ApprovalState::Pending),
            ..Wanted::default()
        };
        let approvals = self.executor.approvals();
        let by = Principal::user(user);
        approvals.list(&by, &pending).await.unwrap()
    }

    /// Approves all pending approvals as the user.
    pub(crate) async fn approve_all(&self, user: &str) {
        let by = Principal::user(user);
        let approvals = self.executor.approvals();
        for approval in self.questions(user).await {
            approvals.approve(&approval.id, &by, None).await.unwrap();
        }
    }

    /// The record of a call, as it is in the log.
    pub(crate) async fn record(&self, snapshot_id: &str) -> Value {
        let stored = self
            .store
            .record(&snapshot_id.parse().unwrap())
            .await
            .unwrap();
        serde_json::from_slice(&stored.unwrap().leaf).unwrap()
    }

    /// The hash of a record's leaf, as links name it.
    pub(crate) async fn leaf_of(&self, snapshot_id: &str) -> Digest {
        let id = snapshot_id.parse().unwrap();
        let stored = self.store.record(&id).await.unwrap().unwrap();
        Digest(leaf_hash(&stored.leaf))
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
        let reply = Box::pin(self.executor.execute(call.envelope(envelope))).await;
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

/// The id of a reply's evidence.
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

/// Checks the code of a refusal, and these of its details.
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

/// The value without digests of rules and shop, whose versions have tests of their own.
pub(crate) fn without_digests(mut value: Value) -> Value {
    match &mut value {
        Value::String(text) if text.starts_with("sha256:") => json!("[digest]"),
        Value::Array(values) => values.drain(..).map(without_digests).collect(),
        Value::Object(members) => {
            for member in members.values_mut() {
                *member = without_digests(member.take());
            }
            value
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
