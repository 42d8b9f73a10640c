//! The operator's desk: operations that are carried out beside the calls of the server.
//!
//! This crate only carries them. What an operation is called, what it is asked with and what it answers is known to
//! the implementation of [`Operations`]; both sides of that are the same program. An answer is a stream of JSON lines: what
//! is written, how far it is, and at the end how it ended. An empty line says that it is still at work. A stream that
//! ends without its last line was broken off.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::gateway::Gateway;

/// Maximum number of lines that wait for the reader; then the operation waits.
const LINES_WAITING: usize = 32;

/// Operations that an operator can ask a server for.
pub trait Operations: Send + Sync {
    /// Returns facts about the server, for the operator.
    fn about(&self) -> Value;

    /// Carries one out. It is called on a thread of its own, which may block.
    fn perform(&self, gateway: &Gateway, asked: &Asked, lines: Lines);
}

/// A requested operation.
#[derive(Debug)]
pub struct Asked {
    /// The name of the operation.
    pub operation: String,
    /// Body of the request, as it arrived.
    pub request: Bytes,
}

/// Sink of an answer. Clones share it.
#[derive(Clone)]
pub struct Lines {
    sender: mpsc::Sender<Bytes>,
    gateway: Gateway,
}

/// Error: the command that asked has ended, usually because of Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the command that asked has ended")]
pub struct Gone;

impl Lines {
    pub(super) fn new(gateway: Gateway) -> (Self, mpsc::Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(LINES_WAITING);
        (Self { sender, gateway }, receiver)
    }

    /// Sends a line, and waits for room. Not to be called from a task: it blocks.
    pub fn send(&self, line: &impl Serialize) -> Result<(), Gone> {
        self.sender.blocking_send(text(line)).map_err(|_| Gone)
    }

    /// Sends a line if there is room; otherwise the line is dropped.
    pub fn try_send(&self, line: &impl Serialize) {
        // A reader that is slow or gone misses nothing that it needs.
        let _ = self.sender.try_send(text(line));
    }

    /// Waits until the answer is no longer wanted: the command closed the connection, or the server was told to stop.
    pub async fn given_up(&self) {
        tokio::select! {
            () = self.sender.closed() => {}
            () = self.gateway.health().draining() => {}
        }
    }
}

fn text(line: &impl Serialize) -> Bytes {
    let mut bytes = serde_json::to_vec(line).unwrap_or_default();
    bytes.push(b'\n');
    bytes.into()
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lines")
    }
}
