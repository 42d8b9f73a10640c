//! The words of ACP 2026-04-17: our codes in its lists, and how its answers are written.

use countersign::contract::{ConflictReason, ErrorBody, ErrorCode, FaultSource, ReplyEnvelope};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::outcome::{Kind, Message, Outcome, Resolution, is_missing, text_of};

/// The member of `details` by which a rule says that it is about the buyer's age.
pub(super) const MINIMUM_AGE: &str = "minimum_age";

/// What an error of a call is in ACP.
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
        ErrorCode::Timeout => Outcome::protocol(StatusCode::GATEWAY_TIMEOUT, "timeout"),
        ErrorCode::UpstreamError => match error.details.source {
            // Ours: the store is away, so nothing was run that could not be kept.
            Some(FaultSource::Gateway) => {
                Outcome::protocol(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable")
            }
            Some(FaultSource::Tool | FaultSource::Upstream) | None => {
                Outcome::protocol(StatusCode::BAD_GATEWAY, "upstream_error")
            }
        },
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
            // The quote is no longer good: the agent asks for another.
            Message {
                kind: Kind::Error,
                code: "expired",
                resolution: Resolution::Recoverable,
            },
        ]),
        ErrorCode::OutOfStock => Outcome::error("out_of_stock", Resolution::Recoverable),
        ErrorCode::AddressInvalid => Outcome::error("invalid", Resolution::BuyerInput),
    }
}

fn conflict(reason: Option<ConflictReason>) -> Outcome {
    match reason {
        Some(ConflictReason::InFlight) => {
            Outcome::protocol(StatusCode::CONFLICT, "idempotency_in_flight")
        }
        // An answer that is no longer kept cannot be given again, and the call is not made again.
        Some(ConflictReason::KeyReused | ConflictReason::KeyExpired) => {
            Outcome::protocol(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_conflict")
        }
        Some(ConflictReason::InDoubt) => {
            Outcome::protocol(StatusCode::CONFLICT, "idempotency_in_doubt")
        }
        // There are some, and others hold them now.
        Some(ConflictReason::Stock) => Outcome::error("low_stock", Resolution::Recoverable),
        Some(ConflictReason::Version) | None => Outcome::error("conflict", Resolution::Recoverable),
    }
}

/// What a rule forbids; the same in both standards.
pub(super) fn blocked(error: &ErrorBody) -> Outcome {
    if error.details.extra.contains_key(MINIMUM_AGE) {
        return Outcome::error("age_verification_required", Resolution::BuyerInput);
    }
    Outcome::error("region_restricted", Resolution::Unrecoverable)
}

/// The answer to a call that did not work, where that can be talked about: our envelope with `messages` in
/// the place of `error`.
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
    // There is no word for what nobody can resolve: the member is left out.
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

/// An error of the request as such.
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
