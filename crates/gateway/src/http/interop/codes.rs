//! The table of our closed codes in both standards. UCP's list of message codes is open, so it uses ACP's code
//! if ACP has one, and one table serves both.

use countersign::contract::{ConflictReason, ErrorBody, ErrorCode, FaultSource};
use http::StatusCode;

use super::outcome::{Kind, Message, Outcome, Resolution, is_missing};
use super::profile::Profile;

/// Member of `details` by which a rule says that it is about the buyer's age.
const MINIMUM_AGE: &str = "minimum_age";

/// Maps an error of a call to the status and codes of a standard.
pub(super) fn outcome(profile: Profile, error: &ErrorBody) -> Outcome {
    match error.code {
        ErrorCode::InvalidArgument if is_missing(error) => {
            Outcome::error("missing", Resolution::Recoverable)
        }
        ErrorCode::InvalidArgument => Outcome::error("invalid", Resolution::Recoverable),
        ErrorCode::Unauthorized => Outcome::protocol(StatusCode::UNAUTHORIZED, "unauthorized"),
        ErrorCode::Forbidden => Outcome::protocol(StatusCode::FORBIDDEN, "forbidden"),
        ErrorCode::NotFound => Outcome::error("not_found", Resolution::Unrecoverable),
        ErrorCode::Conflict => conflict(profile, error.details.reason),
        ErrorCode::RateLimited => Outcome::protocol(StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
        ErrorCode::Timeout => match profile {
            Profile::Acp => Outcome::protocol(StatusCode::GATEWAY_TIMEOUT, "timeout"),
            Profile::Ucp => Outcome::protocol(StatusCode::SERVICE_UNAVAILABLE, "timeout"),
        },
        ErrorCode::UpstreamError => match (profile, error.details.source) {
            (Profile::Acp, Some(FaultSource::Tool | FaultSource::Upstream) | None) => {
                Outcome::protocol(StatusCode::BAD_GATEWAY, "upstream_error")
            }
            // A server that cannot store the idempotency key does not run the call, and reports that it is
            // unavailable.
            (Profile::Acp, Some(FaultSource::Gateway)) | (Profile::Ucp, _) => {
                Outcome::protocol(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable")
            }
        },
        ErrorCode::NeedsUserConfirmation => {
            Outcome::error("approval_required", Resolution::BuyerReview)
        }
        ErrorCode::ComplianceBlocked if error.details.extra.contains_key(MINIMUM_AGE) => {
            Outcome::error("age_verification_required", Resolution::BuyerInput)
        }
        ErrorCode::ComplianceBlocked => {
            Outcome::error("region_restricted", Resolution::Unrecoverable)
        }
        ErrorCode::PriceChanged => Outcome::Business(vec![
            Message {
                kind: Kind::Warning,
                code: "price_change",
                resolution: Resolution::BuyerReview,
            },
            // The quote is no longer valid: the agent asks for another.
            Message {
                kind: Kind::Error,
                code: "expired",
                resolution: Resolution::Recoverable,
            },
        ]),
        ErrorCode::OutOfStock => Outcome::error("out_of_stock", Resolution::Recoverable),
        ErrorCode::AddressInvalid => match profile {
            Profile::Acp => Outcome::error("invalid", Resolution::BuyerInput),
            Profile::Ucp => Outcome::error("address_undeliverable", Resolution::BuyerInput),
        },
    }
}

fn conflict(profile: Profile, reason: Option<ConflictReason>) -> Outcome {
    match reason {
        Some(ConflictReason::InFlight) => {
            Outcome::protocol(StatusCode::CONFLICT, "idempotency_in_flight")
        }
        // An answer that is no longer kept cannot be repeated, and the call is not made again.
        Some(ConflictReason::KeyReused | ConflictReason::KeyExpired) => {
            let status = match profile {
                Profile::Acp => StatusCode::UNPROCESSABLE_ENTITY,
                Profile::Ucp => StatusCode::CONFLICT,
            };
            Outcome::protocol(status, "idempotency_conflict")
        }
        Some(ConflictReason::InDoubt) => {
            Outcome::protocol(StatusCode::CONFLICT, "idempotency_in_doubt")
        }
        // There is stock, but other buyers hold it now.
        Some(ConflictReason::Stock) => Outcome::error("low_stock", Resolution::Recoverable),
        Some(ConflictReason::Version) | None => Outcome::error("conflict", Resolution::Recoverable),
    }
}
