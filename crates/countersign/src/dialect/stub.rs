//! A provider that plays a script: the whole way of a call (B16) without a model.
//!
//! Its own dialect is the plainest there is, and carries any argument text, well formed or not:
//! `{"text": "…", "calls": [{"id": "…", "name": "…", "arguments": "…"}], "stop": "…"}`, streamed as
//! `{"call": {"index", "id", "name"}}`, `{"delta": {"index", "arguments"}}`, `{"stop": "…"}`.

use std::collections::VecDeque;

use countersign_contract::ReplyEnvelope;
use serde_json::{Value, json};

use super::call::{self, Provenance, ProviderCall};
use super::error::DecodeError;
use super::raw::Node;
use super::schema::{Form, PropertyNames};
use super::stream::{Joiner, Key, contradiction};
use super::tools::{Declaration, ToolListOptions, Wire};
use super::{Dialect, RawText};
use crate::history::HistoryEntry;
use crate::session::Session;

/// Runs one call: the layer between a provider and the tools. [`Session`] is the real one.
///
/// It cannot fail: every failure is a reply envelope.
pub trait Run {
    /// Looks the tool up by its alias or its own name, binds the arguments and answers. A call with
    /// a [`refusal`](ProviderCall::refusal) is answered with it and never run.
    fn run(&self, call: &ProviderCall) -> impl Future<Output = ReplyEnvelope> + Send;
}

impl Run for Session {
    async fn run(&self, call: &ProviderCall) -> ReplyEnvelope {
        Self::run(self, call).await
    }
}

/// One turn of a script: what the model says and which calls it makes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    text: String,
    calls: Vec<ProviderCall>,
}

impl Turn {
    /// A turn that says something.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            calls: Vec::new(),
        }
    }

    /// Adds a call, with arguments exactly as a model might write them.
    pub fn call(mut self, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let arguments = RawText {
            text: arguments.into(),
            provenance: Provenance::AsSent,
        };
        let mut call = ProviderCall::new(None, name.into(), arguments);
        call.index = self.calls.len();
        self.calls.push(call);
        self
    }
}

/// A provider that answers with the turns of a script, one each time it is asked.
///
/// # Example
///
/// ```
/// use countersign::dialect::stub::{ScriptedProvider, Turn};
/// use countersign::sample::MemorySearch;
/// use countersign::session::Session;
/// use countersign::{Catalog, Executor, Principal};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let catalog = Catalog::builder().tool(MemorySearch::new(["green tea"])).build()?;
/// let session = Session::new(Executor::new(catalog), Principal::user("u_1"));
///
/// let script = [Turn::text("Let me see.").call("memory_search", "{query: 'tea'}")];
/// let transcript = ScriptedProvider::new(script).drive(&session).await?;
/// let entry = transcript.history().next().unwrap();
/// assert_eq!(entry.arguments, "{query: 'tea'}");
/// assert_eq!(entry.reply.data[0]["text"], "green tea");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ScriptedProvider {
    dialect: Dialect,
    turns: VecDeque<Turn>,
}

/// The messages, calls and results of a conversation, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transcript {
    /// The entries.
    pub entries: Vec<Entry>,
}

/// One entry of a transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// The model's message, as it was sent.
    Model(Value),
    /// A call as it was read, and its reply.
    Call(Box<HistoryEntry>),
    /// The results that were sent back to the model.
    Results(Value),
}

impl ScriptedProvider {
    /// A provider that speaks the stub's own dialect.
    pub fn new(script: impl IntoIterator<Item = Turn>) -> Self {
        Self {
            dialect: Dialect::Stub,
            turns: script.into_iter().collect(),
        }
    }

    /// A script as data: a list of messages in the stub's dialect.
    pub fn from_json(script: &str) -> Result<Self, DecodeError> {
        let turn = |node: Node<'_>| {
            let text = node.object()?.text("text")?.unwrap_or_default();
            let calls = Stub.calls(&node)?;
            Ok(Turn { text, calls })
        };
        let turns = Node::parse(script)?.array()?.into_iter().map(turn);
        Ok(Self::new(turns.collect::<Result<Vec<_>, _>>()?))
    }

    /// Uses another dialect. If that one sends arguments as an object, a text that is not an object is wrapped, so
    /// malformed arguments need a dialect that sends text.
    pub fn speaking(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// The next message; `None` when the script is over.
    pub fn next_message(&mut self) -> Option<Value> {
        let turn = self.turns.pop_front()?;
        Some(self.dialect.message(&turn.text, &turn.calls))
    }

    /// Plays the whole script (B16): each message is decoded, each call run, each reply sent back.
    ///
    /// The calls of a message run one after the other, in its order.
    pub async fn drive(mut self, runner: &impl Run) -> Result<Transcript, DecodeError> {
        let mut transcript = Transcript::default();
        while let Some(turn) = self.turns.pop_front() {
            let message = self.dialect.message(&turn.text, &turn.calls);
            let mut calls = self.dialect.calls(&message.to_string())?;
            // A message alone does not say why it ended; the script does.
            for (call, written) in calls.iter_mut().zip(&turn.calls) {
                call.truncated = written.truncated;
            }
            transcript.entries.push(Entry::Model(message));
            let mut answered = Vec::new();
            for call in calls {
                let reply = runner.run(&call).await;
                answered.push((call, reply));
            }
            let results = (!answered.is_empty()).then(|| self.dialect.results(&answered));
            let calls = answered.into_iter().map(HistoryEntry::from).map(Box::new);
            transcript.entries.extend(calls.map(Entry::Call));
            transcript.entries.extend(results.map(Entry::Results));
        }
        Ok(transcript)
    }
}

impl Transcript {
    /// The conversation's history: the calls with their replies, in order.
    pub fn history(&self) -> impl Iterator<Item = &HistoryEntry> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Call(entry) => Some(&**entry),
            Entry::Model(_) | Entry::Results(_) => None,
        })
    }

    /// The transcript as JSON.
    pub fn to_value(&self) -> Value {
        let entry = |entry: &Entry| match entry {
            Entry::Model(message) => json!({ "model": message }),
            Entry::Call(entry) => json!({ "call": entry }),
            Entry::Results(message) => json!({ "results": message }),
        };
        self.entries.iter().map(entry).collect()
    }
}

/// The dialect of the script.
pub(super) struct Stub;

impl Wire for Stub {
    fn schema_form(&self, _: &ToolListOptions) -> (Form, PropertyNames) {
        (Form::Verbatim, PropertyNames::Any)
    }

    fn definition(&self, tool: &Declaration<'_>, _: &ToolListOptions) -> Value {
        json!({ "name": tool.alias, "description": tool.description, "parameters": tool.input })
    }

    fn calls(&self, message: &Node<'_>) -> Result<Vec<ProviderCall>, DecodeError> {
        let members = message.object()?;
        let mut calls = Vec::new();
        let listed = members
            .optional("calls")
            .map(|node| node.array())
            .transpose()?;
        for node in listed.unwrap_or_default() {
            let members = node.object()?;
            let name = members.required_text("name")?;
            let arguments = members.arguments("arguments")?;
            let read = ProviderCall::new(members.text("id")?, name, arguments)
                .with_opaque(members.rest(&["id", "name", "arguments"])?);
            call::add(&mut calls, read)?;
        }
        call::mark_cut(&mut calls, members.text("stop")?.as_deref());
        Ok(calls)
    }

    fn push(&self, event: &Node<'_>, joiner: &mut Joiner) -> Result<(), DecodeError> {
        let members = event.object()?;
        if let Some(node) = members.optional("call") {
            let call = node.object()?;
            let key = Key {
                place: Some(call.required("index")?.number()?),
                item: None,
            };
            joiner.open(
                key,
                call.text("id")?,
                Some(call.required_text("name")?),
                Value::Null,
            )?;
        }
        if let Some(node) = members.optional("delta") {
            let delta = node.object()?;
            let key = Key {
                place: Some(delta.required("index")?.number()?),
                item: None,
            };
            let slot = joiner
                .find(&key)
                .ok_or_else(|| contradiction(&node, "the delta belongs to no call"))?;
            joiner.append(slot, &delta.required("arguments")?)?;
        }
        if let Some(reason) = members.text("stop")? {
            joiner.close_all();
            joiner.stop(reason);
        }
        Ok(())
    }

    fn results(&self, answered: &[(ProviderCall, ReplyEnvelope)]) -> Value {
        let answer = |(call, reply): &(ProviderCall, ReplyEnvelope)| json!({ "id": call.id_or_place(), "name": call.name, "reply": reply });
        answered.iter().map(answer).collect()
    }

    fn message(&self, text: &str, calls: &[ProviderCall]) -> Value {
        let written = |call: &ProviderCall| {
            let mut written = json!({
                "id": call.id_or_place(),
                "name": call.name,
                "arguments": call.arguments.text,
            });
            call.echo_opaque(&mut written);
            written
        };
        json!({ "text": text, "calls": calls.iter().map(written).collect::<Vec<_>>() })
    }
}
