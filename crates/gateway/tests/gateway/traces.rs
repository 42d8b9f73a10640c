//! Spans as a collector receives them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use countersign::clock::ManualClock;
use countersign::contract::RequestEnvelope;
use countersign::ids::SequentialIds;
use countersign::ledger::MemoryStore;
use countersign::observe::{Origin, Surface};
use countersign::sample::{AddNote, MemorySearch};
use countersign::{Catalog, Executor, Principal, ToolCall};
use countersign_gateway::telemetry::{Convention, Options, Traces};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::json;

use crate::collector::{Collector, attributes};

struct World {
    collector: Collector,
    traces: Arc<Traces>,
    executor: Executor,
}

const CALLERS: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Timeout of a flush in a test; it ends sooner unless something is broken.
const LONG: Duration = Duration::from_secs(30);

impl World {
    async fn start(convention: Convention, sample_ratio: f64) -> Self {
        let collector = Collector::start().await;
        let options = Options {
            convention,
            sample_ratio,
            ..Options::default()
        };
        let dropped = Arc::default();
        let traces = Arc::new(Traces::start(&collector.url, &options, dropped).unwrap());
        let catalog = Catalog::builder()
            .tool(MemorySearch::new(["buy milk"]))
            .tool(AddNote);
        let start = "2026-11-15T12:00:00Z".parse().unwrap();
        let executor = Executor::builder(catalog.build().unwrap())
            .clock(Arc::new(ManualClock::starting_at(start)))
            .ids(Arc::new(SequentialIds::new()))
            .store(Arc::new(MemoryStore::new().keeping_log()))
            .observer(traces.clone())
            .build();
        Self {
            collector,
            traces,
            executor,
        }
    }

    /// Returns the span of one call, and the schema that it names.
    async fn span(&self, call: ToolCall) -> (Span, String) {
        self.executor.execute(call).await;
        assert!(self.traces.flush(LONG).await);
        self.collector.spans().pop().unwrap()
    }
}

fn search(arguments: &str) -> ToolCall {
    let call = ToolCall::new("memory.search", arguments, Principal::user("u_1"));
    call.trace(CALLERS.parse().unwrap())
        .trace_state("vendor=x1".parse().unwrap())
}

fn shown(span: &Span, schema: &str) -> String {
    let hex = |bytes: &[u8]| -> String {
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits
            .map(|digit| char::from_digit(digit.into(), 16).unwrap())
            .collect()
    };
    let kind = SpanKind::try_from(span.kind).unwrap();
    let shown = json!({
        "name": span.name,
        "kind": kind.as_str_name(),
        "trace_id": hex(&span.trace_id),
        "span_id": hex(&span.span_id),
        "parent": hex(&span.parent_span_id),
        "state": span.trace_state,
        "start": span.start_time_unix_nano.to_string(),
        "status": span.status.as_ref().map(|status| status.code),
        "schema": schema,
        "attributes": attributes(&span.attributes),
    });
    serde_json::to_string_pretty(&shown).unwrap()
}

/// A6: the span of a call has the caller's trace, the caller's span as its parent and our own id, and describes
/// the call and its end in the terms of the pinned convention.
#[tokio::test]
async fn a_call_is_one_span_below_that_of_its_caller() {
    let world = World::start(Convention::V1_37, 0.0).await;
    let (span, schema) = world.span(search("{query: 'milk'}")).await;
    insta::assert_snapshot!(shown(&span, &schema), @r#"
    {
      "attributes": {
        "countersign.bind.issues": "QUOTE_STYLE KEY_UNQUOTED",
        "countersign.bind.status": "repaired",
        "countersign.code": "OK",
        "countersign.dry_run": false,
        "countersign.phase.awaiting_approval_us": 0,
        "countersign.phase.executing_us": 0,
        "countersign.phase.queued_us": 0,
        "countersign.phase.settling_us": 0,
        "countersign.policy_revision": "allow-all",
        "countersign.replayed": false,
        "countersign.request_id": "req_1",
        "countersign.snapshot_id": "ev_1",
        "countersign.surface": "in_process",
        "countersign.tool.version": "0.1.0",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "memory.search",
        "gen_ai.tool.type": "function"
      },
      "kind": "SPAN_KIND_INTERNAL",
      "name": "execute_tool memory.search",
      "parent": "00f067aa0ba902b7",
      "schema": "https://opentelemetry.io/schemas/1.37.0",
      "span_id": "0000000000000001",
      "start": "1794744000000000000",
      "state": "vendor=x1",
      "status": 0,
      "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736"
    }
    "#);
    let (span, schema) = world.span(search("{}")).await;
    insta::assert_snapshot!(shown(&span, &schema), @r#"
    {
      "attributes": {
        "countersign.bind.issues": "MISSING_REQUIRED",
        "countersign.bind.status": "refused",
        "countersign.code": "INVALID_ARGUMENT",
        "countersign.dry_run": false,
        "countersign.phase.awaiting_approval_us": 0,
        "countersign.phase.executing_us": 0,
        "countersign.phase.queued_us": 0,
        "countersign.phase.settling_us": 0,
        "countersign.policy_revision": "allow-all",
        "countersign.replayed": false,
        "countersign.request_id": "req_2",
        "countersign.snapshot_id": "ev_3",
        "countersign.surface": "in_process",
        "countersign.tool.version": "0.1.0",
        "error.type": "INVALID_ARGUMENT",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "memory.search",
        "gen_ai.tool.type": "function"
      },
      "kind": "SPAN_KIND_INTERNAL",
      "name": "execute_tool memory.search",
      "parent": "00f067aa0ba902b7",
      "schema": "https://opentelemetry.io/schemas/1.37.0",
      "span_id": "0000000000000002",
      "start": "1794744000000000000",
      "state": "vendor=x1",
      "status": 2,
      "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736"
    }
    "#);
}

/// A newer version describes more of a call over MCP; without `GenAI` the span is still there.
#[tokio::test]
async fn the_convention_can_be_chosen() {
    let over_mcp = || {
        let origin = Origin {
            surface: Surface::Mcp,
            call_id: Some("call_7".into()),
        };
        search(r#"{"query": "milk"}"#).origin(origin)
    };
    for (convention, name, kind, schema, method, id) in [
        (
            "1.37",
            "execute_tool memory.search",
            SpanKind::Internal,
            "https://opentelemetry.io/schemas/1.37.0",
            None,
            Some("call_7"),
        ),
        (
            "1.41",
            "tools/call memory.search",
            SpanKind::Server,
            "https://opentelemetry.io/schemas/1.41.0",
            Some("tools/call"),
            Some("call_7"),
        ),
        (
            "off",
            "tool_call memory.search",
            SpanKind::Internal,
            "",
            None,
            None,
        ),
    ] {
        let convention: Convention = convention.parse().unwrap();
        let world = World::start(convention, 0.0).await;
        let (span, url) = world.span(over_mcp()).await;
        assert_eq!(
            (span.name.as_str(), span.kind, url.as_str()),
            (name, kind as i32, schema)
        );
        let found = attributes(&span.attributes);
        let text = |name: &str| found.get(name).and_then(|value| value.as_str());
        assert_eq!(text("mcp.method.name"), method);
        assert_eq!(text("gen_ai.tool.call.id"), id);
        assert_eq!(
            text("gen_ai.operation.name").is_some(),
            convention != Convention::Off
        );
    }
}

/// The caller's sampling flag counts; of traces that begin here, the configured share is sampled.
#[tokio::test]
async fn only_sampled_traces_are_sent() {
    let plain = || {
        ToolCall::new(
            "memory.search",
            r#"{"query": "milk"}"#,
            Principal::user("u_1"),
        )
    };
    let unsampled = format!("{}00", &CALLERS[..CALLERS.len() - 2]);
    for (ratio, call, sent) in [
        (0.0, plain(), 0),
        (1.0, plain(), 1),
        (0.0, search("{}"), 1),
        (1.0, plain().trace(unsampled.parse().unwrap()), 0),
    ] {
        let world = World::start(Convention::V1_37, ratio).await;
        world.executor.execute(call).await;
        assert!(world.traces.flush(LONG).await);
        assert_eq!(world.collector.spans().len(), sent);
    }
}

/// An unreachable collector costs spans, which are counted, and no call waits for it.
#[tokio::test]
async fn a_collector_that_is_away_costs_spans_and_nothing_else() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let dropped: Arc<AtomicU64> = Arc::default();
    let traces = Traces::start(&nobody, &Options::default(), dropped.clone()).unwrap();
    let catalog = Catalog::builder().tool(MemorySearch::new(["buy milk"]));
    let traces = Arc::new(traces);
    let executor = Executor::builder(catalog.build().unwrap()).observer(traces.clone());
    let executor = executor.build();
    // More than the queue holds; nothing of it is sent before this task yields.
    for _ in 0..5_000 {
        assert!(executor.execute(search(r#"{"query": "milk"}"#)).await.ok);
    }
    assert!(traces.flush(LONG).await);
    assert_eq!(dropped.load(Ordering::Relaxed), 5_000);
}

/// A model's id of a call is exported only if it is no more than an id.
#[tokio::test]
async fn a_call_id_that_may_be_more_is_left_out() {
    let world = World::start(Convention::V1_37, 1.0).await;
    for id in [
        "li@example.com",
        "张伟",
        "call for Li Lei",
        &"x".repeat(200),
    ] {
        let origin = Origin {
            surface: Surface::Provider,
            call_id: Some(id.into()),
        };
        let (span, _) = world.span(search("{}").origin(origin)).await;
        assert_eq!(
            attributes(&span.attributes).get("gen_ai.tool.call.id"),
            None,
            "{id}"
        );
    }
    let envelope = RequestEnvelope::default();
    let unknown =
        ToolCall::new("ring 13812345678", "{}", Principal::user("u_1")).envelope(envelope);
    let (span, _) = world.span(unknown).await;
    assert_eq!(span.name, "execute_tool unknown");
}
