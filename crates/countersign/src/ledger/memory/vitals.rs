//! Health of the store in memory.

use std::future::ready;

use super::MemoryStore;
use crate::BoxFuture;
use crate::ledger::{COUNTED_MAX, ClaimState, Error, StoreKind, StoreVitals, Vitals};

impl Vitals for MemoryStore {
    fn vitals(&self) -> BoxFuture<'_, Result<StoreVitals, Error>> {
        let inner = self.lock();
        let records = inner.records.len() as u64;
        let in_doubt = inner
            .claims
            .iter()
            .filter(|(scope, row)| row.shown(scope).state == ClaimState::InDoubt);
        let vitals = StoreVitals {
            kind: StoreKind::Memory,
            is_writable: true,
            write_errors: 0,
            free_bytes: None,
            needed_bytes: None,
            records_waiting: records
                .saturating_sub(inner.tree.head().size)
                .min(COUNTED_MAX),
            newest_record: inner.records.last().map(|record| record.row.at),
            in_doubt: (in_doubt.count() as u64).min(COUNTED_MAX),
            passage: inner.believed(self.clock.now()),
        };
        drop(inner);
        Box::pin(ready(Ok(vitals)))
    }

    fn stored_bytes(&self) -> BoxFuture<'_, Result<Option<u64>, Error>> {
        Box::pin(ready(Ok(None)))
    }
}
