//! Personal data in every part of a request: path, query, headers, body, messages of MCP.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::personal::{USER, as_request_id};

/// Headers that describe a call, and some that do not.
const HEADERS: [&str; 12] = [
    "x-request-id",
    "idempotency-key",
    "user-agent",
    "traceparent",
    "tracestate",
    "baggage",
    "authorization",
    "cookie",
    "referer",
    "mcp-session-id",
    "mcp-protocol-version",
    "content-type",
];

pub(crate) struct Wire {
    pub(crate) url: String,
    http: reqwest::Client,
    /// Number of successful answers.
    answered: AtomicUsize,
}

impl Wire {
    pub(crate) fn new(url: String) -> Self {
        let http = reqwest::Client::new();
        let answered = AtomicUsize::new(0);
        Self {
            url,
            http,
            answered,
        }
    }

    pub(crate) fn answered(&self) -> usize {
        self.answered.load(Ordering::SeqCst)
    }

    async fn post(&self, path: &str, headers: HeaderMap, body: String) {
        let request = self.http.post(format!("{}{path}", self.url));
        // Refused or not, there is an answer.
        let answer = request.headers(headers).body(body).send().await.unwrap();
        let is_answered = usize::from(answer.status().is_success());
        self.answered.fetch_add(is_answered, Ordering::SeqCst);
    }

    /// Sends over plain HTTP.
    pub(crate) async fn http(&self, text: &str, arguments: &[String]) {
        let tool = "/v1/tools/courier.ask";
        let json_type = || headers([("content-type", "application/json")]);
        for arguments in arguments {
            let body = json!({"arguments": arguments, "session_id": text, "user_id": USER});
            self.post(tool, json_type(), body.to_string()).await;
            // As it is: invalid JSON, or an envelope with unknown members.
            self.post(tool, json_type(), arguments.clone()).await;
            let plain = headers([("content-type", "text/plain")]);
            self.post(tool, plain, arguments.clone()).await;
        }
        for name in HEADERS {
            let mut sent = json_type();
            let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) else {
                continue;
            };
            sent.insert(HeaderName::from_static(name), value);
            self.post(tool, sent, r#"{"arguments": {}}"#.to_owned())
                .await;
        }
        if let Some(id) = as_request_id(text) {
            let body = json!({"request_id": id, "user_id": USER}).to_string();
            self.post(tool, json_type(), body).await;
            let mut sent = json_type();
            let value = HeaderValue::from_str(id.as_str()).unwrap();
            sent.insert(HeaderName::from_static("x-request-id"), value);
            self.post(tool, sent, "{}".to_owned()).await;
        }
        let mut encoded = String::new();
        for byte in text.bytes() {
            write!(encoded, "%{byte:02X}").unwrap();
        }
        for path in [
            format!("/v1/tools/{encoded}"),
            format!("/{encoded}"),
            format!("/v1/tools?after={encoded}"),
            format!("/v1/calls/{encoded}"),
            format!("/v1/evidence/{encoded}"),
            format!("/v1/approvals/{encoded}"),
            format!("/v1/providers/{encoded}/calls"),
        ] {
            self.post(&path, json_type(), text.to_owned()).await;
            self.http
                .get(format!("{}{path}", self.url))
                .send()
                .await
                .unwrap();
        }
    }

    /// Sends in a model's message, well formed and not.
    pub(crate) async fn provider(&self, text: &str, arguments: &[String]) {
        let sent = || headers([("content-type", "application/json")]);
        for arguments in arguments {
            let call = json!({"id": text, "type": "function",
                "function": {"name": "courier_ask", "arguments": arguments}});
            let message = json!({"role": "assistant", "content": text, "tool_calls": [call]});
            let whole = json!({"message": message, "envelope": {"session_id": text}});
            let id = as_request_id(text);
            let named = json!({"message": message, "envelope": {"request_id": id}});
            for body in [message, whole, named] {
                self.post("/v1/providers/openai/calls", sent(), body.to_string())
                    .await;
            }
        }
        let block = json!({"type": "tool_use", "id": text, "name": text, "input": {text: text}});
        let message = json!({"role": "assistant", "content": [block]}).to_string();
        for provider in ["anthropic", "gemini", "openai-responses"] {
            let path = format!("/v1/providers/{provider}/calls");
            self.post(&path, sent(), message.clone()).await;
            self.post(&path, sent(), format!("{{{text}")).await;
        }
    }

    /// Sends over MCP, in both eras, well formed and not.
    pub(crate) async fn mcp(&self, text: &str, arguments: &[String]) {
        for version in ["2026-07-28", "2025-06-18"] {
            for arguments in arguments {
                let parsed: Value = serde_json::from_str(arguments).unwrap_or(json!(arguments));
                for arguments in [parsed, json!(arguments)] {
                    self.message(version, "tools/call", &call(text, version, &arguments))
                        .await;
                }
            }
            let none = json!({});
            for (method, params) in [
                (text, &none),
                ("tools/list", &json!({"cursor": text})),
                ("resources/read", &json!({"uri": text})),
                (
                    "initialize",
                    &json!({"protocolVersion": text, "capabilities": {},
                    "clientInfo": {"name": text, "version": text}}),
                ),
            ] {
                let message =
                    json!({"jsonrpc": "2.0", "id": text, "method": method, "params": params});
                self.message(version, method, &message).await;
            }
            let mut sent = mcp_headers(version, "tools/call");
            sent.insert("mcp-name", HeaderValue::from_static("courier.ask"));
            self.post("/mcp", sent, format!("{{\"jsonrpc\": \"2.0\", {text}"))
                .await;
        }
    }

    async fn message(&self, version: &str, method: &str, message: &Value) {
        let mut sent = mcp_headers(version, method);
        if let Ok(name) = HeaderValue::from_str(message["params"]["name"].as_str().unwrap_or("x")) {
            sent.insert("mcp-name", name);
        }
        self.post("/mcp", sent, message.to_string()).await;
    }
}

fn call(text: &str, version: &str, arguments: &Value) -> Value {
    let mut call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "courier.note",
        "arguments": arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": text, "version": text},
            "dev.countersign/session_id": text,
            "dev.countersign/idempotency_key": text,
            "progressToken": text,
            "tracestate": text,
            "baggage": text,
        },
    }});
    if let Some(id) = as_request_id(text) {
        call["params"]["_meta"]["dev.countersign/request_id"] = json!(id);
    }
    call
}

fn mcp_headers(version: &str, method: &str) -> HeaderMap {
    let mut sent = headers([
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ]);
    for (name, value) in [("mcp-protocol-version", version), ("mcp-method", method)] {
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            sent.insert(HeaderName::from_static(name), value);
        }
    }
    sent
}

fn headers<const N: usize>(all: [(&'static str, &'static str); N]) -> HeaderMap {
    let pair = |(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    };
    all.into_iter().map(pair).collect()
}
