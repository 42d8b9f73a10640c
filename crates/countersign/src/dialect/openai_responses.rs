//! OpenAI's Responses: calls are items of their own, deltas are joined by item.

use countersign_contract::ReplyEnvelope;
use serde_json::{Value, json};

use super::call::{self, ProviderCall};
use super::error::DecodeError;
use super::raw::{Members, Node};
use super::schema::{Form, PropertyNames};
use super::stream::{Joiner, Key, contradiction, provider_error};
use super::text;
use super::tools::{Declaration, ToolListOptions, Wire};

pub(super) struct OpenAiResponses;

impl Wire for OpenAiResponses {
    fn schema_form(&self, options: &ToolListOptions) -> (Form, PropertyNames) {
        let form = if options.strict {
            Form::OpenAiStrict
        } else {
            Form::Portable
        };
        (form, PropertyNames::Any)
    }

    fn definition(&self, tool: &Declaration<'_>, _: &ToolListOptions) -> Value {
        // Always said: without it this API decides for itself and may rewrite the schema.
        json!({
            "type": "function",
            "name": tool.alias,
            "description": tool.description,
            "parameters": tool.input,
            "strict": tool.strict,
        })
    }

    fn calls(&self, message: &Node<'_>) -> Result<Vec<ProviderCall>, DecodeError> {
        let mut calls = Vec::new();
        if message.is_array() {
            read_items(&mut calls, message.array()?)?;
            return Ok(calls);
        }
        let members = message.object()?;
        if let Some(error) = members.optional("error") {
            return Err(provider_error(&error));
        }
        match members.optional("output") {
            Some(output) => read_items(&mut calls, output.array()?)?,
            None => read_items(&mut calls, vec![message.clone()])?,
        }
        if members.optional("output").is_some() {
            call::mark_cut(&mut calls, members.text("status")?.as_deref());
        }
        Ok(calls)
    }

    fn push(&self, event: &Node<'_>, joiner: &mut Joiner) -> Result<(), DecodeError> {
        let members = event.object()?;
        let kind = members.required_text("type")?;
        match kind.as_str() {
            "response.output_item.added" => open_item(&members, joiner).map(drop),
            "response.output_item.done" => close_item(&members, joiner),
            "response.function_call_arguments.delta" => {
                let slot = slot_of(event, &members, joiner)?;
                joiner.append(slot, &members.required("delta")?)
            }
            "response.function_call_arguments.done" => {
                let slot = slot_of(event, &members, joiner)?;
                joiner.settle(slot, &members.required("arguments")?)?;
                joiner.close(slot);
                Ok(())
            }
            "response.completed" => {
                joiner.stop("completed");
                Ok(())
            }
            "response.incomplete" => {
                joiner.stop(incomplete_reason(&members)?);
                Ok(())
            }
            "response.failed" => {
                let response = members.required("response")?.object()?;
                Err(provider_error(&response.required("error")?))
            }
            "error" => Err(provider_error(event)),
            _ => Ok(()),
        }
    }

    fn results(&self, answered: &[(ProviderCall, ReplyEnvelope)]) -> Value {
        let item = |(call, reply): &(ProviderCall, ReplyEnvelope)| {
            json!({
                "type": "function_call_output",
                "call_id": call.id_or_place(),
                "output": text::whole(reply),
            })
        };
        answered.iter().map(item).collect()
    }

    fn message(&self, text: &str, calls: &[ProviderCall]) -> Value {
        let mut items = Vec::new();
        if !text.is_empty() {
            items.push(json!({ "role": "assistant", "content": text }));
        }
        for call in calls {
            let mut item = json!({
                "type": "function_call",
                "call_id": call.id_or_place(),
                "name": call.name,
                "arguments": call.arguments.text,
            });
            call.echo_opaque(&mut item);
            items.push(item);
        }
        Value::Array(items)
    }
}

fn read_items(calls: &mut Vec<ProviderCall>, items: Vec<Node<'_>>) -> Result<(), DecodeError> {
    for item in items {
        let members = item.object()?;
        if !is_function_call(&item, &members)? {
            continue;
        }
        let mut read = ProviderCall::new(
            Some(members.required_text("call_id")?),
            members.required_text("name")?,
            members.arguments("arguments")?,
        )
        .with_opaque(opaque(&members)?);
        read.truncated = members.text("status")?.as_deref() == Some("incomplete");
        call::add(calls, read)?;
    }
    Ok(())
}

/// True if an item is a call of a function tool; the provider's own tools and plain messages are not.
fn is_function_call(item: &Node<'_>, members: &Members<'_>) -> Result<bool, DecodeError> {
    match members.text("type")?.as_deref() {
        Some("function_call") => Ok(true),
        Some("custom_tool_call") => {
            Err(item.unsupported("a custom tool, whose input is free text"))
        }
        _ => Ok(false),
    }
}

fn open_item(event: &Members<'_>, joiner: &mut Joiner) -> Result<Option<usize>, DecodeError> {
    let item = event.required("item")?;
    let members = item.object()?;
    if !is_function_call(&item, &members)? {
        return Ok(None);
    }
    let key = Key {
        place: event
            .optional("output_index")
            .map(|node| node.number())
            .transpose()?,
        item: members.text("id")?,
    };
    let id = members.required_text("call_id")?;
    let name = members.required_text("name")?;
    let slot = joiner.open(key, Some(id), Some(name), opaque(&members)?)?;
    Ok(Some(slot))
}

/// Closes an item, whose end repeats everything; a server that sends no deltas sends it only here.
fn close_item(event: &Members<'_>, joiner: &mut Joiner) -> Result<(), DecodeError> {
    let item = event.required("item")?;
    let members = item.object()?;
    if !is_function_call(&item, &members)? {
        return Ok(());
    }
    let key = Key {
        place: event
            .optional("output_index")
            .map(|node| node.number())
            .transpose()?,
        item: members.text("id")?,
    };
    let slot = match joiner.find(&key) {
        Some(slot) => slot,
        None => match open_item(event, joiner)? {
            Some(slot) => slot,
            None => return Ok(()),
        },
    };
    joiner.name(slot, &members.required("name")?)?;
    if let Some(arguments) = members.optional("arguments") {
        joiner.settle(slot, &arguments)?;
    }
    if members.text("status")?.as_deref() != Some("incomplete") {
        joiner.close(slot);
    }
    Ok(())
}

fn slot_of(event: &Node<'_>, members: &Members<'_>, joiner: &Joiner) -> Result<usize, DecodeError> {
    let key = Key {
        place: members
            .optional("output_index")
            .map(|node| node.number())
            .transpose()?,
        item: members.text("item_id")?,
    };
    let slot = joiner
        .find(&key)
        .ok_or_else(|| contradiction(event, "the delta belongs to no call"))?;
    let known = joiner.key(slot).and_then(|known| known.place);
    if key.place.is_some() && known.is_some() && key.place != known {
        return Err(contradiction(
            event,
            "item_id and output_index name different calls",
        ));
    }
    Ok(slot)
}

fn incomplete_reason(event: &Members<'_>) -> Result<String, DecodeError> {
    let Some(response) = event.optional("response") else {
        return Ok("incomplete".to_owned());
    };
    let Some(details) = response.object()?.optional("incomplete_details") else {
        return Ok("incomplete".to_owned());
    };
    let reason = details.object()?.text("reason")?;
    Ok(reason.unwrap_or_else(|| "incomplete".to_owned()))
}

/// Members that must be sent back with the call: the API requires the item's own id, among others.
fn opaque(members: &Members<'_>) -> Result<Value, DecodeError> {
    members.rest(&["type", "call_id", "name", "arguments", "status"])
}
