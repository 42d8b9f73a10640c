//! What others offer beside tools: resources, prompts and completions, in the words of the protocol that they are offered over (MCP).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{broadcast, watch};

use crate::BoxFuture;
use crate::dialogue::Dialogue;
use crate::principal::Principal;

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

/// Something that is asked of whoever offers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The contents of a resource.
    Read,
    /// A prompt.
    Prompt,
    /// Completions of an argument.
    Complete,
    /// To be told when a resource changes.
    Subscribe,
    /// To be told no more.
    Unsubscribe,
}

/// A request: who asks, and what.
pub struct Request<'a> {
    /// The caller.
    pub principal: &'a Principal,
    /// The tools that they may call; nobody gets anything of a server of which they may call nothing.
    pub tools: &'a BTreeSet<String>,
    /// The caller, as far as it can be spoken to.
    pub dialogue: Option<Arc<Dialogue>>,
    /// The request.
    pub asked: Asked,
    /// The parameters.
    pub params: Value,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Refused {
    /// Nobody offers that.
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

/// Everything that others offer beside tools.
pub trait Offers: Send + Sync {
    /// True if there is nobody who could offer anything.
    fn is_empty(&self) -> bool;

    /// True if somebody offers things of this kind.
    fn has(&self, kind: Listed) -> bool;

    /// The name of whoever offers what a request is about; `None` if nobody does.
    fn owner(&self, asked: Asked, params: &Value) -> Option<String>;

    /// Everything of a kind, of those servers of which the caller may call a tool. It waits for nobody.
    fn list(&self, kind: Listed, tools: &BTreeSet<String>) -> Vec<Value>;

    /// Passes a request on.
    fn ask<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Value, Refused>>;

    /// Changes with each change of a list.
    fn changes(&self) -> watch::Receiver<u64>;

    /// The addresses of resources that somebody has [subscribed](Asked::Subscribe) to, whenever one changes.
    fn updates(&self) -> broadcast::Receiver<String>;
}
