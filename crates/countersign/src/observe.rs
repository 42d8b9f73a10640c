//! Observers, which are notified of answered calls: metrics, traces and other monitoring.
//!
//! An observer sees names, ids, codes and times. It is never given an argument, a result or an error's text,
//! so that no sink behind it has to be trusted with them (A21).

use std::sync::Arc;
use std::time::Duration;

use countersign_contract::record::{BindSummary, PhaseTimes};
use countersign_contract::{
    BindStatus, ErrorCode, IssueCode, RequestId, SnapshotId, TraceContext, TraceState,
};
use jiff::{SignedDuration, Timestamp};

use crate::catalog::Entry;

/// Notified of every call exactly once, when its reply is ready to leave.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use countersign::observe::{Answered, Observer};
/// use countersign::sample::MemorySearch;
/// use countersign::{Catalog, Executor, Principal, ToolCall};
///
/// #[derive(Default)]
/// struct Failures(AtomicU64);
///
/// impl Observer for Failures {
///     fn answered(&self, answered: &Answered) {
///         self.0.fetch_add(u64::from(answered.code.is_some()), Ordering::Relaxed);
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let failures = Arc::new(Failures::default());
/// let catalog = Catalog::builder().tool(MemorySearch::new(["buy milk"])).build()?;
/// let executor = Executor::builder(catalog).observer(failures.clone()).build();
/// executor.execute(ToolCall::new("memory.search", "{}", Principal::user("u_1"))).await;
/// assert_eq!(failures.0.load(Ordering::Relaxed), 1);
/// # Ok::<(), countersign::catalog::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Observer: Send + Sync + 'static {
    /// Called when a call has its answer. It runs before the reply leaves: it must not block.
    fn answered(&self, answered: &Answered);

    /// True if a trace that begins here is to be recorded. If the caller sent a trace, the caller has decided already.
    fn samples(&self, _trace_id: u128) -> bool {
        false
    }
}

/// Log target of the only events that may quote values of a call: the causes of failures, in the tool's words. They are
/// useful for tool authors; a server leaves them out of its log.
pub const CAUSE_TARGET: &str = "countersign::cause";

/// Log target of the binder's results (B16): one event a call, at debug level. It has codes and places, never values or
/// names.
pub const PARSE_TARGET: &str = "ToolParse";

/// The surface that a call came by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Surface {
    /// From the program that the executor is part of.
    #[default]
    InProcess,
    /// `POST /v1/tools/{name}`.
    Http,
    /// In a model's message.
    Provider,
    /// `tools/call` of the Model Context Protocol.
    Mcp,
}

impl Surface {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InProcess => "in_process",
            Self::Http => "http",
            Self::Provider => "provider",
            Self::Mcp => "mcp",
        }
    }
}

/// Origin of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The surface.
    pub surface: Surface,
    /// The model's name for the call, if there is one.
    pub call_id: Option<Arc<str>>,
}

/// The author of the arguments, as far as the caller says so; a model's output is measured by both (B19).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writer {
    /// The client: its own name for itself, or else its platform, or else the agent that calls. It is the caller's text,
    /// like the name of the model.
    pub client: Option<Arc<str>>,
    /// The model, by its provider's name for it.
    pub model: Option<Arc<str>>,
}

/// Facts about an answered call.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The request id, as the record names it: a keyed digest if the caller chose the id. `None` if the caller chose it
    /// and the user isn't known.
    pub request_id: Option<RequestId>,
    /// The tool; `None` if there is no tool of the requested name.
    pub tool: Option<Arc<Entry>>,
    /// The span of the call.
    pub trace: TraceContext,
    /// Vendors' additions to the trace, as the caller sent them.
    pub trace_state: Option<TraceState>,
    /// Origin of the call.
    pub origin: Origin,
    /// Time of arrival.
    pub at: Timestamp,
    /// The error code; `None` if the call succeeded.
    pub code: Option<ErrorCode>,
    /// True if the answer is that of an earlier call.
    pub replayed: bool,
    /// True if it was a dry run.
    pub dry_run: bool,
    /// Revision of the policy that decided.
    pub policy_revision: Option<String>,
    /// Id of the evidence.
    pub snapshot_id: Option<SnapshotId>,
    /// The session as the record names it, if the call names one: a digest under the user's key, because the name itself is
    /// the caller's text.
    pub session: Option<String>,
    /// Author of the arguments.
    pub writer: Writer,
    /// The binder's changes (B19).
    pub binding: BindSummary,
    /// Durations of the phases. Unlike in the record, settling includes the commit.
    pub phases: PhaseTimes,
}

impl Answered {
    /// The time from arrival until the reply was ready.
    pub fn took(&self) -> Duration {
        let PhaseTimes {
            queued_us,
            awaiting_approval_us,
            executing_us,
            settling_us,
        } = self.phases;
        let sum = queued_us
            .saturating_add(awaiting_approval_us)
            .saturating_add(executing_us)
            .saturating_add(settling_us);
        Duration::from_micros(sum)
    }

    /// The time at which the reply was ready.
    pub fn ended(&self) -> Timestamp {
        SignedDuration::try_from(self.took())
            .ok()
            .and_then(|took| self.at.checked_add(took).ok())
            .unwrap_or(self.at)
    }

    /// The binder's changes in one text: each code with its number.
    fn issues(&self) -> Option<String> {
        let issues = &self.binding.issues;
        let one = |(code, count): (&IssueCode, &u32)| format!("{}:{count}", code.as_str());
        (!issues.is_empty()).then(|| issues.iter().map(one).collect::<Vec<_>>().join(" "))
    }

    /// Logs one line a call (B16, B19). The span around it has its ids.
    pub(crate) fn log(&self) {
        tracing::info!(
            // A name that was not found is the caller's text, which does not belong into a log.
            tool = self
                .tool
                .as_ref()
                .map_or("unknown", |entry| entry.name().as_str()),
            code = self.code.map_or("OK", ErrorCode::as_str),
            replayed = self.replayed,
            dry_run = self.dry_run,
            binding = self.binding.status.map(BindStatus::as_str),
            issues = self.issues(),
            policy = self.policy_revision.as_deref(),
            queued_us = self.phases.queued_us,
            awaiting_approval_us = self.phases.awaiting_approval_us,
            executing_us = self.phases.executing_us,
            settling_us = self.phases.settling_us,
            "call answered"
        );
    }
}

/// Notifies several observers, one after the other.
impl Observer for Vec<Arc<dyn Observer>> {
    fn answered(&self, answered: &Answered) {
        for observer in self {
            observer.answered(answered);
        }
    }

    fn samples(&self, trace_id: u128) -> bool {
        self.iter().any(|observer| observer.samples(trace_id))
    }
}
