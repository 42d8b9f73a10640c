//! Ids as an argument: random ones for production, counted ones for tests and replay.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use countersign_contract::{RequestId, SnapshotId};
use uuid::Uuid;

use crate::clock::{Clock, SystemClock};

/// The executor's source of ids.
pub trait IdSource: Send + Sync + 'static {
    /// An id for a call that came without one.
    fn request_id(&self) -> RequestId;

    /// An id for the evidence of a call.
    fn snapshot_id(&self) -> SnapshotId;

    /// An id for a question that a person has to answer.
    fn approval_id(&self) -> String;

    /// An id for a standing grant.
    fn grant_id(&self) -> String;

    /// An id for a call that came without a trace; never zero.
    fn trace_id(&self) -> u128;

    /// An id for a hop of a trace; never zero.
    fn span_id(&self) -> u64;

    /// Fills keys, salts and nonces: they must not be guessable, and must not repeat.
    fn fill(&self, bytes: &mut [u8]);
}

/// Ids from the system's randomness; those of requests and snapshots sort by time (UUID
/// version 7).
///
/// Randomness is drawn in batches a thread, so that a call costs no system call.
pub struct RandomIds {
    clock: Arc<dyn Clock>,
}

impl RandomIds {
    /// Ids that sort by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }

    fn uuid(&self) -> Uuid {
        let millis = u64::try_from(self.clock.now().as_millisecond()).unwrap_or_default();
        uuid::Builder::from_unix_timestamp_millis(millis, &random::<10>()).into_uuid()
    }
}

impl Default for RandomIds {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock::new()))
    }
}

impl fmt::Debug for RandomIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RandomIds")
    }
}

impl IdSource for RandomIds {
    fn request_id(&self) -> RequestId {
        let mut buffer = *b"req_00000000-0000-0000-0000-000000000000";
        RequestId::new(with_uuid(&mut buffer, self.uuid()))
            .expect("a prefix and a UUID are visible ASCII")
    }

    fn snapshot_id(&self) -> SnapshotId {
        let mut buffer = *b"ev_00000000-0000-0000-0000-000000000000";
        SnapshotId::new(with_uuid(&mut buffer, self.uuid()))
            .expect("a UUID has only digits, letters and dashes")
    }

    fn approval_id(&self) -> String {
        // Nobody may guess one, so there is no time in it.
        format!("ap_{:032x}", u128::from_ne_bytes(random()))
    }

    fn grant_id(&self) -> String {
        format!("gr_{:032x}", u128::from_ne_bytes(random()))
    }

    fn trace_id(&self) -> u128 {
        u128::from_ne_bytes(random()).max(1)
    }

    fn span_id(&self) -> u64 {
        u64::from_ne_bytes(random()).max(1)
    }

    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(32) {
            let drawn: [u8; 32] = random();
            chunk.copy_from_slice(drawn.get(..chunk.len()).unwrap_or_default());
        }
    }
}

/// Ids that count from one: the same run gives the same ids. Keys and salts count too, so data that is sealed with them
/// is not secret; for tests and replay only.
#[derive(Debug, Default)]
pub struct SequentialIds {
    requests: AtomicU64,
    snapshots: AtomicU64,
    approvals: AtomicU64,
    grants: AtomicU64,
    traces: AtomicU64,
    spans: AtomicU64,
    fills: AtomicU64,
}

impl SequentialIds {
    /// Every kind of id starts at one.
    pub fn new() -> Self {
        Self::default()
    }
}

impl IdSource for SequentialIds {
    fn request_id(&self) -> RequestId {
        RequestId::new(format!("req_{}", next(&self.requests))).expect("letters and digits")
    }

    fn snapshot_id(&self) -> SnapshotId {
        SnapshotId::new(format!("ev_{}", next(&self.snapshots))).expect("letters and digits")
    }

    fn approval_id(&self) -> String {
        format!("ap_{}", next(&self.approvals))
    }

    fn grant_id(&self) -> String {
        format!("gr_{}", next(&self.grants))
    }

    fn trace_id(&self) -> u128 {
        next(&self.traces).into()
    }

    fn span_id(&self) -> u64 {
        next(&self.spans)
    }

    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let counted = next(&self.fills).to_be_bytes();
            chunk.copy_from_slice(counted.get(..chunk.len()).unwrap_or_default());
        }
    }
}

fn next(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Ordering::Relaxed) + 1
}

/// Writes the UUID over the last 36 bytes of a prefixed template.
fn with_uuid(template: &mut [u8], uuid: Uuid) -> &str {
    if let Some(tail) = template.last_chunk_mut::<36>() {
        uuid.hyphenated().encode_lower(tail);
    }
    std::str::from_utf8(template).expect("the template and a UUID are ASCII")
}

/// Number of random bytes that are drawn at once.
const BATCH: usize = 2048;

struct Batch {
    bytes: [u8; BATCH],
    used: usize,
}

thread_local! {
    static RANDOM: RefCell<Batch> = const { RefCell::new(Batch { bytes: [0; BATCH], used: BATCH }) };
}

/// # Panics
///
/// If the system has no randomness: ids that may repeat are worse than no service.
fn random<const N: usize>() -> [u8; N] {
    RANDOM.with_borrow_mut(|batch| {
        if batch.bytes.len() - batch.used < N {
            getrandom::fill(&mut batch.bytes).expect("the system gives randomness");
            batch.used = 0;
        }
        let mut taken = [0; N];
        if let Some(next) = batch.bytes.get_mut(batch.used..batch.used + N) {
            taken.copy_from_slice(next);
            // What was handed out must not stay readable in memory that lives as long as the thread.
            next.fill(0);
            batch.used += N;
        }
        taken
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// A2: ids do not repeat, also across the end of a batch.
    #[test]
    fn random_ids_are_unique_and_sort_by_time() {
        let ids = RandomIds::default();
        let drawn: Vec<_> = (0..1_000).map(|_| ids.request_id()).collect();
        assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), drawn.len());
        let prefix = |id: &RequestId| id.as_str()[..17].to_owned();
        assert!(
            drawn
                .windows(2)
                .all(|pair| prefix(&pair[0]) <= prefix(&pair[1]))
        );
        assert!(ids.snapshot_id().as_str().starts_with("ev_"));
        assert!(ids.approval_id().starts_with("ap_"));
    }
}
