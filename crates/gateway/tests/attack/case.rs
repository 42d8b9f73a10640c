//! A case: the request, the expected answer, and the harm that must not happen.

use std::fmt::{Debug, Write as _};

use serde_json::{Value, json};

use crate::http_client::Answer;
use crate::world::World;

/// A request, byte for byte.
#[derive(Clone)]
pub(crate) struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    /// Raw bytes, sent in place of all other fields.
    raw: Option<Vec<u8>>,
}

impl Request {
    pub(crate) fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
            raw: None,
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new("GET", path)
    }

    pub(crate) fn post(path: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: body.into(),
            ..Self::new("POST", path)
        }
    }

    /// A call over HTTP.
    pub(crate) fn call(tool: &str, body: &Value) -> Self {
        Self::post(format!("/v1/tools/{tool}"), body.to_string())
    }

    /// A message of the newer era of MCP; the members that the protocol requires in `_meta` are added.
    pub(crate) fn mcp(method: &str, mut params: Value) -> Self {
        let meta = &mut params["_meta"];
        for (name, value) in [
            ("protocolVersion", json!("2026-07-28")),
            ("clientCapabilities", json!({})),
        ] {
            let member = &mut meta[format!("io.modelcontextprotocol/{name}")];
            if member.is_null() {
                *member = value;
            }
        }
        let name = ["name", "uri", "taskId"].map(|name| params[name].as_str());
        let name = name.into_iter().flatten().next().unwrap_or_default();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        Self::message(body.to_string())
            .with("mcp-protocol-version", "2026-07-28")
            .with("mcp-method", method)
            .with("mcp-name", name)
    }

    /// A message of the older eras of MCP.
    pub(crate) fn older_mcp(method: &str, params: &Value) -> Self {
        let mut body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if !method.starts_with("notifications/") {
            body["id"] = json!(1);
        }
        Self::message(body.to_string()).with("mcp-protocol-version", "2025-11-25")
    }

    /// A text for the MCP endpoint.
    pub(crate) fn message(body: impl Into<Vec<u8>>) -> Self {
        Self::post("/mcp", body)
            .with("content-type", "application/json")
            .with("accept", "application/json, text/event-stream")
    }

    /// Bytes as they are.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            raw: Some(bytes.into()),
            ..Self::get("")
        }
    }

    pub(crate) fn by(self, credential: &str) -> Self {
        self.with("authorization", format!("Bearer {credential}"))
    }

    /// Adds a header, or replaces `host`.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn wire(&self) -> Vec<u8> {
        if let Some(raw) = &self.raw {
            return raw.clone();
        }
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !self.headers.iter().any(|(name, _)| name == "host") {
            head += "host: localhost\r\n";
        }
        if self.method != "GET" {
            let _ = write!(head, "content-length: {}\r\n", self.body.len());
        }
        head += "connection: close\r\n";
        let mut wire = head.into_bytes();
        for (name, value) in &self.headers {
            wire.extend_from_slice(name.as_bytes());
            wire.extend_from_slice(b": ");
            wire.extend_from_slice(value);
            wire.extend_from_slice(b"\r\n");
        }
        wire.extend_from_slice(b"\r\n");
        wire.extend_from_slice(&self.body);
        wire
    }
}

/// Expected answer.
pub(crate) enum Expected {
    /// A reply envelope with this status and code.
    Code(u16, &'static str),
    /// The answer of a call with these data: the caller's own.
    Data(Value),
    /// An answer with this status that reveals nothing about others.
    Harmless(u16),
    /// An error of JSON-RPC with this status and code.
    Rpc(u16, i64),
    /// A result of MCP that is an error with this code.
    Tool(&'static str),
    /// For bytes that are not HTTP: one of these statuses, or no answer.
    Wire(&'static [u16]),
}

use Expected::{Code, Data, Harmless, Rpc, Tool, Wire};

pub(crate) const INVALID: Expected = Code(400, "INVALID_ARGUMENT");
pub(crate) const UNAUTHORIZED: Expected = Code(401, "UNAUTHORIZED");
pub(crate) const FORBIDDEN: Expected = Code(403, "FORBIDDEN");
pub(crate) const NOT_FOUND: Expected = Code(404, "NOT_FOUND");
pub(crate) const CONFLICT: Expected = Code(409, "CONFLICT");
pub(crate) const ASKED: Expected = Code(428, "NEEDS_USER_CONFIRMATION");

impl Expected {
    /// Returns why an answer is not the expected one.
    fn complaint(&self, answer: Option<&Answer>) -> Option<String> {
        let wanted = match self {
            Code(status, code) => format!("{status} {code}"),
            Data(data) => format!("200 with {data}"),
            Harmless(status) => format!("{status}"),
            Rpc(status, code) => format!("{status} with the error {code}"),
            Tool(code) => format!("200 with a result that is {code}"),
            Wire(statuses) => format!("one of {statuses:?}, or nothing"),
        };
        let is_so = match (self, answer) {
            (Wire(statuses), answer) => {
                answer.is_none_or(|answer| statuses.contains(&answer.status))
            }
            (_, None) => false,
            (Harmless(status), Some(answer)) => answer.status == *status,
            (Code(status, code), Some(answer)) => {
                answer.status == *status && is_refusal(answer, code)
            }
            (Data(data), Some(answer)) => answer.status == 200 && message(answer)["data"] == *data,
            (Rpc(status, code), Some(answer)) => {
                answer.status == *status && message(answer)["error"]["code"] == *code
            }
            (Tool(code), Some(answer)) => {
                let result = &message(answer)["result"];
                let text = result["content"][0]["text"].as_str().unwrap_or_default();
                answer.status == 200 && result["isError"] == true && text.starts_with(*code)
            }
        };
        (!is_so).then(|| format!("expected {wanted}, found {}", shown(answer)))
    }
}

/// True if an answer is an envelope that says what is wrong, and whether a retry is safe.
fn is_refusal(answer: &Answer, code: &str) -> bool {
    let json = message(answer);
    json["ok"] == false
        && json["request_id"].is_string()
        && json["error"]["code"] == code
        && json["error"]["details"]["retryable"].is_boolean()
}

/// Returns the body of an answer, also if it is a stream of one event.
pub(crate) fn message(answer: &Answer) -> Value {
    let of_stream = || {
        let mut lines = answer.body.lines();
        let found = lines.find_map(|line| {
            let text = line.strip_prefix("data:")?;
            serde_json::from_str(text.trim()).ok()
        });
        found.unwrap_or_default()
    };
    serde_json::from_str(&answer.body).unwrap_or_else(|_| of_stream())
}

fn shown(answer: Option<&Answer>) -> String {
    let Some(answer) = answer else {
        return "no answer".to_owned();
    };
    let body: String = answer.body.chars().take(400).collect();
    format!("{} {body}", answer.status)
}

/// One attack.
pub(crate) struct Case {
    name: String,
    request: Request,
    expected: Expected,
    harm: &'static str,
}

/// Creates an attack with its name, the expected answer, and the harm that must not happen.
pub(crate) fn case(
    name: impl Into<String>,
    request: Request,
    expected: Expected,
    harm: &'static str,
) -> Case {
    Case {
        name: name.into(),
        request,
        expected,
        harm,
    }
}

/// Counts the cases of an area, with their complaints.
pub(crate) struct Tally {
    area: &'static str,
    ran: usize,
    failures: Vec<String>,
}

impl Tally {
    pub(crate) fn new(area: &'static str) -> Self {
        Self {
            area,
            ran: 0,
            failures: Vec::new(),
        }
    }

    /// Sends the requests of a group one after the other, and then checks that no harm has happened.
    pub(crate) async fn run(&mut self, world: &World, group: &str, cases: Vec<Case>) {
        for case in cases {
            let answer = world.send(&case.name, &case.request).await;
            self.ran += 1;
            if let Some(complaint) = case.expected.complaint(answer.as_ref()) {
                let (name, harm) = (&case.name, case.harm);
                self.failures
                    .push(format!("{name} ({harm} must not be): {complaint}"));
            }
        }
        self.stands(world, group).await;
    }

    /// Counts a case that is more than one request.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a case is written as it reads: its name, what was found, what has to be"
    )]
    pub(crate) fn check<T: Debug + PartialEq>(&mut self, name: &str, found: T, expected: T) {
        self.ran += 1;
        if found != expected {
            let failure = format!("{name}: expected {expected:?}, found {found:?}");
            self.failures.push(failure);
        }
    }

    /// Checks everything that must hold after a group.
    pub(crate) async fn stands(&mut self, world: &World, group: &str) {
        let complaints = world.complaints().await;
        let complaints = complaints.into_iter();
        self.failures
            .extend(complaints.map(|it| format!("after {group}: {it}")));
    }

    pub(crate) fn finish(self, at_least: usize) {
        let Self {
            area,
            ran,
            failures,
        } = self;
        println!("{area}: {ran} cases");
        assert!(
            failures.is_empty(),
            "{} of {ran} cases of {area}:\n{}",
            failures.len(),
            failures.join("\n")
        );
        assert!(ran >= at_least, "{area} has {ran} cases");
    }
}
