//! Logs and traces of a running server. `docs/telemetry.md` lists what is in them, and what never is.
//!
//! Neither delays a call: a log line and a span are put into a bounded queue, and are dropped and counted if
//! its consumer does not keep up. The only global that is set is the subscriber of `tracing`, and only by
//! [`Telemetry::start`].

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use countersign::clock::Clock;
use tracing_subscriber::filter::{EnvFilter, ParseError};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;
use tracing_subscriber::reload;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

mod export;
mod lines;
mod logs;
mod panics;
mod repeats;
mod spans;

pub use export::Traces;
pub use lines::Lines;
pub use logs::LogLayer;
pub use panics::install_panic_hook;
pub use spans::Convention;

/// Options of logs and traces.
#[derive(Debug, Clone)]
pub struct Options {
    /// Log filter: a level such as `info`, or a filter such as `info,countersign::sequencer=debug`. Other
    /// crates never log below warnings, and their messages are left out.
    pub log: String,
    /// Format of the log.
    pub log_format: LogFormat,
    /// Address that traces are sent to, such as `http://localhost:4318`; `None` sends none.
    pub otlp: Option<String>,
    /// Semantic convention of the spans.
    pub convention: Convention,
    /// Share of the traces begun here that is recorded, from 0 to 1. A trace that a caller brings is recorded
    /// if the caller says so.
    pub sample_ratio: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            log: "info".to_owned(),
            log_format: LogFormat::Text,
            otlp: None,
            convention: Convention::default(),
            sample_ratio: 1.0,
        }
    }
}

impl Options {
    /// Reads the options from the environment: `COUNTERSIGN_LOG`, and the standard's
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` and `OTEL_SDK_DISABLED`.
    pub fn from_env() -> Self {
        let text = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let default = Self::default();
        let is_disabled = text("OTEL_SDK_DISABLED").is_some_and(|text| text == "true");
        Self {
            log: text("COUNTERSIGN_LOG").unwrap_or(default.log),
            otlp: text("OTEL_EXPORTER_OTLP_ENDPOINT").filter(|_| !is_disabled),
            ..Self::default()
        }
    }
}

/// Format of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people: one line of text.
    #[default]
    Text,
    /// For programs: one JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("expected text or json".to_owned()),
        }
    }
}

/// Reason why telemetry cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log filter is not valid, usually because of a misspelt level.
    #[error("the log filter is not valid: {0}")]
    Filter(#[from] ParseError),
    /// The log filter can no longer be changed, because the subscriber is gone.
    #[error("the log filter cannot be changed: {0}")]
    Changed(#[from] reload::Error),
    /// Another library has already set up the log of this process.
    /// Usually a program that embeds the gateway has its own subscriber.
    #[error("the log of this process is set up already")]
    Taken(#[from] TryInitError),
    /// Traces cannot be sent to this address, usually because it is not an HTTP URL.
    #[error("traces cannot be sent to {endpoint:?}: {reason}")]
    Otlp {
        /// Address of the collector.
        endpoint: String,
        /// Cause.
        reason: String,
    },
    /// The share of traces is not a number from 0 to 1. Usually it was written in percent.
    #[error("the share of traces is a number from 0 to 1")]
    SampleRatio,
}

/// Checks that a text is a valid log filter.
pub fn check_filter(text: &str) -> Result<(), Error> {
    EnvFilter::try_new(text)?;
    Ok(())
}

/// The telemetry of this process.
#[derive(Debug)]
pub struct Telemetry {
    lines: Lines,
    traces: Option<Arc<Traces>>,
    filter: LogFilter,
}

/// The log filter, which can be changed while the process runs.
#[derive(Debug, Clone)]
pub struct LogFilter(reload::Handle<EnvFilter, Registry>);

impl LogFilter {
    /// Changes the filter.
    pub fn set(&self, text: &str) -> Result<(), Error> {
        let filter = EnvFilter::try_new(text)?;
        Ok(self.0.reload(filter)?)
    }
}

impl Telemetry {
    /// Starts logging to stderr, and sending traces if the options say so. It must be called inside a runtime,
    /// because a task sends the traces.
    pub fn start(
        options: &Options,
        clock: Arc<dyn Clock>,
        spans_dropped: Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        let (filter, handle) = reload::Layer::new(EnvFilter::try_new(&options.log)?);
        let lines = Lines::to(Box::new(std::io::stderr()), options.log_format);
        let layer = LogLayer::new(options.log_format, lines.clone(), clock);
        tracing_subscriber::registry()
            .with(filter)
            .with(layer)
            .try_init()?;
        let traces = match &options.otlp {
            Some(endpoint) => {
                let traces = Traces::start(endpoint, options, spans_dropped)?;
                Some(Arc::new(traces))
            }
            None => None,
        };
        Ok(Self {
            lines,
            traces,
            filter: LogFilter(handle),
        })
    }

    /// Returns the log filter, so that it can be changed later.
    pub fn filter(&self) -> LogFilter {
        self.filter.clone()
    }

    /// Returns the observer of calls; `None` if no traces are sent.
    pub fn traces(&self) -> Option<Arc<Traces>> {
        self.traces.clone()
    }

    /// Sends and writes what is queued, for no longer than this. True if all of it was.
    pub async fn flush(&self, wait: Duration) -> bool {
        let sent = match &self.traces {
            Some(traces) => traces.flush(wait).await,
            None => true,
        };
        sent && self.lines.flush(wait).await
    }
}
