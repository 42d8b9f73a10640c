//! What the store says about itself: the one place that `/metrics` and `/readyz` ask it from.
//!
//! Both need no credential, so all of it is asked together, at most once an interval, with a number of queries
//! that does not grow with what is stored. A new figure of the store is a member of [`Stored`], a line in
//! [`collect`] and a line in `encode`: nothing else here may be asked for by a scrape.

use std::fmt;
use std::time::Duration;

use countersign::redact::error_text;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::text::{gauge, number};
use crate::gateway::Gateway;

/// How long whoever asks waits for the store.
const STORE_WAIT: Duration = Duration::from_secs(2);

/// What the store knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored {
    tree_size: u64,
    checkpoint_size: u64,
    checkpoint_age: Duration,
    /// None where they cannot be counted: that is no reason to take no calls.
    approvals_pending: Option<usize>,
}

impl Gateway {
    /// What the store knows, at most as old as the settings say; none where it does not answer.
    pub(crate) async fn stored(&self) -> Option<Stored> {
        let gateway = self.clone();
        let interval = self.settings().store_figures_interval;
        let known = self.metrics().stored();
        known.get(interval, STORE_WAIT, || collect(gateway)).await
    }
}

/// Asks the store.
async fn collect(gateway: Gateway) -> Option<Stored> {
    let archive = gateway.archive();
    // The newest checkpoint has to be one of ours.
    let (head, signed) = match (archive.head().await, archive.signed().await) {
        (Ok(head), Ok(signed)) => (head, signed),
        (Err(error), _) | (_, Err(error)) => {
            let error = error_text(&error);
            tracing::warn!(error, "the store does not answer");
            return None;
        }
    };
    let checkpoint_size = signed.map_or(0, |(checkpoint, _)| checkpoint.size);
    let approvals = gateway.executor().approvals();
    Some(Stored {
        tree_size: head.size,
        checkpoint_size,
        checkpoint_age: gateway.metrics().checkpoint_age(checkpoint_size),
        approvals_pending: approvals.pending().await.ok(),
    })
}

impl Stored {
    pub(super) fn encode(self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if let Some(pending) = self.approvals_pending {
            let help = "Approvals that nobody has answered";
            gauge(encoder, "approvals_pending", help, number(pending))?;
        }
        let help = "Records in the tree";
        gauge(encoder, "log_tree_size", help, number(self.tree_size))?;
        let help = "Records under the newest signed checkpoint";
        gauge(
            encoder,
            "log_checkpoint_size",
            help,
            number(self.checkpoint_size),
        )?;
        let help = "Since when the newest signed checkpoint is known";
        let unit = Some(&Unit::Seconds);
        let age = encoder.encode_descriptor("log_checkpoint_age", help, unit, MetricType::Gauge)?;
        ConstGauge::new(self.checkpoint_age.as_secs_f64()).encode(age)
    }
}
