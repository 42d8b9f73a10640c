//! From the result of a tool to the `data` of a reply.

use std::sync::Arc;

use countersign::offer::BLOCKS;
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
    let beside = beside(tool, &result);
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
    if !beside.is_empty() && !tool.reader.projects() && chosen.is_none() {
        keep_beside(tool, &mut reply, scrub::value(Value::Array(beside), sent));
    }
    tell_digits(tool.whose(), digits, &mut reply);
    reply.ttl_seconds = ttl.and_then(|ttl| u32::try_from(ttl).ok());
    Ok(reply)
}

/// The blocks of an answer as JSON, with the addresses that callers read resources by.
fn blocks<'b>(tool: &McpTool, content: impl IntoIterator<Item = &'b ContentBlock>) -> Vec<Value> {
    let block = |own: &ContentBlock| {
        let mut block = json!(own);
        tool.server.relink(&mut block);
        block
    };
    content.into_iter().map(block).collect()
}

/// The blocks beside a structured answer that it does not repeat: everything but text.
fn beside(tool: &McpTool, result: &CallToolResult) -> Vec<Value> {
    if result.structured_content.is_none() {
        return Vec::new();
    }
    let content = result.content.iter();
    blocks(
        tool,
        content.filter(|own| !matches!(own, ContentBlock::Text(_))),
    )
}

/// Keeps blocks beside the structured answer, which was checked without them. Only an object has room for them.
fn keep_beside(tool: &McpTool, reply: &mut Reply, blocks: Value) {
    match &mut reply.data {
        Value::Object(members) if !members.contains_key(BLOCKS) => {
            members.insert(BLOCKS.to_owned(), blocks);
        }
        _ => {
            let upstream = tool.server.name().to_owned();
            let text = Say::BlocksLeftOut { upstream }.to_string();
            reply.remarks.push(("CONTENT_LEFT_OUT".to_owned(), text));
        }
    }
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
        let content = blocks(tool, &result.content);
        return Ok(Read::from(json!({ "content": content })));
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
    let texts = result.content.iter().filter_map(|block| match block {
        ContentBlock::Text(own) => Some(own.text.as_str()),
        _ => None,
    });
    let text = scrub::text(&texts.collect::<Vec<_>>().join("\n"), sent);
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
