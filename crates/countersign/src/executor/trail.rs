//! The record in the making: everything that is known of a call so far. It exists from arrival on, so that a refusal
//! leaves a record like any other call.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use countersign_contract::envelope::{App, Warning};
use countersign_contract::evidence::{Link, RecordedKey};
use countersign_contract::record::{BindSummary, PhaseTimes};
use countersign_contract::trace::Trace;
use countersign_contract::{
    CallRecord, Language, Message, ReplyEnvelope, RequestId, TraceContext, TraceState,
};
use countersign_evidence::seal::UserKey;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Executor;
use super::call::CallParts;
use super::reuse::REUSED;
use crate::authorize::Ruled;
use crate::catalog::Entry;
use crate::ledger::Scope;
use crate::observe::{Origin, Writer};
use crate::principal::Principal;
use crate::redact::Detector;
use crate::scribe::{Circumstances, recorded_request_id};
use crate::seat::CallSeat;
use crate::words::Say;

/// The record in the making, and the moments that its phases are taken from.
pub(super) struct Trail {
    // Boxed, like the call itself: both are several hundred bytes, and every step hands them on.
    pub(super) record: Box<CallRecord>,
    pub(super) trace: TraceContext,
    pub(super) trace_state: Option<TraceState>,
    pub(super) origin: Origin,
    /// The session as the record names it; `None` if the call names none, or until the user's keys are known.
    pub(super) session: Option<String>,
    pub(super) writer: Writer,
    /// The value of `again` with which a model can repeat the call; only if the executor made the key.
    pub(super) again_next: Option<u64>,
    /// Language of the texts that the caller reads; records hold codes and do not depend on it.
    pub(super) language: Language,
    /// Time of arrival, in the clock's monotonic time.
    pub(super) arrived: Duration,
    /// The call's seat, given up while the call waits for others.
    pub(super) seat: CallSeat,
    /// True if the limits have admitted the call.
    pub(super) is_admitted: bool,
    pub(super) facts: Facts,
}

/// Facts that the log keeps of a call besides its record.
pub(super) struct Facts {
    /// Time of arrival.
    pub(super) at: Timestamp,
    /// The principal whose credential proved the call.
    pub(super) principal: Arc<Principal>,
    /// The user's keys; `None` until the user is known.
    pub(super) keys: Option<Arc<UserKey>>,
    /// The tool's catalog entry; `None` until it is known.
    pub(super) entry: Option<Arc<Entry>>,
    pub(super) circumstances: Circumstances,
    /// True if the caller chose the request id.
    pub(super) is_id_chosen: bool,
    /// The tool name that was asked for, if there is no such tool.
    pub(super) asked_tool: Option<String>,
    /// The arguments as they were sent.
    pub(super) raw: Option<Arc<str>>,
    /// The harmless arguments, by the declaration.
    pub(super) public: Value,
    /// True if something in the arguments was replaced for their redacted form.
    pub(super) is_redacted: bool,
    /// Warnings about the envelope, for the reply.
    pub(super) warnings: Vec<Warning>,
    /// The arguments that the tool is given, as canonical JSON; `None` until they are bound.
    pub(super) given: Option<String>,
    pub(super) key: Option<RecordedKey>,
    /// Links to the records that let the call through: the approvals.
    pub(super) links: Vec<Link>,
    /// The recorded call that answered, where a recording does.
    pub(super) order: Option<NonZeroU32>,
    /// The conditional rules of the policy that hold for the call.
    pub(super) ruled: Vec<Ruled>,
    /// The standing grant that answered in the user's place.
    pub(super) grant_id: Option<Arc<str>>,
    /// The limit that refused the call, and the name of the budget if it was one.
    pub(super) refused_by: [Option<String>; 2],
}

/// Maximum length of an unknown tool name in the record; a known one is no longer.
const TOOL_BYTES_MAX: usize = 128;

impl Executor {
    /// Fills in the ids that the caller left out (A1) and opens the record.
    pub(super) fn arrive(&self, call: &mut CallParts) -> Trail {
        let parts = &self.parts;
        let sent = call.envelope.request_id.take();
        // A chosen id may say anything, so records and logs have a keyed digest in its place.
        let is_id_chosen = sent.is_some() && !call.is_id_ours;
        let request_id = sent.unwrap_or_else(|| parts.ids.request_id());
        let language = Language::of(call.envelope.locale.as_deref());
        let (trace, unusable) = self.trace_of(call);
        let unusable = unusable.into_iter().map(str::to_owned);
        let warnings = unusable.map(|member| {
            let message = Say::TraceUnusable { member };
            remark("TRACE_UNUSABLE", &message, language)
        });
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
            origin: call.origin.clone(),
            session: None,
            writer: writer_of(call),
            again_next: None,
            language,
            arrived: parts.clock.monotonic(),
            seat: std::mem::take(&mut call.seat),
            is_admitted: false,
            facts: Facts {
                at,
                principal: call.principal.clone(),
                keys: None,
                entry: None,
                circumstances: Circumstances::default(),
                is_id_chosen,
                asked_tool: None,
                raw: Some(call.raw.clone()),
                public: Value::Null,
                is_redacted: false,
                warnings: warnings.collect(),
                given: None,
                key: None,
                links: Vec::new(),
                order: None,
                ruled: Vec::new(),
                grant_id: None,
                refused_by: [None, None],
            },
        }
    }

    /// The span of this call, below the caller's, or the first of a new trace (A6); and a warning for each id that
    /// cannot be used.
    fn trace_of(&self, call: &CallParts) -> (TraceContext, Vec<&'static str>) {
        let ids = &self.parts.ids;
        if let Some(caller) = call.trace {
            return (caller.child(ids.span_id()), Vec::new());
        }
        let sent = call.envelope.trace.as_ref().map(Trace::read);
        let trace_id = sent.as_ref().and_then(|sent| sent.trace_id);
        let trace = TraceContext {
            trace_id: trace_id.unwrap_or_else(|| ids.trace_id()),
            span_id: ids.span_id(),
            parent_span_id: sent.as_ref().and_then(|sent| sent.span_id),
            sampled: true,
        };
        let observer = self.parts.observer.as_ref();
        let trace = match trace_id {
            Some(_) => trace,
            None => TraceContext {
                sampled: observer.is_some_and(|observer| observer.samples(trace.trace_id)),
                ..trace
            },
        };
        let unusable = sent.map(|sent| sent.unusable).unwrap_or_default();
        (trace, unusable)
    }
}

/// A warning that is not about an argument.
pub(super) fn remark(code: &str, message: &Say, language: Language) -> Warning {
    Warning::Remark {
        code: code.to_owned(),
        message: message.text(language),
    }
}

/// Who wrote the arguments, as far as the call says so.
fn writer_of(call: &CallParts) -> Writer {
    let client = call.envelope.client.as_ref();
    Writer {
        client: client.map(|client| platform(&client.app)),
        model: call.model.clone(),
    }
}

/// The platform of a client for observers, who are given no text of the caller's.
const fn platform(app: &App) -> &'static str {
    match app {
        App::Web => "web",
        App::Ios => "ios",
        App::Android => "android",
        App::Other(_) => "other",
    }
}

/// True if a trace state has nothing that looks personal. Vendors keep numbers of theirs in it; one that looks like a
/// person's is not passed on.
fn is_plain(state: &TraceState) -> bool {
    Detector::new().is_clean(state.as_str())
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

    /// Adds a warning for the caller.
    pub(super) fn warn(&mut self, code: &str, message: &Say) {
        self.facts
            .warnings
            .push(remark(code, message, self.language));
    }

    /// Notes the rules that hold for the call, each once: a narrowed call is decided again.
    pub(super) fn note_rules(&mut self, ruled: Vec<Ruled>) {
        for rule in ruled {
            if !self.facts.ruled.contains(&rule) {
                self.facts.ruled.push(rule);
            }
        }
    }

    /// Time for which the call has waited for the user.
    pub(super) fn awaited(&self) -> Duration {
        Duration::from_micros(self.record.phases.awaiting_approval_us)
    }

    /// Notes the key and its state, for the record.
    pub(super) fn keyed(&mut self, scope: &Scope, attempt: u32, state: &str) {
        self.facts.key = Some(RecordedKey {
            key: scope.key.to_string(),
            attempt,
            state: state.to_owned(),
        });
    }

    /// Updates the state of the call's key, for the record.
    pub(super) fn key_stands(&mut self, state: &str) {
        if let Some(key) = &mut self.facts.key {
            state.clone_into(&mut key.state);
        }
    }

    /// The request id as the record and the claim have it.
    pub(super) fn recorded_id(&self, keys: &UserKey) -> RequestId {
        recorded_request_id(&self.record.request_id, self.facts.is_id_chosen, keys)
    }

    /// The request id as logs and telemetry have it: that of the record. `None` while the caller's own cannot be
    /// digested yet.
    pub(super) fn log_id(&self) -> Option<RequestId> {
        let id = &self.record.request_id;
        match &self.facts.keys {
            Some(keys) => Some(self.recorded_id(keys)),
            None => (!self.facts.is_id_chosen).then(|| id.clone()),
        }
    }

    /// Notes the user's keys, with which the caller's own request id gets its digest for the log.
    pub(super) fn keyed_by(&mut self, keys: &Arc<UserKey>) {
        self.facts.keys = Some(keys.clone());
        self.in_session(keys);
        if self.facts.is_id_chosen
            && let Some(id) = self.log_id()
        {
            tracing::Span::current().record("request_id", tracing::field::display(id));
        }
    }

    /// Notes the session as the record names it.
    pub(super) fn in_session(&mut self, keys: &UserKey) {
        let name = self.facts.circumstances.session_id.as_deref();
        self.session = name.map(|name| keys.session(name));
    }

    /// Adds the warnings about this envelope to an earlier answer. That a repeat has the request id of the first call
    /// is as it should be.
    pub(super) fn warn_again(&self, reply: &mut ReplyEnvelope) {
        for warning in &self.facts.warnings {
            let is_of_repeat = matches!(warning, Warning::Remark { code, .. } if code == REUSED);
            if !is_of_repeat && !reply.warnings.contains(warning) {
                reply.warnings.push(warning.clone());
            }
        }
    }

    /// True if the tool was started.
    pub(super) fn has_run(&self) -> bool {
        self.facts.circumstances.ran_at.is_some()
    }

    /// The span that everything in this call is logged under: names, ids and codes, never values. It has the highest
    /// level, so that a warning has its ids even if nothing less is logged.
    pub(super) fn span(&self) -> tracing::Span {
        tracing::error_span!(
            "tool_call",
            request_id = self.log_id().as_ref().map(tracing::field::display),
            trace_id = format_args!("{:032x}", self.trace.trace_id),
            span_id = format_args!("{:016x}", self.trace.span_id),
        )
    }
}

/// A duration in microseconds, as the record holds it.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
