//! Health figures of the file.

use countersign::BoxFuture;
use countersign::ledger::{COUNTED_MAX, Error, StoreKind, StoreVitals, Vitals};
use rusqlite::{Connection, OptionalExtension as _};

use super::SqliteStore;
use super::failure::Failure;
use super::open::with_suffix;
use super::time::timestamp;
use super::timekeeping::believed;
use super::tip::head;
use super::values::{signed, unsigned};
use super::writer::Done;

impl Vitals for SqliteStore {
    fn vitals(&self) -> BoxFuture<'_, Result<StoreVitals, Error>> {
        let (free_bytes, needed_bytes) = (self.disk.free_bytes(), self.disk.needed_bytes());
        let clock = self.time.of_day();
        let counted = self.list(move |connection| {
            Ok((
                newest(connection)?,
                head(connection)?.0,
                in_doubt(connection)?,
                believed(connection, clock)?,
            ))
        });
        Box::pin(async move {
            let is_working = self.takes_writes().await;
            let (newest, size, in_doubt, passage) = counted.await?;
            let records = newest.map_or(0, |(place, _)| unsigned(place).saturating_add(1));
            Ok(StoreVitals {
                kind: StoreKind::Sqlite,
                is_writable: is_working && free_bytes.is_none_or(|free| free >= needed_bytes),
                write_errors: self.health.errors().saturating_add(self.sealer.errors()),
                free_bytes,
                needed_bytes: Some(needed_bytes),
                records_waiting: records.saturating_sub(size).min(COUNTED_MAX),
                newest_record: newest.map(|(_, at)| timestamp(at)),
                in_doubt,
                passage,
            })
        })
    }

    fn stored_bytes(&self) -> BoxFuture<'_, Result<Option<u64>, Error>> {
        let files = [self.path.clone(), with_suffix(&self.path, "-wal")];
        let sizes = files
            .iter()
            .map(|file| std::fs::metadata(file).map_or(0, |data| data.len()));
        let bytes = sizes.sum();
        Box::pin(std::future::ready(Ok(Some(bytes))))
    }
}

impl SqliteStore {
    /// True if writes work. After a failure a write is tried, because no caller may be writing.
    async fn takes_writes(&self) -> bool {
        if self.health.is_failing() {
            let probe = self.writer.run(|session| {
                let same = "UPDATE time_mark SET at = at WHERE one = 1";
                session.connection.execute(same, [])?;
                Ok(Done::Kept(()))
            });
            if probe.await.is_err() {
                return false;
            }
        }
        self.sealer.check().is_ok()
    }
}

/// Returns the place and the time of the newest record.
fn newest(connection: &Connection) -> Result<Option<(i64, i64)>, Failure> {
    let sql = "SELECT idx, at FROM record ORDER BY idx DESC LIMIT 1";
    let found = connection
        .prepare_cached(sql)?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional();
    Ok(found?)
}

fn in_doubt(connection: &Connection) -> Result<u64, Failure> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM claim WHERE state = 4 LIMIT ?1)";
    let count: i64 = connection
        .prepare_cached(sql)?
        .query_row([signed(COUNTED_MAX)], |row| row.get(0))?;
    Ok(unsigned(count))
}
