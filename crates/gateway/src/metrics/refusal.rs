//! Requests that never became calls: counted, and logged at a limited rate.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::StatusCode;

use crate::gateway::Gateway;

/// Reason why a request did not become a call. The enum is exhaustive, so that its label is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The request is malformed.
    Malformed,
    /// The credential is missing or wrong.
    Unauthorized,
    /// A foreign `Origin` or `Host`, or something that this caller may not see.
    Forbidden,
    /// The path is unknown.
    NotFound,
    /// The path does not have this method.
    Method,
    /// The client was too slow.
    Timeout,
    /// The request has too many bytes.
    TooLarge,
    /// The media type is not supported.
    MediaType,
    /// The server has no room for one more call or connection.
    Overloaded,
    /// The gateway failed.
    Failed,
}

impl Refusal {
    /// All reasons.
    pub const ALL: [Self; 10] = [
        Self::Malformed,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::Method,
        Self::Timeout,
        Self::TooLarge,
        Self::MediaType,
        Self::Overloaded,
        Self::Failed,
    ];

    /// Returns the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Method => "method",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::MediaType => "media_type",
            Self::Overloaded => "overloaded",
            Self::Failed => "failed",
        }
    }

    /// Returns the reason of a status; `None` if it is not a refusal.
    pub fn of_status(status: StatusCode) -> Option<Self> {
        Some(match status {
            StatusCode::UNAUTHORIZED => Self::Unauthorized,
            StatusCode::FORBIDDEN => Self::Forbidden,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::METHOD_NOT_ALLOWED => Self::Method,
            StatusCode::REQUEST_TIMEOUT => Self::Timeout,
            StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::URI_TOO_LONG
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Self::TooLarge,
            StatusCode::NOT_ACCEPTABLE | StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::MediaType,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Self::Overloaded,
            other if other.is_client_error() => Self::Malformed,
            other if other.is_server_error() => Self::Failed,
            _ => return None,
        })
    }
}

/// Extension of a response that is the reply of a call: the executor has already reported it.
#[derive(Debug, Clone, Copy)]
pub struct OfCall;

/// Counts responses that refuse a request and are not replies of a call.
pub async fn layer(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let is_probe = request.uri().path() == "/readyz";
    let response = next.run(request).await;
    // "Not ready" is what a probe asks for: it refuses nothing.
    let is_answer = response.extensions().get::<OfCall>().is_some()
        || is_probe && response.status() == StatusCode::SERVICE_UNAVAILABLE;
    if !is_answer && let Some(refusal) = Refusal::of_status(response.status()) {
        gateway.metrics().refused(refusal);
    }
    response
}

/// Maximum number of log lines about refused requests in one second.
const LINES_MAX: u64 = 10;

/// Counts of refused requests, and of log lines in this second.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    counts: [AtomicU64; Refusal::ALL.len()],
    /// The second, with the number of lines in it in the lower byte.
    written: AtomicU64,
}

impl Refusals {
    /// Counts a refusal. The log line only has the reason: path, headers and body are the client's text. A
    /// flood of requests must not flood the log, so there are a few lines a second, and the counter has the
    /// rest.
    pub(super) fn count(&self, refusal: Refusal, second: u64) {
        if let Some(count) = self.counts.get(refusal as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if self.may_write(second) {
            tracing::info!(reason = refusal.as_str(), "request refused");
        }
    }

    fn may_write(&self, second: u64) -> bool {
        let next = |written: u64| {
            let lines = if written >> 8 == second {
                written & 0xff
            } else {
                0
            };
            (lines < LINES_MAX).then_some((second << 8) | (lines + 1))
        };
        self.written
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
            .is_ok()
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self
            .counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        Refusal::ALL.into_iter().map(Refusal::as_str).zip(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_stand_at_their_places() {
        for (place, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal as usize, place, "{}", refusal.as_str());
        }
    }

    #[test]
    fn a_flood_writes_some_lines_a_second() {
        let refusals = Refusals::default();
        let lines = |second| (0..1_000).filter(|_| refusals.may_write(second)).count();
        assert_eq!((lines(7), lines(7), lines(8)), (10, 0, 10));
    }

    #[test]
    fn every_error_status_has_a_reason() {
        for status in 100..600 {
            let status = StatusCode::from_u16(status).unwrap();
            let is_error = status.is_client_error() || status.is_server_error();
            assert_eq!(Refusal::of_status(status).is_some(), is_error, "{status}");
        }
    }
}
