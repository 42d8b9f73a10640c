//! MCP over HTTP, as a client sees it: whole messages out, whole messages back.

mod calls;
mod clients;
mod confirm;
mod endpoint;
mod lines;
mod owners;
mod parked;
mod stdio;
mod streams;
mod tasks;

use countersign_testkit::patience::within;
use http::StatusCode;
use serde_json::{Value, json};

use crate::world::World;

/// A client of the newer era: each request is self-contained.
pub(crate) struct Modern<'a> {
    world: &'a World,
    http: reqwest::Client,
}

impl<'a> Modern<'a> {
    pub(crate) fn new(world: &'a World) -> Self {
        let http = reqwest::Client::new();
        Self { world, http }
    }

    /// Sends a request; the members that the protocol requires in `_meta` are added.
    pub(crate) async fn ask(&self, method: &str, mut params: Value) -> (StatusCode, Value) {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        if meta["io.modelcontextprotocol/clientCapabilities"].is_null() {
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let name = params["name"].as_str().or_else(|| params["uri"].as_str());
        let name = name.unwrap_or_default().to_owned();
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.post(method, &name, &body.to_string()).await
    }

    /// Sends a text as it is.
    pub(crate) async fn post(&self, method: &str, name: &str, body: &str) -> (StatusCode, Value) {
        let request = self
            .http
            .post(self.world.url("/mcp"))
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .header("mcp-name", name)
            .body(body.to_owned());
        let answer = within(request.send()).await.unwrap();
        let status = answer.status();
        assert_eq!(
            answer.headers()["content-type"],
            "application/json",
            "{body}"
        );
        (status, answer.json().await.unwrap())
    }

    /// Returns the result of a call that the protocol accepts.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        let (status, mut message) = self.ask("tools/call", params).await;
        assert_eq!(status, 200);
        assert!(message["error"].is_null(), "{message}");
        message["result"].take()
    }
}

/// Replaces the parts that differ from run to run.
pub(crate) fn settled(mut value: Value) -> Value {
    settle(&mut value);
    value
}

fn settle(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match name.as_str() {
                    "dev.countersign/request_id" | "request_id" => *member = json!("[request_id]"),
                    "snapshot_id" => *member = json!("[snapshot_id]"),
                    "ts" => *member = json!("[time]"),
                    "hash" => *member = json!("[digest]"),
                    _ => settle(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::String(text) => {
            // The reply as a string, for models that see nothing else.
            if let Ok(mut reply @ Value::Object(_)) = serde_json::from_str(text) {
                settle(&mut reply);
                *text = reply.to_string();
            } else if text.starts_with("evidence://ev_") {
                "evidence://[snapshot_id]".clone_into(text);
            } else if let Some((before, behind)) = text.split_once("evidence.snapshot_id: ev_") {
                let rest = behind.find('\n').and_then(|end| behind.get(end..));
                let rest = rest.unwrap_or_default();
                *text = format!("{before}evidence.snapshot_id: [snapshot_id]{rest}");
            } else if text.starts_with("ev_") {
                "[snapshot_id]".clone_into(text);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
