//! The last step of every call: the log and the observer get its outcome.

use std::time::Duration;

use countersign_contract::ReplyEnvelope;

use super::Executor;
use super::trail::{Trail, micros};
use crate::observe::Answered;

/// The facts that the observer gets of a call, taken before its record goes to the store.
pub(super) struct Closing {
    answered: Answered,
    /// Time of arrival, in the clock's monotonic time.
    arrived: Duration,
}

impl Executor {
    /// The facts for log and observer; `None` if neither wants them.
    pub(super) fn closing(&self, trail: &Trail) -> Option<Box<Closing>> {
        let is_logged = tracing::enabled!(target: "countersign::observe", tracing::Level::INFO);
        if self.parts.observer.is_none() && !is_logged {
            return None;
        }
        let record = &trail.record;
        let answered = Answered {
            request_id: trail.log_id(),
            tool: trail.facts.entry.clone(),
            trace: trail.trace,
            trace_state: trail.trace_state.clone(),
            origin: trail.origin.clone(),
            at: trail.facts.at,
            code: record.code,
            replayed: record.replayed,
            dry_run: record.dry_run,
            policy_revision: record.policy_revision.clone(),
            snapshot_id: record.snapshot_id.clone(),
            session: trail.session.clone(),
            writer: trail.writer.clone(),
            binding: record.binding.clone(),
            phases: record.phases,
        };
        Some(Box::new(Closing {
            answered,
            arrived: trail.arrived,
        }))
    }

    /// Tells of a call whose reply is ready. The reply decides: it may have become another one while the
    /// record was kept.
    pub(super) fn tell(&self, closing: Option<Box<Closing>>, reply: &ReplyEnvelope) {
        let Some(closing) = closing else { return };
        let Closing {
            mut answered,
            arrived,
        } = *closing;
        answered.code = reply.error.as_ref().map(|error| error.code);
        if reply.evidence.is_none() {
            answered.snapshot_id = None;
        }
        let elapsed = micros(self.parts.clock.monotonic().saturating_sub(arrived));
        let phases = &mut answered.phases;
        phases.settling_us = elapsed
            .saturating_sub(phases.queued_us)
            .saturating_sub(phases.awaiting_approval_us)
            .saturating_sub(phases.executing_us);
        answered.log();
        if let Some(observer) = &self.parts.observer {
            observer.answered(&answered);
        }
    }

    /// The reply of a call that has committed everything.
    pub(super) fn answer_as(&self, reply: ReplyEnvelope, trail: &Trail) -> ReplyEnvelope {
        self.tell(self.closing(trail), &reply);
        reply
    }
}
