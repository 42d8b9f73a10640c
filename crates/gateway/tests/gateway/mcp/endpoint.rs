//! The endpoint: access to it, and its use by the older eras.

use http::StatusCode;
use serde_json::{Value, json};

use super::Modern;
use crate::world::World;

async fn initialize(world: &World, headers: &[(&str, &str)]) -> (StatusCode, String) {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        },
    });
    post(world, headers, body.to_string()).await
}

async fn post(world: &World, headers: &[(&str, &str)], body: String) -> (StatusCode, String) {
    let mut request = reqwest::Client::new()
        .post(world.url("/mcp"))
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.body(body).send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

#[tokio::test]
async fn an_evil_origin_or_host_is_refused() {
    let world = World::start().await;
    let check = async |headers: &[(&str, &str)], expected: u16| {
        let (status, text) = initialize(&world, headers).await;
        assert_eq!(status, expected, "{headers:?}: {text}");
    };
    check(&[], 200).await;
    check(&[("origin", "http://localhost:5173")], 200).await;
    check(&[("origin", "http://evil.example")], 403).await;
    check(&[("origin", "null")], 403).await;
    check(&[("host", "evil.example")], 403).await;
}

/// Two replicas, or one that was restarted: no request of the older eras depends on another.
#[tokio::test]
async fn older_clients_need_no_session() {
    let world = World::start().await;
    let (status, text) = initialize(&world, &[]).await;
    assert_eq!(status, 200);
    let message: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(message["result"]["protocolVersion"], "2025-06-18");
    let extension =
        &message["result"]["capabilities"]["extensions"]["dev.countersign/tool-envelope"];
    assert_eq!(extension["version"], 1);

    let other = World::start().await;
    let call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "memory.search", "arguments": "{\"query\": \"milk\"}" },
    });
    let headers = [("mcp-protocol-version", "2025-06-18")];
    let (status, text) = post(&other, &headers, call.to_string()).await;
    assert_eq!(status, 200);
    let message: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(message["result"]["isError"], false, "{text}");
}

#[tokio::test]
async fn hostile_messages_are_answered() {
    let world = World::start().await;
    let check = async |body: String, status: u16, code: i32| {
        let (found, text) = post(&world, &[], body).await;
        let message: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (found.as_u16(), &message["error"]["code"]),
            (status, &json!(code)),
            "{text}"
        );
    };
    check("{".to_owned(), 400, -32700).await;
    check("[]".to_owned(), 400, -32600).await;
    check(format!("\"{}\"", "x".repeat(1 << 20)), 413, -32600).await;
    let client = Modern::new(&world);
    let (status, _) = client.ask("tools/unknown", json!({})).await;
    assert_eq!(status, 404);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"memory_search","arguments":{deep}}}}}"#
    );
    let (status, text) = post(&world, &[], call).await;
    assert_eq!(status, 200);
    let message: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(message["result"]["isError"], true, "{text}");
}

/// Requests that the protocol itself rejects are refused in JSON too.
#[tokio::test]
async fn every_refusal_is_json() {
    let world = World::start().await;
    let check = async |request: reqwest::RequestBuilder, status: u16| {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status);
        assert_eq!(answer.headers()["content-type"], "application/json");
        let has_allow = answer.headers().contains_key("allow");
        assert_eq!(has_allow, status == 405);
        let message: Value = answer.json().await.unwrap();
        assert_eq!(
            (&message["id"], &message["error"]["code"]),
            (&Value::Null, &json!(-32600)),
            "{message}"
        );
    };
    let http = reqwest::Client::new();
    let both = "application/json, text/event-stream";
    for method in ["GET", "PUT", "DELETE"] {
        let method = method.parse().unwrap();
        let request = http.request(method, world.url("/mcp"));
        check(request.header("accept", both), 405).await;
    }
    let post = |kind: &str, accept: &str, body: String| {
        let request = http.post(world.url("/mcp")).header("content-type", kind);
        request.header("accept", accept).body(body)
    };
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let in_id = format!(r#"{{"jsonrpc":"2.0","id":{deep},"method":"ping"}}"#);
    check(post("application/json", both, in_id), 400).await;
    let in_meta = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"a":{deep}}}}}}}"#
    );
    check(post("application/json", both, in_meta), 400).await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    check(post("text/plain", both, ping.to_owned()), 415).await;
    check(post("application/json", "text/html", ping.to_owned()), 406).await;
}

/// The members of the envelope are checked as strictly here as in a body.
#[tokio::test]
async fn arrays_are_no_objects_in_meta() {
    let world = World::start().await;
    let client = Modern::new(&world);
    for (name, value) in [
        ("actor", json!(["agent", "local"])),
        ("actor", json!({"type": {"agent": null}, "id": "local"})),
        ("client", json!(["a", "1"])),
        ("trace", json!(["a"])),
    ] {
        let mut params = json!({ "name": "memory_search", "arguments": { "query": "milk" } });
        params["_meta"][format!("dev.countersign/{name}")] = value;
        let (_, message) = client.ask("tools/call", params).await;
        assert_eq!(message["error"]["code"], -32602, "{name}: {message}");
    }
}
