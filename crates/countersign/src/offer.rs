//! What others offer beside tools: resources, prompts and completions, in the words of the protocol that they are offered over (MCP).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::{broadcast, watch};

use crate::BoxFuture;
use crate::context::CallContext;
use crate::dialogue::Dialogue;

/// Member of an answer's data for the blocks of content that an MCP server gives beside a structured answer: images, audio, links.
pub const BLOCKS: &str = "dev.countersign/content";

/// A kind of thing that is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Resources.
    Resources,
    /// Templates of resources.
    Templates,
    /// Prompts.
    Prompts,
}

/// A request to an MCP server that offers resources or prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The contents of a resource.
    Read,
    /// A prompt.
    Prompt,
    /// Completions of an argument.
    Complete,
    /// A subscription to changes of a resource.
    Subscribe,
    /// The end of that subscription.
    Unsubscribe,
}

/// A request: who asks, and what.
pub struct Request<'a> {
    /// The caller, with the documents of the user: see [`Executor::context_outside_calls`](crate::Executor::context_outside_calls).
    pub context: &'a CallContext,
    /// Tools that the caller may call. A caller who may call no tool of a server gets nothing from it.
    pub tools: &'a BTreeSet<String>,
    /// The caller, as far as it can be spoken to.
    pub dialogue: Option<Arc<Dialogue>>,
    /// The request.
    pub asked: Asked,
    /// The parameters.
    pub params: Value,
}

/// Reason why there is no answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Refused {
    /// No server offers it.
    Unknown,
    /// An error of the protocol.
    Protocol {
        /// Its code.
        code: i32,
        /// Its text.
        message: String,
        /// Machine-readable details.
        data: Option<Value>,
    },
    /// The server that offers it cannot be reached, or does not answer.
    Away(String),
}

/// An upstream that was asked a moment ago.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// True if it answered.
    pub is_up: bool,
    /// Its answer, or the reason for which there is none; for an operator.
    pub said: String,
    /// Time until the answer, in microseconds.
    pub took_us: u64,
    /// Number of tools that it lists; `None` if it is no MCP server, or does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed: Option<usize>,
    /// Number of its tools that are approved; `None` if it is no MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<usize>,
    /// Digest of the approved definitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// Tools that are not as they were approved.
    pub differences: Vec<String>,
    /// The places at which their definitions differ, as far as people look.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<DefinitionChange>,
}

/// A place at which the definition of a tool is not the approved one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DefinitionChange {
    /// Name at the server.
    pub tool: String,
    /// JSON pointer within the definition; empty if the whole definition is meant.
    pub path: String,
    /// The approved value; `None` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value that the server lists; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Facts about an upstream that are known without a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The newest answer, or the reason for which there is none.
    pub probe: Probe,
    /// Time since then.
    pub ago: Duration,
}

/// Everything that others offer beside tools.
pub trait Offers: Send + Sync {
    /// True if no upstream could offer anything.
    fn is_empty(&self) -> bool;

    /// True if an upstream offers things of this kind.
    fn has(&self, kind: Listed) -> bool;

    /// The name of the upstream that offers what a request is about; `None` if none does.
    fn owner(&self, asked: Asked, params: &Value) -> Option<String>;

    /// Everything of a kind, of those servers of which the caller may call a tool. It waits for no server.
    fn list(&self, kind: Listed, tools: &BTreeSet<String>) -> Vec<Value>;

    /// Passes a request on.
    fn ask<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Value, Refused>>;

    /// Asks an upstream whether it is there, now and without a user's credential; `None` if there is none of this name.
    fn probe<'a>(&'a self, upstream: &'a str) -> BoxFuture<'a, Option<Probe>>;

    /// Returns the facts about an upstream that are known without a request; `None` if nothing is known, or if no upstream has this name.
    fn known(&self, upstream: &str) -> Option<Known>;

    /// Changes with each change of a list.
    fn changes(&self) -> watch::Receiver<u64>;

    /// The addresses of resources that a client has [subscribed](Asked::Subscribe) to, whenever one changes.
    fn updates(&self) -> broadcast::Receiver<String>;
}
