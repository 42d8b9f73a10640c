//! Why a request has no caller, how often that was so, and what the log is told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use countersign::clock::Clock;
use countersign::contract::{ErrorBody, ErrorCode, FaultSource};

use crate::words::Say;

/// Why a request has no caller.
#[derive(Debug, Clone)]
pub struct Refused {
    /// What the caller is told, with what to do. It never says whether a key exists.
    pub body: ErrorBody,
    /// What was wrong.
    pub reason: Reason,
}

/// What was wrong with a credential. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// There was none.
    Missing,
    /// It was in no form that we know.
    Malformed,
    /// It is none of ours, was changed, has ended, or is for somebody else.
    NotAccepted,
    /// Whether it is good could not be found out.
    Unavailable,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 4] = [
        Self::Missing,
        Self::Malformed,
        Self::NotAccepted,
        Self::Unavailable,
    ];

    /// Its name in logs and metrics.
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
        tracing::warn!(%error, "credentials cannot be checked");
        Self::new(Reason::Unavailable)
    }
}

/// How often there is a line about refusals: whoever sends wrong credentials must not fill a disk.
const LOG_EVERY: Duration = Duration::from_secs(1);

/// Counts refusals, and tells the log about them once a second at most.
pub(super) struct Refusals {
    clock: Arc<dyn Clock>,
    counts: [AtomicU64; Reason::ALL.len()],
    /// When there was a line, and how many refusals there were since without one.
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

    /// Counts one. Neither the credential nor anything else of the request goes into the log.
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
            "a request was refused: no credential"
        );
    }
}
