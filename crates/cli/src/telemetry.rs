//! What a server tells those who watch it: `--log`, `--otlp` and their like.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use countersign::clock::Clock;
use countersign_gateway::telemetry::{
    Convention, LogFormat, Options, Telemetry, install_panic_hook,
};
use tokio::runtime::Handle;

use crate::failure::Failure;
use crate::terminal::Terminal;

/// How long a server that ends waits for a collector that does not answer.
pub(crate) const FLUSH_WAIT: Duration = Duration::from_secs(5);

/// The options of commands that run for long. What they mean is in `docs/telemetry.md`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Watching it")]
pub(crate) struct TelemetryOptions {
    #[arg(
        long,
        value_name = "FILTER",
        help = "What is logged: a level such as warn, or a level and exceptions [default: info] [env: COUNTERSIGN_LOG]"
    )]
    log: Option<String>,

    /// text for people, json for programs [default: text, json with --json]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,

    #[arg(
        long,
        value_name = "URL",
        help = "Send traces to the OTLP collector at this address [env: OTEL_EXPORTER_OTLP_ENDPOINT]"
    )]
    otlp: Option<String>,

    /// Which share of the traces that begin here is sent, from 0 to 1
    #[arg(
        long,
        value_name = "RATIO",
        default_value_t = 1.0,
        hide_short_help = true
    )]
    sample: f64,

    #[arg(
        long,
        help = "The version of the GenAI conventions that spans follow: 1.37, 1.41 or off",
        value_name = "VERSION",
        default_value = "1.37",
        hide_short_help = true
    )]
    genai_semconv: Convention,
}

impl TelemetryOptions {
    /// Starts logging, and sending traces where somebody wants them. From here on the process says what it
    /// does, and nothing of what it is sent.
    pub(crate) fn start(
        &self,
        runtime: &Handle,
        terminal: &Terminal,
        clock: Arc<dyn Clock>,
        spans_dropped: Arc<AtomicU64>,
    ) -> Result<Telemetry, Failure> {
        install_panic_hook();
        let _inside = runtime.enter();
        let environment = Options::from_env();
        let for_programs = if terminal.is_for_programs() {
            LogFormat::Json
        } else {
            LogFormat::Text
        };
        let options = Options {
            log: self.log.clone().unwrap_or(environment.log),
            log_format: self.log_format.unwrap_or(for_programs),
            otlp: self.otlp.clone().or(environment.otlp),
            convention: self.genai_semconv,
            sample_ratio: self.sample,
        };
        Telemetry::start(&options, clock, spans_dropped).map_err(|error| {
            Failure::from(anyhow::Error::new(error)).hint("docs/telemetry.md explains the options")
        })
    }
}
