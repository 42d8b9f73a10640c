//! The disk guard: stops writes while there is still room to finish running calls.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::failure::Failure;

/// Measures the free space from time to time.
pub(super) struct Disk {
    needed_bytes: u64,
    probe: Probe,
    /// Time of the last check that found enough room.
    last: Mutex<Option<Instant>>,
}

/// Function that returns the free bytes; `None` if they cannot be measured, which stops nothing.
pub(super) type Probe = Box<dyn Fn() -> Option<u64> + Send + Sync>;

/// Interval between two measurements. A busy store writes some megabytes in this time.
const ASKED_EVERY: Duration = Duration::from_millis(100);

impl Disk {
    pub(super) fn new(needed_bytes: u64, probe: Probe) -> Self {
        Self {
            needed_bytes,
            probe,
            last: Mutex::default(),
        }
    }

    /// Returns a probe of the file system that this folder is on.
    pub(super) fn probe_of(folder: PathBuf) -> Probe {
        Box::new(move || {
            let stat = rustix::fs::statvfs(&folder).ok()?;
            Some(stat.f_bavail.saturating_mul(stat.f_frsize))
        })
    }

    /// Returns the free bytes now.
    pub(super) fn free_bytes(&self) -> Option<u64> {
        (self.probe)()
    }

    /// Returns the minimum free bytes.
    pub(super) fn needed_bytes(&self) -> u64 {
        self.needed_bytes
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        let mut asked_at = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if asked_at.is_some_and(|at| at.elapsed() < ASKED_EVERY) {
            return Ok(());
        }
        match (self.probe)() {
            // Not cached: the next check sees at once that there is room again.
            Some(free_bytes) if free_bytes < self.needed_bytes => Err(Failure::DiskLow {
                free_bytes,
                needed_bytes: self.needed_bytes,
            }),
            Some(_) | None => {
                *asked_at = Some(Instant::now());
                Ok(())
            }
        }
    }
}
