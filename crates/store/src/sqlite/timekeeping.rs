//! The time that is believed, and the removal of what is past its time.

use countersign::BoxFuture;
use countersign::ledger::{
    Disposal, Disposed, Error, Forgotten, Names, Passage, Removed, Timekeeping, Told,
};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::claims;
use super::failure::Failure;
use super::log::entry::{Sealed, keep};
use super::log::prune;
use super::pots;
use super::time::{micros, timestamp};
use super::values::bounded;
use super::writer::{Done, Session};

impl Timekeeping for SqliteStore {
    fn observe_time(&self, told: Told<Passage>) -> BoxFuture<'_, Result<Passage, Error>> {
        let time = self.time.clone();
        Box::pin(async move {
            let observed = self.writer.run(move |session| {
                let Marked {
                    passage,
                    is_told,
                    is_new,
                } = marked(session.connection, time.of_day())?;
                let has_jumped = passage.jump().is_some();
                if has_jumped != is_told {
                    keep(session, &Sealed::from(told(&passage)))?;
                }
                if is_new || has_jumped != is_told || passage.moves_mark() {
                    let moved = if has_jumped {
                        passage.mark
                    } else {
                        passage.clock
                    };
                    set_mark(session.connection, micros(moved), has_jumped)?;
                }
                Ok(Done::Kept(passage))
            });
            Ok(observed.await?)
        })
    }

    fn trust_time(&self, told: Told<Passage>) -> BoxFuture<'_, Result<Passage, Error>> {
        let time = self.time.clone();
        Box::pin(async move {
            let trusted = self.writer.run(move |session| {
                let passage = marked(session.connection, time.of_day())?.passage;
                keep(session, &Sealed::from(told(&passage)))?;
                set_mark(session.connection, micros(passage.clock), false)?;
                Ok(Done::Kept(passage))
            });
            Ok(trusted.await?)
        })
    }

    fn dispose(&self, limit: usize, told: Told<Removed>) -> BoxFuture<'_, Result<Disposal, Error>> {
        let time = self.time.clone();
        Box::pin(async move {
            let disposed = self.writer.run(move |session| {
                let passage = marked(session.connection, time.of_day())?.passage;
                if passage.jump().is_some() {
                    return Ok(Done::Kept(Disposal::Stopped(passage)));
                }
                // The earlier of the two: neither may remove anything alone.
                let now = session.now.min(micros(passage.clock));
                let removed = dispose(session, now, limit)?;
                if !removed.counts.is_empty() {
                    keep(session, &Sealed::from(told(&removed)))?;
                }
                Ok(Done::Kept(Disposal::Done(removed.counts)))
            });
            Ok(disposed.await?)
        })
    }

    fn forget_keys<'a>(
        &'a self,
        which: &'a Forgotten,
        told: Told<Names>,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        let which = which.clone();
        Box::pin(async move {
            let forgotten = self.writer.run(move |session| {
                let forgotten = claims::forget(session.connection, &which)?;
                if !forgotten.is_empty() {
                    keep(session, &Sealed::from(told(&forgotten)))?;
                }
                Ok(Done::Kept(forgotten.len()))
            });
            Ok(forgotten.await?)
        })
    }
}

fn dispose(session: &Session<'_>, now: i64, limit: usize) -> Result<Removed, Failure> {
    let connection = session.connection;
    let payloads = prune(connection, now, limit)?;
    let counts = Disposed {
        payloads: payloads.len(),
        replies: claims::drop_replies(connection, now, bounded(limit))?,
        pots: pots::drop_old(connection, now, bounded(limit))?,
    };
    Ok(Removed { counts, payloads })
}

/// The mark beside the clock.
struct Marked {
    passage: Passage,
    /// True if the log says that they disagree.
    is_told: bool,
    /// True if there was no mark yet.
    is_new: bool,
}

fn marked(connection: &Connection, clock: i64) -> Result<Marked, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT coalesce(at, (SELECT at FROM record ORDER BY idx DESC LIMIT 1), ?1), is_told,
             at IS NULL
         FROM time_mark WHERE one = 1",
    )?;
    Ok(statement.query_row([clock], |row| {
        Ok(Marked {
            passage: Passage {
                mark: timestamp(row.get(0)?),
                clock: timestamp(clock),
            },
            is_told: row.get(1)?,
            is_new: row.get(2)?,
        })
    })?)
}

/// Returns the mark beside the clock; `None` if there is no mark yet.
pub(super) fn believed(connection: &Connection, clock: i64) -> Result<Option<Passage>, Failure> {
    let mut statement = connection.prepare_cached("SELECT at FROM time_mark WHERE one = 1")?;
    let mark: Option<i64> = statement.query_row([], |row| row.get(0))?;
    Ok(mark.map(|mark| Passage {
        mark: timestamp(mark),
        clock: timestamp(clock),
    }))
}

/// Returns the mark, or the smallest time if there is none yet.
pub(super) fn latest_believed(connection: &Connection) -> Result<i64, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT coalesce(at, ?1) FROM time_mark WHERE one = 1")?;
    Ok(statement.query_row([i64::MIN], |row| row.get(0))?)
}

fn set_mark(connection: &Connection, at: i64, is_told: bool) -> Result<(), Failure> {
    let mut statement =
        connection.prepare_cached("UPDATE time_mark SET at = ?1, is_told = ?2 WHERE one = 1")?;
    statement.execute(params![at, is_told])?;
    Ok(())
}
