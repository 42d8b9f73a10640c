//! Figures of the store: the only place from which `/metrics` and `/readyz` query it.
//!
//! Both need no credential, so all figures are queried together, at most once an interval, with a number of
//! queries that does not grow with the stored data. A new figure of the store is a member of [`Stored`], a line
//! in [`collect`] and a line in `encode`: a scrape must not query anything else.

use std::fmt;
use std::time::Duration;

use countersign::archive;
use countersign::ledger::StoreVitals;
use countersign::redact::error_text;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::text::{gauge, number};
use crate::gateway::Gateway;

/// Time limit for the store's answer.
const STORE_WAIT: Duration = Duration::from_secs(2);

/// Figures of the store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored {
    pub(crate) tree_size: u64,
    pub(crate) checkpoint_size: u64,
    pub(crate) checkpoint_age: Duration,
    pub(crate) vitals: StoreVitals,
    /// `None` if they cannot be counted, which is no reason to refuse calls.
    pub(crate) approvals_pending: Option<usize>,
}

impl Gateway {
    /// Returns the figures of the store, at most as old as the settings say; `None` if it does not answer.
    pub(crate) async fn stored(&self) -> Option<Stored> {
        let gateway = self.clone();
        let interval = self.settings().store_figures_interval;
        let known = self.metrics().stored();
        known.get(interval, STORE_WAIT, || collect(gateway)).await
    }
}

/// Queries the store.
async fn collect(gateway: Gateway) -> Option<Stored> {
    let archive = gateway.archive();
    // The newest checkpoint must be signed by this log.
    let asked = async {
        let vitals = gateway.executor().store().vitals().await?;
        Ok::<_, archive::Error>((archive.head().await?, archive.signed().await?, vitals))
    };
    let (head, signed, vitals) = match asked.await {
        Ok(found) => found,
        Err(error) => {
            let error = error_text(&error);
            tracing::warn!(error, "the store did not answer the health check");
            return None;
        }
    };
    let checkpoint_size = signed.map_or(0, |(checkpoint, _)| checkpoint.size);
    let approvals = gateway.executor().approvals();
    Some(Stored {
        tree_size: head.size,
        checkpoint_size,
        checkpoint_age: gateway.metrics().checkpoint_age(checkpoint_size),
        vitals,
        approvals_pending: approvals.pending().await.ok(),
    })
}

impl Stored {
    /// Returns the number of all records, in the tree or not.
    pub(crate) fn records(self) -> u64 {
        self.tree_size.saturating_add(self.vitals.records_waiting)
    }

    /// Returns the number of records that no checkpoint covers.
    pub(crate) fn unsigned(self) -> u64 {
        self.records().saturating_sub(self.checkpoint_size)
    }

    pub(super) fn encode(self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if let Some(pending) = self.approvals_pending {
            let help = "Approvals that wait for an answer";
            gauge(encoder, "approvals_pending", help, number(pending))?;
        }
        let help = "Records in the evidence log";
        gauge(encoder, "log_tree_size", help, number(self.tree_size))?;
        let help = "Records covered by the newest signed checkpoint";
        gauge(
            encoder,
            "log_checkpoint_size",
            help,
            number(self.checkpoint_size),
        )?;
        let help = "Committed records that are not signed yet";
        gauge(
            encoder,
            "log_unsigned_records",
            help,
            number(self.unsigned()),
        )?;
        encode_vitals(self.vitals, encoder)?;
        let help = "Time since the newest signed checkpoint was first seen";
        let unit = Some(&Unit::Seconds);
        let age = encoder.encode_descriptor("log_checkpoint_age", help, unit, MetricType::Gauge)?;
        ConstGauge::new(self.checkpoint_age.as_secs_f64()).encode(age)
    }
}

fn encode_vitals(vitals: StoreVitals, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Calls whose effect may or may not have happened, counted up to 10000";
    gauge(encoder, "calls_in_doubt", help, number(vitals.in_doubt))?;
    let help = "1 if the store accepts writes, else 0";
    gauge(encoder, "store_writable", help, vitals.is_writable.into())?;
    let help = "Writes that failed since the store was opened";
    gauge(
        encoder,
        "store_write_errors",
        help,
        number(vitals.write_errors),
    )?;
    if let Some(newest) = vitals.newest_record {
        let help = "When the newest record was written: the last successful commit";
        let unit = Some(&Unit::Seconds);
        let at = encoder.encode_descriptor("store_last_commit", help, unit, MetricType::Gauge)?;
        ConstGauge::new(newest.as_second()).encode(at)?;
    }
    if let Some(passage) = vitals.passage {
        let help =
            "1 where the clock disagrees with the last time that was believed: nothing is removed";
        gauge(
            encoder,
            "store_clock_jumped",
            help,
            passage.jump().is_some().into(),
        )?;
    }
    if let Some(free) = vitals.free_bytes {
        let help = "Free bytes on the disk of the store";
        gauge(encoder, "store_free_bytes", help, number(free))?;
    }
    if let Some(needed) = vitals.needed_bytes {
        let help = "Bytes that must stay free on the disk; with less, the store refuses writes";
        gauge(encoder, "store_needed_bytes", help, number(needed))?;
    }
    Ok(())
}
