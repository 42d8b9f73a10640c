//! Step 6: the key is taken. From here on exactly one call runs for this user, tool and key (A17).

use std::time::Duration;

use countersign_contract::{ConflictReason, Digest, ErrorBody, ErrorCode};

use super::bind::Bound;
use super::confirm::Confirmed;
use super::stop::Stop;
use super::{Executor, gateway_fault};
use crate::store::{Claim, ClaimAnswer, ClaimRequest, Held, HeldState};

/// A call that may run: it holds its key, or it has none.
pub(super) struct Claimed {
    pub(super) bound: Bound,
    pub(super) claim: Option<Claim>,
}

impl Executor {
    pub(super) async fn claim(&self, confirmed: Confirmed) -> Result<Claimed, Stop> {
        let Confirmed(mut bound) = confirmed;
        // A dry run takes nothing (A4).
        let scope = bound
            .scope
            .take()
            .filter(|_| !bound.allowed.request.dry_run);
        let Some(scope) = scope else {
            return Ok(Claimed { bound, claim: None });
        };
        let behaviour = &bound.allowed.entry.spec().behaviour;
        let request = ClaimRequest {
            scope,
            fingerprint: bound.fingerprint,
            effect: behaviour.effect,
            at: self.parts.clock.now(),
            lease: Duration::from_millis(behaviour.deadline_ms) + LEASE_MARGIN,
            retention: Duration::from_secs(behaviour.idempotency.retention_seconds),
        };
        let answer = self.parts.store.claim(&request).await;
        let held = match answer.map_err(|error| gateway_fault(&error))? {
            ClaimAnswer::Ours(claim) => {
                let claim = Some(claim);
                return Ok(Claimed { bound, claim });
            }
            ClaimAnswer::Held(held) => held,
        };
        // Released between our claim and the store's answer: the next try takes it.
        Err(standing(held, bound.fingerprint).unwrap_or_else(|| in_flight(RETRY_SOON_MS)))
    }
}

/// How long an owner may settle after its deadline.
const LEASE_MARGIN: Duration = Duration::from_secs(5);

const RETRY_SOON_MS: u64 = 50;

/// What a key that was taken before means for a call with these arguments; none where the call may
/// go on and take it.
pub(super) fn standing(held: Held, fingerprint: Digest) -> Option<Stop> {
    if held.fingerprint != fingerprint {
        return Some(conflict(
            ConflictReason::KeyReused,
            "the idempotency_key was used for other arguments",
            "use a new idempotency_key for a new call, or the first arguments for a retry",
        ));
    }
    match held.state {
        HeldState::Released => None,
        HeldState::Succeeded(stored) => Some(Stop::Replayed(stored)),
        HeldState::Running { retry_after_ms } => Some(in_flight(retry_after_ms)),
        HeldState::InDoubt => Some(conflict(
            ConflictReason::InDoubt,
            "whether the first call with this idempotency_key had its effect is not known",
            "do not send it again under another key; it has to be looked up first",
        )),
        HeldState::Expired => Some(conflict(
            ConflictReason::KeyExpired,
            "the call with this idempotency_key was made, and its answer is no longer kept",
            "use a new idempotency_key for a new call",
        )),
    }
}

fn in_flight(retry_after_ms: u64) -> Stop {
    let message = "the first call with this idempotency_key has not finished";
    ErrorBody::new(ErrorCode::Conflict, message)
        .reason(ConflictReason::InFlight)
        .retry_after_ms(retry_after_ms)
        .hint("wait for retry_after_ms, then send the same call again with the same key")
        .into()
}

fn conflict(reason: ConflictReason, message: &str, hint: &str) -> Stop {
    ErrorBody::new(ErrorCode::Conflict, message)
        .reason(reason)
        .hint(hint)
        .into()
}
