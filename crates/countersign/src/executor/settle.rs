//! Step 9: claim, outcome and record become durable together; the answer leaves after that.

use std::sync::Arc;

use countersign_contract::tool::EvidenceRule;
use countersign_contract::{CallRecord, ReplyEnvelope};

use super::record::Recorded;
use super::trail::{Trail, micros};
use super::{Executor, gateway_fault};
use crate::store::{self, Claim, Durability, Outcome, Settle, StoredReply};

impl Executor {
    pub(super) async fn settle(&self, recorded: Recorded, mut trail: Trail) -> ReplyEnvelope {
        // What the commit itself takes cannot stand in the record that it commits.
        let settling = self.parts.clock.monotonic().saturating_sub(recorded.ended);
        trail.record.phases.settling_us = micros(settling);
        trail.log();
        let record = trail.record;
        let Recorded {
            reply,
            at,
            claim,
            in_doubt,
            evidence,
            ..
        } = recorded;
        let request_id = reply.request_id.clone();
        let settled = if let Some(claim) = claim {
            let stored = StoredReply { reply: *reply, at };
            self.settle_claim(claim, stored, in_doubt, record).await
        } else {
            let durability = match evidence {
                EvidenceRule::Recorded => Durability::Batched,
                EvidenceRule::Required => Durability::Committed,
            };
            let appended = self.parts.store.append(record, durability).await;
            appended.map(|()| *reply)
        };
        // An answer without its record is no answer.
        settled.unwrap_or_else(|error| ReplyEnvelope::failure(request_id, gateway_fault(&error)))
    }

    async fn settle_claim(
        &self,
        claim: Claim,
        stored: StoredReply,
        in_doubt: bool,
        record: Box<CallRecord>,
    ) -> Result<ReplyEnvelope, store::Error> {
        let at = stored.at;
        let stored = Arc::new(stored);
        let outcome = match (stored.reply.ok, in_doubt) {
            (true, _) => Outcome::Succeeded(stored.clone()),
            (false, true) => Outcome::InDoubt,
            (false, false) => Outcome::Released,
        };
        let settle = Settle::new(claim, outcome, record, at);
        self.parts.store.settle(settle).await?;
        Ok(Arc::unwrap_or_clone(stored).reply)
    }
}
