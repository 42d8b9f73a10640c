//! From the result of a tool to the `data` of a reply.

use std::sync::Arc;

use countersign::{Reply, ToolError};
use countersign_contract::{ErrorBody, ErrorCode, FaultSource};
use http::HeaderMap;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::VENDOR;
use super::tool::McpTool;
use crate::http::answer::{Read, Unusable, Whole, json_of, tell_digits};
use crate::http::fault::excerpt;
use crate::manifest::{ResponseFormat, Secret};
use crate::scrub;
use crate::select::Filter;
use crate::words::Say;

/// The reply that a result makes.
pub(super) async fn reply(
    tool: &McpTool,
    result: CallToolResult,
    sent: &[Secret],
    chosen: Option<&Arc<Filter>>,
) -> Result<Reply, ToolError> {
    if result.is_error == Some(true) {
        return Err(error(tool, &result, sent));
    }
    let meta = result.meta.as_ref();
    let ttl = meta.and_then(|own| own.get(&format!("{VENDOR}ttl_seconds"))?.as_u64());
    let bytes = bytes_of(&result);
    let read = value(tool, result);
    let digits = read.as_ref().map(|own| own.digits).unwrap_or_default();
    let value = read.map(|own| scrub::value(own.value, sent));
    let whole = Whole {
        value,
        text: None,
        bytes,
        answer: None,
    };
    let mut reply = tool.reader.finish(tool.whose(), whole, chosen).await?;
    tell_digits(tool.whose(), digits, &mut reply);
    reply.ttl_seconds = ttl.and_then(|ttl| u32::try_from(ttl).ok());
    Ok(reply)
}

/// Size of an answer, as far as its texts have it: servers repeat a structured answer as a text. One without texts counts as large.
pub(super) fn bytes_of(result: &CallToolResult) -> u64 {
    let texts = result.content.iter().map(|block| match block {
        ContentBlock::Text(own) => own.text.len() as u64,
        _ => u64::MAX,
    });
    match texts.fold(0, u64::saturating_add) {
        0 => u64::MAX,
        bytes => bytes,
    }
}

/// Returns the structured answer, or else the content of the blocks.
fn value(tool: &McpTool, result: CallToolResult) -> Result<Read, Unusable> {
    if let Some(structured) = result.structured_content {
        return Ok(Read::from(structured));
    }
    let Some(text) = text_of(&result.content) else {
        return Ok(Read::from(json!({ "content": result.content })));
    };
    match tool.reader.format() {
        ResponseFormat::Json => json_of(&text),
        // A text stays a text, unless JSON is declared.
        ResponseFormat::Auto if tool.spec.output.is_some() => {
            let read = json_of(&text);
            Ok(read.unwrap_or_else(|_| Read::from(Value::String(text))))
        }
        ResponseFormat::Auto | ResponseFormat::Text | ResponseFormat::Base64 => {
            Ok(Read::from(Value::String(text)))
        }
    }
}

/// The blocks of an answer as one text; `None` if one of them is something else.
pub(super) fn text_of(content: &[ContentBlock]) -> Option<String> {
    let texts = content.iter().map(|block| match block {
        ContentBlock::Text(own) => Some(own.text.as_str()),
        _ => None,
    });
    let texts: Vec<&str> = texts.collect::<Option<_>>()?;
    Some(texts.join("\n"))
}

/// The error that a tool has answered with. The tool has had its say, so the effect is not in doubt: an operator who knows better says
/// so with `errors`.
fn error(tool: &McpTool, result: &CallToolResult, sent: &[Secret]) -> ToolError {
    let upstream = tool.server.name();
    let text = text_of(&result.content).unwrap_or_default();
    let text = scrub::text(&text, sent);
    let clean = |own: &Value| scrub::value(own.clone(), sent);
    let ours = result.meta.as_ref();
    let ours = ours.and_then(|own| own.get(&format!("{VENDOR}error")));
    let body = match (ours, &result.structured_content) {
        // A gateway of ours in front of the tool.
        (Some(own), _) => json!({ "error": clean(own) }).to_string(),
        (None, Some(own)) => clean(own).to_string(),
        (None, None) => text.clone(),
    };
    let headers = HeaderMap::new();
    if let Some(error) = tool.faults.error(upstream, 200, &headers, &body, sent) {
        return error;
    }
    let say = Say::ToolFailed {
        upstream: upstream.to_owned(),
    };
    let mut made = ErrorBody::new(ErrorCode::UpstreamError, say).source(FaultSource::Upstream);
    made.details.retryable = false;
    ToolError::from(made.hint(Say::CorrectArguments))
        .detail("upstream", upstream)
        .detail("upstream_message", excerpt(&text, sent))
        .without_effect()
}
