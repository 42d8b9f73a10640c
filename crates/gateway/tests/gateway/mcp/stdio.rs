//! MCP over lines.

use countersign_gateway::caller::Caller;
use serde_json::{Value, json};

use super::lines::Lines;
use crate::world::World;

/// Returns the answers to these lines, until the client has hung up.
async fn answers(lines: &str) -> Vec<Value> {
    let world = World::start().await;
    let mut connection = Lines::open(&world, Caller::local());
    connection.write_text(lines).await;
    connection.close().await
}

#[tokio::test]
async fn what_was_asked_is_answered_before_the_end() {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "_meta": meta, "name": "memory_search", "arguments": "{query: 'milk'}" },
    });
    let answers = answers(&format!("{call}\n")).await;
    assert_eq!(answers[0]["result"]["isError"], false, "{answers:?}");
}

#[tokio::test]
async fn noise_makes_no_noise() {
    let answers = answers("hello\n\n}{\n{\"jsonrpc\":\n[]\n").await;
    let codes: Vec<_> = answers
        .iter()
        .map(|answer| &answer["error"]["code"])
        .collect();
    assert_eq!(codes, [-32700, -32600]);
}

#[tokio::test]
async fn older_clients_shake_hands() {
    let world = World::start().await;
    let mut lines = Lines::open(&world, Caller::local());
    let answer = lines.initialize(json!({})).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    let call = json!({ "name": "memory_search", "arguments": { "query": "milk" } });
    let answer = lines.ask("tools/call", call).await;
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert!(lines.close().await.is_empty());
}
