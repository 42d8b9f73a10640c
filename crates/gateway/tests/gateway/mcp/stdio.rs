//! The same over lines.

use countersign_gateway::caller::Caller;
use countersign_gateway::mcp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::world::World;

/// What comes back for these lines, until the client has hung up.
async fn answers(lines: &str) -> Vec<Value> {
    let world = World::start().await;
    let (mut ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    let gateway = world.gateway.clone();
    let served =
        tokio::spawn(
            async move { mcp::serve_stdio(&gateway, Caller::local(), input, output).await },
        );
    ours.write_all(lines.as_bytes()).await.unwrap();
    ours.shutdown().await.unwrap();
    let mut text = String::new();
    ours.read_to_string(&mut text).await.unwrap();
    served.await.unwrap().unwrap();
    let parse = |line: &str| serde_json::from_str(line).unwrap();
    text.lines().map(parse).collect()
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
    let lines = [
        json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            },
        }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({
            "jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": { "name": "memory_search", "arguments": { "query": "milk" } },
        }),
    ];
    let answers = answers(&lines.map(|line| format!("{line}\n")).concat()).await;
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(answers[1]["result"]["isError"], false, "{answers:?}");
}
