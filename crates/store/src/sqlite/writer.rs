//! The one thread that writes. It takes what waits, does all of it in one transaction, and answers when
//! that is durable: many callers share one wait for the disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
use super::{SqliteOptions, connection};

/// So many jobs share a transaction at most.
const BATCH_MAX: usize = 256;

/// For how long the writer waits for readers before it empties the log later.
const SCRUB_WAITS: Duration = Duration::from_millis(100);

/// Hands work to the writer.
#[derive(Clone)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Box<dyn Job>>,
}

/// What a job works with. Everything that it sees and writes belongs to one transaction.
pub(super) struct Session<'w> {
    pub(super) connection: &'w Connection,
    pub(super) tip: &'w mut Tip,
    /// The time of this job, by the store's clock.
    pub(super) now: i64,
    /// Set where the write-ahead log must not keep what was before.
    pub(super) scrub: &'w mut bool,
}

/// What becomes of a job's writes.
pub(super) enum Done<T> {
    /// They are kept.
    Kept(T),
    /// They are undone; the answer stands all the same.
    Undone(T),
}

/// Work that is queued whole: a caller who goes away does not leave half of it behind. It may be done
/// twice, where the first time was undone.
trait Job: Send {
    /// Whether its writes are kept, or why the whole batch has to end.
    fn run(&mut self, session: &mut Session<'_>) -> Result<bool, Failure>;

    /// Called when it is known what became of the batch.
    fn answer(self: Box<Self>, batch: &Result<(), Failure>);
}

struct Asked<F, T> {
    work: F,
    done: Option<Result<T, Failure>>,
    answer: oneshot::Sender<Result<T, Failure>>,
}

impl Writer {
    /// Starts the thread. Everything that was queued is done before it ends, which it does when the last
    /// `Writer` is gone.
    pub(super) fn start(parts: WriterParts) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (sender, jobs) = mpsc::channel(parts.options.jobs_waiting_max.max(1));
        let thread = Thread {
            jobs,
            connection: Some(parts.opened.connection),
            tip: parts.opened.tip,
            run: parts.opened.run,
            path: parts.path,
            options: parts.options,
            time: parts.time,
            disk: parts.disk,
            scrub: false,
            checkpointer: parts.checkpointer,
            is_complete: parts.is_complete,
        };
        let handle = std::thread::Builder::new()
            .name("store writer".to_owned())
            .spawn(move || thread.run())?;
        Ok((Self { jobs: sender }, handle))
    }

    /// Does the work with the next batch; returns when that is durable.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Session<'_>) -> Result<Done<T>, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (job, answer) = asked(work);
        self.jobs.send(job).await.map_err(|_| Failure::Stopped)?;
        answer.await.map_err(|_| Failure::Stopped)?
    }

    /// The same, for a thread of its own.
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
        // Nobody listens any more where the caller went away.
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
    /// Whether everything that was handed in was written, so that the run may be called closed.
    pub(super) is_complete: Arc<AtomicBool>,
}

struct Thread {
    jobs: mpsc::Receiver<Box<dyn Job>>,
    /// None after a failure that leaves open what the database has: it is opened anew, and what is in
    /// memory is read again. After a failed sync, the old one would take for written what is not.
    connection: Option<Connection>,
    tip: Tip,
    run: i64,
    path: PathBuf,
    options: SqliteOptions,
    time: Arc<Time>,
    disk: Arc<Disk>,
    scrub: bool,
    checkpointer: Checkpointer,
    is_complete: Arc<AtomicBool>,
}

impl Thread {
    fn run(mut self) {
        let mut jobs = Vec::with_capacity(BATCH_MAX);
        let mut is_failing = false;
        while self.jobs.blocking_recv_many(&mut jobs, BATCH_MAX) > 0 {
            let outcome = self.disk.check().and_then(|()| self.commit(&mut jobs));
            match &outcome {
                Ok(()) if is_failing => tracing::info!("the store takes writes again"),
                Err(failure) if !is_failing => {
                    tracing::error!(?failure, "the store takes no writes");
                }
                Ok(()) | Err(_) => {}
            }
            is_failing = outcome.is_err();
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
        // The batch is committed, whatever becomes of this: no caller may hear that it was not.
        match self.after_batch(&connection, jobs.len()) {
            Ok(()) => self.connection = Some(connection),
            Err(failure) => tracing::warn!(
                ?failure,
                "the write-ahead log was not copied or emptied; the next commit tries again"
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

    /// One transaction; false where a job wants its own writes undone. Jobs look before they write, so that
    /// hardly ever happens, and a savepoint for each would copy every page that it is about to change.
    fn batch(
        &mut self,
        connection: &Connection,
        jobs: &mut [Box<dyn Job>],
    ) -> Result<bool, Failure> {
        execute(connection, "BEGIN IMMEDIATE")?;
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

    /// The same, and a job that fails undoes its own writes only.
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
            scrub: &mut self.scrub,
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
                "the store was not closed; the next start will say so"
            );
        }
    }
}

/// Empties the write-ahead log; false where a reader still needs it, so that it is tried again later.
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
