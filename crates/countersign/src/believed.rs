//! The time by which permissions end. A clock that is set back brings none back.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::Clock;
use crate::ledger::{Error, Store};

/// Time for which the latest believed time of the store is relied on before it is read again.
const MARK_KEPT: Duration = Duration::from_secs(30);

/// The clock, but never before the latest time that the store has believed: API keys, approvals and grants end by it.
pub struct BelievedTime {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The latest believed time of the store, and when it was read, in the clock's monotonic time.
    mark: Mutex<Option<(Duration, Timestamp)>>,
}

impl BelievedTime {
    /// The time of this clock, and of what this store has believed.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            mark: Mutex::new(None),
        }
    }

    /// The time. It reads the store's mark at most twice a minute. While the store cannot be read, the mark of the last
    /// time counts; without one it fails.
    pub async fn now(&self) -> Result<Timestamp, Error> {
        let moment = self.clock.monotonic();
        let known = *self.mark();
        if known.is_none_or(|(read, _)| moment.saturating_sub(read) >= MARK_KEPT) {
            match (self.store.vitals().await, known) {
                (Ok(vitals), _) => {
                    let mark = vitals
                        .passage
                        .map_or(Timestamp::MIN, |passage| passage.mark);
                    let mark = known.map_or(mark, |(_, before)| before.max(mark));
                    *self.mark() = Some((moment, mark));
                }
                (Err(_), Some(_)) => {}
                (Err(error), None) => return Err(error),
            }
        }
        Ok(self.latest())
    }

    /// The time by the mark that was read last, for what is only shown.
    pub fn latest(&self) -> Timestamp {
        let mark = self.mark().map_or(Timestamp::MIN, |(_, mark)| mark);
        self.clock.now().max(mark)
    }

    fn mark(&self) -> MutexGuard<'_, Option<(Duration, Timestamp)>> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for BelievedTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BelievedTime({})", self.latest())
    }
}
