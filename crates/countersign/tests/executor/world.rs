//! What every test here stands on: tools made on the spot, and an executor that is exact.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use countersign::approve::MemoryApprovals;
use countersign::clock::ManualClock;
use countersign::contract::tool::{Behaviour, Confirmation, EvidenceRule, KeyRule};
use countersign::contract::{Effect, Input, RequestEnvelope, ToolName, ToolSpec};
use countersign::executor::ExecutorBuilder;
use countersign::ids::SequentialIds;
use countersign::ledger::MemoryStore;
use countersign::{
    Arguments, BoxFuture, CallContext, Catalog, DryRun, DynTool, Executor, Principal, Reply,
    ToolCall, ToolError,
};
use serde_json::{Value, json};

type Body = Box<
    dyn for<'a> Fn(&'a CallContext, Value) -> BoxFuture<'a, Result<Reply, ToolError>> + Send + Sync,
>;

/// A tool that counts its runs; unless told otherwise it answers the number of the run.
pub(crate) struct Probe {
    spec: ToolSpec,
    dry_run: DryRun,
    runs: Arc<AtomicU32>,
    body: Option<Body>,
}

impl Probe {
    pub(crate) fn read(name: &str) -> Self {
        let spec = ToolSpec::new(ToolName::new(name).unwrap(), "")
            .version("7")
            .input(Input::Schema(json!({"type": "object"})));
        Self {
            spec,
            dry_run: DryRun::Validate,
            runs: Arc::default(),
            body: None,
        }
    }

    pub(crate) fn write(name: &str) -> Self {
        Self::read(name).with(|behaviour| behaviour.effect = Effect::Write)
    }

    pub(crate) fn external(name: &str) -> Self {
        Self::read(name).with(|behaviour| behaviour.effect = Effect::External)
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Behaviour)) -> Self {
        change(&mut self.spec.behaviour);
        self
    }

    pub(crate) fn key(self, rule: KeyRule) -> Self {
        self.with(|behaviour| behaviour.idempotency.key = rule)
    }

    pub(crate) fn confirmed(self) -> Self {
        self.with(|behaviour| behaviour.confirmation = Confirmation::Always)
    }

    pub(crate) fn proved(self) -> Self {
        self.with(|behaviour| behaviour.evidence = EvidenceRule::Required)
    }

    pub(crate) fn simulating(mut self) -> Self {
        self.dry_run = DryRun::Simulate;
        self
    }

    pub(crate) fn input(mut self, input: Input) -> Self {
        self.spec.input = input;
        self
    }

    pub(crate) fn body<F>(mut self, body: F) -> Self
    where
        F: for<'a> Fn(&'a CallContext, Value) -> BoxFuture<'a, Result<Reply, ToolError>>
            + Send
            + Sync
            + 'static,
    {
        self.body = Some(Box::new(body));
        self
    }

    /// How often the tool has run, from outside.
    pub(crate) fn runs(&self) -> Runs {
        Runs(self.runs.clone())
    }
}

pub(crate) struct Runs(Arc<AtomicU32>);

impl Runs {
    #[track_caller]
    pub(crate) fn check(&self, expected: u32) {
        assert_eq!(self.0.load(Ordering::SeqCst), expected, "runs of the tool");
    }
}

impl DynTool for Probe {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn dry_run(&self) -> DryRun {
        self.dry_run
    }

    fn call<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        match &self.body {
            Some(body) => body(ctx, arguments.to_value()),
            None => Box::pin(async move { Ok(json!({ "run": run }).into()) }),
        }
    }
}

pub(crate) struct World {
    pub(crate) executor: Executor,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) approvals: Arc<MemoryApprovals>,
}

impl World {
    pub(crate) fn new(probe: Probe) -> Self {
        Self::of([probe], |builder| builder)
    }

    pub(crate) fn of(
        probes: impl IntoIterator<Item = Probe>,
        change: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> Self {
        let catalog = probes
            .into_iter()
            .fold(Catalog::builder(), |catalog, probe| {
                catalog.dyn_tool(Arc::new(probe))
            })
            .build()
            .unwrap();
        let clock = Arc::new(ManualClock::starting_at(
            "2026-11-15T12:00:00Z".parse().unwrap(),
        ));
        let ids = Arc::new(SequentialIds::new());
        let store = Arc::new(MemoryStore::with_clock(clock.clone()));
        let approvals = Arc::new(MemoryApprovals::new(ids.clone()));
        let builder = Executor::builder(catalog)
            .clock(clock.clone())
            .ids(ids)
            .store(store.clone())
            .approver(approvals.clone());
        Self {
            executor: change(builder).build(),
            store,
            clock,
            approvals,
        }
    }

    /// Sends a call of user `u_1`, and gives the whole reply.
    pub(crate) async fn send(&self, tool: &str, arguments: &Value, envelope: &Value) -> Value {
        self.execute(call(tool, arguments, envelope)).await
    }

    pub(crate) async fn execute(&self, call: ToolCall) -> Value {
        serde_json::to_value(self.executor.execute(call).await).unwrap()
    }

    /// The newest record.
    pub(crate) fn record(&self) -> Value {
        serde_json::to_value(self.store.records().last().unwrap()).unwrap()
    }

    pub(crate) fn advance_seconds(&self, seconds: u64) {
        self.clock.advance(std::time::Duration::from_secs(seconds));
    }
}

pub(crate) fn call(tool: &str, arguments: &Value, envelope: &Value) -> ToolCall {
    call_as(Principal::user("u_1"), tool, arguments, envelope)
}

pub(crate) fn call_as(
    principal: Principal,
    tool: &str,
    arguments: &Value,
    envelope: &Value,
) -> ToolCall {
    let envelope: RequestEnvelope = serde_json::from_value(envelope.clone()).unwrap();
    ToolCall::new(tool, arguments.to_string(), principal).envelope(envelope)
}

/// `data` of a success that nothing else is to be said about.
#[track_caller]
pub(crate) fn check_ok(reply: &Value, request_id: &str, data: &Value) {
    let expected = json!({"request_id": request_id, "ok": true, "data": data, "warnings": []});
    assert_eq!(*reply, expected);
}

/// The code, and the particulars that are asked about.
#[track_caller]
pub(crate) fn check_error(reply: &Value, code: &str, details: &Value) {
    assert_eq!(
        (&reply["ok"], &reply["data"]),
        (&json!(false), &Value::Null),
        "{reply:#}"
    );
    assert_eq!(reply["error"]["code"], code, "{reply:#}");
    for (name, expected) in details.as_object().unwrap() {
        assert_eq!(
            reply["error"]["details"][name], *expected,
            "{name} of {reply:#}"
        );
    }
}
