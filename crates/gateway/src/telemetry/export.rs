//! Export of spans to a collector, over OTLP. A collector that is slow or unreachable costs spans, never calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use countersign::observe::{Answered, Observer};
use opentelemetry::InstrumentationScope;
use opentelemetry_otlp::{RetryPolicy, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::spans::{Convention, span_of};
use super::{Error, Options};

/// Maximum number of queued spans.
const QUEUE_MAX: usize = 4_096;

/// Maximum number of spans in a batch.
const BATCH_MAX: usize = 512;

/// Time for which a batch waits for more spans.
const LINGER: Duration = Duration::from_secs(1);

/// Timeout of the collector for a batch.
const SEND_WAIT: Duration = Duration::from_secs(5);

/// Minimum interval between warnings that the collector does not accept spans.
const COMPLAIN_EVERY: Duration = Duration::from_mins(1);

/// Observes calls and queues them to be sent as spans.
#[derive(Debug)]
pub struct Traces {
    jobs: mpsc::Sender<Job>,
    dropped: Arc<AtomicU64>,
    /// A new trace is recorded if the lower half of its id is below this.
    threshold: u64,
}

#[derive(Debug)]
enum Job {
    Span(Box<Answered>),
    Flush(oneshot::Sender<()>),
}

impl Traces {
    /// Starts a task that sends spans to this collector, and counts those that could not be sent. It must be
    /// called inside a runtime.
    pub fn start(
        endpoint: &str,
        options: &Options,
        dropped: Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        let threshold = threshold_of(options.sample_ratio).ok_or(Error::SampleRatio)?;
        let failed = |reason: String| Error::Otlp {
            endpoint: endpoint.to_owned(),
            reason,
        };
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(traces_url(endpoint))
            .with_timeout(SEND_WAIT)
            // An outage of a collector usually lasts longer than retries, and the next batch tries again.
            .with_retry_policy(RetryPolicy::disabled())
            .build()
            .map_err(|error| failed(error.to_string()))?;
        exporter.set_resource(&resource());
        let (jobs, queue) = mpsc::channel(QUEUE_MAX);
        let sender = Sender {
            exporter,
            queue,
            dropped: dropped.clone(),
            convention: options.convention,
            scope: options.convention.scope(),
            complained: None,
        };
        tokio::spawn(sender.run());
        Ok(Self {
            jobs,
            dropped,
            threshold,
        })
    }

    /// Sends what is queued, for no longer than this. True if all of it was.
    pub async fn flush(&self, wait: Duration) -> bool {
        let (done, is_done) = oneshot::channel();
        let all = async { self.jobs.send(Job::Flush(done)).await.is_ok() && is_done.await.is_ok() };
        tokio::time::timeout(wait, all).await.unwrap_or(false)
    }
}

impl Observer for Traces {
    fn answered(&self, answered: &Answered) {
        if !answered.trace.sampled {
            return;
        }
        let job = Job::Span(Box::new(answered.clone()));
        if self.jobs.try_send(job).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Decides by the digits of the trace id, so that every party decides alike.
    fn samples(&self, trace_id: u128) -> bool {
        (trace_id as u64) >> 1 < self.threshold
    }
}

/// Computes the threshold: 63 bits of the id's lower half count, as in other implementations of the ratio.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a share of traces needs no more digits, and it was checked to be one"
)]
fn threshold_of(ratio: f64) -> Option<u64> {
    (0.0..=1.0)
        .contains(&ratio)
        .then_some((ratio * (1_u64 << 63) as f64) as u64)
}

/// Returns the URL for spans: the standard's variable and ours name the collector, and spans have a path of
/// their own there.
fn traces_url(endpoint: &str) -> String {
    let base = endpoint.trim_end_matches('/');
    if base.ends_with("/v1/traces") {
        return base.to_owned();
    }
    format!("{base}/v1/traces")
}

fn resource() -> Resource {
    let named = Resource::builder().build();
    let has_name = std::env::var_os("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty());
    if has_name {
        return named;
    }
    Resource::builder().with_service_name("countersign").build()
}

struct Sender {
    exporter: SpanExporter,
    queue: mpsc::Receiver<Job>,
    dropped: Arc<AtomicU64>,
    convention: Convention,
    scope: InstrumentationScope,
    complained: Option<Instant>,
}

impl Sender {
    async fn run(mut self) {
        let mut jobs = Vec::with_capacity(BATCH_MAX);
        while let Some(job) = self.queue.recv().await {
            jobs.push(job);
            self.gather(&mut jobs).await;
            self.send(&mut jobs).await;
        }
    }

    /// Waits for a full batch, for the end of its waiting time, or for a flush.
    async fn gather(&mut self, jobs: &mut Vec<Job>) {
        let until = Instant::now() + LINGER;
        while jobs.len() < BATCH_MAX && !matches!(jobs.last(), Some(Job::Flush(_))) {
            match tokio::time::timeout_at(until, self.queue.recv()).await {
                Ok(Some(job)) => jobs.push(job),
                Ok(None) | Err(_) => break,
            }
        }
    }

    async fn send(&mut self, jobs: &mut Vec<Job>) {
        let mut spans = Vec::with_capacity(jobs.len());
        let mut flushed = Vec::new();
        for job in jobs.drain(..) {
            match job {
                Job::Span(answered) => spans.push(span_of(&answered, self.convention, &self.scope)),
                Job::Flush(done) => flushed.push(done),
            }
        }
        let count = spans.len() as u64;
        if count > 0 {
            let sent = tokio::time::timeout(SEND_WAIT, self.exporter.export(spans)).await;
            if !matches!(sent, Ok(Ok(()))) {
                self.dropped.fetch_add(count, Ordering::Relaxed);
                self.complain(count);
            }
        }
        for done in flushed {
            let _left = done.send(());
        }
    }

    /// Logs a warning without the collector's answer, which may quote what it was sent.
    fn complain(&mut self, count: u64) {
        let now = Instant::now();
        if self
            .complained
            .is_some_and(|last| now - last < COMPLAIN_EVERY)
        {
            return;
        }
        self.complained = Some(now);
        tracing::warn!(
            spans = count,
            "the trace collector did not accept spans; they were dropped"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_the_collector_or_its_path_for_traces() {
        for endpoint in ["http://c:4318", "http://c:4318/", "http://c:4318/v1/traces"] {
            assert_eq!(traces_url(endpoint), "http://c:4318/v1/traces");
        }
    }

    #[test]
    fn a_ratio_is_a_share_of_all_traces() {
        let all = threshold_of(1.0).unwrap();
        let half = threshold_of(0.5).unwrap();
        assert!(u64::MAX >> 1 < all && 0 < half && threshold_of(0.0) == Some(0));
        assert_eq!(half, 1 << 62);
        for ratio in [-0.1, 1.1, f64::NAN] {
            assert_eq!(threshold_of(ratio), None, "{ratio}");
        }
    }
}
