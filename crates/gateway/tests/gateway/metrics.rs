//! `GET /metrics`: figures that tell the truth.

use countersign::contract::RequestEnvelope;
use countersign::{Principal, ToolCall};

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

/// The lines that start so.
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

/// An error reply is an error, a repeat is a repeat, and what the binder did is counted (B19).
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
    // A tool that nobody has called is there with its zeros.
    let idle = lines(&text, r#"countersign_calls_total{tool="sample.vat""#);
    assert_eq!(idle.lines().count(), 14, "{idle}");
    let bucket = r#"countersign_call_phase_seconds_count{tool="memory.search",phase="queued"}"#;
    assert_eq!(lines(&text, bucket), format!("{bucket} 2"));
    let bucket =
        r#"countersign_call_phase_seconds_bucket{le="+Inf",tool="notes.add",phase="settling"}"#;
    assert_eq!(lines(&text, bucket), format!("{bucket} 2"));
}

/// What never became a call is counted by its reason.
#[tokio::test]
async fn refused_requests_are_counted_apart() {
    let world = World::start().await;
    for path in ["/nowhere/li@example.com", "/nowhere?ssn=078-05-1120"] {
        reqwest::get(world.url(path)).await.unwrap();
    }
    let client = reqwest::Client::new();
    client.post(world.url("/healthz")).send().await.unwrap();
    // A tool that does not exist is a call like any other, by every way.
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
        !text.contains("example.com") && !text.contains("078"),
        "{text}"
    );
}
