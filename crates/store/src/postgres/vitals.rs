//! Health figures of the database.

use countersign::BoxFuture;
use countersign::ledger::{COUNTED_MAX, Error, Passage, StoreKind, StoreVitals, Vitals};

use super::failure::Failure;
use super::records::timestamp;
use super::{PostgresStore, signed, unsigned};

/// Reads the figures as one row, by indexes only.
const VITALS: &str = "SELECT \
     current_setting('transaction_read_only') = 'off' AND NOT pg_is_in_recovery() AS is_writable, \
     (SELECT count(*) FROM (SELECT 1 FROM outbox LIMIT $1) w) AS waiting, \
     (SELECT max(at_ns) FROM record) AS newest, \
     (SELECT count(*) FROM (SELECT 1 FROM claim WHERE state = 4 LIMIT $1) d) AS in_doubt, \
     (SELECT at FROM time_mark WHERE one = 1) AS mark, now() AS clock";

impl Vitals for PostgresStore {
    fn vitals(&self) -> BoxFuture<'_, Result<StoreVitals, Error>> {
        Box::pin(async move {
            let found = self.read(VITALS, &[&signed(COUNTED_MAX)]).await?;
            let row = found
                .first()
                .ok_or_else(|| Failure::damaged("the state of the database"))?;
            let newest: Option<i64> = row.get("newest");
            let is_working = self.inner.appender.check().is_ok() && self.takes_writes().await;
            Ok(StoreVitals {
                kind: StoreKind::Postgres,
                is_writable: row.get("is_writable") && !self.inner.guard.is_broken() && is_working,
                write_errors: self.inner.appender.errors() + self.inner.health.errors(),
                // The disk belongs to the server and cannot be measured here.
                free_bytes: None,
                needed_bytes: None,
                records_waiting: unsigned(row.get("waiting")),
                newest_record: newest.map(timestamp),
                in_doubt: unsigned(row.get("in_doubt")),
                passage: row.get::<_, Option<_>>("mark").map(|mark| Passage {
                    mark,
                    clock: row.get("clock"),
                }),
            })
        })
    }

    fn stored_bytes(&self) -> BoxFuture<'_, Result<Option<u64>, Error>> {
        const SIZE: &str = "SELECT pg_database_size(current_database()) AS bytes";
        Box::pin(async move {
            let found = self.read(SIZE, &[]).await?;
            Ok(found.first().map(|row| unsigned(row.get("bytes"))))
        })
    }
}

impl PostgresStore {
    /// True if commits work. After a failure a write is tried, because no caller may be writing.
    async fn takes_writes(&self) -> bool {
        const PROBE: &str = "UPDATE time_mark SET at = at WHERE one = 1";
        if !self.inner.health.is_failing() {
            return true;
        }
        let works = self.run(PROBE, &[]).await.is_ok();
        if works {
            self.inner.health.works();
        }
        works
    }
}
