//! Step 8: the reply and its evidence are made, and the record is completed. From here on neither
//! changes.

use std::error::Error;
use std::time::Duration;

use countersign_contract::tool::{EvidenceRule, Recovery};
use countersign_contract::{
    Behaviour, Digest, Effect, ErrorBody, ErrorCode, Evidence, FaultSource, ReplyEnvelope,
    SnapshotId, Source, canonical,
};
use jiff::Timestamp;

use super::Executor;
use super::claim::Claimed;
use super::run::Done;
use super::trail::Trail;
use crate::catalog::Entry;
use crate::context::Notes;
use crate::ledger::Durability;
use crate::observe::CAUSE_TARGET;
use crate::redact::error_text;
use crate::tool::{DryRun, Reply, ToolError};
use crate::words::Say;

/// A call whose reply and record are complete and only wait to be committed.
pub(super) struct Recorded {
    pub(super) id: SnapshotId,
    pub(super) reply: Box<ReplyEnvelope>,
    pub(super) at: Timestamp,
    pub(super) verdict: Verdict,
    /// The tool's answer as canonical JSON; `None` if it has no canonical form.
    pub(super) data: Option<String>,
    pub(super) notes: Notes,
    /// The durability that the reply waits for.
    pub(super) durability: Durability,
    /// True if the same call may be sent again if the record cannot be stored: false if it has changed something
    /// elsewhere and has no key.
    pub(super) is_repeatable: bool,
    /// In the clock's monotonic time.
    pub(super) ended: Duration,
}

/// Outcome of a call, for its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The call succeeded.
    Succeeded,
    /// The call failed for good.
    Failed,
    /// The call failed and changed nothing; without a key, also if running it again does no harm.
    Released,
    /// The call failed and may have changed something, and running the same call again does no harm.
    Abandoned,
    /// The call failed and may have changed something.
    InDoubt,
}

impl Verdict {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Released => "released",
            Self::Abandoned => "abandoned",
            Self::InDoubt => "in_doubt",
        }
    }
}

impl Executor {
    pub(super) fn record(&self, done: Done, claimed: &Claimed, trail: &mut Trail) -> Recorded {
        let at = trail.time_at(done.ended);
        let entry = &claimed.entry;
        let behaviour = &entry.spec().behaviour;
        let answer = done
            .answer
            .and_then(|reply| digested(reply, entry, behaviour.evidence));
        let request_id = trail.record.request_id.clone();
        let (mut reply, sources, data, verdict) = match answer {
            Ok((answer, data)) => {
                let mut reply = Box::new(ReplyEnvelope::success(request_id, answer.data));
                reply.ttl_seconds = answer.ttl_seconds.or(behaviour.ttl_seconds);
                let digest = data.as_ref().map(|text| Digest::of_bytes(text.as_bytes()));
                trail.record.data_digest = digest.map(|digest| digest.to_string());
                trail.record.code = None;
                (reply, answer.sources, data, Verdict::Succeeded)
            }
            Err(error) => {
                log_source(&error);
                trail.record.code = Some(error.code());
                // Of an earlier run, where there was one.
                trail.record.data_digest = None;
                let verdict = verdict_of(&error, behaviour, claimed.has_callers_key());
                let mut body = error.into_body();
                if verdict == Verdict::InDoubt {
                    leave_in_doubt(&mut body, claimed);
                }
                let body = body.in_language(trail.language);
                let reply = Box::new(ReplyEnvelope::failure(request_id, body));
                (reply, Vec::new(), None, verdict)
            }
        };
        reply.warnings.clone_from(&trail.facts.warnings);
        reply.warnings.extend(done.warnings);
        reply.dry_run = trail.record.dry_run;
        let id = self.parts.ids.snapshot_id();
        let mut notes = done.notes;
        let fixed = self.fixed_sources(entry, at);
        let sources: Vec<Source> = fixed.into_iter().chain(sources).collect();
        notes.sources.clone_from(&sources);
        reply.evidence = self.evidence(entry, &id, sources, at, trail);
        Recorded {
            id,
            reply,
            at,
            verdict,
            data,
            notes,
            durability: durability_of(behaviour, verdict, trail),
            is_repeatable: may_repeat(claimed, verdict),
            ended: done.ended,
        }
    }

    /// The sources that every record of a tool names. None of them counts where a recording answers in the tool's place.
    pub(super) fn fixed_sources(&self, entry: &Entry, at: Timestamp) -> Vec<Source> {
        match &self.parts.player {
            Some(_) => Vec::new(),
            None => entry.tool().fixed_sources(at),
        }
    }

    /// Evidence for the reply: the place of the proof. Given if there is a log, and always if the tool requires it or
    /// names a source of its answer (A9, A14).
    fn evidence(
        &self,
        entry: &Entry,
        id: &SnapshotId,
        sources: Vec<Source>,
        at: Timestamp,
        trail: &mut Trail,
    ) -> Option<Evidence> {
        let behaviour = &entry.spec().behaviour;
        // The digest of what would be is the point of a dry run that simulates.
        let is_simulated = trail.record.dry_run
            && behaviour.effect.changes_something()
            && entry.tool().dry_run() == DryRun::Simulate;
        let is_wanted = behaviour.evidence == EvidenceRule::Required
            || !sources.is_empty()
            || is_simulated
            || self.parts.store.keeps_log();
        if !is_wanted {
            return None;
        }
        let own = trail.record.data_digest.as_ref().map(|hash| Source {
            // What a recording says is not what the tool says now.
            kind: match &self.parts.player {
                Some(_) => "recording".to_owned(),
                None => "tool".to_owned(),
            },
            name: entry.name().to_string(),
            hash: hash.clone(),
            ts: at.to_string(),
        });
        trail.record.snapshot_id = Some(id.clone());
        Some(Evidence {
            snapshot_id: id.clone(),
            sources: own.into_iter().chain(sources).collect(),
            checkpoint: self.parts.newest.get(),
        })
    }
}

/// Maps a failure to the outcome for the key of its call.
fn verdict_of(error: &ToolError, behaviour: &Behaviour, has_key: bool) -> Verdict {
    if behaviour.effect == Effect::External && error.leaves_doubt() {
        return match (is_harmless_again(behaviour.recovery, has_key), has_key) {
            (true, true) => Verdict::Abandoned,
            (true, false) => Verdict::Released,
            (false, _) => Verdict::InDoubt,
        };
    }
    if behaviour.idempotency.final_codes.contains(&error.code()) {
        return Verdict::Failed;
    }
    Verdict::Released
}

/// True if running an external effect again does no harm, or gets the first result from downstream.
pub(super) fn is_harmless_again(recovery: Recovery, has_key: bool) -> bool {
    match recovery {
        Recovery::Retry => true,
        Recovery::DownstreamKey { .. } => has_key,
        Recovery::Operator | Recovery::Reconcile { .. } => false,
    }
}

/// True if a caller who gets no final answer may send the call again.
pub(super) fn may_repeat(claimed: &Claimed, verdict: Verdict) -> bool {
    let behaviour = &claimed.entry.spec().behaviour;
    let is_elsewhere = match behaviour.effect {
        Effect::Read | Effect::Write => false,
        Effect::External => !claimed.ctx.is_dry_run(),
    };
    let has_key = claimed.has_callers_key();
    !is_elsewhere
        || has_key
        || verdict == Verdict::Released
        || is_harmless_again(behaviour.recovery, has_key)
}

/// Marks an error of a call that may have happened. Under a key that only an operator settles, it would
/// be answered with `CONFLICT`.
fn leave_in_doubt(body: &mut ErrorBody, claimed: &Claimed) {
    if !may_repeat(claimed, Verdict::InDoubt) {
        forbid_repeat(body);
    } else if claimed.entry.spec().behaviour.recovery == Recovery::Operator {
        body.details.retryable = false;
        body.details.hint = Some(Say::LookUpFirst.into());
    }
}

/// Marks an error so that the caller does not simply send the same call again.
pub(super) fn forbid_repeat(body: &mut ErrorBody) {
    body.details.retryable = false;
    body.details.hint = Some(Say::LookBeforeAgain.into());
}

/// Durability of a call's record: the reply waits for it if the tool asks for that, and if something was changed.
fn durability_of(behaviour: &Behaviour, verdict: Verdict, trail: &Trail) -> Durability {
    let is_changed = behaviour.effect.changes_something()
        && !trail.record.dry_run
        && !matches!(verdict, Verdict::Released | Verdict::Abandoned);
    match behaviour.evidence {
        EvidenceRule::Required => Durability::Committed,
        EvidenceRule::Recorded if is_changed => Durability::Committed,
        EvidenceRule::Recorded => Durability::Batched,
    }
}

/// Maximum size of an answer as canonical JSON, in bytes.
const DATA_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The canonical form of the tool's answer. If evidence is required, an answer without one is a failure of the tool;
/// otherwise the record has no digest of it.
pub(super) fn digested(
    reply: Reply,
    entry: &Entry,
    rule: EvidenceRule,
) -> Result<(Reply, Option<String>), ToolError> {
    let tool = || entry.name().to_string();
    let (bytes, text) = match (canonical::to_string(&reply.data), rule) {
        (Ok(text), _) => (text.len(), Some(text)),
        // Nobody could read it back.
        (Err(error @ canonical::Error::TooDeep { .. }), _) => {
            let most = canonical::DEPTH_MAX.to_string();
            let fault = unusable(
                Say::AnswerTooDeep { tool: tool() },
                Say::FewerLevels { most },
            );
            return Err(fault.with_source(error));
        }
        (Err(_), EvidenceRule::Recorded) => (reply.data.to_string().len(), None),
        (Err(error), EvidenceRule::Required) => {
            let message = Say::AnswerNotCanonical { tool: tool() };
            return Err(unusable(message, Say::IntegersAsStrings).with_source(error));
        }
    };
    if bytes > DATA_BYTES_MAX {
        let bytes = bytes.to_string();
        let most = DATA_BYTES_MAX.to_string();
        let message = Say::AnswerTooLarge {
            tool: tool(),
            bytes,
        };
        return Err(unusable(message, Say::FewerBytes { most }));
    }
    Ok((reply, text))
}

/// An error that is not worth a retry: the same call would get the same answer.
fn unusable(message: Say, hint: Say) -> ToolError {
    let mut body = ErrorBody::new(ErrorCode::UpstreamError, message)
        .source(FaultSource::Tool)
        .hint(hint);
    body.details.retryable = false;
    ToolError::from(body)
}

/// Logs the cause of a failure once, within the call's span; the caller never sees it. A cause may quote the call, and
/// what the tool looked up for it: so its text has a target of its own, which a server leaves out of its log.
pub(super) fn log_source(error: &ToolError) {
    if let Some(source) = error.source() {
        let code = error.code().as_str();
        tracing::warn!(code, "the tool failed");
        tracing::debug!(target: CAUSE_TARGET, error = error_text(source), "cause of the tool's failure");
    }
}
