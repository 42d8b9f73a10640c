//! A client over lines.

use countersign_gateway::caller::Caller;
use countersign_gateway::mcp;
use countersign_testkit::patience::within;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream,
};
use tokio::task::JoinHandle;

use crate::world::World;

pub(crate) struct Lines {
    stream: BufReader<DuplexStream>,
    served: JoinHandle<Result<(), mcp::StdioError>>,
    last_id: u64,
}

impl Lines {
    /// Opens a connection whose messages all come from this caller.
    pub(crate) fn open(world: &World, caller: Caller) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(theirs);
        let gateway = world.gateway.clone();
        let served =
            tokio::spawn(async move { mcp::serve_stdio(&gateway, caller, input, output).await });
        Self {
            stream: BufReader::new(ours),
            served,
            last_id: 0,
        }
    }

    /// Does the handshake of the older eras.
    pub(crate) async fn initialize(&mut self, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = self.ask("initialize", params).await;
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        answer
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer_to(id).await
    }

    /// Sends a request; returns its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        id
    }

    /// Waits for the answer to a request; drops other messages before it.
    pub(crate) async fn answer_to(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().await;
            if message["id"] == id && message["method"].is_null() {
                return message;
            }
        }
    }

    /// Reads the next message.
    pub(crate) async fn next(&mut self) -> Value {
        let mut line = String::new();
        within(self.stream.read_line(&mut line)).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Writes a message.
    pub(crate) async fn write(&mut self, message: &Value) {
        self.write_text(&format!("{message}\n")).await;
    }

    /// Writes a text as it is.
    pub(crate) async fn write_text(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Hangs up; returns all messages that still come.
    pub(crate) async fn close(mut self) -> Vec<Value> {
        self.stream.shutdown().await.unwrap();
        let mut text = String::new();
        within(self.stream.read_to_string(&mut text)).await.unwrap();
        within(self.served).await.unwrap().unwrap();
        let parse = |line: &str| serde_json::from_str(line).unwrap();
        text.lines().map(parse).collect()
    }
}
