//! Errors that repeat: a store that is away fails every call, and the program's log says so once in a while, with a
//! count.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time for which an error that repeats is only counted.
const QUIET: Duration = Duration::from_secs(10);

static LAST: Mutex<Option<Last>> = Mutex::new(None);

struct Last {
    /// The error without its figures, such as the bytes that a disk has left.
    error: String,
    told_at: Instant,
    /// Number of times since then.
    repeats: u64,
}

/// Logs an error, or counts it if it was logged a moment ago.
pub(super) fn tell(error: &str) {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(repeats) = counted(&mut last, error, Instant::now()) {
        tracing::error!(
            error,
            repeats,
            "the store or another part behind the executor failed, so the call was not completed"
        );
    }
}

/// Number of repeats that were not logged, if this one is to be logged.
fn counted(last: &mut Option<Last>, error: &str, now: Instant) -> Option<u64> {
    let shape: String = error.chars().filter(|c| !c.is_ascii_digit()).collect();
    if let Some(last) = last
        && last.error == shape
        && now.saturating_duration_since(last.told_at) < QUIET
    {
        last.repeats += 1;
        return None;
    }
    let before = last.replace(Last {
        error: shape,
        told_at: now,
        repeats: 0,
    });
    Some(before.map_or(0, |before| before.repeats))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_repeats_is_one_line_with_a_count() {
        let mut last = None;
        let start = Instant::now();
        let mut at =
            |seconds, error: &str| counted(&mut last, error, start + Duration::from_secs(seconds));
        assert_eq!(at(0, "the disk has 17 bytes left"), Some(0));
        for _ in 0..100 {
            assert_eq!(at(1, "the disk has 3 bytes left"), None);
        }
        assert_eq!(at(10, "the disk has 5 bytes left"), Some(100));
        assert_eq!(at(11, "the store is closed"), Some(0));
        assert_eq!(at(12, "the disk has 5 bytes left"), Some(0));
    }
}
