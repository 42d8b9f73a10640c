//! The early ways out: a refusal, or the answer of an earlier call with the same key.

use std::sync::Arc;

use countersign_contract::envelope::Warning;
use countersign_contract::freshness::Freshness;
use countersign_contract::{ErrorBody, ReplyEnvelope};
use jiff::Timestamp;

use super::Executor;
use super::trail::{Trail, micros};
use crate::store::{Durability, StoredReply};

/// Why a call does not reach its tool.
pub(super) enum Stop {
    /// It is refused.
    Refused(Box<ErrorBody>),
    /// It has been answered before.
    Replayed(Arc<StoredReply>),
}

impl From<ErrorBody> for Stop {
    fn from(error: ErrorBody) -> Self {
        Self::Refused(Box::new(error))
    }
}

impl Executor {
    /// Answers a call that did not reach its tool, and leaves its record.
    pub(super) async fn stop(&self, stop: Stop, mut trail: Trail) -> ReplyEnvelope {
        let parts = &self.parts;
        let request_id = trail.record.request_id.clone();
        let mut reply = match stop {
            Stop::Refused(error) => {
                trail.record.code = Some(error.code);
                ReplyEnvelope::failure(request_id, *error)
            }
            Stop::Replayed(stored) => {
                trail.record.replayed = true;
                let evidence = stored.reply.evidence.as_ref();
                trail.record.snapshot_id = evidence.map(|evidence| evidence.snapshot_id.clone());
                ReplyEnvelope {
                    request_id,
                    ..replay(&stored, parts.clock.now())
                }
            }
        };
        reply.dry_run = trail.record.dry_run;
        let phases = &mut trail.record.phases;
        let elapsed = micros(parts.clock.monotonic().saturating_sub(trail.arrived));
        phases.queued_us = elapsed.saturating_sub(phases.awaiting_approval_us);
        trail.log();
        // The refusal stands whether or not its record could be kept; the log says that it was not.
        if let Err(error) = parts.store.append(trail.record, Durability::Batched).await {
            super::gateway_fault(&error);
        }
        reply
    }
}

/// The first answer again: the same data and evidence, with what is left of its window.
fn replay(stored: &StoredReply, now: Timestamp) -> ReplyEnvelope {
    let mut reply = stored.reply.clone();
    reply.replayed = true;
    if let Some(ttl_seconds) = reply.ttl_seconds {
        let freshness = Freshness {
            made: stored.at,
            ttl_seconds,
        };
        reply.ttl_seconds = Some(freshness.remaining_seconds(now));
        if freshness.is_stale(now) {
            reply.warnings.push(Warning::Remark {
                code: "STALE_REPLAY".to_owned(),
                message: "this is the first answer again, and its window of validity is over"
                    .to_owned(),
            });
        }
    }
    reply
}
