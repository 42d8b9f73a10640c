//! Telemetry of a server: `--log`, `--otlp` and their like.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use countersign::clock::Clock;
use countersign_config::{Given, sections};
use countersign_gateway::telemetry::{Convention, LogFormat, Telemetry, install_panic_hook};
use tokio::runtime::Handle;

use crate::config::{self, parts};
use crate::failure::Failure;
use crate::place::clock_and_ids;
use crate::terminal::Terminal;

/// Timeout at shutdown for a collector that does not answer.
pub(crate) const FLUSH_WAIT: Duration = Duration::from_secs(5);

/// The options of commands that run for long. What they mean is in `docs/telemetry.md`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Logs and traces")]
pub(crate) struct TelemetryOptions {
    #[arg(
        long,
        value_name = "FILTER",
        help = "Log filter: a level such as warn, or a level and exceptions [default: info] [env: COUNTERSIGN_LOG]"
    )]
    log: Option<String>,

    /// Log format: text or json [default: text, json with --json]
    #[arg(long, value_name = "FORMAT", value_parser = checked::<LogFormat>)]
    log_format: Option<String>,

    #[arg(
        long,
        value_name = "URL",
        help = "Send traces to the OTLP collector at this URL [env: OTEL_EXPORTER_OTLP_ENDPOINT]"
    )]
    otlp: Option<String>,

    /// Share of the traces that is sent, from 0 to 1 [default: 1]
    #[arg(long, value_name = "RATIO", hide_short_help = true)]
    sample: Option<f64>,

    #[arg(
        long,
        help = "Version of the GenAI conventions for spans: 1.37, 1.41 or off [default: 1.37]",
        value_name = "VERSION",
        value_parser = checked::<Convention>,
        hide_short_help = true
    )]
    genai_semconv: Option<String>,
}

/// A text that can be read as this.
fn checked<T: FromStr<Err = String>>(text: &str) -> Result<String, String> {
    text.parse::<T>().map(|_| text.to_owned())
}

/// Returns the settings of logs and traces that the environment gives.
pub(crate) fn environment() -> Result<Vec<Given>, Failure> {
    let mut given = Vec::new();
    given.extend(config::variable("telemetry.log", "COUNTERSIGN_LOG")?);
    let disabled = "OTEL_SDK_DISABLED";
    if std::env::var(disabled).is_ok_and(|text| text == "true") {
        given.push(Given::unset_by("telemetry.otlp", disabled));
    } else {
        let endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT";
        given.extend(config::variable("telemetry.otlp", endpoint)?);
    }
    Ok(given)
}

impl TelemetryOptions {
    /// Returns the settings that the environment and the flags give.
    pub(crate) fn given(&self) -> Result<Vec<Given>, Failure> {
        let mut given = environment()?;
        let texts = [
            ("telemetry.log", "--log", &self.log),
            ("telemetry.log_format", "--log-format", &self.log_format),
            ("telemetry.otlp", "--otlp", &self.otlp),
            (
                "telemetry.genai_semconv",
                "--genai-semconv",
                &self.genai_semconv,
            ),
        ];
        for (key, name, text) in texts {
            let text = text.as_deref();
            given.extend(text.map(|text| Given::flag(key, name, text)));
        }
        let sample = self.sample;
        given.extend(sample.map(|share| Given::flag("telemetry.sample", "--sample", share)));
        Ok(given)
    }
}

/// Makes what a server says at its start and its end lines of its log, if the log is JSON.
pub(crate) fn say_in(telemetry: &sections::Telemetry, terminal: &mut Terminal) {
    match parts::telemetry_options(telemetry, terminal.is_for_programs()).log_format {
        LogFormat::Json => terminal.say_as_log(clock_and_ids().0),
        LogFormat::Text => {}
    }
}

/// Starts logging, and sending traces if that is configured. From here on the process logs what it does, and nothing of the data that it is
/// sent.
pub(crate) fn start(
    telemetry: &sections::Telemetry,
    runtime: &Handle,
    terminal: &Terminal,
    clock: Arc<dyn Clock>,
    spans_dropped: Arc<AtomicU64>,
) -> Result<Telemetry, Failure> {
    install_panic_hook();
    let _inside = runtime.enter();
    let options = parts::telemetry_options(telemetry, terminal.is_for_programs());
    Telemetry::start(&options, clock, spans_dropped).map_err(|error| {
        Failure::from(anyhow::Error::new(error)).hint("docs/telemetry.md explains the options")
    })
}
