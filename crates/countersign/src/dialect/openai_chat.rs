//! OpenAI's Chat Completions: arguments are a text, deltas are joined by index.

use countersign_contract::ReplyEnvelope;
use serde_json::{Value, json};

use super::call::{self, ProviderCall};
use super::error::DecodeError;
use super::raw::{Members, Node, set};
use super::schema::{Form, PropertyNames};
use super::stream::{Joiner, Key, contradiction, provider_error};
use super::text;
use super::tools::{Declaration, ToolListOptions, Wire};

pub(super) struct OpenAiChat;

impl Wire for OpenAiChat {
    fn schema_form(&self, options: &ToolListOptions) -> (Form, PropertyNames) {
        let form = if options.strict {
            Form::OpenAiStrict
        } else {
            Form::Portable
        };
        (form, PropertyNames::Any)
    }

    fn definition(&self, tool: &Declaration<'_>, options: &ToolListOptions) -> Value {
        let mut function = json!({
            "name": tool.alias,
            "description": tool.description,
            "parameters": tool.input,
        });
        if options.strict {
            set(&mut function, "strict", tool.strict);
        }
        json!({ "type": "function", "function": function })
    }

    fn calls(&self, message: &Node<'_>) -> Result<Vec<ProviderCall>, DecodeError> {
        let members = message.object()?;
        if let Some(error) = members.optional("error") {
            return Err(provider_error(&error));
        }
        let Some(choices) = members.optional("choices") else {
            return calls_of(&members);
        };
        let Some(choice) = only_choice(&choices)? else {
            return Ok(Vec::new());
        };
        let choice = choice.object()?;
        let mut calls = calls_of(&choice.required("message")?.object()?)?;
        call::mark_cut(&mut calls, choice.text("finish_reason")?.as_deref());
        Ok(calls)
    }

    fn push(&self, event: &Node<'_>, joiner: &mut Joiner) -> Result<(), DecodeError> {
        let members = event.object()?;
        if let Some(error) = members.optional("error") {
            return Err(provider_error(&error));
        }
        let Some(choices) = members.optional("choices") else {
            return Ok(());
        };
        let Some(choice) = only_choice(&choices)? else {
            return Ok(());
        };
        let choice = choice.object()?;
        if let Some(delta) = choice.optional("delta") {
            let delta = delta.object()?;
            refuse_function_call(&delta)?;
            if let Some(calls) = delta.optional("tool_calls") {
                for piece in calls.array()? {
                    push_piece(&piece, joiner)?;
                }
            }
        }
        if let Some(reason) = choice.text("finish_reason")? {
            joiner.close_all();
            joiner.stop(reason);
        }
        Ok(())
    }

    fn results(&self, answered: &[(ProviderCall, ReplyEnvelope)]) -> Value {
        let message = |(call, reply): &(ProviderCall, ReplyEnvelope)| {
            json!({
                "role": "tool",
                "tool_call_id": call.id_or_place(),
                "content": text::whole(reply),
            })
        };
        answered.iter().map(message).collect()
    }

    fn message(&self, text: &str, calls: &[ProviderCall]) -> Value {
        let tool_call = |call: &ProviderCall| {
            let mut piece = json!({
                "id": call.id_or_place(),
                "type": "function",
                "function": { "name": call.name, "arguments": call.arguments.text },
            });
            call.echo_opaque(&mut piece);
            piece
        };
        let content = if text.is_empty() {
            Value::Null
        } else {
            text.into()
        };
        let mut message = json!({ "role": "assistant", "content": content });
        if !calls.is_empty() {
            set(
                &mut message,
                "tool_calls",
                calls.iter().map(tool_call).collect::<Value>(),
            );
        }
        message
    }
}

fn calls_of(message: &Members<'_>) -> Result<Vec<ProviderCall>, DecodeError> {
    refuse_function_call(message)?;
    let mut calls = Vec::new();
    let Some(pieces) = message.optional("tool_calls") else {
        // Every message says whose it is; what does not is something else.
        return message.required("role").map(|_| calls);
    };
    for piece in pieces.array()? {
        let members = piece.object()?;
        refuse_custom(&members)?;
        let function = members.required("function")?.object()?;
        let id = members.text("id")?;
        let name = function.required_text("name")?;
        let read = ProviderCall::new(id, name, function.arguments("arguments")?)
            .with_opaque(opaque(&members)?);
        call::add(&mut calls, read)?;
    }
    Ok(calls)
}

fn push_piece(piece: &Node<'_>, joiner: &mut Joiner) -> Result<(), DecodeError> {
    let members = piece.object()?;
    refuse_custom(&members)?;
    let place = members
        .optional("index")
        .map(|node| node.number())
        .transpose()?;
    let id = members.text("id")?;
    let function = members
        .optional("function")
        .map(|node| node.object())
        .transpose()?;
    let name = function
        .as_ref()
        .map(|function| function.text("name"))
        .transpose()?
        .flatten();
    let slot = match belongs_to(joiner, place, id.as_deref(), name.as_deref()) {
        Some(slot) => slot,
        None if id.is_none() && name.is_none() => {
            return Err(contradiction(piece, "the delta belongs to no call"));
        }
        None => {
            let key = Key { place, item: None };
            joiner.open(key, id, name, opaque(&members)?)?
        }
    };
    let Some(function) = function else {
        return Ok(());
    };
    if let Some(name) = function.optional("name") {
        joiner.name(slot, &name)?;
    }
    if let Some(arguments) = function.optional("arguments") {
        joiner.append(slot, &arguments)?;
    }
    Ok(())
}

/// The call that a delta continues.
///
/// By its index, as documented. Some servers leave the index out, then the id decides, or the call
/// that was begun last; others give every call the index 0, then a new id with a name is a new call.
fn belongs_to(
    joiner: &Joiner,
    place: Option<u64>,
    id: Option<&str>,
    name: Option<&str>,
) -> Option<usize> {
    let Some(place) = place else {
        return match id {
            Some(id) => joiner.find_id(id),
            None if name.is_some() => None,
            None => joiner.last(),
        };
    };
    let key = Key {
        place: Some(place),
        item: None,
    };
    let slot = joiner.find(&key)?;
    let known = joiner.call(slot).and_then(|call| call.id.as_deref());
    match (id, known) {
        (Some(id), Some(known)) if id != known && name.is_some() => joiner.find_id(id),
        _ => Some(slot),
    }
}

pub(super) fn only_choice<'a>(choices: &Node<'a>) -> Result<Option<Node<'a>>, DecodeError> {
    let mut choices = choices.array()?;
    match choices.len() {
        0 | 1 => {}
        _ => {
            return Err(choices
                .remove(1)
                .unsupported("more than one choice; ask for n = 1"));
        }
    }
    let choice = choices.pop();
    if let Some(choice) = &choice
        && let Some(index) = choice.object()?.optional("index")
        && index.number()? != 0
    {
        return Err(index.unsupported("more than one choice; ask for n = 1"));
    }
    Ok(choice)
}

fn opaque(members: &Members<'_>) -> Result<Value, DecodeError> {
    members.rest(&["id", "type", "index", "function"])
}

fn refuse_custom(members: &Members<'_>) -> Result<(), DecodeError> {
    match members.optional("custom") {
        None => Ok(()),
        Some(custom) => Err(custom.unsupported("a custom tool, whose input is free text")),
    }
}

fn refuse_function_call(members: &Members<'_>) -> Result<(), DecodeError> {
    match members.optional("function_call") {
        None => Ok(()),
        Some(old) => Err(old.unsupported("the form before tool_calls; offer tools, not functions")),
    }
}
