//! How the envelope travels: in `_meta` under our prefix, with headers as a fallback; and how a reply
//! becomes a result. Parameters that people use and every library carries, instead of members beside
//! `arguments` that most of them drop.

use ::http::HeaderMap;
use countersign::Principal;
use countersign::contract::{ReplyEnvelope, RequestEnvelope, RequestId, TraceContext, TraceState};
use countersign::dialect::{Dialect, Provenance, ProviderCall, RawText};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ClientCapabilities, ContentBlock, JsonObject, Resource};
use serde_json::{Map, Value};

use super::context::Context;
use super::evidence;
use super::{ENVELOPE_EXTENSION, VENDOR};
use crate::http::headers;
use crate::strict;

/// Envelope members of a request.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) envelope: RequestEnvelope,
    pub(super) trace: Option<TraceContext>,
    pub(super) trace_state: Option<TraceState>,
}

/// The envelope of a request. What is malformed in it makes the request malformed.
pub(super) fn read(meta: &JsonObject, headers: Option<&HeaderMap>) -> Result<Said, ErrorData> {
    let mut envelope = vendor_members(meta)?;
    let header = |name: &str| headers?.get(name)?.to_str().ok();
    if let Some(headers) = headers {
        let joined = headers::join_key(headers, &mut envelope);
        joined.map_err(|refusal| malformed(&refusal.body().to_string()))?;
    }
    if envelope.session_id.is_none() {
        envelope.session_id = header("x-session-id").map(str::to_owned);
    }
    if envelope.request_id.is_none()
        && let Some(id) = header("x-request-id")
    {
        let id = RequestId::new(id);
        let id = id.map_err(|error| malformed(&format!("the header X-Request-Id: {error}")))?;
        envelope.request_id = Some(id);
    }
    // A malformed one starts a new trace, as W3C asks.
    let own = meta.get("traceparent").and_then(Value::as_str);
    let trace = own.or_else(|| header("traceparent"));
    // The state belongs to the trace, so it is taken from the same place.
    let state = match own {
        Some(_) => meta.get("tracestate").and_then(Value::as_str),
        None => header("tracestate"),
    };
    Ok(Said {
        envelope,
        trace: trace.and_then(|text| text.parse().ok()),
        trace_state: state.and_then(|text| text.parse().ok()),
    })
}

/// User for whom a request is made. The permission is checked elsewhere.
pub(super) fn user_id<'a>(envelope: &'a RequestEnvelope, principal: &'a Principal) -> &'a str {
    match &envelope.user_id {
        Some(user_id) if principal.may_act_for_others && principal.realm.has(user_id) => user_id,
        Some(_) | None => &principal.user_id,
    }
}

/// Our members of `_meta`, which are the envelope's own.
fn vendor_members(meta: &JsonObject) -> Result<RequestEnvelope, ErrorData> {
    let mut members = Map::new();
    for (key, value) in meta {
        let Some(name) = key.strip_prefix(VENDOR) else {
            continue;
        };
        if is_echo(name, value) {
            continue;
        }
        let value = match (name, value.as_str()) {
            // Command lines can only send texts.
            ("dry_run", Some("true")) => Value::Bool(true),
            ("dry_run", Some("false")) => Value::Bool(false),
            _ => value.clone(),
        };
        members.insert(name.to_owned(), value);
    }
    if members.is_empty() {
        return Ok(RequestEnvelope::default());
    }
    strict::from_value(Value::Object(members))
        .map_err(|error| malformed(&format!("a member {VENDOR}… of _meta: {error}")))
}

/// True if the list of tools has published this member: some clients send a tool's own `_meta` back with each call.
/// Its form distinguishes it from a misspelt member of the envelope.
fn is_echo(name: &str, value: &Value) -> bool {
    match name {
        "name" | "version" => value.is_string(),
        "ttl_seconds" => value.is_u64(),
        "confirmation" => value.is_string() || value.is_object(),
        "idempotency" => value.is_object(),
        _ => false,
    }
}

fn malformed(what: &str) -> ErrorData {
    ErrorData::invalid_params(format!("invalid params: {what}"), None)
}

/// Amount of detail that a client wants in a reply.
pub(super) struct Wants {
    /// True if the data may be sent as `structuredContent`.
    pub(super) structured: bool,
    /// All of the envelope in `_meta`, and a link to the evidence. Hosts show models what they do not expect, or fail on it,
    /// so only a client that declares the extension gets it.
    pub(super) whole: bool,
}

/// True if a client has declared that it reads the envelope, with this message or when it connected.
pub(super) fn client_wants_whole(context: &Context) -> bool {
    let reads = |declared: &ClientCapabilities| {
        let extensions = declared.extensions.as_ref();
        extensions.is_some_and(|extensions| extensions.contains_key(ENVELOPE_EXTENSION))
    };
    match &context.capabilities {
        Some(declared) => reads(declared),
        None => context.of_connection().as_ref().is_some_and(reads),
    }
}

/// A reply as a result.
pub(super) fn result(reply: ReplyEnvelope, wants: &Wants) -> Result<CallToolResult, ErrorData> {
    let evidence = reply.evidence.as_ref().filter(|_| wants.whole);
    let link = evidence.map(|evidence| evidence::link(&evidence.snapshot_id));
    let whole = wants.whole.then(|| Dialect::whole_meta(&reply));
    let ttl_ms = reply.ttl_seconds.map(|seconds| u64::from(seconds) * 1000);
    // The dialect knows only the reply; which call it answers is the transport's to know.
    let call = ProviderCall {
        id: None,
        name: String::new(),
        arguments: RawText {
            text: String::new(),
            provenance: Provenance::AsSent,
        },
        opaque: Value::Null,
        index: 0,
        truncated: false,
        ambiguous: false,
    };
    let Value::Array(mut results) = Dialect::Mcp.results(&[(call, reply)]) else {
        return Err(unwritable());
    };
    let written = results.pop().ok_or_else(unwritable)?;
    let mut result: CallToolResult = serde_json::from_value(written).map_err(|_| unwritable())?;
    if !wants.structured {
        result.structured_content = None;
    }
    if let Some(Value::Object(whole)) = whole {
        result.meta = serde_json::from_value(Value::Object(whole)).ok();
    }
    if let Some(link) = link {
        result.content.push(ContentBlock::resource_link(link));
    }
    if let (Some(ttl_ms), Some(meta)) = (ttl_ms, &mut result.meta) {
        meta.insert(format!("{VENDOR}ttl_ms"), ttl_ms.into());
    }
    Ok(result)
}

/// A link that a host may follow and a model may cite.
pub(super) fn linked(uri: String, name: String) -> Resource {
    Resource::new(uri, name).with_mime_type("application/json")
}

fn unwritable() -> ErrorData {
    ErrorData::internal_error("the reply could not be written", None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A5: the key of a header is the same key as over plain HTTP, and is never said in two ways.
    #[test]
    fn the_key_may_come_as_a_header() {
        let key = |header: &str, meta: Value| {
            let mut headers = HeaderMap::new();
            headers.insert("idempotency-key", header.parse().unwrap());
            let meta = meta.as_object().cloned().unwrap_or_default();
            let said = read(&meta, Some(&headers)).ok()?;
            said.envelope.idempotency_key
        };
        let own = serde_json::json!({"dev.countersign/idempotency_key": "k_1"});
        assert_eq!(key("k_1", Value::Null).as_deref(), Some("k_1"));
        assert_eq!(key("\"k_1\"", Value::Null).as_deref(), Some("k_1"));
        assert_eq!(key("k_1", own.clone()).as_deref(), Some("k_1"));
        assert_eq!(key("k_2", own), None);
        assert_eq!(key("\"k_1", Value::Null), None);
    }

    /// A2: frameworks can give a connection a header, and seldom a call a member.
    #[test]
    fn the_session_may_come_as_a_header() {
        let mut headers = HeaderMap::new();
        headers.insert("x-session-id", "s_1".parse().unwrap());
        let session = |meta: Value| {
            let meta = meta.as_object().cloned().unwrap_or_default();
            read(&meta, Some(&headers)).unwrap().envelope.session_id
        };
        assert_eq!(session(Value::Null).as_deref(), Some("s_1"));
        let own = serde_json::json!({"dev.countersign/session_id": "s_2"});
        assert_eq!(session(own).as_deref(), Some("s_2"));
    }
}
