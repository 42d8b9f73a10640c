//! A call that stands alone. A server of the newest era keeps nothing between two requests, so a call needs no task of a connection: its
//! request goes out from where the call runs, and the answer comes back there.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use countersign::CallContext;
use countersign::dialogue::Dialogue;
use countersign::progress::ProgressSink;
use http::{HeaderName, HeaderValue};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, Implementation, InputRequiredResult, JsonObject,
    MetaObject, ProtocolVersion, RequestMetaObject, ServerResult,
};
use rmcp::service::ServiceError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::trouble::Trouble;
use super::wire::Wire;

/// The way to a server of the newest era over HTTP.
pub(super) struct Alone {
    wire: Wire,
    uri: Arc<str>,
    /// Number of the next request.
    next: AtomicI64,
}

/// A request as it is written.
#[derive(Serialize)]
struct Request<'r> {
    jsonrpc: &'static str,
    id: i64,
    method: &'static str,
    params: &'r CallToolRequestParams,
}

/// A message of the server.
#[derive(Deserialize)]
struct Message<'m> {
    #[serde(default)]
    id: Option<Value>,
    #[serde(borrow, default)]
    result: Option<&'m RawValue>,
    #[serde(default)]
    error: Option<ErrorData>,
}

/// The kind of a result.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind<'r> {
    #[serde(borrow, default)]
    result_type: Option<Cow<'r, str>>,
}

const CALL: &str = "tools/call";

impl Alone {
    pub(super) fn new(wire: Wire, uri: &str) -> Self {
        Self {
            wire,
            uri: uri.into(),
            next: AtomicI64::new(1),
        }
    }

    /// True if nothing but the answer is expected: no report of progress and no message on the way.
    pub(super) fn suffices(ctx: &CallContext, dialogue: Option<&Dialogue>) -> bool {
        let is_told = dialogue.is_some_and(|own| own.log_level().is_some());
        ctx.extension::<ProgressSink>().is_none() && !is_told
    }

    /// Sends a call and reads its answer. Dropped, it closes its stream, which tells the server that the caller has gone.
    pub(super) async fn call(
        &self,
        mut params: CallToolRequestParams,
        meta: JsonObject,
    ) -> Result<Result<ServerResult, ServiceError>, Trouble> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let name = HeaderValue::from_str(&params.name);
        let name = name.map_err(|_| Trouble::NotAnAnswer("a name without letters".to_owned()))?;
        let mut own = RequestMetaObject(MetaObject::new());
        own.set_protocol_version(ProtocolVersion::V_2026_07_28);
        own.set_client_info(Implementation::new(
            "countersign",
            env!("CARGO_PKG_VERSION"),
        ));
        own.extend(RequestMetaObject(MetaObject(meta)));
        let trace = [
            ("traceparent", own.get_traceparent()),
            ("tracestate", own.get_tracestate()),
        ];
        let trace = trace.map(|(name, value)| (name, value.map(str::to_owned)));
        params.meta = Some(own);
        let request = Request {
            jsonrpc: "2.0",
            id,
            method: CALL,
            params: &params,
        };
        let body = serde_json::to_vec(&request);
        let body = body.map_err(|error| Trouble::NotAnAnswer(error.to_string()))?;
        let version = HeaderValue::from_static("2026-07-28");
        let headers = [
            ("mcp-protocol-version", version),
            ("mcp-method", HeaderValue::from_static(CALL)),
            ("mcp-name", name),
        ];
        let headers = headers.map(|(name, value)| (HeaderName::from_static(name), value));
        let sent = self.wire.ask(&self.uri, body, headers, trace);
        let answer = sent.await.map_err(|error| Trouble::from(&error))?;
        answer.read(|text| read(text, id)).await
    }
}

/// The answer to a request, if this is it.
fn read(text: &[u8], id: i64) -> Option<Result<Result<ServerResult, ServiceError>, Trouble>> {
    let unreadable = |error: serde_json::Error| Trouble::NotAnAnswer(error.to_string());
    let message: Message<'_> = match serde_json::from_slice(text) {
        Ok(message) => message,
        Err(error) => return Some(Err(unreadable(error))),
    };
    if let Some(error) = message.error {
        return Some(Ok(Err(ServiceError::McpError(error))));
    }
    let result = message.result.filter(|_| message.id == Some(id.into()))?;
    Some(result_of(result.get()).map(Ok).map_err(unreadable))
}

fn result_of(text: &str) -> Result<ServerResult, serde_json::Error> {
    let kind: Kind<'_> = serde_json::from_str(text)?;
    match kind.result_type.as_deref() {
        None | Some("complete") => {
            let result: CallToolResult = serde_json::from_str(text)?;
            Ok(ServerResult::CallToolResult(result))
        }
        Some("input_required") => {
            let asked: InputRequiredResult = serde_json::from_str(text)?;
            Ok(ServerResult::InputRequiredResult(asked))
        }
        // Something else than the result of a call.
        Some(_) => serde_json::from_str(text),
    }
}
