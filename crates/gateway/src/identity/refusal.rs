//! Requests without a valid credential: their reasons, counts and log lines.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use countersign::clock::Clock;
use countersign::contract::{ErrorBody, ErrorCode, FaultSource};

use crate::words::Say;

/// Refusal of a request that has no valid credential.
#[derive(Debug, Clone)]
pub struct Refused {
    /// Error body for the caller, with a hint. It never reveals whether a key exists.
    pub body: ErrorBody,
    /// Reason of the refusal.
    pub reason: Reason,
}

/// Reason why a credential was refused. The enum is exhaustive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The request had no credential.
    Missing,
    /// The credential has an unknown form.
    Malformed,
    /// The credential is not of this installation, was changed, has ended, or is for another server.
    NotAccepted,
    /// The credential could not be checked, usually because the store or the issuer is unreachable.
    Unavailable,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 4] = [
        Self::Missing,
        Self::Malformed,
        Self::NotAccepted,
        Self::Unavailable,
    ];

    /// Returns the name in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::NotAccepted => "not_accepted",
            Self::Unavailable => "unavailable",
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::Missing => 0,
            Self::Malformed => 1,
            Self::NotAccepted => 2,
            Self::Unavailable => 3,
        }
    }
}

impl Refused {
    pub(super) fn new(reason: Reason) -> Self {
        let (message, hint) = match reason {
            Reason::Missing => (Say::CredentialMissing, Say::SendCredential),
            Reason::Malformed => (Say::CredentialMalformed, Say::SendCredentialOnce),
            Reason::NotAccepted => (Say::CredentialNotAccepted, Say::GetNewCredential),
            Reason::Unavailable => {
                let body = ErrorBody::new(ErrorCode::UpstreamError, Say::CredentialUnchecked)
                    .source(FaultSource::Gateway)
                    .hint(Say::SameRequestLater);
                return Self { body, reason };
            }
        };
        let body = ErrorBody::new(ErrorCode::Unauthorized, message).hint(hint);
        Self { body, reason }
    }

    pub(super) fn unavailable(error: &dyn std::error::Error) -> Self {
        tracing::warn!(%error, "a credential could not be checked; the request was refused and may be retried");
        Self::new(Reason::Unavailable)
    }
}

/// Minimum interval between log lines about refusals: a client that sends wrong credentials must not fill a
/// disk.
const LOG_EVERY: Duration = Duration::from_secs(1);

/// Counts refusals, and logs them at most once a second.
pub(super) struct Refusals {
    clock: Arc<dyn Clock>,
    counts: [AtomicU64; Reason::ALL.len()],
    /// Time of the last log line, and the number of refusals since then without one.
    told: Mutex<(Option<Duration>, u64)>,
}

impl Refusals {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            counts: Default::default(),
            told: Mutex::default(),
        }
    }

    pub(super) fn counts(&self) -> [(Reason, u64); Reason::ALL.len()] {
        Reason::ALL.map(|reason| {
            let count = self.counts.get(reason.index());
            (
                reason,
                count.map_or(0, |count| count.load(Ordering::Relaxed)),
            )
        })
    }

    /// Counts a refusal. Neither the credential nor anything else of the request goes into the log.
    pub(super) fn count(&self, reason: Reason) {
        if let Some(count) = self.counts.get(reason.index()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let now = self.clock.monotonic();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.0.is_some_and(|at| now.saturating_sub(at) < LOG_EVERY) {
            told.1 += 1;
            return;
        }
        let untold = told.1;
        *told = (Some(now), 0);
        drop(told);
        tracing::warn!(
            reason = reason.as_str(),
            untold,
            "requests were refused: no valid credential"
        );
    }
}
