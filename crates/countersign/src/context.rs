//! The context of a running call: caller, user, deadline, trace, state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use countersign_args::Unreadable;
use countersign_contract::envelope::Client;
use countersign_contract::evidence::{EvidenceRecord, Freshness, Link, LinkRole};
use countersign_contract::{
    Actor, ErrorCode, Issue, Language, RequestId, SnapshotId, Source, TraceContext, TraceState,
    Wording,
};
use jiff::Timestamp;

use crate::cancel::Cancellation;
use crate::clock::{Clock, SystemClock};
use crate::extensions::Extensions;
use crate::ids::{IdSource, RandomIds};
use crate::principal::{BearerToken, Principal};
use crate::progress::ProgressSink;
use crate::rules::{RuleSet, Rules};
use crate::state::{Linked, Stale, State};
use crate::text::TextReader;
use crate::tool::ToolError;
use crate::words::Say;

/// The request envelope with all missing members filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Request id, unique along the whole chain (A2).
    pub request_id: RequestId,
    /// The actor who triggered the call; agrees with the credential (A3).
    pub actor: Actor,
    /// The user on whose behalf it runs.
    pub user_id: String,
    /// The conversation or visit.
    pub session_id: Option<String>,
    /// Locale, BCP 47.
    pub locale: Option<String>,
    /// Currency, ISO 4217.
    pub currency: Option<String>,
    /// Time zone, IANA.
    pub timezone: Option<String>,
    /// The application in front of the user.
    pub client: Option<Client>,
    /// True for a dry run: show what would happen, change nothing (A4).
    pub dry_run: bool,
    /// Idempotency key: a write happens at most once for this user, tool and key (A5).
    pub idempotency_key: Option<String>,
}

/// The context that a tool is given besides its arguments.
///
/// # Example
///
/// A tool can be tried without an executor:
///
/// ```
/// use countersign::{CallContext, Principal};
///
/// let ctx = CallContext::standalone(&Principal::user("u_1"), "{}");
/// ctx.remark("PARTIAL", "two of three shops answered");
/// assert_eq!(ctx.user_id(), "u_1");
/// ```
pub struct CallContext {
    pub(crate) request: Request,
    pub(crate) raw: Arc<str>,
    pub(crate) issues: Vec<Issue>,
    pub(crate) unreadable: Vec<Unreadable>,
    pub(crate) extensions: Extensions,
    pub(crate) trace: TraceContext,
    pub(crate) trace_state: Option<TraceState>,
    pub(crate) cancellation: Cancellation,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    /// Deadline, in the clock's monotonic time.
    pub(crate) deadline: Duration,
    pub(crate) notes: Mutex<Notes>,
    pub(crate) state: State,
    pub(crate) rules: Rules,
    /// The versions of rule sets that a replay has to use.
    pub(crate) pinned: Option<BTreeMap<String, String>>,
    /// The only time that a pure tool sees: a replay gives it the same one.
    pub(crate) frozen_at: Option<Timestamp>,
    pub(crate) downstream_key: Option<String>,
    pub(crate) caller_token: Option<BearerToken>,
}

/// Maximum number of earlier calls that one call may link: all of them are in its record, which is bounded.
pub const LINKS_MAX: usize = 128;

/// Notes of a tool besides its data.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) remarks: Vec<(String, String)>,
    pub(crate) sources: Vec<Source>,
    pub(crate) ttl_seconds: Option<u32>,
    /// Name and version of each rule set that was used.
    pub(crate) rules: Vec<(String, String)>,
    pub(crate) links: Vec<Link>,
    /// Names and versions of the rule sets of the answers that it rests on.
    pub(crate) inherited: BTreeMap<String, BTreeSet<String>>,
}

impl Notes {
    /// Takes over the rule sets of a record, its own and those that it has inherited.
    fn inherit(&mut self, record: &EvidenceRecord) {
        let own = record.rules.iter();
        let further = record.inherited_rules.iter();
        let further =
            further.flat_map(|(name, all)| all.iter().map(move |version| (name, version)));
        for (name, version) in own.chain(further) {
            let versions = self.inherited.entry(name.clone()).or_default();
            versions.insert(version.clone());
        }
    }
}

/// Number of notes at a moment.
pub(crate) struct Said {
    remarks: usize,
    sources: usize,
    ttl_seconds: Option<u32>,
}

impl CallContext {
    /// A context outside any executor: for tests of a tool and for code that calls one directly.
    pub fn standalone(principal: &Principal, raw: impl Into<Arc<str>>) -> Self {
        let clock = Arc::new(SystemClock::new());
        let ids = Arc::new(RandomIds::new(clock.clone()));
        let request = Request {
            request_id: ids.request_id(),
            actor: principal.actor.clone(),
            user_id: principal.user_id.clone(),
            session_id: None,
            locale: None,
            currency: None,
            timezone: None,
            client: None,
            dry_run: false,
            idempotency_key: None,
        };
        let trace = TraceContext {
            trace_id: ids.trace_id(),
            span_id: ids.span_id(),
            parent_span_id: None,
            sampled: false,
        };
        let state = State::standalone(&request.user_id, clock.clone(), ids.clone());
        Self {
            request,
            raw: raw.into(),
            issues: Vec::new(),
            unreadable: Vec::new(),
            extensions: Extensions::new(),
            trace,
            trace_state: None,
            cancellation: Cancellation::never(),
            clock,
            ids,
            deadline: Duration::MAX,
            notes: Mutex::default(),
            state,
            rules: Rules::default(),
            pinned: None,
            frozen_at: None,
            downstream_key: None,
            caller_token: principal.token.clone(),
        }
    }

    /// The whole request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The id of this call.
    pub fn request_id(&self) -> &RequestId {
        &self.request.request_id
    }

    /// The user on whose behalf the call runs; state is kept by it.
    pub fn user_id(&self) -> &str {
        &self.request.user_id
    }

    /// The language of messages for the caller. Errors and remarks that are a [`Wording`] in both languages are shown
    /// in it automatically.
    pub fn language(&self) -> Language {
        Language::of(self.request.locale.as_deref())
    }

    /// True if nothing may be changed (A4).
    pub fn is_dry_run(&self) -> bool {
        self.request.dry_run
    }

    /// The value of this type that the embedding program added to the call (B12).
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.extensions.get()
    }

    /// The arguments as they were sent, byte for byte (B7).
    pub fn raw_arguments(&self) -> &str {
        &self.raw
    }

    /// The binder's changes to them.
    pub fn issues(&self) -> &[Issue] {
        &self.issues
    }

    /// The optional parameters that could not be read, each with its text and its errors (B9). The tool gets them as
    /// absent; defaults are filled in. Empty unless the declaration says `on_optional_error: tell`.
    ///
    /// A replay has the bound arguments only: a tool that is declared pure must not let its answer depend on this.
    pub fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }

    /// The span of this call.
    pub fn trace(&self) -> TraceContext {
        self.trace
    }

    /// A new hop below this call, for a downstream call that reports its own span.
    pub fn child(&self) -> TraceContext {
        self.trace.child(self.ids.span_id())
    }

    /// The `traceparent` header for downstream calls (A6): this call is the parent of what they do.
    pub fn traceparent(&self) -> String {
        self.trace.to_string()
    }

    /// The `tracestate` header for downstream calls, beside [`traceparent`](CallContext::traceparent): as the
    /// caller sent it. `baggage` is not carried on, because callers put personal data into it.
    pub fn tracestate(&self) -> Option<&str> {
        self.trace_state.as_ref().map(TraceState::as_str)
    }

    /// The headers that carry the trace on (A6): `traceparent`, and `tracestate` if the caller sent one. A tool adds all
    /// of them to every HTTP request that it makes.
    pub fn trace_headers(&self) -> impl Iterator<Item = (&'static str, String)> {
        let parent = ("traceparent", self.traceparent());
        let state = self
            .tracestate()
            .map(|state| ("tracestate", state.to_owned()));
        [parent].into_iter().chain(state)
    }

    /// The time of day. For a tool that is declared pure it stands still while the tool runs.
    pub fn now(&self) -> Timestamp {
        self.frozen_at.unwrap_or_else(|| self.clock.now())
    }

    /// Time until the deadline.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_sub(self.clock.monotonic())
    }

    /// The deadline, at which the executor stops waiting.
    pub fn deadline(&self) -> Timestamp {
        jiff::SignedDuration::try_from(self.remaining())
            .ok()
            .and_then(|left| self.clock.now().checked_add(left).ok())
            .unwrap_or(Timestamp::MAX)
    }

    /// The switch by which the caller cancels the call.
    pub fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    /// The tool's state, as one unit of work with this call.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Texts that belong to no user, and that the tool searches.
    pub fn texts(&self) -> TextReader<'_> {
        self.state.texts()
    }

    /// A new id for something that the tool stores, such as `cart_` and sixteen letters and digits. It cannot be
    /// guessed; it is short, because models have to copy it.
    pub fn new_id(&self, prefix: &str) -> String {
        // Without letters that are mistaken for others.
        const SYMBOLS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        const COUNT: u32 = 16;
        let mut random = [0; 16];
        self.ids.fill(&mut random);
        // Five bits a symbol, from the end: ids that are counted differ there.
        let random = u128::from_be_bytes(random);
        (0..COUNT).rev().fold(prefix.to_owned(), |mut id, at| {
            let index = usize::try_from((random >> (5 * at)) & 31).unwrap_or_default();
            let symbol = SYMBOLS.get(index).copied();
            id.push(symbol.map_or('0', char::from));
            id
        })
    }

    /// A key for services that the tool calls: the same for every attempt of this call, another one for
    /// every other call. `None` for a read, a dry run, and a call without a key whose effect is in the store.
    pub fn downstream_key(&self) -> Option<&str> {
        self.downstream_key.as_deref()
    }

    /// The token that proved the caller, for a tool that exchanges it for one of its own (RFC 8693); `None` if the
    /// caller was proved in another way. It must never be passed on unchanged.
    pub fn caller_token(&self) -> Option<&BearerToken> {
        self.caller_token.as_ref()
    }

    /// A rule set, in the version in force; in a replay in the version of the record. It becomes part of
    /// the call's record (A15).
    pub fn rules(&self, name: &str) -> Result<Arc<RuleSet>, ToolError> {
        let set = match &self.pinned {
            None => self.rules.current(name),
            Some(pinned) => pinned
                .get(name)
                .and_then(|version| self.rules.version(name, version.parse().ok()?)),
        };
        let set = set.ok_or_else(|| {
            let name = name.to_owned();
            ToolError::new(ErrorCode::UpstreamError, Say::NoRuleSet { name })
        })?;
        self.note(|notes| {
            let used = (set.name.clone(), set.version.to_string());
            if !notes.rules.contains(&used) {
                notes.sources.push(Source {
                    kind: "rule_set".to_owned(),
                    name: set.name.clone(),
                    hash: set.version.to_string(),
                    ts: self.now().to_string(),
                });
                notes.rules.push(used);
            }
        });
        Ok(set)
    }

    /// Every loaded version of a rule set, in no order: recorded calls can be computed again with these. None of them
    /// becomes part of the record, because the answer does not rest on them.
    pub fn rule_versions(&self, name: &str) -> Vec<Arc<RuleSet>> {
        self.rules.versions(name)
    }

    /// Looks at an earlier call of the same user, by the `snapshot_id` of its reply. This call's record links it as
    /// looked at. The result has its answer, and the end of its window; a record of another user is answered exactly
    /// like a missing one.
    pub async fn link(&self, snapshot_id: &SnapshotId) -> Result<Linked, ToolError> {
        let (linked, link) = self.state.linked(snapshot_id, self.user_id()).await?;
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.links.iter().any(|known| known.id == link.id) {
            if notes.links.len() >= LINKS_MAX {
                let most = LINKS_MAX.to_string();
                let message = Say::TooManyLinks { most };
                return Err(ToolError::new(ErrorCode::UpstreamError, message));
            }
            notes.links.push(link);
        }
        Ok(linked)
    }

    /// Rests this call on an answer that it has looked at: the record says so, and that the answer was fresh now, by
    /// this gateway's clock, and until when (A8). The rule sets of that answer become part of the record (A15). An
    /// answer whose window is over is refused; one without a window does not expire.
    ///
    /// A call that fails rests on nothing: its record then says that it only looked.
    pub fn rest_on(&self, linked: &Linked) -> Result<(), Stale> {
        let now = self.now();
        let fresh = match linked.valid_until {
            Some(until) if now >= until => return Err(Stale { until, now }),
            Some(until) => Some(Freshness {
                at: now.to_string(),
                until: until.to_string(),
            }),
            None => None,
        };
        self.note(|notes| {
            let id = &linked.record.id;
            let Some(link) = notes.links.iter_mut().find(|link| link.id == *id) else {
                return;
            };
            link.role = Some(LinkRole::RestsOn);
            link.fresh = fresh;
            notes.inherit(&linked.record);
        });
        Ok(())
    }

    /// Adds a remark for the caller of a successful call: a code of the tool's own, one sentence.
    pub fn remark(&self, code: impl Into<String>, message: impl Into<Wording>) {
        let message = message.into().in_language(self.language());
        self.note(|notes| notes.remarks.push((code.into(), message.into())));
    }

    /// Reports progress, if the caller asked for it: `done` of `total`, and the current step. Reports that do not rise
    /// are dropped, and none is stored.
    pub fn progress(&self, done: f64, total: Option<f64>, message: impl Into<String>) {
        if let Some(sink) = self.extension::<ProgressSink>() {
            sink.report(done, total, Some(message.into()));
        }
    }

    /// Adds a source of the answer: a rule set, a document, a rate table.
    pub fn source(&self, source: Source) {
        self.note(|notes| notes.sources.push(source));
    }

    /// Gives this answer another window of validity than the declared one (A8).
    pub fn fresh_for(&self, ttl_seconds: u32) {
        self.note(|notes| notes.ttl_seconds = Some(ttl_seconds));
    }

    pub(crate) fn take_notes(&self) -> Notes {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Marks the notes so far; the window of validity is put aside.
    pub(crate) fn said(&self) -> Said {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        Said {
            remarks: notes.remarks.len(),
            sources: notes.sources.len(),
            ttl_seconds: notes.ttl_seconds.take(),
        }
    }

    /// Takes out the notes since then. Rules and links stay: they belong to the record of the call.
    pub(crate) fn take_since(&self, before: &Said) -> Notes {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let (remarks, sources) = (notes.remarks.len(), notes.sources.len());
        Notes {
            remarks: notes.remarks.split_off(before.remarks.min(remarks)),
            sources: notes.sources.split_off(before.sources.min(sources)),
            ttl_seconds: std::mem::replace(&mut notes.ttl_seconds, before.ttl_seconds),
            ..Notes::default()
        }
    }

    fn note(&self, add: impl FnOnce(&mut Notes)) {
        add(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl std::fmt::Debug for CallContext {
    /// Names and ids only: arguments, issues and extensions may hold personal data.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallContext")
            .field("request_id", &self.request.request_id)
            .field("trace", &self.trace)
            .finish_non_exhaustive()
    }
}
