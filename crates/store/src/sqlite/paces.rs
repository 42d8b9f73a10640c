//! Paces (rate limits) of a store in a file. Only one process has the file open, so its counters in memory are
//! the complete ones; and a counter need not survive the process.

use std::future::ready;
use std::time::Duration;

use countersign::BoxFuture;
use countersign::ledger::{Error, Pace, PaceAnswer, PaceKey, Paces};

use super::SqliteStore;

impl Paces for SqliteStore {
    fn keep_pace<'a>(&'a self, paces: &'a [Pace]) -> BoxFuture<'a, Result<PaceAnswer, Error>> {
        Box::pin(ready(Ok(self.tally.count(paces, self.moment()))))
    }

    fn until_whole<'a>(&'a self, key: &'a PaceKey) -> BoxFuture<'a, Result<Duration, Error>> {
        Box::pin(ready(Ok(self.tally.until_whole(key, self.moment()))))
    }
}

impl SqliteStore {
    fn moment(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.time.now()).unwrap_or_default())
    }
}
