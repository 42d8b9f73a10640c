//! The writer: the only thread that writes. It takes the queued jobs, does all of them in one transaction, and
//! answers when that is durable: many callers share one sync of the disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::checkpointer::Checkpointer;
use super::disk::Disk;
use super::failure::Failure;
use super::open::{Opened, end_run};
use super::time::Time;
use super::tip::Tip;
use super::{SqliteOptions, connection, timekeeping};
use crate::leaves::Leaves;

/// Maximum jobs in a transaction.
const BATCH_MAX: usize = 256;

/// Time the writer waits for readers before it postpones emptying the log.
const SCRUB_WAITS: Duration = Duration::from_millis(100);

/// Handle that queues work for the writer.
#[derive(Clone)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Box<dyn Job>>,
}

/// Context of a job. Everything that it sees and writes belongs to one transaction.
pub(super) struct Session<'w> {
    pub(super) connection: &'w Connection,
    pub(super) tip: &'w mut Tip,
    /// The time of this job, by the store's clock.
    pub(super) now: i64,
    /// The latest time that was believed. A clock that is behind it shortens no retention.
    pub(super) believed: i64,
    /// Set to true if the write-ahead log must not keep the old pages.
    pub(super) scrub: &'w mut bool,
    pub(super) leaves: &'w Leaves,
}

/// Fate of a job's writes.
pub(super) enum Done<T> {
    /// The writes are kept.
    Kept(T),
    /// The writes are undone; the answer is still given.
    Undone(T),
}

/// Work that is queued as a whole: a caller that goes away leaves no half of it behind. It may run twice if the
/// first run was undone.
trait Job: Send {
    /// Runs the job. True if its writes are kept; an error ends the whole batch.
    fn run(&mut self, session: &mut Session<'_>) -> Result<bool, Failure>;

    /// Answers the caller, when the result of the batch is known.
    fn answer(self: Box<Self>, batch: &Result<(), Failure>);
}

struct Asked<F, T> {
    work: F,
    done: Option<Result<T, Failure>>,
    answer: oneshot::Sender<Result<T, Failure>>,
}

impl Writer {
    /// Starts the thread. Everything that was queued is done before it ends, after the last `Writer` was
    /// dropped.
    pub(super) fn start(parts: WriterParts) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (sender, jobs) = mpsc::channel(parts.options.jobs_waiting_max.max(1));
        let thread = Thread {
            jobs,
            connection: Some(parts.opened.connection),
            tip: parts.opened.tip,
            believed: i64::MIN,
            run: parts.opened.run,
            path: parts.path,
            options: parts.options,
            time: parts.time,
            disk: parts.disk,
            scrub: false,
            checkpointer: parts.checkpointer,
            is_complete: parts.is_complete,
            health: parts.health,
            leaves: parts.leaves,
        };
        let handle = std::thread::Builder::new()
            .name("store writer".to_owned())
            .spawn(move || thread.run())?;
        Ok((Self { jobs: sender }, handle))
    }

    /// Runs the work with the next batch; returns when that is durable.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Session<'_>) -> Result<Done<T>, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (job, answer) = asked(work);
        self.jobs.send(job).await.map_err(|_| Failure::Stopped)?;
        answer.await.map_err(|_| Failure::Stopped)?
    }

    /// Same as [`Self::run`], for a thread that may block.
    pub(super) fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Session<'_>) -> Result<Done<T>, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (job, answer) = asked(work);
        self.jobs.blocking_send(job).map_err(|_| Failure::Stopped)?;
        answer.blocking_recv().map_err(|_| Failure::Stopped)?
    }
}

type Answer<T> = oneshot::Receiver<Result<T, Failure>>;

fn asked<T, F>(work: F) -> (Box<dyn Job>, Answer<T>)
where
    T: Send + 'static,
    F: FnMut(&mut Session<'_>) -> Result<Done<T>, Failure> + Send + 'static,
{
    let (sender, answer) = oneshot::channel();
    let job = Asked {
        work,
        done: None,
        answer: sender,
    };
    (Box::new(job), answer)
}

impl<T, F> Job for Asked<F, T>
where
    T: Send,
    F: FnMut(&mut Session<'_>) -> Result<Done<T>, Failure> + Send,
{
    fn run(&mut self, session: &mut Session<'_>) -> Result<bool, Failure> {
        let (done, is_kept) = match (self.work)(session) {
            Ok(Done::Kept(answer)) => (Ok(answer), true),
            Ok(Done::Undone(answer)) => (Ok(answer), false),
            Err(failure) if failure.ends_batch() => return Err(failure),
            Err(failure) => (Err(failure), false),
        };
        self.done = Some(done);
        Ok(is_kept)
    }

    fn answer(self: Box<Self>, batch: &Result<(), Failure>) {
        let answer = match (batch, self.done) {
            (Err(failure), _) => Err(failure.clone()),
            (Ok(()), Some(done)) => done,
            (Ok(()), None) => Err(Failure::Stopped),
        };
        // The caller may have gone away.
        self.answer.send(answer).ok();
    }
}

pub(super) struct WriterParts {
    pub(super) opened: Opened,
    pub(super) path: PathBuf,
    pub(super) options: SqliteOptions,
    pub(super) time: Arc<Time>,
    pub(super) disk: Arc<Disk>,
    pub(super) checkpointer: Checkpointer,
    /// True if everything that was queued was written, so that the run may be marked as closed.
    pub(super) is_complete: Arc<AtomicBool>,
    pub(super) health: Arc<Health>,
    pub(super) leaves: Leaves,
}

/// Whether writes work.
#[derive(Debug, Default)]
pub(super) struct Health {
    is_failing: AtomicBool,
    errors: AtomicU64,
}

impl Health {
    /// True if the last batch could not be written.
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Number of batches that could not be written since the store was opened.
    pub(super) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    fn note(&self, outcome: &Result<(), Failure>) {
        self.is_failing.store(outcome.is_err(), Ordering::Relaxed);
        let errors = u64::from(outcome.is_err());
        self.errors.fetch_add(errors, Ordering::Relaxed);
    }
}

struct Thread {
    jobs: mpsc::Receiver<Box<dyn Job>>,
    /// `None` after a failure that leaves the state of the database unknown: then it is opened again, and the
    /// state in memory is reloaded. After a failed sync, the old connection would treat unwritten pages as
    /// written.
    connection: Option<Connection>,
    tip: Tip,
    /// The latest time that was believed when the batch began.
    believed: i64,
    run: i64,
    path: PathBuf,
    options: SqliteOptions,
    time: Arc<Time>,
    disk: Arc<Disk>,
    scrub: bool,
    checkpointer: Checkpointer,
    is_complete: Arc<AtomicBool>,
    health: Arc<Health>,
    leaves: Leaves,
}

impl Thread {
    fn run(mut self) {
        let mut jobs = Vec::with_capacity(BATCH_MAX);
        let mut is_failing = false;
        while self.jobs.blocking_recv_many(&mut jobs, BATCH_MAX) > 0 {
            let outcome = self.disk.check().and_then(|()| self.commit(&mut jobs));
            match &outcome {
                Ok(()) if is_failing => tracing::info!("the SQLite store accepts writes again"),
                Err(failure) if !is_failing => {
                    tracing::error!(
                        ?failure,
                        "the SQLite store refuses writes; calls fail until it accepts them again"
                    );
                }
                Ok(()) | Err(_) => {}
            }
            is_failing = outcome.is_err();
            self.health.note(&outcome);
            for job in jobs.drain(..) {
                job.answer(&outcome);
            }
        }
        self.close();
    }

    fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), Failure> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.reopened()?,
        };
        if !self.batch(&connection, jobs)? {
            execute(&connection, "ROLLBACK")?;
            self.tip = Tip::load(&connection)?;
            self.batch_with_savepoints(&connection, jobs)?;
        }
        // The batch is committed, even if this fails: no caller may be told that it was not.
        match self.after_batch(&connection, jobs.len()) {
            Ok(()) => self.connection = Some(connection),
            Err(failure) => tracing::warn!(
                ?failure,
                "the SQLite write-ahead log could not be checkpointed; the next commit tries again"
            ),
        }
        Ok(())
    }

    fn after_batch(&mut self, connection: &Connection, jobs: usize) -> Result<(), Failure> {
        if self.scrub {
            self.scrub = !scrub(connection)?;
        }
        Ok(self.checkpointer.after_batch(connection, jobs)?)
    }

    /// Runs one transaction. False if a job wants its own writes undone. Jobs read before they write, so that
    /// this is rare, and a savepoint for each job would copy every page that it is about to change.
    fn batch(
        &mut self,
        connection: &Connection,
        jobs: &mut [Box<dyn Job>],
    ) -> Result<bool, Failure> {
        execute(connection, "BEGIN IMMEDIATE")?;
        self.believed = timekeeping::latest_believed(connection)?;
        for job in jobs {
            let changes = connection.total_changes();
            let is_kept = job.run(&mut self.session(connection))?;
            if !is_kept && connection.total_changes() != changes {
                return Ok(false);
            }
        }
        execute(connection, "COMMIT")?;
        Ok(true)
    }

    /// Same as [`Self::batch`], but a job that fails undoes only its own writes.
    fn batch_with_savepoints(
        &mut self,
        connection: &Connection,
        jobs: &mut [Box<dyn Job>],
    ) -> Result<(), Failure> {
        execute(connection, "BEGIN IMMEDIATE")?;
        for job in jobs {
            let mark = self.tip.mark();
            execute(connection, "SAVEPOINT job")?;
            if !job.run(&mut self.session(connection))? {
                execute(connection, "ROLLBACK TO job")?;
                self.tip.back_to(mark);
            }
            execute(connection, "RELEASE job")?;
        }
        execute(connection, "COMMIT")
    }

    fn session<'w>(&'w mut self, connection: &'w Connection) -> Session<'w> {
        Session {
            connection,
            tip: &mut self.tip,
            now: self.time.now(),
            believed: self.believed,
            scrub: &mut self.scrub,
            leaves: &self.leaves,
        }
    }

    fn reopened(&mut self) -> Result<Connection, Failure> {
        let connection = connection::writer(&self.path, &self.options)?;
        self.tip = Tip::load(&connection)?;
        Ok(connection)
    }

    fn close(mut self) {
        let connection = match self.connection.take() {
            Some(connection) => Ok(connection),
            None => self.reopened(),
        };
        let is_complete = self.is_complete.load(Ordering::Acquire);
        let closed = connection.and_then(|connection| {
            if is_complete {
                end_run(&connection, self.run, self.time.now())?;
            }
            Ok(())
        });
        if let Err(failure) = closed {
            tracing::warn!(
                ?failure,
                "the SQLite store could not be closed cleanly; the next start reports it"
            );
        }
    }
}

/// Empties the write-ahead log. False if a reader still needs it; then it is tried again later.
fn scrub(connection: &Connection) -> Result<bool, Failure> {
    connection.busy_timeout(SCRUB_WAITS)?;
    let is_busy: bool =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    connection.busy_timeout(connection::BUSY_FOR)?;
    Ok(!is_busy)
}

fn execute(connection: &Connection, sql: &str) -> Result<(), Failure> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}
