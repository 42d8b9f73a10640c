//! Paces in memory.

use std::future::ready;
use std::time::Duration;

use super::MemoryStore;
use crate::BoxFuture;
use crate::ledger::{Error, Pace, PaceAnswer, PaceKey, Paces};

impl Paces for MemoryStore {
    fn keep_pace<'a>(&'a self, paces: &'a [Pace]) -> BoxFuture<'a, Result<PaceAnswer, Error>> {
        let answer = self.tally.count(paces, self.clock.monotonic());
        Box::pin(ready(Ok(answer)))
    }

    fn until_whole<'a>(&'a self, key: &'a PaceKey) -> BoxFuture<'a, Result<Duration, Error>> {
        let wait = self.tally.until_whole(key, self.clock.monotonic());
        Box::pin(ready(Ok(wait)))
    }
}
