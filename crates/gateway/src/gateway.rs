//! The gateway: the parts that all routes share.

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use axum::Router;
use countersign::alias::in_text;
use countersign::archive::Archive;
use countersign::cancel::Cancellation;
use countersign::contract::{
    ErrorBody, ErrorCode, FaultSource, Language, ReplyEnvelope, RequestId, Warning,
};
use countersign::denials::Denials;
use countersign::ids::IdSource;
use countersign::offer::Offers;
use countersign::{Credential, Executor, Principal, ToolCall};
use jiff::Timestamp;
use tokio::sync::Semaphore;

use crate::cached::Cached;
use crate::config_file::ConfigFile;
use crate::detach::{Detach, Panicked};
use crate::health::Health;
use crate::http::interop::View;
use crate::identity::{ApiKeys, Identity, Sessions};
use crate::metrics::{Metrics, Refusal};
use crate::notify::Target;
use crate::offer::{CatalogView, Offer};
use crate::operator::Operations;
use crate::pulse::Pulse;
use crate::quota::{Full, Quotas};
use crate::settings::Settings;
use crate::status::{Probes, Verified};
use crate::witness::Witnesses;
use crate::words::Say;

/// The server's parts. Clones share everything.
#[derive(Clone)]
pub struct Gateway {
    parts: Arc<Parts>,
}

/// Makes the pages for people.
type Pages = Box<dyn Fn(&Gateway) -> Router + Send + Sync>;

struct Parts {
    executor: Executor,
    archive: Archive,
    ids: Arc<dyn IdSource>,
    identity: Identity,
    settings: Settings,
    quotas: Arc<Quotas>,
    catalog_view: CatalogView,
    metrics: OnceLock<Arc<Metrics>>,
    views: OnceLock<Vec<View>>,
    operations: OnceLock<Arc<dyn Operations>>,
    pages: OnceLock<Pages>,
    /// Address of the pages for people, without a slash at the end.
    pages_at: OnceLock<String>,
    pulse: OnceLock<Arc<Pulse>>,
    sessions: Sessions,
    config_file: OnceLock<Arc<ConfigFile>>,
    /// The newest probe of each upstream.
    probes: Probes,
    /// The last verification of the whole log.
    verified: ArcSwapOption<Verified>,
    /// Resources and prompts of upstreams; replaced when the configuration changes.
    offers: RwLock<Option<Arc<dyn Offers>>>,
    /// Receivers of notifications; replaced when the configuration changes.
    notify: ArcSwap<Vec<Target>>,
    /// Witnesses that cosign the log; not set if none are configured.
    witnesses: OnceLock<Arc<Witnesses>>,
    operation_slots: Arc<Semaphore>,
    health: Health,
    /// Disk space of the store, as it last reported.
    size: Cached<u64>,
    started_at: Timestamp,
    /// Bytes in memory of all bodies that still arrive.
    arriving_bytes: Arc<AtomicUsize>,
}

/// Time for which the store's size is cached, and the time limit for fetching it.
const SIZE_INTERVAL: Duration = Duration::from_secs(30);
const SIZE_WAIT: Duration = Duration::from_secs(2);

/// Interval between two checks for counted denials that are due.
const DENIALS_LOOK: Duration = Duration::from_mins(1);

/// Maximum number of concurrent operations of the operator.
const OPERATIONS_MAX: usize = 8;

/// Retry interval for a caller that found no room, in milliseconds.
const OVERLOAD_RETRY_MS: u64 = 250;

impl Gateway {
    /// Creates a gateway in front of an executor.
    pub fn new(
        executor: Executor,
        archive: Archive,
        ids: Arc<dyn IdSource>,
        identity: Identity,
        settings: Settings,
    ) -> Self {
        let quotas = Arc::new(Quotas::new(&settings));
        let catalog_view = CatalogView::new(settings.offers.clone());
        let started_at = executor.now();
        // A user who is erased here is refused at once, not when the keys are read again.
        let archive = match identity.keys() {
            Some(keys) => archive.with_belongings(Arc::new(keys.clone())),
            None => archive,
        };
        Self {
            parts: Arc::new(Parts {
                executor,
                archive,
                identity,
                settings,
                quotas,
                catalog_view,
                metrics: OnceLock::new(),
                views: OnceLock::new(),
                operations: OnceLock::new(),
                pages: OnceLock::new(),
                pages_at: OnceLock::new(),
                pulse: OnceLock::new(),
                sessions: Sessions::new(ids.clone()),
                config_file: OnceLock::new(),
                probes: Probes::default(),
                verified: ArcSwapOption::empty(),
                offers: RwLock::default(),
                notify: ArcSwap::default(),
                witnesses: OnceLock::new(),
                operation_slots: Arc::new(Semaphore::new(OPERATIONS_MAX)),
                health: Health::default(),
                size: Cached::default(),
                started_at,
                ids,
                arriving_bytes: Arc::default(),
            }),
        }
    }

    /// Sets the metrics, which must be the ones that observe the executor. Must be called before anything is
    /// counted.
    pub fn with_metrics(self, metrics: Arc<Metrics>) -> Self {
        self.parts.metrics.get_or_init(|| metrics);
        self
    }

    /// Adds these pages. Must be called once, before the first request.
    pub fn with_views(self, views: Vec<View>) -> Self {
        self.parts.views.get_or_init(|| views);
        self
    }

    /// Returns the pages in the terms of a standard.
    pub fn views(&self) -> &[View] {
        self.parts.views.get().map_or(&[], Vec::as_slice)
    }

    /// Replaces the resources and prompts of others that are offered.
    pub fn set_offers(&self, offers: Arc<dyn Offers>) {
        let mut own = self
            .parts
            .offers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *own = Some(offers);
    }

    /// Returns the resources and prompts of others.
    pub(crate) fn offers(&self) -> Option<Arc<dyn Offers>> {
        let own = self
            .parts
            .offers
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        own.clone()
    }

    /// Replaces the receivers of notifications.
    pub fn set_notify(&self, targets: Vec<Target>) {
        self.parts.notify.store(Arc::new(targets));
    }

    /// Returns the receivers of notifications.
    pub fn notify_targets(&self) -> Arc<Vec<Target>> {
        self.parts.notify.load_full()
    }

    /// Sets the witnesses that cosign the log. Must be called once, before the first request.
    pub fn set_witnesses(&self, witnesses: Arc<Witnesses>) {
        let _ = self.parts.witnesses.set(witnesses);
    }

    /// Returns the witnesses that cosign the log; `None` if none are configured.
    pub fn witnesses(&self) -> Option<&Arc<Witnesses>> {
        self.parts.witnesses.get()
    }

    /// Returns the newest probe of each upstream.
    pub(crate) fn probes(&self) -> &Probes {
        &self.parts.probes
    }

    /// Returns the last verification of the whole log.
    pub(crate) fn verified(&self) -> &ArcSwapOption<Verified> {
        &self.parts.verified
    }

    /// Adds the operator's operations. Must be called once, before the first request.
    pub fn with_operations(self, operations: Arc<dyn Operations>) -> Self {
        self.parts.operations.get_or_init(|| operations);
        self
    }

    /// Also shows pages for people, made by this. To be given once, before anything is asked for.
    pub fn with_pages(self, pages: impl Fn(&Self) -> Router + Send + Sync + 'static) -> Self {
        self.parts.pages.get_or_init(|| Box::new(pages));
        self
    }

    /// Names the address of the pages for people: where a call waits for its user, the answer says at which page.
    pub fn set_pages_address(&self, url: &str) {
        let url = url.trim_end_matches('/').to_owned();
        self.parts.pages_at.get_or_init(|| url);
    }

    /// The pages for people, where there are any.
    pub(crate) fn pages(&self) -> Option<Router> {
        self.parts.pages.get().map(|pages| pages(self))
    }

    /// Uses this pulse for the overview. It has to be the one that observes the executor, and must be set before
    /// anything was counted.
    pub fn with_pulse(self, pulse: Arc<Pulse>) -> Self {
        self.parts.pulse.get_or_init(|| pulse);
        self
    }

    /// The last two hours in figures.
    pub fn pulse(&self) -> &Arc<Pulse> {
        self.parts.pulse.get_or_init(Arc::default)
    }

    /// Browser sessions.
    pub fn sessions(&self) -> &Sessions {
        &self.parts.sessions
    }

    /// Sets the configuration file. Must be called once, before the first request.
    pub fn with_config_file(self, file: Arc<ConfigFile>) -> Self {
        self.parts.config_file.get_or_init(|| file);
        self
    }

    /// Returns the configuration file, if there is one.
    pub fn config_file(&self) -> Option<&Arc<ConfigFile>> {
        self.parts.config_file.get()
    }

    /// Returns the operator's operations; `None` if there are none.
    pub(crate) fn operations(&self) -> Option<&Arc<dyn Operations>> {
        self.parts.operations.get()
    }

    /// Returns the semaphore that limits the operator's operations.
    pub(crate) fn operation_slots(&self) -> Arc<Semaphore> {
        self.parts.operation_slots.clone()
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> &Arc<Metrics> {
        self.parts.metrics.get_or_init(Arc::default)
    }

    /// Returns the number of calls that run now.
    pub fn calls_running(&self) -> usize {
        self.parts.quotas.running()
    }

    /// Returns the number of calls that wait for others now.
    pub fn calls_waiting(&self) -> usize {
        self.parts.quotas.waiting()
    }

    /// Returns the quotas: what each caller has in use.
    pub(crate) fn quotas(&self) -> &Arc<Quotas> {
        &self.parts.quotas
    }

    /// The tools and answers that callers are shown.
    pub fn catalog_view(&self) -> &CatalogView {
        &self.parts.catalog_view
    }

    /// The offer to one caller; `client` is the name that an MCP client gives itself.
    pub(crate) fn offer(&self, principal: &Principal, client: Option<&str>) -> Offer {
        let view = self.catalog_view();
        let label = match &principal.credential {
            Some(Credential::ApiKey { id }) if view.asks_for_keys() => {
                self.identity().keys().and_then(|keys| keys.label(id))
            }
            Some(Credential::ApiKey { .. } | Credential::Token { .. }) | None => None,
        };
        view.of(principal, label.as_deref(), client)
    }

    /// Returns the executor.
    pub fn executor(&self) -> &Executor {
        &self.parts.executor
    }

    /// Returns the archive of earlier calls.
    pub fn archive(&self) -> &Archive {
        &self.parts.archive
    }

    /// Returns the accepted credentials.
    pub fn identity(&self) -> &Identity {
        &self.parts.identity
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.parts.settings
    }

    /// Returns the health of the server.
    pub fn health(&self) -> &Health {
        &self.parts.health
    }

    /// Returns the disk space that the store takes; `None` if it cannot tell. A database has to examine all its
    /// files for this, so the answer is cached.
    pub(crate) async fn stored_bytes(&self) -> Option<u64> {
        let store = self.parts.executor.store().clone();
        let ask = || async move { store.stored_bytes().await.ok().flatten() };
        self.parts.size.get(SIZE_INTERVAL, SIZE_WAIT, ask).await
    }

    /// Returns the time at which the gateway was created.
    pub fn started_at(&self) -> Timestamp {
        self.parts.started_at
    }

    /// Returns the counter of bytes in memory of all bodies that still arrive.
    pub(crate) fn arriving_bytes(&self) -> &Arc<AtomicUsize> {
        &self.parts.arriving_bytes
    }

    /// Rewrites a reply for a model: tools get the names that the model knows.
    pub(crate) fn for_model(&self, mut reply: ReplyEnvelope) -> ReplyEnvelope {
        let catalog = self.parts.executor.catalog();
        let named = |text: &str| in_text(text, |name| catalog.get(name).is_some());
        if let Some(error) = &mut reply.error {
            let message = named(&error.message.to_string());
            error.message = message.into();
            let hint = error.details.hint.as_ref().map(ToString::to_string);
            error.details.hint = hint.map(|hint| named(&hint).into());
        }
        for warning in &mut reply.warnings {
            match warning {
                Warning::Remark { message, .. } => *message = named(message),
                Warning::Issue(_) => {}
            }
        }
        reply
    }

    /// Returns the source of ids.
    pub fn ids(&self) -> &Arc<dyn IdSource> {
        &self.parts.ids
    }

    /// Runs a call to its end, even if the caller goes away before the answer. To stop it, cancel the call's
    /// [`Cancellation`].
    pub async fn call(&self, call: ToolCall) -> ReplyEnvelope {
        let language = call.language();
        let chosen = call.request_id().cloned();
        let is_chosen = chosen.is_some();
        let request_id = chosen.unwrap_or_else(|| self.parts.ids.request_id());
        let seat = match self.parts.quotas.call(call.principal()) {
            Ok(seat) => seat,
            Err(full) => {
                self.metrics().refused(Refusal::Overloaded);
                return overloaded(full, request_id, language);
            }
        };
        let patience = call.waits_for_approval().then(Patience::default);
        let mut call = if is_chosen {
            call
        } else {
            call.identified(request_id.clone())
        };
        if let Some(Patience(patience)) = &patience {
            call = call.patience(patience.clone());
        }
        let executor = self.parts.executor.clone();
        let mut running = Detach::new(async move {
            let reply = executor.execute(call.seat(seat.clone())).await;
            drop(seat);
            reply
        });
        let ended = match &patience {
            None => running.await,
            Some(Patience(patience)) => tokio::select! {
                ended = &mut running => ended,
                () = self.parts.health.draining() => {
                    patience.cancel();
                    running.await
                }
            },
        };
        // Panics of tools are caught before, so this is a defect of the gateway; the caller still gets an
        // envelope.
        let reply = ended.unwrap_or_else(|Panicked| {
            self.metrics().refused(Refusal::Failed);
            // An id that the caller chose stays out of the log.
            let id = (!is_chosen).then(|| tracing::field::display(&request_id));
            tracing::error!(
                request_id = id,
                "the gateway panicked during a call; the caller was told to retry"
            );
            let body = ErrorBody::new(ErrorCode::UpstreamError, Say::CallLost)
                .source(FaultSource::Gateway)
                .hint(Say::SameLaterWithKey);
            ReplyEnvelope::failure(request_id, body.in_language(language))
        });
        self.with_page(reply)
    }

    /// Adds the address of the page where the user answers, if there is one.
    fn with_page(&self, mut reply: ReplyEnvelope) -> ReplyEnvelope {
        if let Some(error) = &mut reply.error
            && let Some(id) = error.details.extra.get("approval_id")
            && let Some(url) = self.approval_page(id.as_str().unwrap_or_default())
        {
            error
                .details
                .extra
                .insert("approval_url".to_owned(), url.into());
        }
        reply
    }

    /// The page of an approval: that of the settings, or else of the console.
    fn approval_page(&self, id: &str) -> Option<String> {
        let own = self.settings().approvals_url.as_ref();
        let own = own.map(|page| page.replace("{id}", id));
        own.or_else(|| Some(format!("{}/approvals/{id}", self.parts.pages_at.get()?)))
    }

    /// Records counted denials whenever an interval is over; never returns.
    pub(crate) async fn count_denials(self) {
        loop {
            tokio::time::sleep(DENIALS_LOOK).await;
            for denials in self.denials() {
                denials.write_counts().await;
            }
        }
    }

    /// Records the counted denials before the process ends.
    pub(crate) async fn settle_denials(&self) {
        for denials in self.denials() {
            denials.settle().await;
        }
    }

    fn denials(&self) -> impl Iterator<Item = &Denials> {
        let of_keys = self.identity().keys().map(ApiKeys::denials);
        std::iter::once(self.archive().denials()).chain(of_keys)
    }

    /// Waits until no call runs or waits, at most as long as the settings allow. True if that was reached.
    pub async fn drained(&self) -> bool {
        tokio::time::timeout(self.parts.settings.drain, self.parts.quotas.idle())
            .await
            .is_ok()
    }
}

/// Limits the wait of a call for a person: until its caller goes away, which drops this value, or until the
/// server stops. A call that has begun to run is not affected by either.
struct Patience(Cancellation);

impl Default for Patience {
    fn default() -> Self {
        Self(Cancellation::new())
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

fn overloaded(full: Full, request_id: RequestId, language: Language) -> ReplyEnvelope {
    let message = match full {
        Full::ForAll => Say::Overloaded,
        Full::ForCaller => Say::CallerHasItsShare,
    };
    let body = ErrorBody::new(ErrorCode::RateLimited, message)
        .retry_after_ms(OVERLOAD_RETRY_MS)
        .hint(Say::WaitThenSame);
    ReplyEnvelope::failure(request_id, body.in_language(language))
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("settings", &self.parts.settings)
            .finish_non_exhaustive()
    }
}
