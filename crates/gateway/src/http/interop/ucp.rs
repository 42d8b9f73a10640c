//! Answers in the form of UCP 2026-04-08.

use countersign::contract::{ErrorBody, ReplyEnvelope};
use serde_json::{Map, Value, json};

use super::outcome::{Kind, Message, Resolution, text_of};
use super::profile::Profile;

/// Builds the answer to a successful call: our envelope with UCP's own metadata.
pub(super) fn success(reply: &ReplyEnvelope) -> Value {
    let mut body = match serde_json::to_value(reply) {
        Ok(Value::Object(members)) => members,
        Ok(_) | Err(_) => Map::new(),
    };
    body.insert("ucp".to_owned(), metadata("success"));
    Value::Object(body)
}

/// Builds the answer to a call with a business error. Its members are closed, so the rest of our envelope can
/// only be looked up by the request id, which is in a header.
pub(super) fn failure(
    error: &ErrorBody,
    messages: &[Message],
    param: Option<&str>,
    continue_url: Option<&str>,
) -> Value {
    let messages: Vec<Value> = messages
        .iter()
        .map(|message| told(*message, error, param))
        .collect();
    let mut body = json!({"ucp": metadata("error"), "messages": messages});
    if let (Value::Object(members), Some(url)) = (&mut body, continue_url) {
        members.insert("continue_url".to_owned(), url.into());
    }
    body
}

fn metadata(status: &str) -> Value {
    json!({"version": Profile::Ucp.version(), "status": status})
}

fn told(message: Message, error: &ErrorBody, param: Option<&str>) -> Value {
    let mut told = json!({
        "code": message.code,
        "content_type": "plain",
        "content": text_of(error),
    });
    let severity = match message.resolution {
        Resolution::Recoverable => "recoverable",
        Resolution::BuyerInput => "requires_buyer_input",
        Resolution::BuyerReview => "requires_buyer_review",
        Resolution::Unrecoverable => "unrecoverable",
    };
    if let Value::Object(members) = &mut told {
        match message.kind {
            Kind::Error => {
                members.insert("type".to_owned(), "error".into());
                members.insert("severity".to_owned(), severity.into());
            }
            // A warning has no severity; nothing has to be done about it.
            Kind::Warning => {
                members.insert("type".to_owned(), "warning".into());
            }
        }
        members.extend(param.map(|path| ("path".to_owned(), path.into())));
    }
    told
}

/// Builds an error of the request itself.
pub(super) fn flat_error(code: &str, message: &str) -> Value {
    json!({"code": code, "content": message})
}
