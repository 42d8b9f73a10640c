//! Trace headers that a service behind a tool receives. The tool chooses nothing: it adds the headers that the
//! context names, so that the service sees a header which the context forgets or has too many.

use axum::Router;
use axum::routing::get;
use countersign::{CallContext, Catalog, Tool, ToolArgs, ToolError};
use http::HeaderMap;
use serde_json::{Value, json};

use crate::mcp::Modern;
use crate::world::World;

/// Calls a service over HTTP, as a tool would.
struct Fetch {
    url: String,
}

#[derive(serde::Deserialize, ToolArgs)]
struct FetchArgs {}

impl Tool for Fetch {
    const NAME: &'static str = "web.fetch";
    const DESCRIPTION: &'static str = "What the service was told.";
    type Args = FetchArgs;
    type Output = Value;

    async fn call(&self, ctx: &CallContext, _: FetchArgs) -> Result<Value, ToolError> {
        let client = reqwest::Client::new();
        let mut request = client.get(&self.url);
        for (name, value) in ctx.trace_headers() {
            request = request.header(name, value);
        }
        let answer = request.send().await.unwrap();
        Ok(answer.json().await.unwrap())
    }
}

async fn echo(headers: HeaderMap) -> axum::Json<Value> {
    let of_transport = ["accept", "accept-encoding", "host", "user-agent"];
    let told = headers
        .iter()
        .filter(|(name, _)| !of_transport.contains(&name.as_str()));
    let told = told.map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap())));
    axum::Json(Value::Object(told.collect()))
}

async fn world() -> World {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/", get(echo));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let world = World::start().await;
    let tools = Catalog::builder().tool(Fetch { url }).build().unwrap();
    let tool = tools.get("web.fetch").unwrap().tool().clone();
    world.gateway.executor().catalog().add(tool).unwrap();
    world
}

/// Checks for the caller's trace with a span of ours, and the caller's state. Nothing else: callers put
/// personal data into `baggage`, so it is not passed on.
#[track_caller]
fn check(told: &Value) {
    let names: Vec<&String> = told.as_object().unwrap().keys().collect();
    assert_eq!(names, ["traceparent", "tracestate"]);
    let parent = told["traceparent"].as_str().unwrap();
    assert!(
        parent.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"),
        "{told}"
    );
    assert!(
        !parent.contains("00f067aa0ba902b7") && parent.ends_with("-01"),
        "{told}"
    );
    assert_eq!(told["tracestate"], "vendor=x1");
}

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A6: whether the trace comes in headers or in `_meta`, a tool's requests are below the call's span.
#[tokio::test]
async fn the_trace_goes_on_to_every_service_behind_a_tool() {
    let world = world().await;
    let request = reqwest::Client::new()
        .post(world.url("/v1/tools/web.fetch"))
        .header("traceparent", PARENT)
        .header("tracestate", "vendor=x1")
        .header("baggage", "user=li")
        .body("{}");
    let reply: Value = request.send().await.unwrap().json().await.unwrap();
    check(&reply["data"]);

    let params = json!({"name": "web_fetch", "arguments": {}, "_meta": {
        "traceparent": PARENT, "tracestate": "vendor=x1", "baggage": "user=li",
    }});
    let (_, message) = Modern::new(&world).ask("tools/call", params).await;
    let mut content = message["result"]["structuredContent"].clone();
    content.as_object_mut().unwrap().remove("evidence");
    check(&content);

    // Without a trace of the caller there is a new one, and no state.
    let bare = reqwest::Client::new().post(world.url("/v1/tools/web.fetch"));
    let reply: Value = bare.body("{}").send().await.unwrap().json().await.unwrap();
    let names: Vec<&String> = reply["data"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["traceparent"]);
}
