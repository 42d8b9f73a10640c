//! Anthropic's Messages: calls are content blocks, all results go into one user message.

use countersign_contract::ReplyEnvelope;
use serde_json::{Value, json};

use super::call::{self, ProviderCall};
use super::error::DecodeError;
use super::raw::{Members, Node, set};
use super::schema::{Form, PropertyNames};
use super::stream::{Joiner, Key, contradiction, provider_error};
use super::text;
use super::tools::{Declaration, StrictBudget, ToolListOptions, Wire};

pub(super) struct Anthropic;

impl Wire for Anthropic {
    fn schema_form(&self, options: &ToolListOptions) -> (Form, PropertyNames) {
        let form = if options.strict {
            Form::AnthropicStrict
        } else {
            Form::Portable
        };
        (form, PropertyNames::Dotted)
    }

    /// Limits of one request, as public reports give them.
    fn strict_budget(&self) -> Option<StrictBudget> {
        Some(StrictBudget {
            tools: 20,
            optional: 24,
        })
    }

    fn shows_examples(&self) -> bool {
        true
    }

    fn definition(&self, tool: &Declaration<'_>, options: &ToolListOptions) -> Value {
        let mut definition = json!({
            "name": tool.alias,
            "description": tool.description,
            "input_schema": tool.input,
        });
        if options.strict {
            set(&mut definition, "strict", tool.strict);
        }
        if !tool.examples.is_empty() {
            set(&mut definition, "input_examples", tool.examples.clone());
        }
        definition
    }

    fn calls(&self, message: &Node<'_>) -> Result<Vec<ProviderCall>, DecodeError> {
        let mut calls = Vec::new();
        if message.is_array() {
            read_blocks(&mut calls, message)?;
            return Ok(calls);
        }
        let members = message.object()?;
        if let Some(error) = members.optional("error") {
            return Err(provider_error(&error));
        }
        let content = members.required("content")?;
        // A message of nothing but text may be that text.
        if content.is_array() {
            read_blocks(&mut calls, &content)?;
        } else {
            content.string()?;
        }
        call::mark_cut(&mut calls, members.text("stop_reason")?.as_deref());
        Ok(calls)
    }

    fn push(&self, event: &Node<'_>, joiner: &mut Joiner) -> Result<(), DecodeError> {
        let members = event.object()?;
        let kind = members.required_text("type")?;
        match kind.as_str() {
            "content_block_start" => start_block(&members, joiner),
            "content_block_delta" => push_delta(event, &members, joiner),
            "content_block_stop" => {
                if let Some(slot) = joiner.find(&key(&members)?) {
                    joiner.close(slot);
                }
                Ok(())
            }
            "message_delta" => {
                let delta = members.required("delta")?.object()?;
                if let Some(reason) = delta.text("stop_reason")? {
                    joiner.stop(reason);
                }
                Ok(())
            }
            "error" => Err(provider_error(&members.required("error")?)),
            _ => Ok(()),
        }
    }

    fn results(&self, answered: &[(ProviderCall, ReplyEnvelope)]) -> Value {
        let block = |(call, reply): &(ProviderCall, ReplyEnvelope)| {
            let mut block = json!({
                "type": "tool_result",
                "tool_use_id": call.id_or_place(),
                "content": [{ "type": "text", "text": text::whole(reply) }],
            });
            if !reply.ok {
                set(&mut block, "is_error", true);
            }
            block
        };
        json!({ "role": "user", "content": answered.iter().map(block).collect::<Vec<_>>() })
    }

    fn message(&self, text: &str, calls: &[ProviderCall]) -> Value {
        let mut blocks = Vec::new();
        if !text.is_empty() {
            blocks.push(json!({ "type": "text", "text": text }));
        }
        for call in calls {
            let mut block = json!({
                "type": "tool_use",
                "id": call.id_or_place(),
                "name": call.name,
                "input": call.arguments_object(),
            });
            call.echo_opaque(&mut block);
            blocks.push(block);
        }
        json!({ "role": "assistant", "content": blocks })
    }
}

fn read_blocks(calls: &mut Vec<ProviderCall>, content: &Node<'_>) -> Result<(), DecodeError> {
    for block in content.array()? {
        let members = block.object()?;
        // Blocks of the provider's own tools are answered by the provider.
        if members.text("type")?.as_deref() != Some("tool_use") {
            continue;
        }
        let id = members.required_text("id")?;
        let name = members.required_text("name")?;
        let read = ProviderCall::new(Some(id), name, members.arguments("input")?)
            .with_opaque(opaque(&members)?);
        call::add(calls, read)?;
    }
    Ok(())
}

fn start_block(event: &Members<'_>, joiner: &mut Joiner) -> Result<(), DecodeError> {
    let block = event.required("content_block")?.object()?;
    let key = key(event)?;
    match block.text("type")?.as_deref() {
        Some("tool_use") => {
            let id = block.required_text("id")?;
            let name = block.required_text("name")?;
            let slot = joiner.open(key, Some(id), Some(name), opaque(&block)?)?;
            joiner.fallback(slot, block.arguments("input")?);
            Ok(())
        }
        // The provider's own tools take deltas of the same kind.
        Some("server_tool_use" | "mcp_tool_use") => joiner.skip(key),
        _ => Ok(()),
    }
}

fn push_delta(
    event: &Node<'_>,
    members: &Members<'_>,
    joiner: &mut Joiner,
) -> Result<(), DecodeError> {
    let delta = members.required("delta")?.object()?;
    if delta.text("type")?.as_deref() != Some("input_json_delta") {
        return Ok(());
    }
    let slot = joiner
        .find(&key(members)?)
        .ok_or_else(|| contradiction(event, "the delta belongs to no call"))?;
    let piece = delta.required("partial_json")?;
    let text = piece.string()?;
    joiner.append_text(slot, &piece, &text)
}

fn key(event: &Members<'_>) -> Result<Key, DecodeError> {
    Ok(Key {
        place: Some(event.required("index")?.number()?),
        item: None,
    })
}

fn opaque(block: &Members<'_>) -> Result<Value, DecodeError> {
    block.rest(&["type", "id", "name", "input"])
}
