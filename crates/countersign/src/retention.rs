//! Retention of payloads, by class. The tree keeps every record for ever; this is about the content that was sent and
//! answered.

use std::time::Duration;

use countersign_contract::Retention;

/// Retention of each class; `None` for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionPlan {
    /// Payloads that are soon of no use: look-ups, refusals.
    pub short: Option<Duration>,
    /// Payloads that a draft order rests on.
    pub standard: Option<Duration>,
    /// Payloads that a dispute may need.
    pub long: Option<Duration>,
}

impl RetentionPlan {
    /// Retention of a class.
    pub const fn of(&self, class: Retention) -> Option<Duration> {
        match class {
            Retention::Short => self.short,
            Retention::Standard => self.standard,
            Retention::Long => self.long,
        }
    }
}

const DAY: u64 = 24 * 60 * 60;

/// Defaults to 30 days, 90 days and two years.
impl Default for RetentionPlan {
    fn default() -> Self {
        Self {
            short: Some(Duration::from_secs(30 * DAY)),
            standard: Some(Duration::from_secs(90 * DAY)),
            long: Some(Duration::from_secs(730 * DAY)),
        }
    }
}
