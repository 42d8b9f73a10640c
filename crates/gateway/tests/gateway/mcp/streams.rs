//! What is told while a call runs, or a client listens.

use std::sync::Arc;

use countersign::contract::{Behaviour, Effect};
use countersign::{CallContext, Tool, ToolArgs, ToolError, tool};
use countersign_gateway::caller::Caller;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::clients::Count;
use super::lines::Lines;
use crate::world::World;

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[tokio::test]
async fn progress_is_told_to_those_who_asked() {
    let world = World::start().await;
    let catalog = world.gateway.executor().catalog();
    catalog.add(tool::erase(Count).unwrap()).unwrap();
    let mut lines = Lines::open(&world, Caller::local());
    let mut params = json!({ "_meta": meta(), "name": "test_count", "arguments": { "to": 2 } });
    let silent = lines.send("tools/call", params.clone()).await;
    let message = lines.next().await;
    assert_eq!(
        message["id"], silent,
        "nobody asked for progress: {message}"
    );

    params["_meta"]["progressToken"] = json!("p");
    let id = lines.send("tools/call", params).await;
    let mut told = Vec::new();
    let last = loop {
        let message = lines.next().await;
        if message["method"] != "notifications/progress" {
            break message;
        }
        assert_eq!(message["params"]["progressToken"], "p");
        told.push(message["params"]["progress"].as_f64().unwrap());
    };
    assert_eq!(told, [1.0, 2.0]);
    assert_eq!(last["id"], id, "{last}");
    assert!(lines.close().await.is_empty(), "nothing after the end");
}

/// The list changes while a client listens.
#[tokio::test]
async fn listeners_hear_of_new_tools() {
    let world = World::start().await;
    let catalog = world.gateway.executor().catalog();
    let mut lines = Lines::open(&world, Caller::local());
    let params = json!({ "_meta": meta(), "notifications": { "toolsListChanged": true } });
    lines.send("subscriptions/listen", params).await;
    let acknowledged = lines.next().await;
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    catalog.add(tool::erase(Count).unwrap()).unwrap();
    let changed = lines.next().await;
    assert_eq!(
        changed["method"], "notifications/tools/list_changed",
        "{changed}"
    );

    let mut older = Lines::open(&world, Caller::local());
    older.initialize(json!({})).await;
    // An answer means that the handshake is over.
    older.ask("ping", json!({})).await;
    catalog.remove("test.count").unwrap();
    let changed = older.next().await;
    assert_eq!(
        changed["method"], "notifications/tools/list_changed",
        "{changed}"
    );
}

/// A tool that waits until it is told to stop.
struct Wait {
    begun: Arc<Notify>,
    stopped: Arc<Notify>,
}

#[derive(Deserialize, ToolArgs)]
struct WaitArgs {}

impl Tool for Wait {
    const NAME: &'static str = "test.wait";
    const DESCRIPTION: &'static str = "Waits.";
    type Args = WaitArgs;
    type Output = bool;

    fn behaviour() -> Behaviour {
        Behaviour {
            effect: Effect::Write,
            ..Behaviour::default()
        }
    }

    async fn call(&self, ctx: &CallContext, _: WaitArgs) -> Result<bool, ToolError> {
        self.begun.notify_one();
        ctx.cancellation().cancelled().await;
        self.stopped.notify_one();
        Ok(true)
    }
}

/// A gateway with a tool that waits; what it says when it begins and when it is stopped.
async fn waiting() -> (World, Arc<Notify>, Arc<Notify>) {
    let world = World::start().await;
    let (begun, stopped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let wait = Wait {
        begun: begun.clone(),
        stopped: stopped.clone(),
    };
    let catalog = world.gateway.executor().catalog();
    catalog.add(tool::erase(wait).unwrap()).unwrap();
    (world, begun, stopped)
}

/// A client that closes its connection has stopped its call.
#[tokio::test]
async fn a_connection_that_is_closed_stops_its_call() {
    let (world, begun, stopped) = waiting().await;
    let url = world.url("/mcp");
    let params = json!({ "name": "test_wait", "arguments": {} });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = reqwest::Client::new()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(body.to_string());
    let sent = tokio::spawn(request.send());
    begun.notified().await;
    sent.abort();
    stopped.notified().await;
}

/// A server that is told to stop does not wait for those who only listen.
#[tokio::test]
async fn listening_ends_with_the_server() {
    let world = World::start().await;
    let mut lines = Lines::open(&world, Caller::local());
    let params = json!({ "_meta": meta(), "notifications": { "toolsListChanged": true } });
    let id = lines.send("subscriptions/listen", params).await;
    lines.next().await;
    world.gateway.health().drain();
    let last = lines.next().await;
    assert_eq!((&last["id"], last["error"].is_null()), (&json!(id), true));
}

#[tokio::test]
async fn a_client_stops_its_call_by_saying_so() {
    let (world, begun, stopped) = waiting().await;
    let mut lines = Lines::open(&world, Caller::local());
    lines.initialize(json!({})).await;
    let params = json!({ "name": "test_wait", "arguments": {} });
    let id = lines.send("tools/call", params).await;
    begun.notified().await;
    let cancelled = json!({ "requestId": id, "reason": "the user left" });
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled });
    lines.write(&cancelled).await;
    stopped.notified().await;
}
