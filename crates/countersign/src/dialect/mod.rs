//! Provider dialects (B15): translation of tool declarations, calls and replies into each provider's format and back.
//!
//! A dialect only translates. It never repairs arguments (that is the binder's), never looks a tool
//! up and never runs one. Read in this order: [`Dialect`], [`ToolList`], [`ProviderCall`],
//! [`CallStream`], then one provider's file.

mod call;
mod error;
mod raw;
mod schema;
mod stream;
pub(crate) mod text;
mod tokens;
mod tools;

mod anthropic;
mod gemini;
mod mcp;
mod openai_chat;
mod openai_responses;
pub mod stub;
pub mod written;

use std::fmt;
use std::str::FromStr;

use countersign_contract::{ReplyEnvelope, ToolSpec};
use serde_json::Value;

pub(crate) use call::Unreadable;
pub use call::{Provenance, ProviderCall, RawText};
pub use error::{DecodeError, ToolListError};
pub use schema::{NoteKind, SchemaProblem};
pub use stream::{CallStream, StreamEnd, StreamEvent};
pub use text::ANSWER_CUT;
pub use tokens::{Cut, Trimmed, estimate, first_sentence};
pub use tools::{Note, ToolList, ToolListOptions};

use raw::Node;
use tools::Wire;

/// Maximum size of a message or event, and of all argument text of one stream.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Maximum number of calls of one message.
pub const CALLS_MAX: usize = 128;

/// A provider's format for tools, calls and results. Closed: a match over it is exhaustive on purpose.
///
/// # Example
///
/// ```
/// use countersign::contract::{ReplyEnvelope, RequestId};
/// use countersign::dialect::Dialect;
/// use serde_json::json;
///
/// let dialect: Dialect = "openai".parse()?;
/// let calls = dialect.calls(
///     r#"{"role": "assistant", "tool_calls": [{"id": "c1", "type": "function",
///         "function": {"name": "memory_search", "arguments": "{\"limit\": \"3\"}"}}]}"#,
/// )?;
/// assert_eq!(calls[0].arguments.text, r#"{"limit": "3"}"#);
///
/// let reply = ReplyEnvelope::success(RequestId::new("r_1")?, json!({"hits": []}));
/// let messages = dialect.results(&[(calls[0].clone(), reply)]);
/// assert_eq!(messages[0]["tool_call_id"], "c1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's Chat Completions, and the many servers that speak it.
    OpenAi,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
    /// The Model Context Protocol, seen from the server.
    Mcp,
    /// Calls that a model wrote as text; see [`written`].
    Text,
    /// The dialect of the scripted provider.
    Stub,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 7] = [
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Mcp,
        Self::Text,
        Self::Stub,
    ];

    /// The name in options and addresses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Mcp => "mcp",
            Self::Text => "text",
            Self::Stub => "stub",
        }
    }

    /// The value of a request's `tools` member (B15, B17), in the order of `specs`.
    ///
    /// Tools are named by their [alias](crate::alias::alias()). No tool is ever left out: a tool that cannot be
    /// expressed in the dialect, or within the budget, is an error.
    pub fn tools(
        self,
        specs: &[&ToolSpec],
        options: &ToolListOptions,
    ) -> Result<ToolList, ToolListError> {
        let is_listed = |name: &str| specs.iter().any(|spec| spec.name.as_str() == name);
        self.tools_among(specs, &is_listed, options)
    }

    /// The same for a part of a catalog: `is_tool` knows the names of all tools, so that descriptions can use the names
    /// that the model is shown.
    pub fn tools_among(
        self,
        specs: &[&ToolSpec],
        is_tool: &dyn Fn(&str) -> bool,
        options: &ToolListOptions,
    ) -> Result<ToolList, ToolListError> {
        tools::list(self.wire(), specs, is_tool, options)
    }

    /// The calls of a model's whole message, in its order.
    ///
    /// Takes the provider's whole answer as well as the message inside it. Text is never an
    /// argument of a call, so a message without calls is an empty list. Only [`Dialect::Text`] looks for calls in it.
    pub fn calls(self, message: &str) -> Result<Vec<ProviderCall>, DecodeError> {
        self.wire().calls(&Node::parse(message)?)
    }

    /// The same for a message that has been parsed: if the dialect sends arguments as an object, their text is written
    /// anew, and its provenance says so.
    pub fn calls_in(self, message: &Value) -> Result<Vec<ProviderCall>, DecodeError> {
        let text = message.to_string();
        let node = Node::parse_as(&text, Provenance::Reserialised)?;
        self.wire().calls(&node)
    }

    /// The model's name in a provider's whole answer; `None` if the message stands alone.
    pub fn model(self, answer: &str) -> Option<String> {
        let node = Node::parse(answer).ok()?;
        let members = node.object().ok()?;
        let name = |name| members.text(name).ok().flatten();
        name("model").or_else(|| name("modelVersion"))
    }

    /// Joins the deltas of a streamed message.
    pub fn stream(self) -> CallStream {
        CallStream::new(self)
    }

    /// The results of answered calls, in their order, in the format to send back.
    ///
    /// A list of messages or items, except for Anthropic and Gemini, which want one message for
    /// all. For MCP one `CallToolResult` a call.
    pub fn results(self, answered: &[(ProviderCall, ReplyEnvelope)]) -> Value {
        self.wire().results(answered)
    }

    /// The assistant's message that made these calls, to put in front of their results if the original is not at hand.
    /// It has everything that the provider requires back (signatures, item ids).
    ///
    /// Arguments that are not JSON are wrapped if the dialect requires an object.
    pub fn message(self, text: &str, calls: &[ProviderCall]) -> Value {
        self.wire().message(text, calls)
    }

    /// `_meta` of an MCP result with everything that the reply says, for clients that ask for it.
    pub fn whole_meta(reply: &ReplyEnvelope) -> Value {
        mcp::whole_meta(reply)
    }

    pub(in crate::dialect) fn wire(self) -> &'static dyn Wire {
        match self {
            Self::OpenAi => &openai_chat::OpenAiChat,
            Self::OpenAiResponses => &openai_responses::OpenAiResponses,
            Self::Anthropic => &anthropic::Anthropic,
            Self::Gemini => &gemini::Gemini,
            Self::Mcp => &mcp::Mcp,
            Self::Text => &written::Text,
            Self::Stub => &stub::Stub,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a text that is not the name of a dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a dialect; use openai, openai-responses, anthropic, gemini, mcp, text or stub"
)]
pub struct UnknownDialect(pub String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, UnknownDialect> {
        Self::ALL
            .into_iter()
            .find(|dialect| dialect.as_str() == text)
            .ok_or_else(|| UnknownDialect(text.to_owned()))
    }
}
