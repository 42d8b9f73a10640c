//! Metrics as `OpenMetrics` text.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::Metrics;
use super::bindings::Line;
use super::meters::ToolMeters;
use super::policy::PolicyText;
use super::stored::Stored;
use crate::witness::{Trouble, WitnessState};

/// Media type that Prometheus expects.
pub(super) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Values that are looked up for one scrape.
#[derive(Debug, Clone)]
pub(super) struct Scrape {
    pub(super) calls_in_flight: usize,
    pub(super) calls_waiting: usize,
    /// Number of upstreams whose tools are not as they were approved.
    pub(super) upstreams_changed: usize,
    pub(super) policy: PolicyText,
    /// `None` if the store did not answer.
    pub(super) stored: Option<Stored>,
    /// Empty if none are configured.
    pub(super) witnesses: Vec<WitnessState>,
}

type Tools = Vec<(Box<str>, Arc<ToolMeters>)>;

impl Metrics {
    pub(super) fn text(&self, scrape: Scrape) -> Result<String, fmt::Error> {
        let by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let tools: Tools = by_name
            .iter()
            .map(|(name, meters)| (name.clone(), meters.clone()))
            .collect();
        drop(by_name);
        let mut registry = Registry::with_prefix("countersign");
        registry.register_collector(Box::new(ToolText(tools, self.bindings.lines())));
        registry.register_collector(Box::new(scrape.policy));
        registry.register_collector(Box::new(self.server_text(scrape)));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        Ok(text)
    }

    fn server_text(&self, scrape: Scrape) -> ServerText {
        ServerText {
            scrape,
            refusals: self.refusals.counts().collect(),
            connections: self.connections.load(Ordering::Relaxed),
            connections_failed: self.connections_failed(),
            spans_dropped: self.spans_dropped.load(Ordering::Relaxed),
            copies_unread: self.copies_unread.get().copied(),
        }
    }
}

/// Metrics by tool.
#[derive(Debug)]
struct ToolText(Tools, Vec<Line>);

impl Collector for ToolText {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Calls by tool and by result: OK, or the error code of the reply";
        let mut calls = encoder.encode_descriptor("calls", help, None, MetricType::Counter)?;
        for (tool, meters) in &self.0 {
            for (code, count) in meters.calls() {
                counter(&mut calls, &[("tool", tool), ("code", code)], count)?;
            }
        }
        let help = "Time that calls spent in each phase, by tool";
        let unit = Some(&Unit::Seconds);
        let mut phases =
            encoder.encode_descriptor("call_phase", help, unit, MetricType::Histogram)?;
        for (tool, meters) in &self.0 {
            for (phase, durations) in meters.phases() {
                let labels = [("tool", &**tool), ("phase", phase)];
                durations.encode(&mut phases.encode_family(&labels)?)?;
            }
        }
        let help = "Repairs and refusals of arguments by the binder, by tool and issue code";
        let mut issues =
            encoder.encode_descriptor("bind_issues", help, None, MetricType::Counter)?;
        for (tool, meters) in &self.0 {
            for (issue, count) in meters.issues() {
                counter(&mut issues, &[("tool", tool), ("issue", issue)], count)?;
            }
        }
        let help = "Calls by what became of their arguments, by tool, client and model";
        let mut bindings =
            encoder.encode_descriptor("bindings", help, None, MetricType::Counter)?;
        for ((tool, client, model), outcome, count) in &self.1 {
            let labels = [
                ("tool", &**tool),
                ("client", &**client),
                ("model", &**model),
                ("outcome", *outcome),
            ];
            counter(&mut bindings, &labels, *count)?;
        }
        let help = "Calls answered with the stored reply of an earlier call, by tool";
        let mut replays = encoder.encode_descriptor("replays", help, None, MetricType::Counter)?;
        for (tool, meters) in &self.0 {
            counter(&mut replays, &[("tool", tool)], meters.replays())?;
        }
        Ok(())
    }
}

/// Metrics of the whole server.
#[derive(Debug)]
struct ServerText {
    scrape: Scrape,
    refusals: Vec<(&'static str, u64)>,
    connections: i64,
    connections_failed: u64,
    spans_dropped: u64,
    copies_unread: Option<usize>,
}

impl Collector for ServerText {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Requests refused before they became calls, by reason";
        let mut refused =
            encoder.encode_descriptor("refused_requests", help, None, MetricType::Counter)?;
        for (reason, count) in &self.refusals {
            counter(&mut refused, &[("reason", reason)], *count)?;
        }
        let stored = self.scrape.stored;
        let running = number(self.scrape.calls_in_flight);
        gauge(
            &mut encoder,
            "calls_in_flight",
            "Calls in progress",
            running,
        )?;
        let help = "Calls that wait for a call with the same key, for a person, or for a free slot";
        let waiting = number(self.scrape.calls_waiting);
        gauge(&mut encoder, "calls_waiting", help, waiting)?;
        gauge(
            &mut encoder,
            "connections",
            "Open connections",
            self.connections,
        )?;
        let help = "Connections that the system did not let the server take";
        let failed =
            encoder.encode_descriptor("connections_failed", help, None, MetricType::Counter)?;
        ConstCounter::new(self.connections_failed).encode(failed)?;
        let help = "Upstreams whose definitions have changed and wait for an approval";
        let changed = number(self.scrape.upstreams_changed);
        gauge(&mut encoder, "upstreams_changed", help, changed)?;
        let help = "1 if the store answers, else 0";
        gauge(&mut encoder, "store_up", help, stored.is_some().into())?;
        if let Some(stored) = stored {
            stored.encode(&mut encoder)?;
        }
        if let Some(unread) = self.copies_unread {
            let help =
                "Copies of the checkpoint that could not be compared with the log at the start";
            gauge(&mut encoder, "log_copies_unread", help, number(unread))?;
        }
        witnesses(&self.scrape.witnesses, &mut encoder)?;
        let help = "Trace spans that were dropped because they could not be exported";
        let dropped =
            encoder.encode_descriptor("spans_dropped", help, None, MetricType::Counter)?;
        ConstCounter::new(self.spans_dropped).encode(dropped)?;
        let build =
            encoder.encode_descriptor("build", "Version of the program", None, MetricType::Info)?;
        Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]).encode(build)
    }
}

fn witnesses(states: &[WitnessState], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    if states.is_empty() {
        return Ok(());
    }
    let help = "Records under the newest checkpoint that the witness has cosigned since the start";
    let mut sizes = encoder.encode_descriptor("log_witness_size", help, None, MetricType::Gauge)?;
    for state in states {
        let labels = [("witness", &*state.name)];
        ConstGauge::new(number(state.size)).encode(sizes.encode_family(&labels)?)?;
    }
    let help = "1 if the witness has cosigned another history of the log, else 0";
    let mut forks =
        encoder.encode_descriptor("log_witness_refuses", help, None, MetricType::Gauge)?;
    for state in states {
        let labels = [("witness", &*state.name)];
        let refuses = matches!(state.trouble, Some(Trouble::Refuses(_)));
        ConstGauge::new(i64::from(refuses)).encode(forks.encode_family(&labels)?)?;
    }
    let help = "Attempts to get a cosignature that failed";
    let mut failures =
        encoder.encode_descriptor("log_witness_failures", help, None, MetricType::Counter)?;
    for state in states {
        counter(&mut failures, &[("witness", &*state.name)], state.failures)?;
    }
    Ok(())
}

pub(super) fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: i64,
) -> fmt::Result {
    let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(value).encode(gauge)
}

fn counter<const N: usize>(
    encoder: &mut MetricEncoder<'_>,
    labels: &[(&str, &str); N],
    count: u64,
) -> fmt::Result {
    ConstCounter::new(count).encode(encoder.encode_family(labels)?)
}

pub(super) fn number(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
