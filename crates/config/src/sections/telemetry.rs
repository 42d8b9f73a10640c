//! `[telemetry]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::WebUrl;

/// Logs and traces; `docs/telemetry.md` says what is in them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Log filter: a level such as `warn`, or a level with exceptions such as `info,countersign::sequencer=debug`.
    #[schemars(extend("x-env" = "COUNTERSIGN_LOG", "x-flag" = "--log", "x-live" = true))]
    pub log: String,
    /// Format of the log. The default is `text`, or `json` with `--json`.
    #[schemars(extend("x-flag" = "--log-format"))]
    pub log_format: Option<LogFormat>,
    /// Address of the OTLP collector for traces, such as `http://localhost:4318`. By default no traces are sent.
    #[schemars(extend("x-env" = "OTEL_EXPORTER_OTLP_ENDPOINT", "x-flag" = "--otlp"))]
    pub otlp: Option<WebUrl>,
    /// Share of new traces that are sent, from 0 to 1. A trace that a caller started is sent if the caller's sampling
    /// flag is set.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-flag" = "--sample"))]
    pub sample: f64,
    /// Version of the `GenAI` semantic conventions for spans.
    #[schemars(extend("x-flag" = "--genai-semconv"))]
    pub genai_semconv: Semconv,
}

/// The form of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people: one line of words.
    Text,
    /// For programs: one JSON object a line.
    Json,
}

/// A version of the `GenAI` conventions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Semconv {
    /// Version 1.37.
    #[default]
    #[serde(rename = "1.37")]
    V1_37,
    /// Version 1.41.
    #[serde(rename = "1.41")]
    V1_41,
    /// No attributes of these conventions.
    #[serde(rename = "off")]
    Off,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            log: "info".to_owned(),
            log_format: None,
            otlp: None,
            sample: 1.0,
            genai_semconv: Semconv::default(),
        }
    }
}
