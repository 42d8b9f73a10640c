//! `GET /metrics`: what an operator watches, as `OpenMetrics` text. The table of all of it is in
//! `docs/telemetry.md`.
//!
//! An error reply is an error, whatever its HTTP status. Labels are closed: tools of the catalog, codes,
//! phases, reasons; what a caller makes up is counted as `unknown`, and nobody is named.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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

mod meters;
mod policy;
mod refusal;
mod stored;
mod text;

use meters::ToolMeters;
use policy::PolicyText;
use refusal::Refusals;
pub use refusal::{OfCall, Refusal, layer};
pub(crate) use stored::Stored;
use text::Scrape;

/// Everything that is counted. One for each gateway; it is given to the executor as its observer.
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
    /// By the address of the entry, so that a call finds its counters without reading a name. An entry
    /// that is listed is kept alive, so that no other one can get its address.
    by_entry: ArcSwap<Vec<(Arc<Entry>, Arc<ToolMeters>)>>,
    /// By name: a tool that is replaced keeps its counters.
    by_name: Mutex<BTreeMap<Box<str>, Arc<ToolMeters>>>,
    /// Of calls of tools that there are not.
    unknown: Arc<ToolMeters>,
    refusals: Refusals,
    connections: AtomicI64,
    spans_dropped: Arc<AtomicU64>,
    /// The newest checkpoint, by its size, and since when it is known, in the clock's monotonic time.
    checkpoint: Mutex<(u64, Duration)>,
    /// What the store has said last.
    stored: Cached<Stored>,
}

/// What stands for a name that is none of the catalog's.
const UNKNOWN: &str = "unknown";

impl Metrics {
    /// Nothing was counted yet.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// With this clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let now = clock.monotonic();
        let unknown = Arc::<ToolMeters>::default();
        Self {
            clock,
            by_entry: ArcSwap::default(),
            // A tool that is really called so shares its counters.
            by_name: Mutex::new(BTreeMap::from([(UNKNOWN.into(), unknown.clone())])),
            unknown,
            refusals: Refusals::default(),
            connections: AtomicI64::new(0),
            spans_dropped: Arc::default(),
            checkpoint: Mutex::new((0, now)),
            stored: Cached::default(),
        }
    }

    /// A request that did not become a call.
    pub fn refused(&self, refusal: Refusal) {
        self.refusals
            .count(refusal, self.clock.monotonic().as_secs());
    }

    /// A connection is open as long as this is kept.
    pub fn connection(self: &Arc<Self>) -> Connection {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Connection(self.clone())
    }

    /// Where the exporter of traces counts what it could not send.
    pub fn spans_dropped(&self) -> Arc<AtomicU64> {
        self.spans_dropped.clone()
    }

    /// What the store has said last.
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

    /// The counters of a tool that was not called before, or was replaced since.
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

    /// Since when the newest checkpoint is known, as far as scrapes tell.
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

/// The text, for a scraper that asks often: a store that does not answer is itself a figure.
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
    let scrape = Scrape {
        policy: PolicyText {
            rejections: policy.rejections(),
            is_file_in_force: policy.is_file_in_force(),
        },
        calls_in_flight: gateway.calls_running(),
        calls_waiting: gateway.calls_waiting(),
        stored: gateway.stored().await,
    };
    match metrics.text(scrape) {
        Ok(text) => ([(CONTENT_TYPE, text::MEDIA_TYPE)], text).into_response(),
        Err(fmt::Error) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
