//! A lane: takes the calls that wait, commits them together, and looks up their results when a connection is
//! lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign::ledger::{CommitAnswer, Scope};
use deadpool_postgres::{Client, Pool};
use tokio::sync::{Mutex, mpsc};

use super::apply::Changes;
use super::batch;
use super::decide::{Verdict, decide};
use super::flight::{Flight, Param};
use super::guard::{Collection, Plan, has_lost_key, nth, scope_columns, send_shapes};
use super::statements::Statements;
use super::{Job, Shared};
use crate::postgres::connect::{limited, within};
use crate::postgres::failure::{Failure, Meaning};
use crate::postgres::guard::Guard;
use crate::postgres::health::Health;
use crate::postgres::held::held;
use crate::postgres::keyring::LostKeys;
use crate::postgres::options::PostgresOptions;
use crate::postgres::patience;

/// Maximum retries of a transaction that conflicted with others.
const CONFLICTS_MAX: u32 = 10;

/// Maximum retries of a call because a row vanished between two statements.
const VANISHED_MAX: u32 = 8;

/// Session settings of a lane, beside those of every connection: no statement is planned twice.
const PLANS: &str = "SET plan_cache_mode = force_generic_plan";

/// Number of times a lane yields to other tasks before it takes its batch.
const YIELDS: u32 = 4;

/// First and longest pause between retries.
const PAUSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(500));

pub(super) struct Lane {
    pool: Pool,
    guard: Guard,
    health: Health,
    jobs: Arc<Mutex<mpsc::Receiver<Job>>>,
    options: PostgresOptions,
    lost_keys: LostKeys,
    /// Connection, reused by the next transaction.
    connection: Option<Connection>,
}

struct Connection {
    client: Client,
    statements: Statements,
}

/// A transaction failed.
struct Broken {
    failure: Failure,
    /// True if `COMMIT` may have reached the server.
    is_committing: bool,
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            is_committing: false,
        }
    }
}

impl Lane {
    pub(super) fn new(
        (pool, shared): (Pool, Shared),
        jobs: Arc<Mutex<mpsc::Receiver<Job>>>,
        options: PostgresOptions,
        lost_keys: LostKeys,
    ) -> Self {
        Self {
            pool,
            guard: shared.guard,
            health: shared.health,
            jobs,
            options,
            lost_keys,
            connection: None,
        }
    }

    /// Runs until every handle to the lanes is dropped.
    pub(super) async fn run(mut self) {
        let mut waiting = Vec::new();
        while self.receive(&mut waiting).await {
            let batch = batch::take(&mut waiting, self.options.batch_max);
            let put_off = self.settle(batch).await;
            waiting.extend(put_off);
        }
        self.disconnect();
    }

    /// Receives the waiting calls, at most one batch of them. False if there will be no more.
    async fn receive(&self, waiting: &mut Vec<Job>) -> bool {
        let room = self.options.batch_max;
        if waiting.is_empty() {
            let mut jobs = self.jobs.lock().await;
            if jobs.recv_many(waiting, room).await == 0 {
                return false;
            }
            // Callers that were answered together come back together: let the others arrive too.
            for _ in 0..YIELDS {
                tokio::task::yield_now().await;
            }
            top_up(&mut jobs, waiting, room);
        } else if let Ok(mut jobs) = self.jobs.try_lock() {
            top_up(&mut jobs, waiting, room);
        }
        true
    }

    /// Commits and answers the calls of a batch. Returns those that are worth a retry.
    async fn settle(&mut self, batch: Vec<Job>) -> Vec<Job> {
        match self.commit(&batch, None).await {
            Ok(verdicts) => conclude(batch, verdicts),
            Err((failure, in_doubt)) if batch.len() > 1 && failure.may_be_of_one() => {
                tracing::debug!(%failure, calls = batch.len(), "a batch of calls failed in PostgreSQL; each call is committed alone");
                let mut put_off = Vec::new();
                for job in batch {
                    let verdicts = self.commit(std::slice::from_ref(&job), in_doubt).await;
                    let verdicts = verdicts.map_err(|(failure, _)| failure);
                    put_off.extend(conclude_one(job, verdicts));
                }
                put_off
            }
            Err((failure, _)) => {
                fail(batch, failure);
                Vec::new()
            }
        }
    }

    /// Retries the transaction until it has an answer. `in_doubt` is the time when the answer of a `COMMIT` was
    /// lost; from then on the outcome is looked up for as long as the options allow.
    async fn commit(
        &mut self,
        jobs: &[Job],
        mut in_doubt: Option<Instant>,
    ) -> Result<Vec<Verdict>, (Failure, Option<Instant>)> {
        let (mut pause, mut conflicts, mut breaks) = (PAUSE.0, 0, 0);
        loop {
            let Broken {
                failure,
                is_committing,
            } = match self.attempt(jobs).await {
                Ok(verdicts) => {
                    self.health.works();
                    return Ok(verdicts);
                }
                Err(broken) => broken,
            };
            let meaning = failure.meaning();
            if meaning == Meaning::Lost {
                self.disconnect();
                self.pool.retain(|_, _| false);
                if is_committing && in_doubt.is_none() {
                    in_doubt = Some(Instant::now());
                }
            } else {
                self.roll_back().await;
            }
            let may_retry = match (in_doubt, meaning) {
                (Some(since), _) => since.elapsed() < self.options.doubt_limit,
                (None, Meaning::Lost) => {
                    breaks += 1;
                    breaks <= 2
                }
                (None, Meaning::Again) => {
                    conflicts += 1;
                    conflicts <= CONFLICTS_MAX
                }
                (None, Meaning::Locked | Meaning::Refused) => false,
            };
            if !may_retry {
                if failure.is_of_server() {
                    self.health.fails();
                }
                return Err((failure, in_doubt));
            }
            tracing::debug!(%failure, "a PostgreSQL transaction is retried");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Runs one transaction.
    async fn attempt(&mut self, jobs: &[Job]) -> Result<Vec<Verdict>, Broken> {
        let limit = patience(&self.options) * 2;
        let lost_keys = self.lost_keys.clone();
        let Connection { client, statements } = self.connect().await?;
        let plan = Plan::new(jobs);
        let mut flight = Flight::default();
        let places = plan.send(&mut flight, client, statements);
        let landed = within(limit, flight.land()).await?;
        let found = plan.found(&landed, &places)?;
        let lost = jobs.iter().filter(|job| has_lost_key(job, &found));
        lost.for_each(|job| lost_keys.tell(&job.entry.user_id));
        let mut verdicts: Vec<Verdict> = jobs.iter().map(|job| decide(job, &found)).collect();
        let changes = Changes::new(jobs, &verdicts, &found);
        let late_shapes: BTreeMap<Collection<'_>, bool> = changes
            .shapes
            .keys()
            .filter(|shape| !plan.raises(**shape))
            .map(|shape| (*shape, true))
            .collect();
        look(limit, client, statements, jobs, &mut verdicts, &late_shapes).await?;
        if changes.is_empty() {
            let undone = limited(limit, client.batch_execute("ROLLBACK")).await;
            undone?;
            return Ok(verdicts);
        }
        let mut flight = Flight::default();
        changes.send(&mut flight, client, statements);
        match within(limit, flight.land()).await {
            Ok(_) => Ok(verdicts),
            Err(failure) => Err(Broken {
                failure,
                is_committing: true,
            }),
        }
    }

    async fn connect(&mut self) -> Result<&Connection, Failure> {
        if self
            .connection
            .as_ref()
            .is_some_and(|kept| kept.client.is_closed() || self.guard.is_broken())
        {
            self.disconnect();
        }
        if self.connection.is_none() {
            let client = self.pool.get().await?;
            let prepared = limited(patience(&self.options), async {
                client.batch_execute(PLANS).await?;
                Box::pin(Statements::prepare(&client)).await
            });
            let statements = match prepared.await {
                Ok(statements) => statements,
                Err(failure) => {
                    drop(deadpool_postgres::Object::take(client));
                    return Err(failure);
                }
            };
            self.connection = Some(Connection { client, statements });
        }
        self.connection.as_ref().ok_or(Failure::Closed)
    }

    async fn roll_back(&mut self) {
        let Some(connection) = &self.connection else {
            return;
        };
        let undone = limited(
            patience(&self.options),
            connection.client.batch_execute("ROLLBACK"),
        );
        if undone.await.is_err() {
            self.disconnect();
        }
    }

    /// Closes the connection instead of returning it to the pool: its session settings differ from those of the
    /// pool.
    fn disconnect(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(deadpool_postgres::Object::take(connection.client));
        }
    }
}

/// Takes the calls that are queued, without waiting for more.
fn top_up(jobs: &mut mpsc::Receiver<Job>, waiting: &mut Vec<Job>, room: usize) {
    while waiting.len() < room
        && let Ok(job) = jobs.try_recv()
    {
        waiting.push(job);
    }
}

/// Reads what the first flight left open: the state of scopes that could not be taken, the results of records
/// that existed, and the shapes that turned out to change. There is rarely anything to read.
async fn look(
    limit: Duration,
    client: &Client,
    statements: &Statements,
    jobs: &[Job],
    verdicts: &mut [Verdict],
    late_shapes: &BTreeMap<Collection<'_>, bool>,
) -> Result<(), Failure> {
    let open = |wanted: Verdict| {
        let pairs = jobs.iter().zip(&*verdicts);
        let open = pairs.filter(move |(_, verdict)| **verdict == wanted);
        open.map(|(job, _)| job).collect::<Vec<&Job>>()
    };
    let held_jobs = open(Verdict::Held(None));
    let repeated = open(Verdict::Repeat(None));
    if held_jobs.is_empty() && repeated.is_empty() && late_shapes.is_empty() {
        return Ok(());
    }
    let scopes: Vec<&Scope> = held_jobs
        .iter()
        .filter_map(|job| batch::scope(job))
        .collect();
    let mut flight = Flight::default();
    let claims = flight.send(
        client,
        &statements.read_claims,
        scope_columns(scopes.iter().copied()),
    );
    let user_ids: Vec<&str> = repeated.iter().map(|job| &*job.entry.user_id).collect();
    let ids: Vec<&str> = repeated.iter().map(|job| job.entry.id.as_str()).collect();
    let params: Vec<Param<'_>> = vec![Box::new(user_ids), Box::new(ids)];
    let records = flight.send(client, &statements.known_records, params);
    if !late_shapes.is_empty() {
        send_shapes(&mut flight, client, statements, late_shapes);
    }
    let landed = within(limit, flight.land()).await?;
    let mut stood = BTreeMap::new();
    for row in landed.rows(Some(claims)) {
        if let Some(scope) = nth(&scopes, row) {
            stood.insert(scope, held(row)?);
        }
    }
    let ended: BTreeMap<&str, bool> = landed
        .rows(Some(records))
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    for (job, verdict) in jobs.iter().zip(verdicts) {
        match verdict {
            Verdict::Held(None) => {
                let held = batch::scope(job).and_then(|scope| stood.remove(scope));
                *verdict = held.map_or(Verdict::Vanished, |held| Verdict::Held(Some(held)));
            }
            Verdict::Repeat(None) => {
                let fenced = ended.get(job.entry.id.as_str());
                *verdict = fenced.map_or(Verdict::Vanished, |it| Verdict::Repeat(Some(*it)));
            }
            Verdict::Commit
            | Verdict::Repeat(Some(_))
            | Verdict::Held(Some(_))
            | Verdict::Moved { .. }
            | Verdict::Lapsed
            | Verdict::Erased
            | Verdict::Fenced
            | Verdict::Vanished => {}
        }
    }
    Ok(())
}

/// Answers the calls. Returns those that are worth a retry.
fn conclude(batch: Vec<Job>, verdicts: Vec<Verdict>) -> Vec<Job> {
    let pairs = batch.into_iter().zip(verdicts);
    let put_off = pairs.filter_map(|(job, verdict)| conclude_one(job, Ok(vec![verdict])));
    put_off.collect()
}

fn conclude_one(mut job: Job, verdicts: Result<Vec<Verdict>, Failure>) -> Option<Job> {
    let verdict = verdicts.map(|verdicts| verdicts.into_iter().next());
    let answer = match verdict {
        Ok(Some(Verdict::Commit | Verdict::Repeat(Some(false)))) => Ok(CommitAnswer::Committed),
        Ok(Some(Verdict::Fenced | Verdict::Repeat(Some(true)))) => Ok(CommitAnswer::Fenced),
        Ok(Some(Verdict::Held(Some(held)))) => Ok(CommitAnswer::Held(held)),
        Ok(Some(Verdict::Moved { collection, id })) => Ok(CommitAnswer::Moved { collection, id }),
        Ok(Some(Verdict::Lapsed)) => Ok(CommitAnswer::Lapsed),
        Ok(Some(Verdict::Erased)) => Ok(CommitAnswer::Erased),
        Ok(Some(Verdict::Vanished | Verdict::Held(None) | Verdict::Repeat(None)) | None) => {
            if job.tries < VANISHED_MAX {
                job.tries += 1;
                return Some(job);
            }
            Err(Failure::Contended {
                what: "a row that a call relies on",
                tries: VANISHED_MAX,
            })
        }
        Err(failure) => Err(failure),
    };
    // A caller that has gone away does not need the answer.
    let _ = job.answer.send(answer);
    None
}

fn fail(batch: Vec<Job>, failure: Failure) {
    let failure = Arc::new(failure);
    for job in batch {
        let _ = job.answer.send(Err(Failure::Shared(Arc::clone(&failure))));
    }
}
