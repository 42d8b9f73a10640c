//! Reconciliation: a tool looks up the result of a call whose owner was lost.

use std::time::Duration;

use countersign_args::Arguments;
use countersign_contract::envelope::Warning;
use countersign_contract::evidence::RecordedReply;
use countersign_contract::{
    Actor, Digest, Evidence, EvidenceRecord, RecordKind, ReplyEnvelope, Retention, SnapshotId,
    Source,
};
use countersign_evidence::seal::{self, UserKey};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::intent::name_sources;
use super::print::StoredReply;
use super::{Executor, guarded};
use crate::catalog::Entry;
use crate::context::CallContext;
use crate::ledger::{
    Claim, Commit, CommitAnswer, Error, KeyChange, Outcome, SpendChange, SpendEnd,
};
use crate::payload::{self, Plain};
use crate::scribe::{Act, Draft};
use crate::tool::{Reconciled, Reply};

/// Result of the tool's look-up.
pub(super) enum Reconciliation {
    /// The effect happened; this is its reply.
    Happened(Reply),
    /// The effect did not happen, and the key is free again, by this record; `None` if another call was faster.
    DidNot(Option<SnapshotId>),
    /// The effect was not found, but a request may still be on its way.
    TooEarly { retry_after_ms: u64 },
    /// The tool could not tell.
    Unknown,
}

/// A call to look up.
pub(super) struct LookUp<'l> {
    pub(super) entry: &'l Entry,
    pub(super) ctx: &'l CallContext,
    pub(super) arguments: &'l Arguments,
    pub(super) keys: &'l UserKey,
    pub(super) claim: &'l Claim,
    /// The operator who asked for it; `None` if a repeat of the call did, or the executor itself.
    pub(super) by: Option<&'l Actor>,
}

/// The act of a settled claim.
fn act_of(claim: &Claim, happened: bool) -> Value {
    json!({
        "event": "reconciled",
        "happened": happened,
        "tool": claim.scope.tool.as_str(),
        "key": claim.scope.key.to_string(),
        "attempt": claim.attempt,
    })
}

impl Executor {
    /// Looks up a lost call. A "not found" counts only after the grace: the first request may still be on the wire.
    /// Guarded like a run; its notes in the context count only if it has found the answer.
    pub(super) async fn reconcile(
        &self,
        look: &LookUp<'_>,
        age: Duration,
        grace: Duration,
    ) -> Result<Reconciliation, Error> {
        let LookUp {
            entry,
            ctx,
            arguments,
            ..
        } = look;
        let limit = Duration::from_millis(entry.spec().behaviour.deadline_ms);
        let start = || entry.tool().reconcile(ctx, (*arguments).clone());
        let found = guarded(start, limit, &ctx.cancellation).await;
        if !matches!(found, Ok(Reconciled::Happened(_))) {
            ctx.state().reset();
            ctx.take_notes();
        }
        match found {
            Err(error) => {
                tracing::warn!(
                    code = error.code().as_str(),
                    "the tool could not say whether an earlier call with this key happened; the call stays in doubt"
                );
                Ok(Reconciliation::Unknown)
            }
            Ok(Reconciled::Unknown) => Ok(Reconciliation::Unknown),
            Ok(Reconciled::Happened(reply)) => Ok(Reconciliation::Happened(reply)),
            Ok(Reconciled::DidNotHappen) if age < grace => {
                let left = u64::try_from(grace.saturating_sub(age).as_millis()).unwrap_or(u64::MAX);
                Ok(Reconciliation::TooEarly {
                    retry_after_ms: left.max(1),
                })
            }
            Ok(Reconciled::DidNotHappen) => {
                let settled = self.settle_lost(look, None).await?;
                Ok(Reconciliation::DidNot(settled))
            }
        }
    }

    /// Settles the claim of a lost call as the look-up found it, with a record that says so: with the answer for repeats,
    /// or as free if there was no effect. `None` if another call or an operator was faster: then nothing is changed.
    pub(super) async fn settle_lost(
        &self,
        look: &LookUp<'_>,
        found: Option<Found>,
    ) -> Result<Option<SnapshotId>, Error> {
        let parts = &self.parts;
        let LookUp {
            entry, keys, claim, ..
        } = look;
        let behaviour = &entry.spec().behaviour;
        let at = parts.clock.now();
        let mut about = act_of(claim, found.is_some());
        name_sources(&mut about, &self.fixed_sources(entry, at));
        let act = Act {
            kind: RecordKind::Resolution,
            at,
            user_id: claim.scope.user_id.clone(),
            actor: look.by.cloned(),
            about,
            retention: Retention::Standard,
        };
        let id = parts.ids.snapshot_id();
        let mut record = act.record(id.clone(), Some(keys), None);
        let (outcome, end, payload) = match found {
            None => (Outcome::Released, SpendEnd::Released, None),
            Some(found) => {
                let payload = self.seal_found(&found, look, &mut record);
                let keep = u64::from(found.reply.ttl_seconds.unwrap_or_default())
                    + behaviour.idempotency.retention_seconds;
                let stored = StoredReply {
                    at,
                    reply: self.reply_of_found(found, entry, &id, at),
                };
                let outcome = Outcome::Succeeded {
                    reply: stored.seal(keys, &claim.scope, &*parts.ids),
                    keep: Duration::from_secs(keep),
                };
                (outcome, SpendEnd::Spent(Vec::new()), payload)
            }
        };
        let reserved = parts.store.reserved(claim).await?;
        let mut kept = act.entry_with(&record, Some(keys));
        kept.keep_payload = payload
            .as_ref()
            .and_then(|_| parts.retention.of(Retention::Standard));
        kept.payload = payload;
        let commit = Commit {
            key: Some(KeyChange::Settle {
                claim: (*claim).clone(),
                outcome,
            }),
            reads: Vec::new(),
            shapes: Vec::new(),
            writes: Vec::new(),
            spend: reserved.map(|id| SpendChange { id, end }),
            record: Draft::from(kept),
        };
        match parts.store.commit(commit).await? {
            CommitAnswer::Committed => Ok(Some(id)),
            CommitAnswer::Fenced
            | CommitAnswer::Held(_)
            | CommitAnswer::Moved { .. }
            | CommitAnswer::Lapsed => Ok(None),
            // The claim went with its user.
            CommitAnswer::Erased => {
                parts.vault.forget(&claim.scope.user_id);
                Ok(None)
            }
        }
    }

    /// Writes the answer that a look-up has found into its record, and seals it; `None` if it has no canonical form.
    fn seal_found(
        &self,
        found: &Found,
        look: &LookUp<'_>,
        record: &mut EvidenceRecord,
    ) -> Option<Vec<u8>> {
        let text = found.text.as_deref()?;
        let entropy = self.entropy();
        let salt = seal::salt_of(&entropy.salt, seal::DOMAIN_DATA);
        record.reply = Some(RecordedReply {
            code: None,
            commitment: Some(seal::commit(seal::DOMAIN_DATA, &salt, text.as_bytes())),
            ttl_seconds: found.reply.ttl_seconds,
            valid_until: None,
        });
        let plain = Plain {
            user_id: &look.claim.scope.user_id,
            ..Plain::default()
        };
        let exact = [("data", text)];
        Some(payload::seal(&plain, &entropy, look.keys, record, &exact))
    }

    /// The answer that repeats of a lost call get.
    fn reply_of_found(
        &self,
        found: Found,
        entry: &Entry,
        id: &SnapshotId,
        at: Timestamp,
    ) -> ReplyEnvelope {
        let Found {
            reply,
            text,
            warnings,
        } = found;
        let own = text.map(|text| Source {
            kind: "tool".to_owned(),
            name: entry.name().to_string(),
            hash: Digest::of_bytes(text.as_bytes()).to_string(),
            ts: at.to_string(),
        });
        let fixed = self.fixed_sources(entry, at);
        let mut envelope = ReplyEnvelope::success(self.parts.ids.request_id(), reply.data);
        envelope.ttl_seconds = reply.ttl_seconds;
        envelope.warnings = warnings;
        envelope.evidence = Some(Evidence {
            snapshot_id: id.clone(),
            sources: own.into_iter().chain(fixed).chain(reply.sources).collect(),
            checkpoint: self.parts.newest.get(),
        });
        envelope
    }
}

/// The answer that a look-up has found.
pub(super) struct Found {
    pub(super) reply: Reply,
    /// The answer as canonical JSON; `None` if it has no canonical form.
    pub(super) text: Option<String>,
    pub(super) warnings: Vec<Warning>,
}
