//! What is known of a call so far: the record in the making. It exists from arrival on, so that a
//! refusal leaves a record like any other call.

use std::sync::Arc;
use std::time::Duration;

use countersign_contract::evidence::{Link, RecordedKey};
use countersign_contract::record::{BindSummary, PhaseTimes};
use countersign_contract::trace::Trace;
use countersign_contract::{CallRecord, TraceContext, TraceState};
use countersign_evidence::seal::UserKey;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Executor;
use super::call::CallParts;
use crate::catalog::Entry;
use crate::ledger::Scope;
use crate::observe::Origin;
use crate::principal::Principal;
use crate::redact::Detector;
use crate::scribe::Circumstances;

/// The record in the making, and the moments that its phases are taken from.
pub(super) struct Trail {
    // Boxed, like the call itself: both are several hundred bytes, and every step hands them on.
    pub(super) record: Box<CallRecord>,
    pub(super) trace: TraceContext,
    pub(super) trace_state: Option<TraceState>,
    pub(super) origin: Origin,
    /// When the call arrived, in the clock's monotonic time.
    pub(super) arrived: Duration,
    pub(super) facts: Facts,
}

/// What the log keeps of a call besides its record.
pub(super) struct Facts {
    /// When the call arrived.
    pub(super) at: Timestamp,
    /// Whose credential proved the call.
    pub(super) principal: Arc<Principal>,
    /// The user's; none until the user is known.
    pub(super) keys: Option<Arc<UserKey>>,
    /// The tool's; none until it is known.
    pub(super) entry: Option<Arc<Entry>>,
    pub(super) circumstances: Circumstances,
    /// What the tool is given, as canonical JSON; none until it is bound.
    pub(super) given: Option<String>,
    pub(super) key: Option<RecordedKey>,
    /// The records that let the call through: who has confirmed it.
    pub(super) links: Vec<Link>,
}

/// The longest excerpt of an unknown tool name that is kept; a known one is no longer.
const TOOL_BYTES_MAX: usize = 128;

impl Executor {
    /// Fills in the ids that the caller left out (A1) and opens the record.
    pub(super) fn arrive(&self, call: &mut CallParts) -> Trail {
        let parts = &self.parts;
        // An id stands in the log for ever, and in every line about the call: one that holds personal data
        // is not taken over, and the reply names the other one.
        let sent = call.envelope.request_id.take();
        let sent = sent.filter(|id| Detector::new().is_clean(id.as_str()));
        let request_id = sent.unwrap_or_else(|| parts.ids.request_id());
        let trace = self.trace_of(call);
        let at = parts.clock.now();
        let tool = call
            .tool
            .get(..call.tool.floor_char_boundary(TOOL_BYTES_MAX));
        let record = Box::new(CallRecord {
            request_id,
            tool: tool.unwrap_or_default().to_owned(),
            tool_version: None,
            // The proved ones until the envelope's have been checked against them.
            actor: call.principal.actor.clone(),
            user_id: call.principal.user_id.clone(),
            session_id: None,
            policy_revision: None,
            trace: Some(trace.to_trace()),
            snapshot_id: None,
            at: at.to_string(),
            code: None,
            dry_run: call.envelope.dry_run,
            replayed: false,
            arguments_digest: None,
            arguments_redacted: Value::Null,
            data_digest: None,
            binding: BindSummary::default(),
            phases: PhaseTimes::default(),
        });
        Trail {
            record,
            trace,
            trace_state: call.trace.and(call.trace_state.take()).filter(is_plain),
            origin: std::mem::take(&mut call.origin),
            arrived: parts.clock.monotonic(),
            facts: Facts {
                at,
                principal: call.principal.clone(),
                keys: None,
                entry: None,
                circumstances: Circumstances::default(),
                given: None,
                key: None,
                links: Vec::new(),
            },
        }
    }

    /// The span of this call: below the caller's, or the first of a new trace (A6).
    fn trace_of(&self, call: &CallParts) -> TraceContext {
        let ids = &self.parts.ids;
        let sent = call.envelope.trace.as_ref();
        let caller = call.trace.or_else(|| TraceContext::from_trace(sent?));
        caller.map_or_else(
            || {
                let trace_id = ids.trace_id();
                let observer = self.parts.observer.as_ref();
                TraceContext {
                    trace_id,
                    span_id: ids.span_id(),
                    parent_span_id: sent.and_then(span_of),
                    sampled: observer.is_some_and(|observer| observer.samples(trace_id)),
                }
            },
            |caller| caller.child(ids.span_id()),
        )
    }
}

/// Vendors keep numbers of theirs in it. One that looks like a person's goes no further.
fn is_plain(state: &TraceState) -> bool {
    Detector::new().is_clean(state.as_str())
}

/// The standard's own form of a trace has no trace id; its span still is the parent of ours.
fn span_of(trace: &Trace) -> Option<u64> {
    let with_id = Trace {
        trace_id: Some(format!("{:032x}", 1)),
        ..trace.clone()
    };
    TraceContext::from_trace(&with_id).map(|caller| caller.span_id)
}

impl Trail {
    /// The time of day at a later moment. It is counted from arrival, so a clock that is set while a
    /// call runs does not tear its times apart.
    pub(super) fn time_at(&self, moment: Duration) -> Timestamp {
        SignedDuration::try_from(moment.saturating_sub(self.arrived))
            .ok()
            .and_then(|elapsed| self.facts.at.checked_add(elapsed).ok())
            .unwrap_or(self.facts.at)
    }

    /// For how long the call has waited for the user.
    pub(super) fn awaited(&self) -> Duration {
        Duration::from_micros(self.record.phases.awaiting_approval_us)
    }

    /// How the call's key stands, for the record.
    pub(super) fn keyed(&mut self, scope: &Scope, attempt: u32, state: &str) {
        self.facts.key = Some(RecordedKey {
            key: scope.key.to_string(),
            attempt,
            state: state.to_owned(),
        });
    }

    /// How the call's key stands after all.
    pub(super) fn key_stands(&mut self, state: &str) {
        if let Some(key) = &mut self.facts.key {
            state.clone_into(&mut key.state);
        }
    }

    /// Whether the tool was started.
    pub(super) fn has_run(&self) -> bool {
        self.facts.circumstances.ran_at.is_some()
    }

    /// The span that everything in this call is logged under: names, ids and codes, never values. Of the
    /// highest level, so that a warning has its ids where nothing less is logged.
    pub(super) fn span(&self) -> tracing::Span {
        tracing::error_span!(
            "tool_call",
            request_id = %self.record.request_id,
            trace_id = format_args!("{:032x}", self.trace.trace_id),
            span_id = format_args!("{:016x}", self.trace.span_id),
        )
    }
}

/// A phase as the record holds it.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
