//! The dialect of written calls. A message is the text itself as a JSON string, `{"text": …, "format": …, "stop": …}`, or
//! the message or answer of a server that speaks Chat Completions, whose `content` is read.

use countersign_contract::{Digest, ReplyEnvelope};
use serde_json::{Value, json};

use super::{TextFormat, read_stopped};
use crate::dialect::call::{self, ProviderCall};
use crate::dialect::error::DecodeError;
use crate::dialect::openai_chat::only_choice;
use crate::dialect::raw::Node;
use crate::dialect::schema::{Form, PropertyNames};
use crate::dialect::stream::Joiner;
use crate::dialect::text;
use crate::dialect::tools::{Declaration, ToolListOptions, Wire};

pub(in crate::dialect) struct Text;

/// A text, its format and its stop reason.
#[derive(Default)]
struct Message {
    text: String,
    format: Option<TextFormat>,
    stop: Option<String>,
}

impl Message {
    /// `is_part` says that it stands in an answer or a chunk, where a text may be missing.
    fn read(node: &Node<'_>, is_part: bool) -> Result<Self, DecodeError> {
        if node.source().starts_with('"') {
            return Ok(Self {
                text: node.string()?,
                ..Self::default()
            });
        }
        let members = node.object()?;
        if let Some(choices) = members.optional("choices") {
            let Some(choice) = only_choice(&choices)? else {
                return Ok(Self::default());
            };
            let members = choice.object()?;
            let inner = ["message", "delta"]
                .iter()
                .find_map(|name| members.optional(name));
            let mut message = Self::read(&inner.unwrap_or(choice), true)?;
            message.stop = members.text("finish_reason")?;
            return Ok(message);
        }
        if let Some(inner) = members.optional("message").filter(|node| !node.is_array()) {
            let mut message = Self::read(&inner, true)?;
            message.stop = members.text("done_reason")?;
            return Ok(message);
        }
        let format = match members.text("format")? {
            Some(name) => Some(name.parse().map_err(|_| DecodeError::Unsupported {
                path: "/format".to_owned(),
                what: "a format of written calls that is not known",
            })?),
            None => None,
        };
        let text = ["text", "content", "response"]
            .iter()
            .find_map(|name| members.optional(name));
        if let Some(calls) = members.optional("tool_calls")
            && !calls.array()?.is_empty()
        {
            let what = "the server has read the calls of this message; send it to the dialect openai, or read all of them \
                        from the text";
            return Err(calls.unsupported(what));
        }
        let text = match text {
            Some(node) if node.is_array() => joined(&node)?,
            Some(node) => node.string()?,
            // A chunk or a message without text.
            None if is_part || members.optional("role").is_some() => String::new(),
            None => return members.required("text").map(|_| Self::default()),
        };
        Ok(Self {
            text,
            format,
            stop: members.text("stop")?,
        })
    }
}

/// Returns the text of a message that comes in parts.
fn joined(parts: &Node<'_>) -> Result<String, DecodeError> {
    let mut joined = String::new();
    for part in parts.array()? {
        let members = part.object()?;
        match members.text("type")?.as_deref() {
            Some("text" | "output_text") | None => {
                joined.push_str(&members.required("text")?.string()?);
            }
            // Its content is no call.
            Some("thinking" | "reasoning") => {}
            Some(_) => {
                return Err(part.unsupported("only parts with text are read; send the text alone"));
            }
        }
    }
    Ok(joined)
}

/// Names the calls of a text, whose writers give them no ids: by the text and their place, so that the calls of another
/// message have other ids.
pub(in crate::dialect) fn identify(calls: &mut [ProviderCall], text: &str) {
    if calls.iter().all(|call| call.id.is_some()) {
        return;
    }
    let digest = Digest::of_bytes(text.as_bytes()).to_string();
    let digest = digest.rsplit(':').next().unwrap_or_default();
    let short = digest.get(..ID_DIGITS).unwrap_or(digest);
    for call in calls {
        let index = call.index;
        call.id
            .get_or_insert_with(|| format!("call_{short}_{index}"));
    }
}

/// Number of digits of a text's digest in the ids of its calls.
const ID_DIGITS: usize = 16;

impl Wire for Text {
    fn schema_form(&self, _: &ToolListOptions) -> (Form, PropertyNames) {
        (Form::Portable, PropertyNames::Any)
    }

    fn definition(&self, tool: &Declaration<'_>, _: &ToolListOptions) -> Value {
        json!({
            "type": "function",
            "function": {
                "name": tool.alias,
                "description": tool.description,
                "parameters": tool.input,
            },
        })
    }

    fn calls(&self, message: &Node<'_>) -> Result<Vec<ProviderCall>, DecodeError> {
        let message = Message::read(message, false)?;
        let is_cut = message.stop.as_deref().is_some_and(call::is_cut);
        let mut written = read_stopped(&message.text, message.format, is_cut)?;
        if written.truncated && written.calls.is_empty() {
            return Err(DecodeError::CutOff);
        }
        call::mark_cut(&mut written.calls, message.stop.as_deref());
        identify(&mut written.calls, &message.text);
        Ok(written.calls)
    }

    fn push(&self, event: &Node<'_>, joiner: &mut Joiner) -> Result<(), DecodeError> {
        let message = Message::read(event, false)?;
        joiner.format = joiner.format.or(message.format);
        joiner.write(&message.text)?;
        if let Some(reason) = message.stop {
            joiner.stop(reason);
        }
        Ok(())
    }

    fn results(&self, answered: &[(ProviderCall, ReplyEnvelope)]) -> Value {
        let message = |(call, reply): &(ProviderCall, ReplyEnvelope)| {
            json!({
                "role": "tool",
                "tool_call_id": call.id_or_place(),
                "name": call.name,
                "content": text::whole(reply),
            })
        };
        answered.iter().map(message).collect()
    }

    fn message(&self, text: &str, calls: &[ProviderCall]) -> Value {
        let mut content = text.to_owned();
        for call in calls {
            if !content.is_empty() {
                content.push('\n');
            }
            let arguments = match serde_json::from_str::<Value>(&call.arguments.text) {
                Ok(Value::Object(_)) => call.arguments.text.clone(),
                _ => Value::from(call.arguments.text.as_str()).to_string(),
            };
            let name = Value::from(call.name.as_str());
            content.push_str("<tool_call>\n");
            let call = format!("{{\"name\": {name}, \"arguments\": {arguments}}}");
            content.push_str(&call);
            content.push_str("\n</tool_call>");
        }
        json!({ "role": "assistant", "content": content })
    }
}
