//! The basis of every test here: tools made on the spot, and an executor with a manual clock and counted ids.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use countersign::approve::{StoredApprovals, Wanted};
use countersign::clock::ManualClock;
use countersign::contract::tool::{Behaviour, Confirmation, EvidenceRule, KeyRule};
use countersign::contract::{
    Approval, Effect, Input, RecordKind, RequestEnvelope, Source, ToolName, ToolSpec,
};
use countersign::executor::ExecutorBuilder;
use countersign::ids::SequentialIds;
use countersign::ledger::{Log, LogQuery, MemoryStore, Store, StoredRecord};
use countersign::{
    Arguments, BoxFuture, CallContext, Catalog, DryRun, DynTool, Executor, Principal, Question,
    Reconciled, Reply, ToolCall, ToolError,
};
use countersign_evidence::seal::MasterKey;
use countersign_testkit::faulty::{FaultyStore, Op, When};
use jiff::Timestamp;
use serde_json::{Value, json};

type Answer<'a, T> = BoxFuture<'a, Result<T, ToolError>>;
type Body = Box<dyn for<'a> Fn(&'a CallContext, Value) -> Answer<'a, Reply> + Send + Sync>;
type Asker = Box<dyn Fn(&CallContext, Value) -> Result<Question, ToolError> + Send + Sync>;
type Finder = Box<dyn Fn(&CallContext) -> Result<Reconciled<Reply>, ToolError> + Send + Sync>;

/// A tool that counts its runs; by default it answers the number of the run.
pub(crate) struct Probe {
    spec: ToolSpec,
    dry_run: DryRun,
    runs: Arc<AtomicU32>,
    body: Option<Body>,
    finder: Option<Finder>,
    asker: Option<Asker>,
    fixed: Option<&'static str>,
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
            finder: None,
            asker: None,
            fixed: None,
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

    /// Sets the hash of the one source that every record of the tool names.
    pub(crate) fn pinned(mut self, hash: &'static str) -> Self {
        self.fixed = Some(hash);
        self
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

    /// Sets the result of reconciling a call that was lost.
    pub(crate) fn finds(
        mut self,
        finder: impl Fn(&CallContext) -> Result<Reconciled<Reply>, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.finder = Some(Box::new(finder));
        self
    }

    /// Sets the tool's text about a call before a person is asked.
    pub(crate) fn asks(
        mut self,
        asker: impl Fn(&CallContext, Value) -> Result<Question, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.asker = Some(Box::new(asker));
        self
    }

    /// The tool's run counter, for use outside of it.
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

    fn fixed_sources(&self, at: Timestamp) -> Vec<Source> {
        let fixed = self.fixed.into_iter();
        let source = |hash: &str| Source {
            kind: "pin".to_owned(),
            name: "fixed".to_owned(),
            hash: hash.to_owned(),
            ts: at.to_string(),
        };
        fixed.map(source).collect()
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

    fn reconcile<'a>(
        &'a self,
        ctx: &'a CallContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Reconciled<Reply>, ToolError>> {
        Box::pin(async {
            match &self.finder {
                Some(finder) => finder(ctx),
                None => Ok(Reconciled::Unknown),
            }
        })
    }

    fn question<'a>(
        &'a self,
        ctx: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Option<Question>, ToolError>> {
        Box::pin(async move {
            let asker = self.asker.as_ref();
            asker
                .map(|asker| asker(ctx, arguments.to_value()))
                .transpose()
        })
    }
}

pub(crate) struct World {
    pub(crate) executor: Executor,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<ManualClock>,
    ids: Arc<SequentialIds>,
}

impl World {
    pub(crate) fn new(probe: Probe) -> Self {
        Self::of([probe], |builder| builder)
    }

    /// With a log.
    pub(crate) fn logging(probes: impl IntoIterator<Item = Probe>) -> Self {
        Self::made(probes, MemoryStore::keeping_log, |builder, _| builder)
    }

    /// With a log, and an executor that is changed further.
    pub(crate) fn logging_with(
        probes: impl IntoIterator<Item = Probe>,
        change: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> Self {
        Self::made(probes, MemoryStore::keeping_log, |builder, _| {
            change(builder)
        })
    }

    /// With a log, and a store in front that fails as the plan says.
    pub(crate) fn failing(
        probes: impl IntoIterator<Item = Probe>,
        plan: impl Fn(Op, When) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::made(probes, MemoryStore::keeping_log, |builder, store| {
            let plan = move |op, when| -> BoxFuture<'static, bool> {
                Box::pin(std::future::ready(plan(op, when)))
            };
            builder.store(Arc::new(FaultyStore::new(store, plan)))
        })
    }

    /// Another process with the same store.
    pub(crate) fn replica(&self, probes: impl IntoIterator<Item = Probe>) -> Self {
        self.replica_with(probes, |builder| builder)
    }

    /// The same, with other parts.
    pub(crate) fn replica_with(
        &self,
        probes: impl IntoIterator<Item = Probe>,
        change: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> Self {
        let builder = Executor::builder(catalog(probes))
            .clock(self.clock.clone())
            .ids(self.ids.clone())
            .store(self.store.clone())
            .kms(Arc::new(MasterKey::from_bytes(&MASTER)));
        Self {
            executor: change(builder).build(),
            store: self.store.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
        }
    }

    pub(crate) fn of(
        probes: impl IntoIterator<Item = Probe>,
        change: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> Self {
        Self::made(probes, |store| store, |builder, _| change(builder))
    }

    pub(crate) fn made(
        probes: impl IntoIterator<Item = Probe>,
        store: impl FnOnce(MemoryStore) -> MemoryStore,
        change: impl FnOnce(ExecutorBuilder, Arc<dyn Store>) -> ExecutorBuilder,
    ) -> Self {
        let clock = Arc::new(ManualClock::starting_at(
            "2026-11-15T12:00:00Z".parse().unwrap(),
        ));
        let ids = Arc::new(SequentialIds::new());
        let store = Arc::new(store(MemoryStore::with_clock(clock.clone())));
        let builder = Executor::builder(catalog(probes))
            .clock(clock.clone())
            .ids(ids.clone())
            .store(store.clone())
            .kms(Arc::new(MasterKey::from_bytes(&MASTER)));
        Self {
            executor: change(builder, store.clone()).build(),
            store,
            clock,
            ids,
        }
    }

    /// Everything in the log, oldest first: each record with its payload.
    pub(crate) async fn log(&self) -> Vec<(Value, StoredRecord)> {
        let query = LogQuery {
            limit: 10_000,
            ..LogQuery::default()
        };
        let mut log = Vec::new();
        for row in Log::records(&*self.store, &query).await.unwrap() {
            // What was about to happen is looked at by the tests that are about it.
            if row.kind == RecordKind::Intent {
                continue;
            }
            let stored = self.store.record(&row.id).await.unwrap().unwrap();
            log.push((serde_json::from_slice(&stored.leaf).unwrap(), stored));
        }
        // Ids count from one, so among records of one moment the longer one is the later one.
        log.sort_by_key(|(_, stored)| {
            let id = stored.row.id.as_str();
            (stored.row.at, id.len(), id.to_owned())
        });
        log
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

    pub(crate) fn approvals(&self) -> &StoredApprovals {
        self.executor.approvals()
    }

    /// The user of the call confirms.
    pub(crate) async fn approve(&self, approval_id: &str) {
        let by = Principal::user("u_1");
        let answered = self.approvals().approve(approval_id, &by, None);
        answered.await.unwrap();
    }

    /// The questions that the user of the call is asked, newest first.
    pub(crate) async fn asked(&self) -> Vec<Approval> {
        let by = Principal::user("u_1");
        self.approvals()
            .list(&by, &Wanted::default())
            .await
            .unwrap()
    }

    pub(crate) fn advance_seconds(&self, seconds: u64) {
        self.clock.advance(std::time::Duration::from_secs(seconds));
    }
}

const MASTER: [u8; 32] = [7; 32];

fn catalog(probes: impl IntoIterator<Item = Probe>) -> Catalog {
    let catalog = probes
        .into_iter()
        .fold(Catalog::builder(), |catalog, probe| {
            catalog.dyn_tool(Arc::new(probe))
        });
    catalog.build().unwrap()
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
