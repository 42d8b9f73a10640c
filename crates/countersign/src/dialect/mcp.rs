//! The Model Context Protocol: the envelope's own members travel in `_meta` under our prefix.

use countersign_contract::tool::{Change, Confirmation, Effect, KeyRule};
use countersign_contract::{ErrorBody, ReplyEnvelope, ToolSpec};
use serde_json::{Map, Value, json};

use super::call::{self, ProviderCall};
use super::error::DecodeError;
use super::raw::{Node, set};
use super::schema::{Form, PropertyNames};
use super::stream::Joiner;
use super::text;
use super::tools::{Declaration, ToolListOptions, Wire};

pub(super) struct Mcp;

impl Wire for Mcp {
    /// The schema as declared: MCP accepts any JSON Schema 2020-12, so nothing is lost.
    fn schema_form(&self, _: &ToolListOptions) -> (Form, PropertyNames) {
        (Form::Verbatim, PropertyNames::Any)
    }

    fn definition(&self, tool: &Declaration<'_>, options: &ToolListOptions) -> Value {
        let mut definition = json!({
            "name": tool.alias,
            "description": tool.description,
            "inputSchema": tool.input,
        });
        let annotations = annotations(tool.spec);
        if annotations != json!({}) {
            set(&mut definition, "annotations", annotations);
        }
        if options.whole {
            set(&mut definition, "_meta", hints(tool.spec));
        }
        if let Some(title) = &tool.spec.title {
            set(&mut definition, "title", title.clone());
        }
        // Clients of the older eras refuse a tool whose result is not an object.
        let declared = tool.spec.output.as_ref();
        if let Some(output) = &tool.output
            && declared.and_then(|schema| schema.get("type")) == Some(&json!("object"))
        {
            let output = if options.whole {
                with_evidence(output.clone())
            } else {
                output.clone()
            };
            set(&mut definition, "outputSchema", output);
        }
        definition
    }

    fn calls(&self, message: &Node<'_>) -> Result<Vec<ProviderCall>, DecodeError> {
        let mut calls = Vec::new();
        let requests = if message.is_array() {
            message.array()?
        } else {
            vec![message.clone()]
        };
        for request in requests {
            call::add(&mut calls, read(&request)?)?;
        }
        Ok(calls)
    }

    fn push(&self, event: &Node<'_>, joiner: &mut Joiner) -> Result<(), DecodeError> {
        for call in self.calls(event)? {
            joiner.whole(call)?;
        }
        joiner.stop("complete");
        Ok(())
    }

    fn results(&self, answered: &[(ProviderCall, ReplyEnvelope)]) -> Value {
        answered.iter().map(|(_, reply)| result(reply)).collect()
    }

    fn message(&self, _: &str, calls: &[ProviderCall]) -> Value {
        let request = |call: &ProviderCall| {
            let mut params = json!({ "name": call.name, "arguments": call.arguments_object() });
            if let Some(meta) = call.opaque.get("_meta") {
                set(&mut params, "_meta", meta.clone());
            }
            let place = || Value::from(call.id_or_place());
            json!({
                "jsonrpc": "2.0",
                "id": call.opaque.get("id").cloned().unwrap_or_else(place),
                "method": "tools/call",
                "params": params,
            })
        };
        match calls {
            [only] => request(only),
            calls => calls.iter().map(request).collect(),
        }
    }
}

/// A key of ours in `_meta`.
fn vendor(name: &str) -> String {
    format!("dev.countersign/{name}")
}

fn annotations(spec: &ToolSpec) -> Value {
    let behaviour = &spec.behaviour;
    let writes = behaviour.effect.changes_something();
    let keyed = match behaviour.idempotency.key {
        KeyRule::Optional => false,
        KeyRule::Required | KeyRule::Derive => true,
    };
    // What the protocol assumes anyway is left out: a tool that writes, destroys, is not to be repeated, and acts elsewhere.
    let mut annotations = json!({});
    let is_elsewhere = behaviour.effect == Effect::External;
    if !behaviour.open_world.unwrap_or(is_elsewhere) {
        set(&mut annotations, "openWorldHint", false);
    }
    if writes {
        let (adds, repeatable) = match behaviour.change {
            // A hint that nobody has confirmed is not handed on.
            Change::Replaces | Change::Nothing => (false, false),
            Change::Adds => (true, false),
            Change::Sets => (false, true),
        };
        if adds {
            set(&mut annotations, "destructiveHint", false);
        }
        if keyed || repeatable {
            set(&mut annotations, "idempotentHint", true);
        }
    } else {
        set(&mut annotations, "readOnlyHint", true);
    }
    if let Some(title) = &spec.title {
        set(&mut annotations, "title", title.clone());
    }
    annotations
}

/// Metadata that a program can use before it calls a tool.
fn hints(spec: &ToolSpec) -> Value {
    let behaviour = &spec.behaviour;
    let mut meta = Map::new();
    meta.insert(vendor("name"), spec.name.as_str().into());
    meta.insert(vendor("version"), spec.version.clone().into());
    if let Some(seconds) = behaviour.ttl_seconds {
        meta.insert(vendor("ttl_seconds"), seconds.into());
    }
    if behaviour.confirmation != Confirmation::Never {
        meta.insert(vendor("confirmation"), json!(behaviour.confirmation));
    }
    if behaviour.effect.changes_something() {
        meta.insert(vendor("idempotency"), json!(behaviour.idempotency));
    }
    Value::Object(meta)
}

/// A `tools/call` request, or its `params` alone.
fn read(request: &Node<'_>) -> Result<ProviderCall, DecodeError> {
    let members = request.object()?;
    let mut opaque = Map::new();
    let mut id = None;
    if let Some(node) = members.optional("id") {
        let value = node.value()?;
        id = Some(match &value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return Err(node.expected("a text or a number")),
        });
        opaque.insert("id".into(), value);
    }
    let params = match members.optional("method") {
        Some(method) if method.string()? != "tools/call" => {
            return Err(method.unsupported("not a call of a tool"));
        }
        Some(_) => members.required("params")?.object()?,
        None => members,
    };
    if let Some(meta) = params.optional("_meta") {
        opaque.insert("_meta".into(), meta.value()?);
    }
    let name = params.required_text("name")?;
    let read = ProviderCall::new(id, name, params.arguments("arguments")?);
    if opaque.is_empty() {
        return Ok(read);
    }
    Ok(read.with_opaque(Value::Object(opaque)))
}

/// A reply as a `CallToolResult`.
///
/// Hosts disagree on showing `structuredContent` and `_meta` to a model, so everything that it must know is also a
/// text: the short one first, for it may be the only one that is shown.
fn result(reply: &ReplyEnvelope) -> Value {
    let mut content = Vec::new();
    let mut result = json!({ "resultType": "complete", "isError": !reply.ok });
    if let Some(error) = &reply.error {
        content.push(json!({ "type": "text", "text": text::error(error, &reply.warnings) }));
    } else {
        content.push(json!({ "type": "text", "text": text::data(reply) }));
        if let Some(notes) = text::notes(reply) {
            let audience = json!({ "audience": ["assistant"] });
            content.push(json!({ "type": "text", "text": notes, "annotations": audience }));
        }
        if reply.data.is_object() {
            set(&mut result, "structuredContent", text::with_evidence(reply));
        }
    }
    set(&mut result, "content", content);
    set(&mut result, "_meta", meta(reply));
    result
}

/// The schema of an answer, with the name of its evidence.
fn with_evidence(mut output: Value) -> Value {
    if let Some(Value::Object(properties)) = output.get_mut("properties") {
        properties
            .entry("evidence")
            .or_insert_with(|| json!({ "type": "object" }));
        properties
            .entry("repeated_call")
            .or_insert_with(|| json!({ "type": "string" }));
        properties
            .entry("answer_cut")
            .or_insert_with(|| json!({ "type": "string" }));
    }
    output
}

/// The `_meta` that a program needs and no more: some hosts show a model all of it.
fn meta(reply: &ReplyEnvelope) -> Value {
    let mut meta = Map::new();
    meta.insert(vendor("request_id"), reply.request_id.as_str().into());
    if let Some(error) = &reply.error {
        meta.insert(vendor("error"), brief(error));
    }
    if let Some(seconds) = reply.ttl_seconds {
        meta.insert(vendor("ttl_seconds"), seconds.into());
    }
    if let Some(evidence) = &reply.evidence {
        let name = json!({ "snapshot_id": evidence.snapshot_id });
        meta.insert(vendor("evidence"), name);
    }
    if reply.replayed {
        meta.insert(vendor("idempotent_replay"), true.into());
    }
    if reply.dry_run {
        meta.insert(vendor("dry_run"), true.into());
    }
    Value::Object(meta)
}

/// The code, and the advice on retrying.
fn brief(error: &ErrorBody) -> Value {
    let mut brief = json!({ "code": error.code, "retryable": error.details.retryable });
    if let Some(ms) = error.details.retry_after_ms {
        set(&mut brief, "retry_after_ms", ms);
    }
    for name in ["approval_id", "reason"] {
        if let Some(own) = error.details.extra.get(name) {
            set(&mut brief, name, own.clone());
        }
    }
    brief
}

/// The `_meta` with everything in a reply, for a client that asks for it.
pub(crate) fn whole_meta(reply: &ReplyEnvelope) -> Value {
    let mut whole = meta(reply);
    if !reply.warnings.is_empty() {
        set(&mut whole, &vendor("warnings"), json!(reply.warnings));
    }
    if let Some(error) = &reply.error {
        set(&mut whole, &vendor("error"), json!(error));
    }
    if let Some(evidence) = &reply.evidence {
        set(&mut whole, &vendor("evidence"), json!(evidence));
    }
    whole
}
