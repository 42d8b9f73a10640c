//! A request on a socket of its own, byte for byte as the test writes it, and the answer to it.

use std::fmt::Write as _;

use countersign_testkit::patience::within;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::World;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// Parses the bytes on the wire; `None` if the connection ended without an answer.
    pub(crate) fn parse(wire: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(wire);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Self {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the code of an error; every error is a reply envelope with a hint or a field.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        let json = self.json();
        assert_eq!(json["ok"], false, "{self:?}");
        assert!(json["request_id"].is_string(), "{self:?}");
        assert!(
            json["error"]["details"]["retryable"].is_boolean(),
            "{self:?}"
        );
        json["error"]["code"].as_str().unwrap().to_owned()
    }

    /// Formats an error in one line: status, code, place, message and hint.
    #[track_caller]
    pub(crate) fn told(&self) -> String {
        let code = self.code();
        let error = &self.json()["error"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (message, details) = (text(&error["message"]), &error["details"]);
        let (field, hint) = (text(&details["field"]), text(&details["hint"]));
        format!("{} {code} {field}: {message}; {hint}", self.status)
    }

    /// Formats status, the headers that the contract promises, and the body, with the parts that differ each
    /// time replaced.
    pub(crate) fn shown(&self) -> String {
        let mut lines = vec![self.status.to_string()];
        for name in [
            "content-type",
            "x-request-id",
            "idempotent-replayed",
            "retry-after",
            "allow",
        ] {
            if let Some(value) = self.header(name) {
                lines.push(format!("{name}: {value}"));
            }
        }
        let mut body = self.json();
        settle(&mut body);
        lines.push(serde_json::to_string_pretty(&body).unwrap());
        lines.join("\n")
    }
}

/// Replaces the parts that differ each time: times, ids of records, hashes of the log.
fn settle(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match name.as_str() {
                    "ts" | "at" | "snapshot_id" | "root" | "hash" => *value = Value::from("…"),
                    _ => settle(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Reads until the connection ends, in any way.
pub(crate) async fn to_the_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut wire = Vec::new();
    let _ = within(stream.read_to_end(&mut wire)).await;
    wire
}

/// Sends these bytes and reads to the end of the connection.
pub(crate) async fn raw(world: &World, bytes: impl AsRef<[u8]>) -> Option<Answer> {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    // The server may answer and hang up before everything was sent.
    let _ = stream.write_all(bytes.as_ref()).await;
    Answer::parse(&to_the_end(&mut stream).await)
}

/// Sends one request in the usual form.
pub(crate) async fn send(
    world: &World,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut request =
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for (name, value) in headers {
        let _ = write!(request, "{name}: {value}\r\n");
    }
    if method != "GET" {
        let _ = write!(request, "content-length: {}\r\n", body.len());
    }
    request += "\r\n";
    raw(world, request + body).await.expect("an answer")
}

pub(crate) async fn post(world: &World, path: &str, body: &str) -> Answer {
    send(world, "POST", path, &[("x-request-id", "r_1")], body).await
}

pub(crate) async fn get(world: &World, path: &str) -> Answer {
    send(world, "GET", path, &[("x-request-id", "r_1")], "").await
}
