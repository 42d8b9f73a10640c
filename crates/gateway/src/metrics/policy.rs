//! Metrics of the policy file and the configuration file: whether the files on disk are in force.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

use super::text::gauge;

/// State of the policy file at the time of a scrape.
#[derive(Debug, Clone, Copy)]
pub(super) struct PolicyText {
    pub(super) rejections: u64,
    /// `None` if there is no file.
    pub(super) is_file_in_force: Option<bool>,
    /// `None` if there is no configuration file.
    pub(super) is_config_refused: Option<bool>,
}

impl Collector for PolicyText {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Policy files rejected since the process started";
        let rejected =
            encoder.encode_descriptor("policy_rejections", help, None, MetricType::Counter)?;
        ConstCounter::new(self.rejections).encode(rejected)?;
        if let Some(is_refused) = self.is_config_refused {
            let help = "1 if the configuration file on disk was rejected and the earlier one stays in force";
            gauge(&mut encoder, "config_refused", help, is_refused.into())?;
        }
        let Some(is_in_force) = self.is_file_in_force else {
            return Ok(());
        };
        let help = "1 if the policy file on disk is in force, 0 if it was rejected";
        gauge(
            &mut encoder,
            "policy_file_in_force",
            help,
            is_in_force.into(),
        )
    }
}
