//! A catalog with two tools, and an executor that a policy decides for.

use std::sync::Arc;
use std::time::Duration;

use countersign::archive::{Archive, OpenedCall, SCOPE_OPEN};
use countersign::clock::ManualClock;
use countersign::contract::evidence::EvidenceRecord;
use countersign::contract::{Behaviour, Effect, Input, RequestEnvelope, ToolName, ToolSpec};
use countersign::ids::{IdSource, RandomIds};
use countersign::ledger::{LogQuery, MemoryStore, Store};
use countersign::tool::{DynTool, Reply, ToolError};
use countersign::vault::Vault;
use countersign::{BoxFuture, CallContext, Catalog, Executor, Principal, ToolCall};
use countersign_args::Arguments;
use countersign_evidence::note::SigningKey;
use countersign_evidence::seal::MasterKey;
use countersign_gateway::policy::{GrantConditions, LivePolicy, Policy};
use serde_json::{Value, json};

/// `shop.order`: a total, a list of items, an optional note, and a rush that has a default.
pub(crate) fn order() -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {
            "total": {"$ref": "#/$defs/money"},
            "quantity": {"type": "integer"},
            "price": {"type": "string"},
            "currency": {"type": "string"},
            "rush": {"type": "boolean", "default": false},
            "note": {"type": "string"},
            "items": {"type": "array", "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "price": {"type": "number"}},
                "required": ["sku", "price"],
            }},
        },
        "required": ["total", "quantity", "price", "currency", "items"],
        "additionalProperties": false,
        "$defs": {"money": {
            "type": "object",
            "properties": {"amount": {"type": ["string", "number"]}, "currency": {"type": "string"}},
            "required": ["amount", "currency"],
        }},
    });
    let name = ToolName::new("shop.order").unwrap();
    ToolSpec::new(name, "Orders.")
        .input(Input::Schema(schema))
        .behaviour(Behaviour {
            effect: Effect::Write,
            ..Behaviour::default()
        })
}

/// `shop.find`: a query.
pub(crate) fn find() -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": false,
    });
    ToolSpec::new(ToolName::new("shop.find").unwrap(), "Finds.").input(Input::Schema(schema))
}

/// Arguments that `shop.order` accepts.
pub(crate) fn arguments() -> Value {
    json!({
        "total": {"amount": "12000.00", "currency": "EUR"},
        "quantity": 3,
        "price": "4000.00",
        "currency": "EUR",
        "items": [{"sku": "a", "price": 10.5}, {"sku": "b", "price": 99}],
    })
}

/// Answers with its arguments.
struct Echo(ToolSpec);

impl DynTool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn upstream(&self) -> Option<&str> {
        Some("warehouse")
    }

    fn call<'a>(
        &'a self,
        _: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(std::future::ready(Ok(arguments.to_value().into())))
    }
}

pub(crate) fn catalog() -> Catalog {
    let builder = Catalog::builder();
    let builder = builder.dyn_tool(Arc::new(Echo(order())));
    builder.dyn_tool(Arc::new(Echo(find()))).build().unwrap()
}

/// A Monday.
pub(crate) const START: &str = "2026-11-16T12:00:00Z";

pub(crate) struct World {
    pub(crate) executor: Executor,
    pub(crate) policy: Arc<LivePolicy>,
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
}

impl World {
    /// Everything is allowed, except for these rules.
    pub(crate) fn new(rules: &str) -> Self {
        Self::with_policy(&format!("defaults = {{ unlisted = \"allow\" }}\n{rules}"))
    }

    pub(crate) fn with_policy(text: &str) -> Self {
        let clock = Arc::new(ManualClock::starting_at(START.parse().unwrap()));
        let store = MemoryStore::with_clock(clock.clone()).keeping_log();
        Self::over(Arc::new(store), clock, text)
    }

    /// A process over a store.
    pub(crate) fn over(store: Arc<dyn Store>, clock: Arc<ManualClock>, text: &str) -> Self {
        let policy = Arc::new(LivePolicy::fixed(Policy::parse(text).unwrap()));
        let catalog = catalog();
        policy.check_against(&catalog).unwrap();
        let ids: Arc<dyn IdSource> = Arc::new(RandomIds::new(clock.clone()));
        let kms = Arc::new(MasterKey::from_bytes(&[7; 32]));
        let vault = Arc::new(Vault::new(store.clone(), kms, clock.clone(), ids.clone()));
        let executor = policy
            .controls()
            .install(Executor::builder(catalog))
            .store(store.clone())
            .vault(vault)
            .clock(clock.clone())
            .ids(ids)
            .grant_language(Arc::new(GrantConditions))
            .authorizer(policy.clone())
            .build();
        Self {
            executor,
            policy,
            store,
            clock,
        }
    }

    /// Puts a tool in the place of the one with its name, or adds it.
    pub(crate) fn put(&self, spec: ToolSpec) {
        let catalog = self.executor.catalog();
        let tool = Arc::new(Echo(spec));
        match catalog.get(tool.spec().name.as_str()) {
            Some(_) => catalog.replace(tool).unwrap(),
            None => catalog.add(tool).unwrap(),
        }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.call_as(Principal::user("ann"), tool, arguments).await
    }

    /// A call with the text of its arguments as it is.
    pub(crate) async fn call_text(&self, tool: &str, arguments: &str) -> Value {
        self.send(Principal::user("ann"), tool, arguments).await
    }

    pub(crate) async fn call_as(&self, who: Principal, tool: &str, arguments: &Value) -> Value {
        self.send(who, tool, &arguments.to_string()).await
    }

    async fn send(&self, who: Principal, tool: &str, arguments: &str) -> Value {
        let envelope = RequestEnvelope {
            session_id: Some("s_1".to_owned()),
            ..RequestEnvelope::default()
        };
        self.send_in(who, tool, arguments, envelope).await
    }

    /// A call with an envelope of its own.
    pub(crate) async fn send_in(
        &self,
        who: Principal,
        tool: &str,
        arguments: &str,
        envelope: RequestEnvelope,
    ) -> Value {
        // Records of one moment have no order.
        self.clock.advance(Duration::from_secs(1));
        let call = ToolCall::new(tool, arguments, who).envelope(envelope);
        serde_json::to_value(Box::pin(self.executor.execute(call)).await).unwrap()
    }

    /// Every call of the log, opened, oldest first.
    pub(crate) async fn opened(&self) -> Vec<OpenedCall> {
        let query = LogQuery {
            limit: 1000,
            ..LogQuery::default()
        };
        let rows = self.store.records(&query).await.unwrap();
        let calls = rows.iter().rev().filter(|row| row.request_id.is_some());
        let ids: Vec<_> = calls.map(|row| row.id.clone()).collect();
        let key = SigningKey::from_seed("example.com/log", &[3; 32]).unwrap();
        let archive = Archive::new(
            self.store.clone(),
            self.executor.vault().clone(),
            self.clock.clone(),
            Arc::new(RandomIds::new(self.clock.clone())),
            key.verifying_key(),
        );
        let by = Principal::user("op").scope(SCOPE_OPEN);
        let opened = archive.open_many(&ids, &by, "a test", "policy_replay");
        opened.await.unwrap()
    }

    /// The member `act` of the newest record, without the session.
    pub(crate) async fn newest_act(&self) -> Value {
        let query = LogQuery {
            limit: 1,
            ..LogQuery::default()
        };
        let rows = self.store.records(&query).await.unwrap();
        let newest = self.store.record(&rows[0].id).await.unwrap().unwrap();
        let leaf = String::from_utf8(newest.leaf).unwrap();
        let mut act = EvidenceRecord::from_leaf(&leaf).unwrap().act;
        let is_rest = act.as_object_mut().is_none_or(|members| {
            members.remove("session");
            !members.is_empty()
        });
        if is_rest { act } else { Value::Null }
    }
}
