//! A call as it arrives: the raw text of its arguments, the envelope, and the proved identity of its caller.

use std::sync::Arc;
use std::time::Duration;

use countersign_contract::{Language, RequestEnvelope, RequestId, TraceContext, TraceState};

use crate::cancel::Cancellation;
use crate::dialect::{ProviderCall, Unreadable};
use crate::extensions::Extensions;
use crate::observe::{Origin, Surface};
use crate::principal::Principal;
use crate::seat::{CallSeat, Seat};

/// One call, before anything of it was checked.
///
/// # Example
///
/// ```
/// use countersign::{Principal, ToolCall};
/// use countersign::contract::RequestEnvelope;
///
/// let call = ToolCall::new("memory.search", r#"{"query": "milk"}"#, Principal::user("u_1"))
///     .envelope(RequestEnvelope { session_id: Some("s_1".into()), ..Default::default() });
/// ```
#[derive(Debug)]
pub struct ToolCall {
    // Boxed: it is several hundred bytes, and every step hands it on.
    pub(super) parts: Box<CallParts>,
}

#[derive(Debug)]
pub(super) struct CallParts {
    pub(super) tool: String,
    pub(super) raw: Arc<str>,
    pub(super) principal: Arc<Principal>,
    pub(super) envelope: RequestEnvelope,
    /// True if the embedding program made the request id.
    pub(super) is_id_ours: bool,
    pub(super) trace: Option<TraceContext>,
    pub(super) trace_state: Option<TraceState>,
    pub(super) origin: Origin,
    pub(super) model: Option<Arc<str>>,
    pub(super) client: Option<Arc<str>>,
    pub(super) extensions: Extensions,
    pub(super) cancellation: Cancellation,
    pub(super) timeout: Option<Duration>,
    pub(super) wait_for_approval: Duration,
    pub(super) patience: Cancellation,
    pub(super) seat: CallSeat,
    /// Reason why the arguments must not be bound, whatever they look like.
    pub(super) unreadable: Option<Unreadable>,
}

impl ToolCall {
    /// A call with an empty envelope: everything in it is filled in.
    pub fn new(
        tool: impl Into<String>,
        raw_arguments: impl Into<Arc<str>>,
        principal: impl Into<Arc<Principal>>,
    ) -> Self {
        Self {
            parts: Box::new(CallParts {
                tool: tool.into(),
                raw: raw_arguments.into(),
                principal: principal.into(),
                envelope: RequestEnvelope::default(),
                is_id_ours: false,
                trace: None,
                trace_state: None,
                origin: Origin::default(),
                model: None,
                client: None,
                extensions: Extensions::new(),
                cancellation: Cancellation::never(),
                timeout: None,
                wait_for_approval: Duration::ZERO,
                patience: Cancellation::never(),
                seat: CallSeat::default(),
                unreadable: None,
            }),
        }
    }

    /// A model's call. One that was cut off, or has two readings, is looked up, authorized and recorded like any other, but refused with its
    /// [`refusal`](ProviderCall::refusal) before its arguments would be bound.
    pub fn from_provider(call: &ProviderCall, principal: impl Into<Arc<Principal>>) -> Self {
        let mut made = Self::new(&*call.name, &*call.arguments.text, principal);
        made.parts.unreadable = call.unreadable();
        made.parts.origin = Origin {
            surface: Surface::Provider,
            call_id: call.id.as_deref().map(Arc::from),
        };
        made
    }

    /// Sets the envelope: what the caller states about the call.
    pub fn envelope(mut self, envelope: RequestEnvelope) -> Self {
        self.parts.envelope = envelope;
        self
    }

    /// The language of the replies: that of the envelope's locale.
    pub fn language(&self) -> Language {
        Language::of(self.parts.envelope.locale.as_deref())
    }

    /// The caller's request id, if there is one.
    pub fn request_id(&self) -> Option<&RequestId> {
        self.parts.envelope.request_id.as_ref()
    }

    /// Names the call with an id that the embedding program made. Records and logs show it as it is, unlike an id
    /// that the caller chose.
    pub fn identified(mut self, request_id: RequestId) -> Self {
        self.parts.envelope.request_id = Some(request_id);
        self.parts.is_id_ours = true;
        self
    }

    /// Names the call with an id that the caller chose.
    pub fn requested_as(mut self, request_id: RequestId) -> Self {
        self.parts.envelope.request_id = Some(request_id);
        self.parts.is_id_ours = false;
        self
    }

    /// Sets the caller's trace, from a `traceparent` header; it takes precedence over that of the envelope.
    pub fn trace(mut self, trace: TraceContext) -> Self {
        self.parts.trace = Some(trace);
        self
    }

    /// Sets the vendors' additions to the caller's trace, from a `tracestate` header; they count only together with
    /// [`trace`](ToolCall::trace).
    pub fn trace_state(mut self, state: TraceState) -> Self {
        self.parts.trace_state = Some(state);
        self
    }

    /// Sets the surface that the call came by, for observers.
    pub fn origin(mut self, origin: Origin) -> Self {
        self.parts.origin = origin;
        self
    }

    /// Sets the name of the model that wrote the call, for observers.
    pub fn model(mut self, name: impl Into<Arc<str>>) -> Self {
        self.parts.model = Some(name.into());
        self
    }

    /// Sets the name of the client program, for observers.
    pub fn client(mut self, name: impl Into<Arc<str>>) -> Self {
        self.parts.client = Some(name.into());
        self
    }

    /// Adds a value for the tool, by its type (B12).
    pub fn extension<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.parts.extensions.insert(value);
        self
    }

    /// Sets a switch by which the caller cancels the call.
    pub fn cancellation(mut self, cancellation: Cancellation) -> Self {
        self.parts.cancellation = cancellation;
        self
    }

    /// Sets the time for which the caller waits for the user's answer, if a confirmation is required, instead of coming
    /// back later. The tool's own deadline, and the caller's, begin to count after that.
    pub fn wait_for_approval(mut self, wait: Duration) -> Self {
        self.parts.wait_for_approval = wait;
        self
    }

    /// True if the caller waits for the user's answer.
    pub fn waits_for_approval(&self) -> bool {
        !self.parts.wait_for_approval.is_zero()
    }

    /// Sets a switch that ends only the waiting for the user's answer: the call then goes on as one that does not wait.
    /// Used when the caller has gone, or when no time is left.
    pub fn patience(mut self, patience: Cancellation) -> Self {
        self.parts.patience = patience;
        self
    }

    /// Sets the seat that the call gives up while it waits for others.
    pub fn seat(mut self, seat: Arc<dyn Seat>) -> Self {
        self.parts.seat = CallSeat(Some(seat));
        self
    }

    /// The proved identity of the caller.
    pub fn principal(&self) -> &Arc<Principal> {
        &self.parts.principal
    }

    /// Sets the caller's time limit, from arrival on; the tool's own deadline still applies.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.parts.timeout = Some(timeout);
        self
    }
}
