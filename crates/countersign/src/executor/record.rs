//! Step 8: the reply and its evidence are made, and the record is completed. From here on neither
//! changes.

use std::error::Error;
use std::time::Duration;

use countersign_contract::tool::EvidenceRule;
use countersign_contract::{
    Digest, Effect, ErrorBody, ErrorCode, Evidence, FaultSource, ReplyEnvelope, Source, canonical,
};
use jiff::Timestamp;

use super::Executor;
use super::run::Done;
use super::trail::Trail;
use crate::catalog::Entry;
use crate::store::Claim;
use crate::tool::{Reply, ToolError};

/// A call whose reply and record are complete and only wait to be committed.
pub(super) struct Recorded {
    pub(super) reply: Box<ReplyEnvelope>,
    pub(super) at: Timestamp,
    pub(super) claim: Option<Claim>,
    /// Whether the tool may have changed something although it did not say so.
    pub(super) in_doubt: bool,
    /// Whether the reply waits for the record.
    pub(super) evidence: EvidenceRule,
    /// In the clock's monotonic time.
    pub(super) ended: Duration,
}

impl Executor {
    pub(super) fn record(&self, done: Done, trail: &mut Trail) -> Recorded {
        let at = trail.time_at(done.ended);
        let behaviour = &done.entry.spec().behaviour;
        let answer = done
            .answer
            .and_then(|reply| digested(reply, &done.entry, behaviour.evidence));
        let request_id = trail.record.request_id.clone();
        let (mut reply, sources, in_doubt) = match answer {
            Ok((answer, digest)) => {
                let mut reply = Box::new(ReplyEnvelope::success(request_id, answer.data));
                reply.ttl_seconds = answer.ttl_seconds.or(behaviour.ttl_seconds);
                trail.record.data_digest = digest.map(|digest| digest.to_string());
                (reply, answer.sources, false)
            }
            Err(error) => {
                log_source(&error);
                trail.record.code = Some(error.code());
                let in_doubt = behaviour.effect == Effect::External && error.leaves_doubt();
                let reply = Box::new(ReplyEnvelope::failure(request_id, error.into_body()));
                (reply, Vec::new(), in_doubt)
            }
        };
        reply.warnings = done.warnings;
        reply.dry_run = trail.record.dry_run;
        reply.evidence = self.evidence(&done.entry, sources, at, trail);
        Recorded {
            reply,
            at,
            claim: done.claim,
            in_doubt,
            evidence: behaviour.evidence,
            ended: done.ended,
        }
    }

    /// Where the proof is found: always where the tool requires it, elsewhere where the tool named
    /// something that its answer rests on (A9, A14).
    fn evidence(
        &self,
        entry: &Entry,
        sources: Vec<Source>,
        at: Timestamp,
        trail: &mut Trail,
    ) -> Option<Evidence> {
        let required = entry.spec().behaviour.evidence == EvidenceRule::Required;
        if !required && sources.is_empty() {
            return None;
        }
        let own = trail.record.data_digest.as_ref().map(|hash| Source {
            kind: "tool".to_owned(),
            name: entry.name().to_string(),
            hash: hash.clone(),
            ts: at.to_string(),
        });
        let snapshot_id = self.parts.ids.snapshot_id();
        trail.record.snapshot_id = Some(snapshot_id.clone());
        Some(Evidence {
            snapshot_id,
            sources: own.into_iter().chain(sources).collect(),
        })
    }
}

/// The largest answer, as canonical JSON.
const DATA_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The digest of what the tool answered. Where evidence is required, an answer that has none is a
/// failure of the tool; elsewhere the record goes without.
fn digested(
    reply: Reply,
    entry: &Entry,
    rule: EvidenceRule,
) -> Result<(Reply, Option<Digest>), ToolError> {
    let (bytes, digest) = match (canonical::to_vec(&reply.data), rule) {
        (Ok(text), _) => (text.len(), Some(Digest::of_bytes(&text))),
        // Nobody could read it back.
        (Err(error @ canonical::Error::TooDeep { .. }), _) => {
            let message = format!("the answer of {} nests too deep", entry.name());
            let hint = format!(
                "the tool has to answer with no more than {} levels",
                canonical::DEPTH_MAX
            );
            return Err(unusable(message, hint).with_source(error));
        }
        (Err(_), EvidenceRule::Recorded) => (reply.data.to_string().len(), None),
        (Err(error), EvidenceRule::Required) => {
            let message = format!("the answer of {} has no canonical form", entry.name());
            let hint = "the tool has to write large integers as texts";
            return Err(unusable(message, hint).with_source(error));
        }
    };
    if bytes > DATA_BYTES_MAX {
        let message = format!("the answer of {} has {bytes} bytes", entry.name());
        let hint = format!("the tool has to answer with no more than {DATA_BYTES_MAX} bytes");
        return Err(unusable(message, hint));
    }
    Ok((reply, digest))
}

/// The same call would get the same answer, so sending it again does not help.
fn unusable(message: String, hint: impl Into<String>) -> ToolError {
    let mut body = ErrorBody::new(ErrorCode::UpstreamError, message)
        .source(FaultSource::Tool)
        .hint(hint);
    body.details.retryable = false;
    ToolError::from(body)
}

/// Logged once, here, with the call's span around it; the caller never sees it.
fn log_source(error: &ToolError) {
    if let Some(source) = error.source() {
        tracing::warn!(
            code = error.code().as_str(),
            error = source,
            "the tool failed"
        );
    }
}
