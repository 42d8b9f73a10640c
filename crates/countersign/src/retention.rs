//! For how long payloads are kept, by class. The tree keeps every record for ever; this is about what
//! was really sent and answered.

use std::time::Duration;

use countersign_contract::Retention;

/// How long each class is; none for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionPlan {
    /// Of no use soon: look-ups, refusals.
    pub short: Option<Duration>,
    /// What a draft order rests on.
    pub standard: Option<Duration>,
    /// What a dispute may ask for.
    pub long: Option<Duration>,
}

impl RetentionPlan {
    /// How long a class is.
    pub const fn of(&self, class: Retention) -> Option<Duration> {
        match class {
            Retention::Short => self.short,
            Retention::Standard => self.standard,
            Retention::Long => self.long,
        }
    }
}

const DAY: u64 = 24 * 60 * 60;

/// 30 days, 90 days and two years.
impl Default for RetentionPlan {
    fn default() -> Self {
        Self {
            short: Some(Duration::from_secs(30 * DAY)),
            standard: Some(Duration::from_secs(90 * DAY)),
            long: Some(Duration::from_secs(730 * DAY)),
        }
    }
}
