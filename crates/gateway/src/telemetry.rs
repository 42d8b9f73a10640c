//! Logs and traces of a running server. What is in them, and what never is, is in `docs/telemetry.md`.
//!
//! Both are off the way of a call: a log line and a span are handed to a bounded queue, and where the one
//! behind it does not keep up they are dropped and counted. Nothing global is set up but the subscriber of
//! `tracing`, and that only by [`Telemetry::start`].

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use countersign::clock::Clock;
use tracing_subscriber::filter::{EnvFilter, ParseError};
use tracing_subscriber::layer::SubscriberExt as _;
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

/// How logs are written and where traces go.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is logged: a level such as `info`, or a filter such as `info,countersign::sequencer=debug`.
    /// Other crates never get further than warnings, and their words are left out.
    pub log: String,
    /// In which form.
    pub log_format: LogFormat,
    /// Where traces are sent, such as `http://localhost:4318`; none where there are none.
    pub otlp: Option<String>,
    /// In whose words spans are described.
    pub convention: Convention,
    /// Which share of the traces that begin here is recorded, from 0 to 1. A trace that a caller brings is
    /// recorded where the caller says so.
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
    /// As the environment has them: `COUNTERSIGN_LOG`, and the standard's `OTEL_EXPORTER_OTLP_ENDPOINT` and
    /// `OTEL_SDK_DISABLED`.
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

/// In which form a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people: one line of words.
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

/// Why there is no telemetry.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The filter of the log cannot be read.
    #[error("the log filter is not valid: {0}")]
    Filter(#[from] ParseError),
    /// Somebody else has set up the log of this process.
    #[error("the log of this process is set up already")]
    Taken(#[from] TryInitError),
    /// Traces cannot be sent there.
    #[error("traces cannot be sent to {endpoint:?}: {reason}")]
    Otlp {
        /// Where they were to go.
        endpoint: String,
        /// Why not.
        reason: String,
    },
    /// The share of traces is none.
    #[error("the share of traces is a number from 0 to 1")]
    SampleRatio,
}

/// The telemetry of this process.
#[derive(Debug)]
pub struct Telemetry {
    lines: Lines,
    traces: Option<Arc<Traces>>,
}

impl Telemetry {
    /// Starts logging to stderr, and sending traces where the options say so. Inside a runtime, because
    /// traces are sent by a task of it.
    pub fn start(
        options: &Options,
        clock: Arc<dyn Clock>,
        spans_dropped: Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        let filter = EnvFilter::try_new(&options.log)?;
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
        Ok(Self { lines, traces })
    }

    /// Who is to be told of calls, where traces are sent.
    pub fn traces(&self) -> Option<Arc<Traces>> {
        self.traces.clone()
    }

    /// Sends and writes what is left, for no longer than this; whether all of it was.
    pub async fn flush(&self, wait: Duration) -> bool {
        let sent = match &self.traces {
            Some(traces) => traces.flush(wait).await,
            None => true,
        };
        sent && self.lines.flush(wait).await
    }
}
