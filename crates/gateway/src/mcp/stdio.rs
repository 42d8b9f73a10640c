//! The same tools over standard input and output: one message a line, and nothing else.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Notify;

use super::handler::Handler;
use super::raw::{self, Kind, Message};
use crate::caller::Caller;
use crate::gateway::Gateway;

/// Reason why serving ended before the client hung up.
#[derive(Debug, thiserror::Error)]
#[error("the connection could not be served: {0}")]
pub struct StdioError(String);

/// Serves one client, whose messages all come from `caller`, until it hangs up. Calls that are running
/// then are answered first, as long as the settings allow.
pub async fn serve_stdio(
    gateway: &Gateway,
    caller: Caller,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), StdioError> {
    let handler = Handler::new(gateway);
    let lines = Lines {
        input: BufReader::new(input),
        line: Vec::new(),
        is_too_long: false,
        output: Arc::new(tokio::sync::Mutex::new(output)),
        handler: handler.clone(),
        caller,
        running: Arc::default(),
        line_bytes_max: gateway.settings().body_bytes_max,
        drain: gateway.settings().drain,
    };
    // Boxed: it is large, and lives as long as the connection.
    let served = match Box::pin(rmcp::serve_server(handler, lines)).await {
        Ok(service) => service.waiting().await.map(drop).map_err(|e| e.to_string()),
        // A client that hangs up before it says anything has done nothing wrong.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    gateway.drained().await;
    served.map_err(StdioError)
}

/// Messages, one a line.
struct Lines<R, W> {
    input: BufReader<R>,
    /// Received part of the next line.
    line: Vec<u8>,
    is_too_long: bool,
    output: Arc<tokio::sync::Mutex<W>>,
    handler: Handler,
    caller: Caller,
    running: Arc<Running>,
    line_bytes_max: usize,
    drain: Duration,
}

/// The calls that wait for their answer.
#[derive(Default)]
struct Running {
    ids: Mutex<HashSet<RequestId>>,
    changed: Notify,
}

impl Running {
    fn add(&self, id: RequestId) {
        self.ids
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id);
    }

    fn remove(&self, id: &RequestId) {
        self.ids
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
        self.changed.notify_waiters();
    }

    fn is_empty(&self) -> bool {
        self.ids
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }

    async fn done(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.is_empty() {
                return;
            }
            changed.await;
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (output, running) = (self.output.clone(), self.running.clone());
        async move {
            let id = match &message {
                ServerJsonRpcMessage::Response(response) => Some(response.id.clone()),
                ServerJsonRpcMessage::Error(error) => error.id.clone(),
                ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
            };
            let written = write(&output, &serde_json::to_vec(&message)?).await;
            if let Some(id) = id {
                running.remove(&id);
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let Some(line) = self.next_line().await else {
                // What has been asked is answered, even if nothing more can be asked.
                let _done = tokio::time::timeout(self.drain, self.running.done()).await;
                return None;
            };
            if let Some(message) = self.read(line).await {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output.lock().await.flush().await
    }
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// The next line; one that is too long is skipped to its end and comes as an empty one. May be
    /// dropped at any time: what has arrived is kept.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let arrived = self.input.fill_buf().await.ok()?;
            if arrived.is_empty() {
                return None;
            }
            let end = arrived.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(arrived.len());
            if self.line.len() + taken > self.line_bytes_max {
                self.is_too_long = true;
                self.line.clear();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(arrived.get(..taken)?);
            }
            self.input.consume(end.map_or(taken, |end| end + 1));
            if end.is_some() {
                return Some(std::mem::take(&mut self.line));
            }
        }
    }

    /// The message in a line. Text that isn't a message gets one answer if it looks like one, and no answer if
    /// it is noise, so that two programs that echo each other fall silent.
    async fn read(&mut self, line: Vec<u8>) -> Option<ClientJsonRpcMessage> {
        if std::mem::take(&mut self.is_too_long) {
            let text = format!("the message is longer than {} bytes", self.line_bytes_max);
            self.refuse(-32600, &text).await;
            return None;
        }
        let line = line.trim_ascii();
        let looks_like_one = line.starts_with(b"{") || line.starts_with(b"[");
        let bytes = Bytes::copy_from_slice(line);
        let handler = &self.handler;
        match raw::take_arguments(bytes, |name| handler.needs_arguments(name)) {
            Ok(message) => self.parse(message).await,
            Err(malformed) if looks_like_one => {
                self.refuse(malformed.code(), &malformed.to_string()).await;
                None
            }
            Err(_) => None,
        }
    }

    async fn parse(&mut self, taken: Message) -> Option<ClientJsonRpcMessage> {
        let Ok(mut message) = serde_json::from_slice::<ClientJsonRpcMessage>(&taken.bytes) else {
            self.refuse(
                -32600,
                "the message is not a JSON-RPC message of this protocol",
            )
            .await;
            return None;
        };
        if let ClientJsonRpcMessage::Request(request) = &mut message {
            let extensions = request.request.extensions_mut();
            extensions.insert(self.caller.clone());
            if let Some(arguments) = taken.arguments {
                extensions.insert(arguments);
            }
            if taken.kind == Kind::Call {
                self.running.add(request.id.clone());
            }
        }
        Some(message)
    }

    async fn refuse(&mut self, code: i32, text: &str) {
        let error = json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": { "code": code, "message": text },
        });
        // A client that does not read any more is noticed by the next answer.
        let _closed = write(&self.output, error.to_string().as_bytes()).await;
    }
}

async fn write<W: AsyncWrite + Send + Unpin>(
    output: &tokio::sync::Mutex<W>,
    message: &[u8],
) -> std::io::Result<()> {
    let mut line = Vec::with_capacity(message.len() + 1);
    line.extend_from_slice(message);
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}
