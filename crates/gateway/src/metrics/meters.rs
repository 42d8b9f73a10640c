//! The counters of one tool. They are arrays indexed by the closed codes, so that counting a call neither
//! hashes nor allocates.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use countersign::contract::ErrorCode;
use countersign::contract::issue::IssueCode;
use countersign::contract::record::PhaseTimes;
use countersign::observe::Answered;
use prometheus_client::encoding::MetricEncoder;
use prometheus_client::encoding::NoLabelSet;

/// Upper bounds of the buckets: from a read from memory to a person who takes a minute to confirm.
const BOUNDS_US: [u64; 15] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 1_000_000, 5_000_000,
    15_000_000, 60_000_000,
];

/// Histogram of durations.
#[derive(Debug, Default)]
pub(super) struct Durations {
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

impl Durations {
    fn observe(&self, us: u64) {
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    pub(super) fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        let bounds = BOUNDS_US.iter().map(|bound| seconds(*bound));
        let bounds = bounds.chain([f64::INFINITY]);
        let counts = self
            .buckets
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<_> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = seconds(self.sum_us.load(Ordering::Relaxed));
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a sum of durations loses its last microseconds after 285 years"
)]
fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

/// All counters of one tool.
#[derive(Debug)]
pub(super) struct ToolMeters {
    /// Number of successful calls, followed by one number for each error code.
    calls: [AtomicU64; ErrorCode::ALL.len() + 1],
    issues: [AtomicU64; IssueCode::ALL.len()],
    replays: AtomicU64,
    queued: Durations,
    awaiting_approval: Durations,
    executing: Durations,
    settling: Durations,
}

impl Default for ToolMeters {
    fn default() -> Self {
        Self {
            calls: Default::default(),
            issues: std::array::from_fn(|_| AtomicU64::new(0)),
            replays: AtomicU64::new(0),
            queued: Durations::default(),
            awaiting_approval: Durations::default(),
            executing: Durations::default(),
            settling: Durations::default(),
        }
    }
}

impl ToolMeters {
    pub(super) fn count(&self, answered: &Answered) {
        let place = answered.code.map_or(0, |code| code as usize + 1);
        add(self.calls.get(place), 1);
        if answered.replayed {
            add(Some(&self.replays), 1);
        }
        for (issue, count) in &answered.binding.issues {
            add(self.issues.get(*issue as usize), (*count).into());
        }
        let PhaseTimes {
            queued_us,
            awaiting_approval_us,
            executing_us,
            settling_us,
        } = answered.phases;
        self.queued.observe(queued_us);
        self.settling.observe(settling_us);
        // Calls that needed no approval, or never ran, would hide the others in the histogram.
        if awaiting_approval_us > 0 {
            self.awaiting_approval.observe(awaiting_approval_us);
        }
        if executing_us > 0 {
            self.executing.observe(executing_us);
        }
    }

    /// Returns every code, also those that have not occurred: a rate needs the zero before the first.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let codes = ErrorCode::ALL.into_iter().map(ErrorCode::as_str);
        let counts = self.calls.iter().map(|count| count.load(Ordering::Relaxed));
        std::iter::once("OK").chain(codes).zip(counts)
    }

    /// Returns the issues that have occurred: there are too many codes to show all of them for every tool.
    pub(super) fn issues(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let codes = IssueCode::ALL.into_iter().map(IssueCode::as_str);
        let counts = self
            .issues
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        codes.zip(counts).filter(|(_, count)| *count > 0)
    }

    pub(super) fn replays(&self) -> u64 {
        self.replays.load(Ordering::Relaxed)
    }

    pub(super) fn phases(&self) -> [(&'static str, &Durations); 4] {
        [
            ("queued", &self.queued),
            ("awaiting_approval", &self.awaiting_approval),
            ("executing", &self.executing),
            ("settling", &self.settling),
        ]
    }
}

fn add(counter: Option<&AtomicU64>, count: u64) {
    if let Some(counter) = counter {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arrays are indexed by the codes themselves.
    #[test]
    fn codes_stand_at_their_places() {
        for (place, code) in ErrorCode::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, place, "{code}");
        }
        for (place, code) in IssueCode::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, place, "{}", code.as_str());
        }
    }

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        let durations = Durations::default();
        for us in [0, 50, 51, 60_000_000, 60_000_001, u64::MAX / 2] {
            durations.observe(us);
        }
        let count = |place: usize| durations.buckets[place].load(Ordering::Relaxed);
        assert_eq!((count(0), count(1), count(14), count(15)), (2, 1, 1, 2));
    }
}
