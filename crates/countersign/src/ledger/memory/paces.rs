//! Paces in memory.

use std::future::ready;

use super::MemoryStore;
use crate::BoxFuture;
use crate::ledger::{Error, Pace, PaceAnswer, Paces};

impl Paces for MemoryStore {
    fn keep_pace<'a>(&'a self, paces: &'a [Pace]) -> BoxFuture<'a, Result<PaceAnswer, Error>> {
        let answer = self.tally.count(paces, self.clock.monotonic());
        Box::pin(ready(Ok(answer)))
    }
}
