//! `GET /metrics`: metrics for operators, as `OpenMetrics` text. The table of all metrics is in
//! `docs/telemetry.md`.
//!
//! An error reply counts as an error, whatever its HTTP status. Labels have a closed set of values: tools of
//! the catalog, codes, phases, reasons. Names that a caller makes up are counted as `unknown`, and no label
//! names a user.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use countersign::catalog::Entry;
use countersign::clock::{Clock, SystemClock};
use countersign::observe::{Answered, Observer};
use http::StatusCode;
use http::header::CONTENT_TYPE;

use crate::cached::Cached;
use crate::gateway::Gateway;
use crate::status::{UpstreamHealth, UpstreamStatus};

mod bindings;
mod meters;
mod policy;
mod refusal;
mod stored;
mod text;

use bindings::Bindings;
use meters::ToolMeters;
use policy::PolicyText;
use refusal::Refusals;
pub use refusal::{OfCall, Refusal, layer};
pub(crate) use stored::Stored;
use text::Scrape;

/// All metrics of a gateway; it is given to the executor as its observer.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
///
/// use countersign::{Catalog, Executor};
/// use countersign_gateway::metrics::Metrics;
///
/// let metrics = Arc::new(Metrics::new());
/// let executor = Executor::builder(Catalog::builder().build()?).observer(metrics.clone()).build();
/// # Ok::<(), countersign::catalog::Error>(())
/// ```
pub struct Metrics {
    clock: Arc<dyn Clock>,
    /// Counters by the address of the entry, so that a call finds them without reading a name. A listed entry
    /// is kept alive, so that no other one can get its address.
    by_entry: ArcSwap<Vec<(Arc<Entry>, Arc<ToolMeters>)>>,
    /// Counters by name: a tool that is replaced keeps its counters.
    by_name: Mutex<BTreeMap<Box<str>, Arc<ToolMeters>>>,
    /// Counters of calls to unknown tools.
    unknown: Arc<ToolMeters>,
    bindings: Bindings,
    refusals: Refusals,
    connections: AtomicI64,
    connections_failed: AtomicU64,
    spans_dropped: Arc<AtomicU64>,
    /// Size of the newest checkpoint, and the monotonic time since when it is known.
    checkpoint: Mutex<(u64, Duration)>,
    /// Copies of the checkpoint that could not be read at the start; not set if none are configured.
    copies_unread: OnceLock<usize>,
    /// Cached figures of the store.
    stored: Cached<Stored>,
}

/// Label for a name that is not in the catalog.
const UNKNOWN: &str = "unknown";

impl Metrics {
    /// Counts a message that ends before its call does.
    pub(crate) fn unfinished(&self, model: Option<&str>) {
        self.bindings.count_unfinished(model);
    }

    /// Creates metrics, all at zero.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// Creates metrics with this clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let now = clock.monotonic();
        let unknown = Arc::<ToolMeters>::default();
        Self {
            clock,
            by_entry: ArcSwap::default(),
            // A tool that really has this name shares its counters.
            by_name: Mutex::new(BTreeMap::from([(UNKNOWN.into(), unknown.clone())])),
            unknown,
            bindings: Bindings::default(),
            refusals: Refusals::default(),
            connections: AtomicI64::new(0),
            connections_failed: AtomicU64::new(0),
            spans_dropped: Arc::default(),
            checkpoint: Mutex::new((0, now)),
            copies_unread: OnceLock::new(),
            stored: Cached::default(),
        }
    }

    /// Sets the number of copies of the checkpoint that could not be compared with the log at the start.
    pub fn set_copies_unread(&self, count: usize) {
        let _ = self.copies_unread.set(count);
    }

    /// Counts a request that did not become a call.
    pub fn refused(&self, refusal: Refusal) {
        self.refusals
            .count(refusal, self.clock.monotonic().as_secs());
    }

    /// Counts a connection as open until the returned value is dropped.
    pub fn connection(self: &Arc<Self>) -> Connection {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Connection(self.clone())
    }

    /// Counts a connection that the system did not let the server take.
    pub fn connection_failed(&self) {
        self.connections_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of connections that failed.
    pub fn connections_failed(&self) -> u64 {
        self.connections_failed.load(Ordering::Relaxed)
    }

    /// Returns the counter of spans that could not be sent.
    pub fn spans_dropped(&self) -> Arc<AtomicU64> {
        self.spans_dropped.clone()
    }

    /// Returns the cached figures of the store.
    fn stored(&self) -> &Cached<Stored> {
        &self.stored
    }

    fn count(&self, answered: &Answered) {
        let Some(entry) = &answered.tool else {
            return self.unknown.count(answered);
        };
        let known = self.by_entry.load();
        match known.binary_search_by_key(&address(entry), |(entry, _)| address(entry)) {
            Ok(place) => {
                if let Some((_, meters)) = known.get(place) {
                    meters.count(answered);
                }
            }
            Err(_) => self.learn(entry).count(answered),
        }
    }

    /// Returns the counters of a tool that was not called before, or was replaced since.
    fn learn(&self, entry: &Arc<Entry>) -> Arc<ToolMeters> {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let name = entry.name();
        let meters = by_name.entry(name.as_str().into()).or_default().clone();
        let mut known = Vec::clone(&self.by_entry.load());
        known.retain(|(other, _)| other.name() != name);
        known.push((entry.clone(), meters.clone()));
        known.sort_by_key(|(entry, _)| address(entry));
        self.by_entry.store(Arc::new(known));
        meters
    }

    /// Returns how long the newest checkpoint has been known, as far as scrapes show.
    pub(crate) fn checkpoint_age(&self, size: u64) -> Duration {
        let now = self.clock.monotonic();
        let mut seen = self
            .checkpoint
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if seen.0 != size {
            *seen = (size, now);
        }
        now.saturating_sub(seen.1)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Observer for Metrics {
    fn answered(&self, answered: &Answered) {
        self.count(answered);
        self.bindings.count(answered);
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// An open connection.
#[derive(Debug)]
pub struct Connection(Arc<Metrics>);

impl Connection {
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn address(entry: &Arc<Entry>) -> usize {
    Arc::as_ptr(entry).addr()
}

/// `GET /metrics`.
pub fn routes() -> Router<Gateway> {
    Router::new().route("/metrics", get(scrape))
}

/// Builds the text, for a scraper that asks often: a store that does not answer is itself a figure.
async fn scrape(State(gateway): State<Gateway>) -> Response {
    for entry in gateway.executor().catalog().list() {
        let known = gateway.metrics().by_entry.load();
        let place = known.binary_search_by_key(&address(&entry), |(entry, _)| address(entry));
        if place.is_err() {
            gateway.metrics().learn(&entry);
        }
    }
    let metrics = gateway.metrics();
    let policy = gateway.identity().policy();
    let upstreams = gateway.upstreams_status();
    let is_changed = |one: &&UpstreamStatus| one.health == UpstreamHealth::Changed;
    let scrape = Scrape {
        upstreams_changed: upstreams.iter().filter(is_changed).count(),
        policy: PolicyText {
            rejections: policy.rejections(),
            is_file_in_force: policy.is_file_in_force(),
            is_config_refused: gateway.config_file().map(|file| file.is_refused()),
        },
        calls_in_flight: gateway.calls_running(),
        calls_waiting: gateway.calls_waiting(),
        stored: gateway.stored().await,
        witnesses: gateway
            .witnesses()
            .map(|witnesses| witnesses.states())
            .unwrap_or_default(),
    };
    match metrics.text(scrape) {
        Ok(text) => ([(CONTENT_TYPE, text::MEDIA_TYPE)], text).into_response(),
        Err(fmt::Error) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
