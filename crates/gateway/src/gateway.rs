//! What all routes share.

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use countersign::alias::in_text;
use countersign::archive::Archive;
use countersign::cancel::Cancellation;
use countersign::contract::{
    ErrorBody, ErrorCode, FaultSource, Language, ReplyEnvelope, RequestId, Warning,
};
use countersign::denials::Denials;
use countersign::ids::IdSource;
use countersign::{Executor, ToolCall};
use jiff::Timestamp;
use tokio::sync::Semaphore;

use crate::cached::Cached;
use crate::detach::{Detach, Panicked};
use crate::health::Health;
use crate::http::interop::View;
use crate::identity::{ApiKeys, Identity};
use crate::metrics::{Metrics, Refusal};
use crate::operator::Operations;
use crate::quota::{Full, Quotas};
use crate::settings::Settings;
use crate::words::Say;

/// The server's parts. Clones share everything.
#[derive(Clone)]
pub struct Gateway {
    parts: Arc<Parts>,
}

struct Parts {
    executor: Executor,
    archive: Archive,
    ids: Arc<dyn IdSource>,
    identity: Identity,
    settings: Settings,
    quotas: Arc<Quotas>,
    metrics: OnceLock<Arc<Metrics>>,
    views: OnceLock<Vec<View>>,
    operations: OnceLock<Arc<dyn Operations>>,
    operation_slots: Arc<Semaphore>,
    health: Health,
    /// What the store takes on its disk, as it has said last.
    size: Cached<u64>,
    started_at: Timestamp,
    /// How much of all bodies that still arrive is in memory.
    arriving_bytes: Arc<AtomicUsize>,
}

/// For how long the size of the store counts, and how long it is waited for.
const SIZE_INTERVAL: Duration = Duration::from_secs(30);
const SIZE_WAIT: Duration = Duration::from_secs(2);

/// How often it is looked whether counted denials are due.
const DENIALS_LOOK: Duration = Duration::from_mins(1);

/// How many operations of the operator are carried out at once.
const OPERATIONS_MAX: usize = 8;

/// When a caller who found no room should come back.
const OVERLOAD_RETRY_MS: u64 = 250;

impl Gateway {
    /// A gateway in front of an executor.
    pub fn new(
        executor: Executor,
        archive: Archive,
        ids: Arc<dyn IdSource>,
        identity: Identity,
        settings: Settings,
    ) -> Self {
        let quotas = Arc::new(Quotas::new(&settings));
        let started_at = executor.now();
        // A user who is erased here is let in no more at once, not when the keys are read again.
        let archive = match identity.keys() {
            Some(keys) => archive.with_belongings(Arc::new(keys.clone())),
            None => archive,
        };
        Self {
            parts: Arc::new(Parts {
                executor,
                archive,
                ids,
                identity,
                settings,
                quotas,
                metrics: OnceLock::new(),
                views: OnceLock::new(),
                operations: OnceLock::new(),
                operation_slots: Arc::new(Semaphore::new(OPERATIONS_MAX)),
                health: Health::default(),
                size: Cached::default(),
                started_at,
                arriving_bytes: Arc::default(),
            }),
        }
    }

    /// Counts here: the very one that observes the executor. To be given before anything was counted.
    pub fn with_metrics(self, metrics: Arc<Metrics>) -> Self {
        self.parts.metrics.get_or_init(|| metrics);
        self
    }

    /// Also shows these pages. To be given once, before anything is asked for.
    pub fn with_views(self, views: Vec<View>) -> Self {
        self.parts.views.get_or_init(|| views);
        self
    }

    /// The pages in the words of a standard.
    pub fn views(&self) -> &[View] {
        self.parts.views.get().map_or(&[], Vec::as_slice)
    }

    /// Also carries out what the operator asks for. To be given once, before anything is asked for.
    pub fn with_operations(self, operations: Arc<dyn Operations>) -> Self {
        self.parts.operations.get_or_init(|| operations);
        self
    }

    /// What the operator can ask for.
    pub(crate) fn operations(&self) -> Option<&Arc<dyn Operations>> {
        self.parts.operations.get()
    }

    /// Room for what the operator asks for.
    pub(crate) fn operation_slots(&self) -> Arc<Semaphore> {
        self.parts.operation_slots.clone()
    }

    /// What is counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        self.parts.metrics.get_or_init(Arc::default)
    }

    /// How many calls run now.
    pub fn calls_running(&self) -> usize {
        self.parts.quotas.running()
    }

    /// How many calls wait for others now.
    pub fn calls_waiting(&self) -> usize {
        self.parts.quotas.waiting()
    }

    /// What each caller has in use.
    pub(crate) fn quotas(&self) -> &Arc<Quotas> {
        &self.parts.quotas
    }

    /// What runs calls.
    pub fn executor(&self) -> &Executor {
        &self.parts.executor
    }

    /// What is known of earlier ones.
    pub fn archive(&self) -> &Archive {
        &self.parts.archive
    }

    /// Which credentials are accepted.
    pub fn identity(&self) -> &Identity {
        &self.parts.identity
    }

    /// The bounds.
    pub fn settings(&self) -> &Settings {
        &self.parts.settings
    }

    /// Whether the server can take calls.
    pub fn health(&self) -> &Health {
        &self.parts.health
    }

    /// What the store takes on its disk; none where it cannot say. A database looks at all its files for it, so it is asked
    /// seldom.
    pub(crate) async fn stored_bytes(&self) -> Option<u64> {
        let store = self.parts.executor.store().clone();
        let ask = || async move { store.stored_bytes().await.ok().flatten() };
        self.parts.size.get(SIZE_INTERVAL, SIZE_WAIT, ask).await
    }

    /// When it was made.
    pub fn started_at(&self) -> Timestamp {
        self.parts.started_at
    }

    /// How much of all bodies that still arrive is in memory.
    pub(crate) fn arriving_bytes(&self) -> &Arc<AtomicUsize> {
        &self.parts.arriving_bytes
    }

    /// A reply as a model reads it: tools have the names that it knows.
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

    /// Where ids come from.
    pub fn ids(&self) -> &Arc<dyn IdSource> {
        &self.parts.ids
    }

    /// Runs a call to its end, whether or not the one who asked stays to hear the answer. Whoever wants
    /// it stopped throws the call's [`Cancellation`].
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
        // Tools are guarded, so this is a defect of ours; the caller still gets an envelope.
        let reply = ended.unwrap_or_else(|Panicked| {
            self.metrics().refused(Refusal::Failed);
            // An id that the caller chose stays out of the log.
            let id = (!is_chosen).then(|| tracing::field::display(&request_id));
            tracing::error!(
                request_id = id,
                "a call was lost: a part of the gateway panicked"
            );
            let body = ErrorBody::new(ErrorCode::UpstreamError, Say::CallLost)
                .source(FaultSource::Gateway)
                .hint(Say::SameLaterWithKey);
            ReplyEnvelope::failure(request_id, body.in_language(language))
        });
        self.with_page(reply)
    }

    /// Says where the user answers, where there is a page for it.
    fn with_page(&self, mut reply: ReplyEnvelope) -> ReplyEnvelope {
        if let (Some(page), Some(error)) = (&self.settings().approvals_url, &mut reply.error)
            && let Some(id) = error.details.extra.get("approval_id")
        {
            let url = page.replace("{id}", id.as_str().unwrap_or_default());
            error
                .details
                .extra
                .insert("approval_url".to_owned(), url.into());
        }
        reply
    }

    /// Writes down how often callers were denied something, whenever an interval is over; for ever.
    pub(crate) async fn count_denials(self) {
        loop {
            tokio::time::sleep(DENIALS_LOOK).await;
            for denials in self.denials() {
                denials.write_counts().await;
            }
        }
    }

    /// Writes down what was counted: before the process ends.
    pub(crate) async fn settle_denials(&self) {
        for denials in self.denials() {
            denials.settle().await;
        }
    }

    fn denials(&self) -> impl Iterator<Item = &Denials> {
        let of_keys = self.identity().keys().map(ApiKeys::denials);
        std::iter::once(self.archive().denials()).chain(of_keys)
    }

    /// Waits until no call runs or waits, at most as long as the settings allow; whether that was reached.
    pub async fn drained(&self) -> bool {
        tokio::time::timeout(self.parts.settings.drain, self.parts.quotas.idle())
            .await
            .is_ok()
    }
}

/// For how long a call waits for a person: until its caller goes away, and with it this, or until the
/// server stops. What has begun to run is not touched by either.
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
