//! Waits between the attempts of a call.

use std::time::Duration;

use crate::manifest::Retries;

/// The wait after an attempt, for a random id: between half and one and a half of the mean, so that callers do not come back together.
pub(crate) fn wait(retries: &Retries, attempt: u32, id: &str) -> Duration {
    spread(retries, attempt, jitter(id))
}

fn spread(retries: &Retries, attempt: u32, jitter: u64) -> Duration {
    let doubled = 1 << attempt.saturating_sub(1).min(16);
    let mean = retries.backoff_ms.saturating_mul(doubled);
    // One and a half of it is the longest wait.
    let most = retries.backoff_max_ms - retries.backoff_max_ms / 3;
    let mean = mean.min(most);
    Duration::from_millis(mean / 2 + mean.saturating_mul(jitter) / JITTER_END)
}

/// All jitter is below this number.
const JITTER_END: u64 = 1_000;

/// A number that differs for each random id.
fn jitter(id: &str) -> u64 {
    id.bytes()
        .fold(0, |sum, byte| (sum * 31 + u64::from(byte)) % JITTER_END)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B17: a wait is within its bounds, doubles, and never exceeds the longest one.
    #[test]
    fn waits_are_within_their_bounds() {
        let retries = Retries {
            attempts_max: 9,
            backoff_ms: 100,
            backoff_max_ms: 1_200,
            budget_percent: 20,
        };
        let range = |attempt: u32| {
            let waits = (0..JITTER_END).map(|jitter| spread(&retries, attempt, jitter).as_millis());
            let waits: Vec<_> = waits.collect();
            (waits.iter().min().copied(), waits.iter().max().copied())
        };
        assert_eq!(range(1), (Some(50), Some(149)));
        assert_eq!(range(2), (Some(100), Some(299)));
        assert_eq!(range(3), (Some(200), Some(599)));
        assert_eq!(range(5), (Some(400), Some(1_199)));
        assert_eq!(range(u32::MAX), range(5));
    }

    /// B17: two callers rarely wait equally long.
    #[test]
    fn jitter_is_spread() {
        let ids =
            (0..2_000_u64).map(|at| format!("{:016x}", at.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let drawn: Vec<u64> = ids.map(|id| jitter(&id)).collect();
        assert!(drawn.iter().all(|own| *own < JITTER_END));
        for tenth in 0..10 {
            let own = drawn
                .iter()
                .filter(|own| **own / (JITTER_END / 10) == tenth);
            let count = own.count();
            assert!((100..=300).contains(&count), "{tenth}: {count}");
        }
    }
}
