//! The environment of a running tool: deadline, cancellation, panics, trace, notes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use countersign::cancel::Cancellation;
use countersign::contract::{Input, Parameter, Source, TraceContext, ValueKind};
use countersign::{
    CallContext, Catalog, Executor, Principal, Reply, Tool, ToolArgs, ToolCall, ToolError,
};
use schemars::JsonSchema;
use serde_json::json;

use crate::world::{Probe, World, call, check_error, check_ok};

fn never(probe: Probe) -> Probe {
    probe.body(|_, _| Box::pin(std::future::pending()))
}

/// A10: a tool that does not answer in time is a `TIMEOUT`; the shorter of the two limits counts.
#[tokio::test(start_paused = true)]
async fn the_deadline_ends_a_call() {
    let slow = never(Probe::read("slow.tool")).with(|behaviour| behaviour.deadline_ms = 5_000);
    let world = World::new(slow);
    let started = tokio::time::Instant::now();
    let reply = world.send("slow.tool", &json!({}), &json!({})).await;
    check_error(
        &reply,
        "TIMEOUT",
        &json!({"source": "tool", "retryable": true}),
    );
    assert_eq!(
        reply["error"]["message"],
        "the tool did not answer within 5000 ms"
    );
    assert_eq!(started.elapsed().as_secs(), 5);

    let call = call("slow.tool", &json!({}), &json!({})).timeout(Duration::from_millis(200));
    let reply = world.execute(call).await;
    assert_eq!(
        reply["error"]["message"],
        "the tool did not answer within 200 ms"
    );
}

/// B12: the caller's switch ends a call, whether it was thrown before or while the tool runs.
#[tokio::test(start_paused = true)]
async fn cancellation_ends_a_call() {
    let probe = never(Probe::external("slow.tool"));
    let runs = probe.runs();
    let world = World::new(probe);
    let cancellation = Cancellation::new();
    let keyed = json!({"idempotency_key": "k1"});
    let call = || call("slow.tool", &json!({}), &keyed).cancellation(cancellation.clone());
    let (reply, ()) = tokio::join!(world.execute(call()), async {
        tokio::time::advance(Duration::from_secs(1)).await;
        cancellation.cancel();
    });
    check_error(&reply, "TIMEOUT", &json!({"source": "gateway"}));
    assert_eq!(
        reply["error"]["message"],
        "the call was cancelled before the tool answered"
    );
    // It ran, so what it did elsewhere is not known.
    check_error(
        &world.execute(call()).await,
        "CONFLICT",
        &json!({"reason": "in_doubt"}),
    );

    // This one did not, so its key is free.
    let fresh = json!({"idempotency_key": "k2"});
    let call = || crate::world::call("slow.tool", &json!({}), &fresh);
    let reply = world
        .execute(call().cancellation(cancellation.clone()))
        .await;
    check_error(&reply, "TIMEOUT", &json!({"source": "gateway"}));
    runs.check(1);
    check_error(
        &world.execute(call()).await,
        "TIMEOUT",
        &json!({"source": "tool"}),
    );
    runs.check(2);
}

/// A panic is the tool's failure; its message is not shown.
#[tokio::test]
async fn a_panic_is_contained() {
    for probe in [
        Probe::read("bad.tool").body(|_, _| Box::pin(async { panic!("card 4111 1111") })),
        Probe::read("bad.tool").body(|_, _| panic!("card 4111 1111")),
    ] {
        let world = World::new(probe);
        let reply = world.send("bad.tool", &json!({}), &json!({})).await;
        check_error(&reply, "UPSTREAM_ERROR", &json!({"source": "tool"}));
        assert!(!reply.to_string().contains("4111"), "{reply}");
        assert_eq!(world.record()["code"], "UPSTREAM_ERROR");
    }
}

/// A12: an upstream's code travels beside ours; the cause stays in the log.
#[tokio::test]
async fn an_upstream_error_is_mapped() {
    let world = World::new(Probe::read("geo.find").body(|_, _| {
        Box::pin(async {
            Err(ToolError::upstream("E_QUOTA", "the geocoder refused")
                .hint("try again tomorrow")
                .detail("quota", 100)
                .with_source("GET /secret?token=t failed"))
        })
    }));
    let reply = world.send("geo.find", &json!({}), &json!({})).await;
    assert_eq!(
        reply["error"],
        json!({
            "code": "UPSTREAM_ERROR",
            "message": "the geocoder refused",
            "details": {
                "retryable": true,
                "hint": "try again tomorrow",
                "source": "upstream",
                "upstream_code": "E_QUOTA",
                "quota": 100,
            },
        })
    );
}

struct Unwritable;

impl Tool for Unwritable {
    const NAME: &'static str = "bad.output";
    const DESCRIPTION: &'static str = "";
    type Args = ();
    type Output = BTreeMap<(u8, u8), u8>;

    async fn call(&self, _: &CallContext, (): ()) -> Result<Self::Output, ToolError> {
        Ok(BTreeMap::from([((1, 2), 3)]))
    }
}

#[tokio::test]
async fn an_answer_that_is_no_json_is_the_tools_failure() {
    let executor = Executor::new(Catalog::builder().tool(Unwritable).build().unwrap());
    let call = ToolCall::new("bad.output", "{}", Principal::user("u_1"));
    let reply = serde_json::to_value(executor.execute(call).await).unwrap();
    check_error(&reply, "UPSTREAM_ERROR", &json!({"source": "tool"}));
}

/// A6: the caller's trace goes on; this call is a span of its own, and the parent of the spans below.
#[tokio::test]
async fn the_trace_goes_on_downstream() {
    let world = World::new(Probe::read("sample.read").body(|ctx, _| {
        let data = json!([ctx.traceparent(), ctx.child().to_string()]);
        Box::pin(async move { Ok(data.into()) })
    }));
    let trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let header: TraceContext = format!("00-{trace_id}-00f067aa0ba902b7-01")
        .parse()
        .unwrap();
    let reply = world
        .execute(call("sample.read", &json!({}), &json!({})).trace(header))
        .await;
    let expected = [1, 2].map(|span| format!("00-{trace_id}-{span:016x}-01"));
    assert_eq!(reply["data"], json!(expected));
    let traced = |span: &str, parent: &str| json!({"trace_id": trace_id, "span_id": span, "parent_span_id": parent});
    assert_eq!(
        world.record()["trace"],
        traced("0000000000000001", "00f067aa0ba902b7")
    );

    let envelope = json!({"trace": {"trace_id": trace_id, "span_id": "00000000000000aa"}});
    world.send("sample.read", &json!({}), &envelope).await;
    assert_eq!(
        world.record()["trace"],
        traced("0000000000000003", "00000000000000aa")
    );
}

/// A1, A6: the standard's own form has no trace id; its span is still the parent.
#[tokio::test]
async fn a_trace_without_an_id_gets_one() {
    let world = World::new(Probe::read("sample.read"));
    let envelope = json!({"trace": {"span_id": "00000000000000aa"}});
    let mut traces = std::collections::BTreeSet::new();
    for _ in 0..2 {
        world.send("sample.read", &json!({}), &envelope).await;
        let trace = &world.record()["trace"];
        assert_eq!(trace["parent_span_id"], "00000000000000aa");
        traces.insert(trace["trace_id"].to_string());
    }
    assert_eq!(traces.len(), 1, "one span, one trace");
    let malformed = json!({"trace": {"span_id": "call-7", "trace_id": "xyz"}});
    let reply = world.send("sample.read", &json!({}), &malformed).await;
    let warned = reply["warnings"].as_array().unwrap().iter();
    let warned: Vec<_> = warned.map(|warning| &warning["code"]).collect();
    assert_eq!(warned, ["TRACE_UNUSABLE", "TRACE_UNUSABLE"], "{reply:#}");
}

/// B12: a value of the embedding program reaches the tool, by type.
#[tokio::test]
async fn extensions_reach_the_tool() {
    struct Tenant(&'static str);
    let world = World::new(Probe::read("sample.read").body(|ctx, _| {
        let tenant = ctx.extension::<Tenant>().map(|tenant| tenant.0);
        Box::pin(async move { Ok(json!(tenant).into()) })
    }));
    let call = call("sample.read", &json!({}), &json!({})).extension(Tenant("acme"));
    check_ok(&world.execute(call).await, "req_1", &json!("acme"));
}

/// A1, B7: the tool sees the whole envelope, filled in, and the raw text byte for byte.
#[tokio::test]
async fn the_tool_sees_the_envelope_and_the_raw_text() {
    let world = World::new(Probe::read("sample.read").body(|ctx, _| {
        let request = ctx.request();
        let data = json!({
            "request_id": request.request_id, "actor": request.actor, "user_id": request.user_id,
            "session_id": request.session_id, "locale": request.locale,
            "currency": request.currency, "timezone": request.timezone,
            "client": request.client, "idempotency_key": request.idempotency_key,
            "raw": ctx.raw_arguments(), "deadline": ctx.deadline().to_string(),
        });
        Box::pin(async move { Ok(data.into()) })
    }));
    let envelope = json!({
        "request_id": "r-7", "session_id": "s_1", "locale": "en-US", "currency": "USD",
        "timezone": "America/Los_Angeles", "client": {"app": "web", "version": "1.2"},
        "idempotency_key": "k1",
    });
    let raw = "{ \"n\" :\t1 }";
    let call = ToolCall::new("sample.read", raw, Principal::user("u_1"))
        .envelope(serde_json::from_value(envelope.clone()).unwrap());
    let mut expected = envelope;
    expected["actor"] = json!({"type": "user", "id": "u_1"});
    expected["user_id"] = "u_1".into();
    expected["raw"] = raw.into();
    expected["deadline"] = "2026-11-15T12:00:30Z".into();
    check_ok(&world.execute(call).await, "r-7", &expected);
}

/// A1: the applications that the standard lists pass as they are; another one is accepted, and every reply to its
/// calls says so once: of a tool, of a refusal, and of a stored answer.
#[tokio::test]
async fn an_application_that_is_not_listed_is_accepted_with_a_warning() {
    let world = World::new(Probe::write("note.add").body(|ctx, _| {
        let client = json!(ctx.request().client);
        Box::pin(async move { Ok(client.into()) })
    }));
    let warning = json!({
        "code": "UNKNOWN_CLIENT_APP",
        "message": "client.app in the envelope is not one of web, ios, android; it was accepted unchanged",
    });
    for (app, expected) in [
        ("web", json!([])),
        ("ios", json!([])),
        ("android", json!([])),
        ("iOS", json!([warning])),
        ("kiosk", json!([warning])),
        ("web ", json!([warning])),
    ] {
        let envelope = json!({"client": {"app": app}, "idempotency_key": format!("k {app}")});
        for is_repeat in [false, true] {
            let reply = world.send("note.add", &json!({}), &envelope).await;
            assert_eq!(reply["replayed"] == true, is_repeat, "{reply}");
            assert_eq!(reply["data"], envelope["client"]);
            assert_eq!(reply["warnings"], expected, "{app:?}");
        }
        let refused = world.send("note.add", &json!([]), &envelope).await;
        assert_eq!(refused["error"]["code"], "INVALID_ARGUMENT", "{refused}");
        assert_eq!(refused["warnings"], expected, "{app:?}");
    }
    // The stored answer is that of an application without a warning.
    let repeat = json!({"client": {"app": "kiosk"}, "idempotency_key": "k web"});
    let reply = world.send("note.add", &json!({}), &repeat).await;
    assert_eq!(
        (&reply["replayed"], &reply["warnings"]),
        (&json!(true), &json!([warning]))
    );
}

/// A declared default reaches the tool, and a repeat before and after it changed is the same call.
#[tokio::test]
async fn defaults_are_filled_in_after_binding() {
    let with_default = |limit: u32| {
        let limit = Parameter::new("limit", ValueKind::Integer, "").default_value(limit);
        Probe::write("note.add")
            .input(Input::parameters([limit]))
            .body(|_, arguments| Box::pin(async move { Ok(arguments.into()) }))
    };
    let world = World::new(with_default(3));
    let keyed = json!({"idempotency_key": "k1"});
    let reply = world.send("note.add", &json!({}), &keyed).await;
    check_ok(&reply, "req_1", &json!({"limit": 3}));
    world
        .executor
        .catalog()
        .replace(Arc::new(with_default(4)))
        .unwrap();
    assert_eq!(
        world.send("note.add", &json!({}), &keyed).await["replayed"],
        true
    );
    assert_eq!(
        world.send("note.add", &json!({}), &json!({})).await["data"]["limit"],
        4
    );
}

#[derive(serde::Deserialize, serde::Serialize, JsonSchema, ToolArgs)]
struct OrderArgs {
    /// What to order.
    lines: Vec<Line>,
    /// How to wrap it.
    wrapping: Option<Wrapping>,
    /// Where from.
    #[arg(default = {"city": "Delft"})]
    origin: Origin,
}

#[derive(serde::Deserialize, serde::Serialize, JsonSchema, ToolArgs)]
struct Line {
    /// Which item.
    sku: String,
    /// How many.
    #[arg(default = 1)]
    quantity: u32,
    /// How to wrap it.
    wrapping: Option<Wrapping>,
}

#[derive(serde::Deserialize, serde::Serialize, JsonSchema, ToolArgs)]
struct Wrapping {
    /// Of the paper.
    #[arg(default = "brown")]
    colour: String,
}

#[derive(serde::Deserialize, serde::Serialize, JsonSchema, ToolArgs)]
struct Origin {
    /// The city.
    city: String,
    /// The country.
    #[arg(default = "NL")]
    country: String,
}

struct Order;

impl Tool for Order {
    const NAME: &'static str = "sample.order";
    const DESCRIPTION: &'static str = "Says what it would order.";
    type Args = OrderArgs;
    type Output = OrderArgs;

    async fn call(&self, _: &CallContext, args: OrderArgs) -> Result<OrderArgs, ToolError> {
        Ok(args)
    }
}

/// B2: defaults inside objects, lists of objects and defaults are filled in; an object that is absent as a whole stays
/// absent.
#[tokio::test]
async fn nested_defaults_are_filled_in() {
    let executor = Executor::new(Catalog::builder().tool(Order).build().unwrap());
    for (raw, expected) in [
        (
            r#"{"lines": [{"sku": "a"}, {"sku": "b", "quantity": 2, "wrapping": {}}]}"#,
            json!({
                "lines": [
                    {"sku": "a", "quantity": 1, "wrapping": null},
                    {"sku": "b", "quantity": 2, "wrapping": {"colour": "brown"}},
                ],
                "wrapping": null,
                "origin": {"city": "Delft", "country": "NL"},
            }),
        ),
        (
            r#"{"lines": {"sku": "a"}, "wrapping": {}, "origin": {"city": "Gent", "country": "BE"}}"#,
            json!({
                "lines": [{"sku": "a", "quantity": 1, "wrapping": null}],
                "wrapping": {"colour": "brown"},
                "origin": {"city": "Gent", "country": "BE"},
            }),
        ),
    ] {
        let call = ToolCall::new("sample.order", raw, Principal::user("u_1"));
        let reply = executor.execute(call).await;
        assert_eq!(reply.data, expected, "{reply:?}");
    }
}

/// A7, A8, A9: a window of validity, remarks and sources, and the hash of the canonical data.
#[tokio::test]
async fn a_reply_carries_what_the_tool_said_besides_its_data() {
    let probe = Probe::read("pricing.quote").proved().body(|ctx, _| {
        ctx.fresh_for(30);
        ctx.remark("PARTIAL", "two of three shops answered");
        let source = |kind: &str| Source {
            kind: kind.into(),
            name: "tax".into(),
            hash: "sha256:00".into(),
            ts: ctx.now().to_string(),
        };
        ctx.source(source("document"));
        let reply = Reply {
            data: json!({"b": 1, "a": "x"}),
            sources: vec![source("rule_set")],
            remarks: vec![("CACHED".into(), "from the cache".into())],
            ..Reply::default()
        };
        Box::pin(async move { Ok(reply) })
    });
    let world = World::new(probe.with(|behaviour| behaviour.ttl_seconds = Some(300)));
    let hash = countersign::contract::Digest::of_bytes(br#"{"a":"x","b":1}"#).to_string();
    assert_eq!(
        world.send("pricing.quote", &json!({}), &json!({})).await,
        json!({
            "request_id": "req_1",
            "ok": true,
            "data": {"a": "x", "b": 1},
            "warnings": [
                {"code": "PARTIAL", "message": "two of three shops answered"},
                {"code": "CACHED", "message": "from the cache"},
            ],
            "ttl_seconds": 30,
            "evidence": {
                "snapshot_id": "ev_1",
                "sources": [
                    {"type": "tool", "name": "pricing.quote", "hash": hash,
                     "ts": "2026-11-15T12:00:00Z"},
                    {"type": "rule_set", "name": "tax", "hash": "sha256:00",
                     "ts": "2026-11-15T12:00:00Z"},
                    {"type": "document", "name": "tax", "hash": "sha256:00",
                     "ts": "2026-11-15T12:00:00Z"},
                ],
            },
        })
    );
    assert_eq!(world.record()["data_digest"], hash);
    assert_eq!(world.record()["snapshot_id"], "ev_1");
}

/// A9: if evidence is required, an answer that cannot be hashed is refused.
#[tokio::test]
async fn an_answer_without_a_canonical_form_cannot_be_proved() {
    let big = || {
        Probe::read("big.answer")
            .body(|_, _| Box::pin(async { Ok(json!(9_007_199_254_740_993_u64).into()) }))
    };
    let reply = World::new(big())
        .send("big.answer", &json!({}), &json!({}))
        .await;
    check_ok(&reply, "req_1", &json!(9_007_199_254_740_993_u64));
    let reply = World::new(big().proved())
        .send("big.answer", &json!({}), &json!({}))
        .await;
    check_error(&reply, "UPSTREAM_ERROR", &json!({"source": "tool"}));
}
