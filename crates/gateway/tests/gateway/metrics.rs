//! `GET /metrics`: correct figures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign::contract::RequestEnvelope;
use countersign::ledger::MemoryStore;
use countersign::sample::ClearNotes;
use countersign::{Catalog, Principal, ToolCall};
use countersign_gateway::Settings;
use countersign_testkit::faulty::{FaultyStore, When};

use crate::mcp::Modern;
use crate::world::World;

async fn text(world: &World) -> String {
    let answer = reqwest::get(world.url("/metrics")).await.unwrap();
    let media = answer.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        media,
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    answer.text().await.unwrap()
}

/// Returns the lines with this start.
fn lines(text: &str, start: &str) -> String {
    let lines: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with(start))
        .collect();
    lines.join("\n")
}

async fn send(world: &World, tool: &str, arguments: &str, key: Option<&str>) {
    let envelope = RequestEnvelope {
        idempotency_key: key.map(str::to_owned),
        ..RequestEnvelope::default()
    };
    let call = ToolCall::new(tool, arguments, Principal::user("u_1")).envelope(envelope);
    world.gateway.call(call).await;
}

/// An error reply counts as an error, a repeat as a repeat, and the binder's changes are counted (B19).
#[tokio::test]
async fn calls_are_counted_by_what_the_caller_was_told() {
    let world = World::start().await;
    send(
        &world,
        "memory.search",
        "{query: 'milk', limit: '2',}",
        None,
    )
    .await;
    send(&world, "memory_search", "{}", None).await;
    send(&world, "notes.add", r#"{"text": "x"}"#, Some("k_1")).await;
    send(&world, "notes.add", r#"{"text": "x"}"#, Some("k_1")).await;
    send(&world, "li@example.com", "{}", None).await;
    send(&world, "ring 13812345678", "{}", None).await;
    let text = text(&world).await;
    assert!(text.ends_with("# EOF\n"));
    let counted: Vec<_> = lines(&text, "countersign_calls_total")
        .lines()
        .filter(|line| !line.ends_with(" 0"))
        .map(str::to_owned)
        .collect();
    insta::assert_snapshot!(counted.join("\n"), @r#"
    countersign_calls_total{tool="memory.search",code="OK"} 1
    countersign_calls_total{tool="memory.search",code="INVALID_ARGUMENT"} 1
    countersign_calls_total{tool="notes.add",code="OK"} 2
    countersign_calls_total{tool="unknown",code="NOT_FOUND"} 2
    "#);
    insta::assert_snapshot!(lines(&text, "countersign_bind_issues_total"), @r#"
    countersign_bind_issues_total{tool="memory.search",issue="TRAILING_COMMA"} 1
    countersign_bind_issues_total{tool="memory.search",issue="QUOTE_STYLE"} 1
    countersign_bind_issues_total{tool="memory.search",issue="KEY_UNQUOTED"} 1
    countersign_bind_issues_total{tool="memory.search",issue="TEXT_TO_INTEGER"} 1
    countersign_bind_issues_total{tool="memory.search",issue="MISSING_REQUIRED"} 1
    countersign_bind_issues_total{tool="unknown",issue="TOOL_DEFINITION_MISSING"} 2
    "#);
    insta::assert_snapshot!(lines(&text, "countersign_replays_total"), @r#"
    countersign_replays_total{tool="diagnostics.echo"} 0
    countersign_replays_total{tool="memory.search"} 0
    countersign_replays_total{tool="notes.add"} 1
    countersign_replays_total{tool="notes.list"} 0
    countersign_replays_total{tool="sample.vat"} 0
    countersign_replays_total{tool="unknown"} 0
    "#);
    // A tool that was never called is listed with zeros.
    let idle = lines(&text, r#"countersign_calls_total{tool="sample.vat""#);
    assert_eq!(idle.lines().count(), 14, "{idle}");
    let bucket = r#"countersign_call_phase_seconds_count{tool="memory.search",phase="queued"}"#;
    assert_eq!(lines(&text, bucket), format!("{bucket} 2"));
    let bucket =
        r#"countersign_call_phase_seconds_bucket{le="+Inf",tool="notes.add",phase="settling"}"#;
    assert_eq!(lines(&text, bucket), format!("{bucket} 2"));
}

/// Requests that never became calls are counted by their reason.
#[tokio::test]
async fn refused_requests_are_counted_apart() {
    let world = World::start().await;
    for path in ["/nowhere/li@example.com", "/nowhere?ssn=078-05-1120"] {
        reqwest::get(world.url(path)).await.unwrap();
    }
    let client = reqwest::Client::new();
    client.post(world.url("/healthz")).send().await.unwrap();
    // A call of a missing tool is a call like any other, over every surface.
    client
        .post(world.url("/v1/tools/no.such"))
        .send()
        .await
        .unwrap();
    let params = serde_json::json!({"name": "no_such", "arguments": {}});
    Modern::new(&world).ask("tools/call", params).await;
    let text = text(&world).await;
    let unknown = r#"countersign_calls_total{tool="unknown",code="NOT_FOUND"} 2"#;
    assert!(text.contains(unknown), "{text}");
    insta::assert_snapshot!(lines(&text, "countersign_refused_requests_total"), @r#"
    countersign_refused_requests_total{reason="malformed"} 0
    countersign_refused_requests_total{reason="unauthorized"} 0
    countersign_refused_requests_total{reason="forbidden"} 0
    countersign_refused_requests_total{reason="not_found"} 2
    countersign_refused_requests_total{reason="method"} 1
    countersign_refused_requests_total{reason="timeout"} 0
    countersign_refused_requests_total{reason="too_large"} 0
    countersign_refused_requests_total{reason="media_type"} 0
    countersign_refused_requests_total{reason="overloaded"} 0
    countersign_refused_requests_total{reason="failed"} 0
    "#);
    for gauge in [
        "calls_in_flight",
        "connections",
        "upstreams_changed",
        "store_up",
        "log_tree_size",
        "build_info",
    ] {
        assert!(
            !lines(&text, &format!("countersign_{gauge}")).is_empty(),
            "{gauge}\n{text}"
        );
    }
    assert!(
        !text.contains("example.com") && !text.contains("078-05"),
        "{text}"
    );
}

/// U11: unauthenticated requests cost the store a few reads an interval, however many there are at once, and
/// whatever waits there.
#[tokio::test]
async fn a_flood_of_scrapes_asks_the_store_once_an_interval() {
    let (asked, settings) = (
        Arc::<AtomicUsize>::default(),
        Settings {
            store_figures_interval: Duration::from_hours(1),
            ..Settings::default()
        },
    );
    let counted = asked.clone();
    let store = FaultyStore::new(
        Arc::new(MemoryStore::new().keeping_log()),
        move |_, when| {
            counted.fetch_add(usize::from(when == When::Before), Ordering::Relaxed);
            Box::pin(std::future::ready(false))
        },
    );
    let world = World::on(Arc::new(store), asking(), settings).await;
    for n in 0..40 {
        let user = Principal::user(format!("u_{}", n / 10));
        let arguments = serde_json::json!({ "keep": n }).to_string();
        let call = ToolCall::new("notes.clear", arguments, user);
        world.gateway.call(call).await;
    }
    asked.store(0, Ordering::Relaxed);
    let scrapes = (0..50).map(|n| {
        let path = if n % 2 == 0 { "/metrics" } else { "/readyz" };
        reqwest::get(world.url(path))
    });
    for answer in futures_util::future::join_all(scrapes).await {
        assert_eq!(answer.unwrap().status(), 200);
    }
    // The head, the checkpoint, the vitals of the store, and the open approvals.
    assert_eq!(asked.load(Ordering::Relaxed), 4);
    let pending = lines(&text(&world).await, "countersign_approvals_pending");
    assert_eq!(pending, "countersign_approvals_pending 40");
}

/// A catalog with a tool that asks the user.
fn asking() -> Catalog {
    Catalog::builder().tool(ClearNotes).build().unwrap()
}

/// U11, U10: a store that has stopped answering is noticed after an interval, and not queried more often for
/// that.
#[tokio::test]
async fn a_store_that_is_away_is_a_figure() {
    let is_away = Arc::<std::sync::atomic::AtomicBool>::default();
    let away = is_away.clone();
    let store = FaultyStore::new(Arc::new(MemoryStore::new().keeping_log()), move |_, _| {
        Box::pin(std::future::ready(away.load(Ordering::Relaxed)))
    });
    let settings = Settings {
        store_figures_interval: Duration::ZERO,
        ..Settings::default()
    };
    let world = World::on(Arc::new(store), asking(), settings).await;
    let up = async || lines(&text(&world).await, "countersign_store_up");
    assert_eq!(up().await, "countersign_store_up 1");
    is_away.store(true, Ordering::Relaxed);
    assert_eq!(up().await, "countersign_store_up 0");
    let answer = reqwest::get(world.url("/readyz")).await.unwrap();
    assert_eq!(answer.status(), 503);
    is_away.store(false, Ordering::Relaxed);
    let answer = reqwest::get(world.url("/readyz")).await.unwrap();
    assert_eq!(answer.status(), 200);
}
