//! The time that is believed, and the removal of what is past its time. The clock is the server's.

use countersign::BoxFuture;
use countersign::ledger::{
    Disposal, Disposed, Error, Forgotten, Names, Passage, Removed, Timekeeping, Told,
};
use deadpool_postgres::Transaction;
use jiff::Timestamp;

use super::connect::within;
use super::failure::Failure;
use super::log::erase::{keep, prune};
use super::{PostgresStore, claims, pots, rows};

/// Locks the mark, so that one process at a time judges the clock.
const LOCK_MARK: &str = "SELECT \
       coalesce(at, (SELECT to_timestamp(max(at_ns) / 1000000000.0) FROM record), now()) AS mark, \
       now() AS clock, is_told, at IS NULL AS is_new FROM time_mark WHERE one = 1 FOR UPDATE";

const SET_MARK: &str = "UPDATE time_mark SET at = $1, is_told = $2 WHERE one = 1";

impl Timekeeping for PostgresStore {
    fn observe_time(&self, told: Told<Passage>) -> BoxFuture<'_, Result<Passage, Error>> {
        Box::pin(async move { Ok(within(self.patience() * 2, self.observe(&told)).await?) })
    }

    fn trust_time(&self, told: Told<Passage>) -> BoxFuture<'_, Result<Passage, Error>> {
        Box::pin(async move { Ok(within(self.patience() * 2, self.trust(&told)).await?) })
    }

    fn dispose(&self, limit: usize, told: Told<Removed>) -> BoxFuture<'_, Result<Disposal, Error>> {
        Box::pin(
            async move { Ok(within(self.patience() * 2, self.dispose_now(limit, &told)).await?) },
        )
    }

    fn forget_keys<'a>(
        &'a self,
        which: &'a Forgotten,
        told: Told<Names>,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        Box::pin(async move { Ok(within(self.patience() * 2, self.forget(which, &told)).await?) })
    }
}

impl PostgresStore {
    async fn observe(&self, told: &Told<Passage>) -> Result<Passage, Failure> {
        let mut client = self.client().await?;
        // This is asked every few seconds, so a setting that was changed is noticed soon.
        self.inner.guard.check(&client).await?;
        self.inner.guard.look_for_standbys(&client).await;
        let transaction = client.transaction().await?;
        let Marked {
            passage,
            is_told,
            is_new,
        } = locked(&transaction).await?;
        let has_jumped = passage.jump().is_some();
        if has_jumped != is_told {
            keep(&transaction, &told(&passage), &self.inner.leaves).await?;
        }
        if is_new || has_jumped != is_told || passage.moves_mark() {
            let moved = if has_jumped {
                passage.mark
            } else {
                passage.clock
            };
            set_mark(&transaction, moved, has_jumped).await?;
            transaction.commit().await?;
        } else {
            // Nothing has changed, so an idle store costs no commit.
            transaction.rollback().await?;
        }
        Ok(passage)
    }

    async fn trust(&self, told: &Told<Passage>) -> Result<Passage, Failure> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        let passage = locked(&transaction).await?.passage;
        keep(&transaction, &told(&passage), &self.inner.leaves).await?;
        set_mark(&transaction, passage.clock, false).await?;
        transaction.commit().await?;
        Ok(passage)
    }

    async fn dispose_now(&self, limit: usize, told: &Told<Removed>) -> Result<Disposal, Failure> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        let passage = locked(&transaction).await?.passage;
        if passage.jump().is_some() {
            transaction.rollback().await?;
            return Ok(Disposal::Stopped(passage));
        }
        let limit = rows(limit);
        let payloads = prune(&transaction, limit).await?;
        let disposed = Disposed {
            payloads: payloads.len(),
            replies: claims::drop_replies(&transaction, limit).await?,
            pots: pots::drop_old(&transaction, limit).await?,
        };
        if disposed.is_empty() {
            transaction.rollback().await?;
        } else {
            let removed = Removed {
                counts: disposed,
                payloads,
            };
            keep(&transaction, &told(&removed), &self.inner.leaves).await?;
            transaction.commit().await?;
        }
        Ok(Disposal::Done(disposed))
    }

    async fn forget(&self, which: &Forgotten, told: &Told<Names>) -> Result<usize, Failure> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        let forgotten = claims::forget(&transaction, which).await?;
        if !forgotten.is_empty() {
            keep(&transaction, &told(&forgotten), &self.inner.leaves).await?;
        }
        transaction.commit().await?;
        Ok(forgotten.len())
    }
}

/// The mark beside the clock.
struct Marked {
    passage: Passage,
    /// True if the log says that they disagree.
    is_told: bool,
    /// True if there was no mark yet.
    is_new: bool,
}

async fn locked(transaction: &Transaction<'_>) -> Result<Marked, Failure> {
    let row = transaction.query_opt(LOCK_MARK, &[]).await?;
    let row = row.ok_or_else(|| Failure::damaged("the latest time that was believed"))?;
    let passage = Passage {
        mark: row.get("mark"),
        clock: row.get("clock"),
    };
    Ok(Marked {
        passage,
        is_told: row.get("is_told"),
        is_new: row.get("is_new"),
    })
}

async fn set_mark(
    transaction: &Transaction<'_>,
    at: Timestamp,
    is_told: bool,
) -> Result<(), Failure> {
    transaction.execute(SET_MARK, &[&at, &is_told]).await?;
    Ok(())
}
