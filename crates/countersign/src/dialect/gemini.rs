//! Gemini's `generateContent`: calls are parts, and a part's signature has to be sent back.

use countersign_contract::ReplyEnvelope;
use serde_json::{Value, json};

use super::call::{self, ProviderCall};
use super::error::DecodeError;
use super::raw::{Node, set};
use super::schema::{Form, PropertyNames};
use super::stream::{Joiner, provider_error};
use super::text;
use super::tools::{Declaration, ToolListOptions, Wire};

pub(super) struct Gemini;

impl Wire for Gemini {
    fn schema_form(&self, options: &ToolListOptions) -> (Form, PropertyNames) {
        let form = if options.openapi {
            Form::OpenApi
        } else {
            Form::Portable
        };
        (form, PropertyNames::Identifier)
    }

    fn definition(&self, tool: &Declaration<'_>, options: &ToolListOptions) -> Value {
        let mut definition = json!({ "name": tool.alias, "description": tool.description });
        let takes_nothing = tool
            .input
            .get("properties")
            .is_none_or(|all| all == &json!({}));
        if !options.openapi {
            set(&mut definition, "parametersJsonSchema", tool.input.clone());
        } else if !takes_nothing {
            // The subset has no object without members; a function that takes nothing has no schema.
            set(&mut definition, "parameters", tool.input.clone());
        }
        definition
    }

    fn list(&self, definitions: Vec<Value>) -> Value {
        if definitions.is_empty() {
            return json!([]);
        }
        json!([{ "functionDeclarations": definitions }])
    }

    fn calls(&self, message: &Node<'_>) -> Result<Vec<ProviderCall>, DecodeError> {
        read(message).map(|(calls, _)| calls)
    }

    fn push(&self, event: &Node<'_>, joiner: &mut Joiner) -> Result<(), DecodeError> {
        let (calls, stop_reason) = read(event)?;
        for call in calls {
            joiner.whole(call)?;
        }
        if let Some(reason) = stop_reason {
            joiner.stop(reason);
        }
        Ok(())
    }

    fn results(&self, answered: &[(ProviderCall, ReplyEnvelope)]) -> Value {
        let part = |(call, reply): &(ProviderCall, ReplyEnvelope)| {
            let mut response = json!({ "name": call.name, "response": response(reply) });
            if let Some(id) = &call.id {
                set(&mut response, "id", id.clone());
            }
            json!({ "functionResponse": response })
        };
        json!({ "role": "user", "parts": answered.iter().map(part).collect::<Vec<_>>() })
    }

    fn message(&self, text: &str, calls: &[ProviderCall]) -> Value {
        let mut parts = Vec::new();
        if !text.is_empty() {
            parts.push(json!({ "text": text }));
        }
        for call in calls {
            let mut function = json!({ "name": call.name, "args": call.arguments_object() });
            if let Some(id) = &call.id {
                set(&mut function, "id", id.clone());
            }
            let mut part = json!({ "functionCall": function });
            call.echo_opaque(&mut part);
            parts.push(part);
        }
        json!({ "role": "model", "parts": parts })
    }
}

/// A reply under the two keys that the API has; it must be an object.
fn response(reply: &ReplyEnvelope) -> Value {
    if let Some(error) = &reply.error {
        return json!({ "error": text::error(error, &reply.warnings) });
    }
    let mut response = json!({ "output": reply.data });
    if let Some(notes) = text::notes(reply) {
        set(&mut response, "notes", notes);
    }
    response
}

/// The calls of an answer, a candidate's content or the parts alone, and the stop reason.
fn read(message: &Node<'_>) -> Result<(Vec<ProviderCall>, Option<String>), DecodeError> {
    if message.is_array() {
        return Ok((read_parts(message)?, None));
    }
    let members = message.object()?;
    if let Some(error) = members.optional("error") {
        return Err(provider_error(&error));
    }
    if let Some(parts) = members.optional("parts") {
        return Ok((read_parts(&parts)?, None));
    }
    let Some(candidates) = members.optional("candidates") else {
        // A content without parts, and the chunk that only counts tokens, are whole without them.
        let known = ["role", "usageMetadata", "promptFeedback"];
        if known.iter().any(|name| members.optional(name).is_some()) {
            return Ok((Vec::new(), None));
        }
        return members.required("candidates").map(|_| (Vec::new(), None));
    };
    let mut candidates = candidates.array()?;
    if candidates.len() > 1 {
        let second = candidates.remove(1);
        return Err(second.unsupported("more than one candidate; ask for candidateCount = 1"));
    }
    let Some(candidate) = candidates.pop() else {
        return Ok((Vec::new(), None));
    };
    let candidate = candidate.object()?;
    let stop_reason = candidate.text("finishReason")?;
    let content = candidate
        .optional("content")
        .map(|node| node.object())
        .transpose()?;
    let parts = content.and_then(|content| content.optional("parts"));
    let mut calls = parts
        .map(|parts| read_parts(&parts))
        .transpose()?
        .unwrap_or_default();
    call::mark_cut(&mut calls, stop_reason.as_deref());
    Ok((calls, stop_reason))
}

fn read_parts(parts: &Node<'_>) -> Result<Vec<ProviderCall>, DecodeError> {
    let mut calls = Vec::new();
    for part in parts.array()? {
        let members = part.object()?;
        let Some(function) = members.optional("functionCall") else {
            continue;
        };
        let function = function.object()?;
        for partial in ["partialArgs", "willContinue"] {
            if let Some(node) = function.optional(partial)
                && node.source() != "false"
            {
                let what = "arguments in pieces; switch streamFunctionCallArguments off";
                return Err(node.unsupported(what));
            }
        }
        let name = function.required_text("name")?;
        let read = ProviderCall::new(function.text("id")?, name, function.arguments("args")?)
            .with_opaque(members.rest(&["functionCall"])?);
        call::add(&mut calls, read)?;
    }
    Ok(calls)
}
