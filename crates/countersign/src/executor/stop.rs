//! The early ways out: a refusal, or the answer of an earlier call with the same key.

use countersign_contract::evidence::Link;
use countersign_contract::freshness::Freshness;
use countersign_contract::{
    Digest, ErrorBody, Evidence, Language, RecordKind, ReplyEnvelope, Source,
};
use countersign_evidence::tree::leaf_hash;
use jiff::Timestamp;

use super::print::StoredReply;
use super::refusals::Refused;
use super::trail::{Trail, micros, remark};
use super::{Executor, store_fault};
use crate::again::REPEATED_CALL;
use crate::ledger::Durability;
use crate::scribe::{CallDraft, Draft};
use crate::vault::SHARED;
use crate::words::Say;

/// Reasons why a call ends before its tool runs.
pub(super) enum Stop {
    /// The call is refused.
    Refused(Box<ErrorBody>),
    /// The call has been answered before.
    Replayed(Box<StoredReply>),
}

impl From<ErrorBody> for Stop {
    fn from(error: ErrorBody) -> Self {
        Self::Refused(Box::new(error))
    }
}

impl From<Box<ErrorBody>> for Stop {
    fn from(error: Box<ErrorBody>) -> Self {
        Self::Refused(error)
    }
}

impl Executor {
    /// Answers a call that did not reach its tool, and leaves its record, or counts it.
    pub(super) async fn stop(&self, stop: Stop, mut trail: Trail) -> ReplyEnvelope {
        // Of a run that did not count.
        trail.record.data_digest = None;
        trail.record.snapshot_id = None;
        match stop {
            Stop::Refused(error) => self.refuse(error, trail).await,
            Stop::Replayed(stored) => self.answer_again(*stored, trail).await,
        }
    }

    /// Answers with a refusal. It names its record only if it has one.
    async fn refuse(&self, error: Box<ErrorBody>, mut trail: Trail) -> ReplyEnvelope {
        let parts = &self.parts;
        let id = parts.ids.snapshot_id();
        let refused = self.count_refusal(&error, &trail, &id);
        trail.record.code = Some(error.code);
        trail.facts.refused_by = ["limit", "budget"].map(|name| {
            let found = error.details.extra.get(name)?;
            found.as_str().map(str::to_owned)
        });
        let error = error.in_language(trail.language);
        let mut reply = ReplyEnvelope::failure(trail.record.request_id.clone(), error);
        reply.warnings.clone_from(&trail.facts.warnings);
        reply.dry_run = trail.record.dry_run;
        self.end_queue(&mut trail);
        let (counted_as, over) = match refused {
            Refused::Counted => {
                self.tell(self.closing(&trail), &reply);
                return reply;
            }
            Refused::Recorded(counted_as, over) => (counted_as, over),
        };
        self.write_refusals(over).await;
        if parts.store.keeps_log() {
            trail.record.snapshot_id = Some(id.clone());
            reply.evidence = Some(Evidence {
                snapshot_id: id.clone(),
                sources: self.sources_of_refusal(&trail),
                checkpoint: parts.newest.get(),
            });
        }
        let kind = if trail.has_run() {
            RecordKind::Call
        } else {
            RecordKind::Denial
        };
        self.name_session(&mut trail).await;
        let (closing, at) = (self.closing(&trail), trail.facts.at);
        // The refusal stands whether or not its record could be kept; then it names none.
        if let Err(error) = self.keep_stopped(kind, id, &reply, trail).await {
            store_fault(&error);
            reply.evidence = None;
            if let Some(counted_as) = counted_as {
                parts.refusals.first_is_lost(&counted_as, at);
            }
        }
        self.tell(closing, &reply);
        reply
    }

    /// Names the session of a call that was refused before its user's keys were needed.
    async fn name_session(&self, trail: &mut Trail) {
        let is_open = trail.session.is_none() && trail.facts.circumstances.session_id.is_some();
        let user_id = &trail.record.user_id;
        if !is_open || !self.parts.store.keeps_log() || !super::envelope::is_name(user_id) {
            return;
        }
        // A store that fails says so when the record is kept.
        if let Ok(keys) = self.parts.vault.key(user_id).await {
            trail.in_session(&keys);
        }
    }

    /// The tool's fixed sources, for the reply to a refused call. A caller whom the policy has not let through gets
    /// none of them; the record names them all the same.
    fn sources_of_refusal(&self, trail: &Trail) -> Vec<Source> {
        let entry = trail.facts.entry.as_ref().filter(|_| trail.is_admitted);
        entry.map_or_else(Vec::new, |entry| self.fixed_sources(entry, trail.facts.at))
    }

    /// The answer of an earlier call with the same key.
    async fn answer_again(&self, stored: StoredReply, mut trail: Trail) -> ReplyEnvelope {
        let parts = &self.parts;
        trail.record.replayed = true;
        if let Some(next) = trail.again_next {
            let seconds = parts.clock.now().duration_since(stored.at).as_secs();
            let seconds = seconds.max(0).to_string();
            let next = next.to_string();
            trail.warn(REPEATED_CALL, &Say::RepeatedCall { seconds, next });
        }
        trail.record.code = stored.reply.error.as_ref().map(|error| error.code);
        trail.key_stands("replayed");
        let evidence = stored.reply.evidence.as_ref();
        trail.record.snapshot_id = evidence.map(|evidence| evidence.snapshot_id.clone());
        let first = self.link_to_first(&trail).await;
        trail.facts.links.extend(first);
        let mut reply = ReplyEnvelope {
            request_id: trail.record.request_id.clone(),
            ..replay(stored, parts.clock.now(), trail.language)
        };
        trail.warn_again(&mut reply);
        if trail.record.dry_run {
            let would = remark("WOULD_REPLAY", &Say::WouldReplay, trail.language);
            reply.warnings.push(would);
        }
        reply.dry_run = trail.record.dry_run;
        self.end_queue(&mut trail);
        let closing = self.closing(&trail);
        let id = parts.ids.snapshot_id();
        // The answer stands whether or not the record of its repeat could be kept.
        if let Err(error) = self.keep_stopped(RecordKind::Call, id, &reply, trail).await {
            store_fault(&error);
        }
        self.tell(closing, &reply);
        reply
    }

    /// Link from the record of a repeat to that of the call that was answered; `None` if that is not stored.
    async fn link_to_first(&self, trail: &Trail) -> Option<Link> {
        let store = &self.parts.store;
        let id = trail
            .record
            .snapshot_id
            .as_ref()
            .filter(|_| store.keeps_log())?;
        // The answer stands without it.
        let first = store.record(id).await.ok()??;
        let is_theirs = first.row.user_id == trail.record.user_id;
        is_theirs.then(|| Link::looked_at(id.clone(), Digest(leaf_hash(&first.leaf))))
    }

    /// Notes the queue time: all the time that went neither to a person nor to the tool.
    fn end_queue(&self, trail: &mut Trail) {
        let elapsed = self.parts.clock.monotonic().saturating_sub(trail.arrived);
        let phases = &mut trail.record.phases;
        phases.queued_us = micros(elapsed)
            .saturating_sub(phases.awaiting_approval_us)
            .saturating_sub(phases.executing_us);
    }

    async fn keep_stopped(
        &self,
        kind: RecordKind,
        id: countersign_contract::SnapshotId,
        reply: &ReplyEnvelope,
        trail: Trail,
    ) -> Result<(), crate::ledger::Error> {
        let parts = &self.parts;
        let durability = if trail.has_run() {
            Durability::Committed
        } else {
            Durability::Batched
        };
        let Trail {
            mut record,
            mut facts,
            ..
        } = trail;
        let draft = if parts.store.keeps_log() {
            let keys = match &facts.keys {
                Some(keys) => keys.clone(),
                None if super::envelope::is_name(&record.user_id) => {
                    parts.vault.key(&record.user_id).await?
                }
                None => {
                    // No store could be asked for records of a user who cannot be, and no erasure would find what
                    // they sent.
                    record.user_id.clear();
                    facts.raw = None;
                    facts.asked_tool = None;
                    parts.vault.key(SHARED).await?
                }
            };
            // Those of an earlier answer are in its own record.
            let warnings = if reply.replayed {
                Vec::new()
            } else {
                reply.warnings.clone()
            };
            let blank = self.blank(kind, &keys, record, &facts);
            let links = if reply.replayed {
                facts.links
            } else {
                Vec::new()
            };
            Draft::call(CallDraft {
                id,
                links,
                error: reply.error.clone(),
                warnings,
                ..blank
            })
        } else {
            Draft::plain(id, record)
        };
        parts.store.append(draft, durability).await
    }
}

/// The first answer again: the same data, evidence and texts, with the rest of its window. The texts keep their first
/// language; only texts that are added now are in the caller's.
fn replay(stored: StoredReply, now: Timestamp, language: Language) -> ReplyEnvelope {
    let StoredReply { at, mut reply } = stored;
    reply.replayed = true;
    if let Some(ttl_seconds) = reply.ttl_seconds {
        let freshness = Freshness {
            made: at,
            ttl_seconds,
        };
        reply.ttl_seconds = Some(freshness.remaining_seconds(now));
        if freshness.is_stale(now) {
            let stale = remark("STALE_REPLAY", &Say::StaleReplay, language);
            reply.warnings.push(stale);
        }
    }
    reply
}
