//! A `tools/call` that stands alone: one message, one answer, and nothing on the way. The protocol library would start a service, its
//! transport and several tasks for it; here the message goes straight to the call.
//!
//! Only a message that is right in every respect is taken. Everything else goes to the library, which says what is wrong with it.

use ::http::request::Parts;
use ::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::body::Body;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, ErrorCode, ProtocolVersion, RequestId, RequestMetaObject,
    ServerJsonRpcMessage, ServerResult,
};
use serde::Deserialize;

use super::context::{Context, OnGone};
use super::handler::Handler;

/// A message that stands alone.
pub(super) struct Alone {
    id: RequestId,
    params: CallToolRequestParams,
    meta: RequestMetaObject,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    jsonrpc: String,
    id: RequestId,
    method: String,
    params: CallToolRequestParams,
}

const CALL: &str = "tools/call";

impl Alone {
    /// The message of a request, if it stands alone.
    pub(super) fn read(headers: &HeaderMap, bytes: &[u8], handler: &Handler) -> Option<Self> {
        let newest = ProtocolVersion::V_2026_07_28;
        let is = |name, expected: &str| once(headers, name) == Some(expected);
        if !is("mcp-protocol-version", newest.as_str()) || !is("mcp-method", CALL) {
            return None;
        }
        let accepted = once(headers, "accept")?;
        let has_both =
            accepted.contains("application/json") && accepted.contains("text/event-stream");
        if !has_both || !once(headers, "content-type")?.starts_with("application/json") {
            return None;
        }
        let Message {
            jsonrpc,
            id,
            method,
            mut params,
        } = serde_json::from_slice(bytes).ok()?;
        let name = &*params.name;
        let is_plain = !name.starts_with("=?") && is("mcp-name", name);
        let is_ours = !handler.is_fixture(name) && !handler.needs_arguments(name);
        if jsonrpc != "2.0" || method != CALL || !is_plain || !is_ours {
            return None;
        }
        let meta = params.meta.take()?;
        let is_whole = meta.protocol_version().is_some_and(|own| own == newest)
            && meta.missing_required_keys(&newest).is_empty();
        // These clients hear something before the answer.
        let hears_more = meta.get_progress_token().is_some() || meta.log_level().is_some();
        (is_whole && !hears_more).then_some(Self { id, params, meta })
    }

    /// Runs the call. If the client goes away meanwhile, a read stops.
    pub(super) async fn answer(self, handler: &Handler, parts: Parts) -> Response<Body> {
        let context = Context::alone(parts, self.meta);
        let mut gone = OnGone {
            context: &context,
            is_answered: false,
        };
        let answer = handler.call(self.params, &context).await;
        gone.is_answered = true;
        let status = answer.as_ref().err().map_or(StatusCode::OK, status_of);
        let message = match answer {
            Ok(response) => ServerJsonRpcMessage::response(ServerResult::from(response), self.id),
            Err(error) => ServerJsonRpcMessage::error(error, Some(self.id)),
        };
        written(&message, status)
    }
}

/// The text of a header that is there once.
fn once<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
}

/// The status that the transport has for an error of the protocol.
fn status_of(error: &ErrorData) -> StatusCode {
    match error.code {
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        | ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

fn written(message: &ServerJsonRpcMessage, status: StatusCode) -> Response<Body> {
    let (status, bytes) = match serde_json::to_vec(message) {
        Ok(bytes) => (status, bytes),
        Err(error) => {
            tracing::error!(%error, "the answer to a call cannot be written");
            (StatusCode::INTERNAL_SERVER_ERROR, Vec::new())
        }
    };
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
