//! Notifications while a call runs, or a client listens.

use std::sync::Arc;
use std::time::Duration;

use countersign::contract::{ActorType, Behaviour, Effect};
use countersign::{CallContext, Catalog, Principal, Tool, ToolArgs, ToolError, tool};
use countersign_gateway::caller::Caller;
use countersign_gateway::identity::{Identity, NewKey, SCOPE_KEYS};
use countersign_gateway::server::Stopped;
use countersign_gateway::{Server, Settings};
use countersign_testkit::patience::{until, within};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};

use super::clients::Count;
use super::lines::Lines;
use crate::http_client::to_the_end;
use crate::identity::{actor, policy};
use crate::parts::Parts;
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

/// The tool list changes while a client listens.
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

/// A tool that waits until it is cancelled.
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

/// Starts a gateway with a tool that waits; returns notifications of its begin and its cancellation.
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

/// A client that closes its connection cancels its call.
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
    within(begun.notified()).await;
    sent.abort();
    within(stopped.notified()).await;
}

/// A server that stops does not wait for clients that only listen.
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
    within(begun.notified()).await;
    let cancelled = json!({ "requestId": id, "reason": "the user left" });
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled });
    lines.write(&cancelled).await;
    within(stopped.notified()).await;
}

/// Opens a stream of a newer client that listens over HTTP.
async fn listen(url: String, credential: Option<&str>) -> reqwest::Response {
    let params = json!({ "_meta": meta(), "notifications": { "toolsListChanged": true } });
    let method = "subscriptions/listen";
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut request = reqwest::Client::new()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method)
        .body(body.to_string());
    if let Some(credential) = credential {
        request = request.bearer_auth(credential);
    }
    within(request.send()).await.unwrap()
}

/// Reads the next piece of a stream; `None` if it has ended.
async fn next(stream: &mut reqwest::Response) -> Option<String> {
    let chunk = within(stream.chunk()).await.unwrap();
    chunk.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// A listening client holds a connection, so each caller gets only a few, and all together not all.
#[tokio::test]
async fn streams_are_bounded() {
    for (streams, per_caller, connections) in [(8, 2, 64), (2, 8, 64), (8, 8, 8)] {
        let settings = Settings {
            mcp_streams_max: streams,
            mcp_streams_per_caller_max: per_caller,
            connections_max: connections,
            ..Settings::default()
        };
        let world = World::with(settings).await;
        let mut first = listen(world.url("/mcp"), None).await;
        assert_eq!(first.status(), 200);
        next(&mut first).await.unwrap();
        let second = listen(world.url("/mcp"), None).await;
        assert_eq!(second.status(), 200);
        let refused = listen(world.url("/mcp"), None).await;
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.headers()["retry-after"], "5");
        let message: Value = refused.json().await.unwrap();
        assert_eq!(message["error"]["code"], -32603, "{message}");
        // Everything else is answered, and there is room again when one has gone.
        let health = reqwest::get(world.url("/healthz")).await.unwrap();
        assert_eq!(health.status(), 200);
        drop(second);
        until(async || listen(world.url("/mcp"), None).await.status() == 200).await;
    }
}

/// Revoking a key ends the streams that were opened with it.
#[tokio::test]
async fn a_stream_ends_with_its_credential() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let identity =
        Identity::new(parts.clock(), policy("revision = \"none\"")).api_keys(keys.clone());
    let operator = Principal::new(actor(ActorType::System, "operator/ann"), "").scope(SCOPE_KEYS);
    let new = NewKey {
        label: "listens".to_owned(),
        actor: actor(ActorType::Agent, "a_7"),
        user_id: None,
        acts_for_others: false,
        scopes: Vec::new(),
        effects: None,
        expires_at: None,
    };
    let issued = keys.create(new, &operator).await.unwrap();
    let server = parts.serve(identity).await;
    let url = format!("http://{}/mcp", server.address);
    let mut stream = listen(url, Some(&issued.token)).await;
    assert_eq!(stream.status(), 200);
    next(&mut stream).await.unwrap();
    keys.revoke(&issued.key.id, &operator).await.unwrap();
    // The end of the stream, after what was still on the way.
    until(async || next(&mut stream).await.is_none()).await;
}

/// A server that stops is not delayed by clients that listen over HTTP.
#[tokio::test]
async fn a_stream_does_not_hold_up_the_end() {
    let catalog = Catalog::builder().tool(Count).build().unwrap();
    let (gateway, _) = World::gateway(catalog, Settings::default());
    let server = Server::bind(gateway, "127.0.0.1:0".parse().unwrap());
    let server = server.await.unwrap();
    let url = format!("http://{}/mcp", server.address().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let ended = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    let mut stream = listen(url, None).await;
    next(&mut stream).await.unwrap();
    stop.send(()).unwrap();
    let mut last = String::new();
    while let Some(piece) = next(&mut stream).await {
        last.push_str(&piece);
    }
    assert!(last.contains("\"result\""), "{last}");
    assert_eq!(within(ended).await.unwrap(), Stopped::Drained);
}

/// Idle connections make room when all are taken; those with a request stay.
#[tokio::test]
async fn idle_connections_make_room() {
    let settings = Settings {
        connections_max: 5,
        read_timeout: Duration::from_hours(1),
        ..Settings::default()
    };
    let world = World::with(settings).await;
    let mut listener = listen(world.url("/mcp"), None).await;
    next(&mut listener).await.unwrap();
    let silent = TcpStream::connect(world.address).await.unwrap();
    let mut in_its_head = TcpStream::connect(world.address).await.unwrap();
    in_its_head.write_all(b"GET /v1/to").await.unwrap();
    let mut answered = TcpStream::connect(world.address).await.unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    answered.write_all(request).await.unwrap();
    within(answered.read_u8()).await.unwrap();
    let other = TcpStream::connect(world.address).await.unwrap();

    // Each of these keeps its connection, so each needs one of those.
    let mut clients = Vec::new();
    for _ in 0..4 {
        let client = reqwest::Client::new();
        let health = within(client.get(world.url("/healthz")).send()).await;
        assert_eq!(health.unwrap().status(), 200);
        clients.push(client);
    }
    for mut closed in [silent, in_its_head, answered, other] {
        // Closed or reset, it has ended.
        to_the_end(&mut closed).await;
    }
    let catalog = world.gateway.executor().catalog();
    catalog.add(tool::erase(Count).unwrap()).unwrap();
    let told = next(&mut listener).await.unwrap();
    assert!(told.contains("list_changed"), "{told}");
}
