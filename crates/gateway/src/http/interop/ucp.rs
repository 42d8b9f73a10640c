//! The words of UCP 2026-04-08: our codes in its lists, and how its answers are written.

use countersign::contract::{ConflictReason, ErrorBody, ErrorCode, ReplyEnvelope};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::acp::blocked;
use super::outcome::{Kind, Message, Outcome, Resolution, is_missing, text_of};
use super::profile::Profile;

/// What an error of a call is in UCP. Its codes of messages are open; where ACP has a word, it is the same.
pub(super) fn outcome(error: &ErrorBody) -> Outcome {
    match error.code {
        ErrorCode::InvalidArgument if is_missing(error) => {
            Outcome::error("missing", Resolution::Recoverable)
        }
        ErrorCode::InvalidArgument => Outcome::error("invalid", Resolution::Recoverable),
        ErrorCode::Unauthorized => Outcome::protocol(StatusCode::UNAUTHORIZED, "unauthorized"),
        ErrorCode::Forbidden => Outcome::protocol(StatusCode::FORBIDDEN, "forbidden"),
        ErrorCode::NotFound => Outcome::error("not_found", Resolution::Unrecoverable),
        ErrorCode::Conflict => conflict(error.details.reason),
        ErrorCode::RateLimited => Outcome::protocol(StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
        // Whoever cannot keep the key does not run the call, and says that it is away.
        ErrorCode::Timeout => Outcome::protocol(StatusCode::SERVICE_UNAVAILABLE, "timeout"),
        ErrorCode::UpstreamError => {
            Outcome::protocol(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable")
        }
        ErrorCode::NeedsUserConfirmation => {
            Outcome::error("approval_required", Resolution::BuyerReview)
        }
        ErrorCode::ComplianceBlocked => blocked(error),
        ErrorCode::PriceChanged => Outcome::Business(vec![
            Message {
                kind: Kind::Warning,
                code: "price_change",
                resolution: Resolution::BuyerReview,
            },
            Message {
                kind: Kind::Error,
                code: "expired",
                resolution: Resolution::Recoverable,
            },
        ]),
        ErrorCode::OutOfStock => Outcome::error("out_of_stock", Resolution::Recoverable),
        ErrorCode::AddressInvalid => {
            Outcome::error("address_undeliverable", Resolution::BuyerInput)
        }
    }
}

fn conflict(reason: Option<ConflictReason>) -> Outcome {
    match reason {
        Some(ConflictReason::InFlight) => {
            Outcome::protocol(StatusCode::CONFLICT, "idempotency_in_flight")
        }
        Some(ConflictReason::KeyReused | ConflictReason::KeyExpired) => {
            Outcome::protocol(StatusCode::CONFLICT, "idempotency_conflict")
        }
        Some(ConflictReason::InDoubt) => {
            Outcome::protocol(StatusCode::CONFLICT, "idempotency_in_doubt")
        }
        Some(ConflictReason::Stock) => Outcome::error("low_stock", Resolution::Recoverable),
        Some(ConflictReason::Version) | None => Outcome::error("conflict", Resolution::Recoverable),
    }
}

/// The answer to a call that worked: our envelope, and what UCP says about itself.
pub(super) fn success(reply: &ReplyEnvelope) -> Value {
    let mut body = match serde_json::to_value(reply) {
        Ok(Value::Object(members)) => members,
        Ok(_) | Err(_) => Map::new(),
    };
    body.insert("ucp".to_owned(), metadata("success"));
    Value::Object(body)
}

/// The answer to a call that did not work, where that can be talked about. Its members are closed, so that what
/// our envelope says besides is found by the request's name, which is in a header.
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
            // A warning has no severity; nobody has to do anything about it.
            Kind::Warning => {
                members.insert("type".to_owned(), "warning".into());
            }
        }
        members.extend(param.map(|path| ("path".to_owned(), path.into())));
    }
    told
}

/// An error of the request as such.
pub(super) fn flat_error(code: &str, message: &str) -> Value {
    json!({"code": code, "content": message})
}
