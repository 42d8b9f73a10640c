//! Answers in the form of ACP 2026-04-17.

use countersign::contract::{ErrorBody, ReplyEnvelope};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::outcome::{Kind, Message, Resolution, text_of};

/// Builds the answer to a call with a business error: our envelope with `messages` in place of `error`.
pub(super) fn failure(
    reply: &ReplyEnvelope,
    error: &ErrorBody,
    messages: &[Message],
    param: Option<&str>,
    continue_url: Option<&str>,
) -> Value {
    let mut body = match serde_json::to_value(reply) {
        Ok(Value::Object(members)) => members,
        Ok(_) | Err(_) => Map::new(),
    };
    body.remove("error");
    let messages = messages.iter().map(|message| told(*message, error, param));
    body.insert("messages".to_owned(), messages.collect());
    if let Some(url) = continue_url {
        body.insert("continue_url".to_owned(), url.into());
    }
    Value::Object(body)
}

fn told(message: Message, error: &ErrorBody, param: Option<&str>) -> Value {
    let (kind, severity) = match (message.kind, message.resolution) {
        (Kind::Warning, _) => ("warning", "medium"),
        (Kind::Error, Resolution::Unrecoverable) => ("error", "critical"),
        (
            Kind::Error,
            Resolution::Recoverable | Resolution::BuyerInput | Resolution::BuyerReview,
        ) => ("error", "high"),
    };
    // ACP has no value for errors that cannot be resolved: the member is left out.
    let resolution = match message.resolution {
        Resolution::Recoverable => Some("recoverable"),
        Resolution::BuyerInput => Some("requires_buyer_input"),
        Resolution::BuyerReview => Some("requires_buyer_review"),
        Resolution::Unrecoverable => None,
    };
    let mut told = json!({
        "type": kind,
        "code": message.code,
        "severity": severity,
        "content_type": "plain",
        "content": text_of(error),
    });
    if let Value::Object(members) = &mut told {
        members.extend(resolution.map(|it| ("resolution".to_owned(), it.into())));
        members.extend(param.map(|path| ("param".to_owned(), path.into())));
    }
    told
}

/// Builds an error of the request itself.
pub(super) fn flat_error(
    status: StatusCode,
    code: &str,
    message: &str,
    param: Option<String>,
) -> Value {
    let kind = match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => "service_unavailable",
        status if status.is_server_error() => "processing_error",
        _ => "invalid_request",
    };
    let mut body = json!({"type": kind, "code": code, "message": message});
    if let (Value::Object(members), Some(param)) = (&mut body, param) {
        members.insert("param".to_owned(), param.into());
    }
    body
}
