//! Failovers of a PostgreSQL that patroni keeps, while several processes work: nothing that was acknowledged is lost, nothing happens twice, and
//! work goes on soon after another server leads.

mod cluster;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use countersign::archive::Archive;
use countersign::archive::verify::Verification;
use countersign::clock::SystemClock;
use countersign::ids::RandomIds;
use countersign::sequencer::{LastStop, Sequencer};
use countersign_evidence::note::SigningKey;
use countersign_testkit::patience::comes_true;

pub use cluster::{Blow, Cluster};

use crate::driver::{Arena, Start, Tally, check, worker_program};
use crate::point::{End, Fate};
use crate::server;
use crate::tools::Kind;
use crate::worker::{self, Job};

/// The result of a run.
#[derive(Debug, Default)]
pub struct Failovers {
    /// Failovers.
    pub failovers: u32,
    /// Answers of the workers.
    pub answers: usize,
    /// Keys that ended with an answer.
    pub succeeded: usize,
    /// Keys that ended in doubt.
    pub in_doubt: usize,
    /// Time from the first commit of a bare client on a new connection after the promotion to the first answer of ours, of each failover. The
    /// cluster itself takes until then: its new leader waits for a synchronous standby.
    pub first_success: Vec<Duration>,
    /// Time from the promotion to the first answer of ours, of each failover.
    pub since_promotion: Vec<Duration>,
    /// The violations.
    pub wrong: Vec<String>,
}

/// Number of processes that work.
const GATEWAYS: u32 = 4;

/// New keys of one failover.
const KEYS: u32 = 400;

/// Answers before the leader is struck.
const BEFORE: usize = 60;

/// Longest wait for an answer after a promotion.
const PATIENCE: Duration = Duration::from_mins(1);

/// Fails over so often with tools of one kind, and checks every key at the end.
pub fn failovers(cluster: &mut Cluster, kind: Kind, times: u32) -> Result<Failovers> {
    let folder = tempfile::tempdir()?;
    let name = kind.tool().replace('.', "_");
    let url = cluster.fresh_database(&name)?;
    server::prepare(&url)?;
    let arena = Arena {
        program: worker_program()?,
        store: url.clone(),
        ledger: folder.path().join("effects"),
    };
    server::run(
        &url,
        "CREATE TABLE bare (n bigint GENERATED ALWAYS AS IDENTITY)",
    )?;
    let probe = Probe::start(&url, folder.path())?;
    let mut run = Failovers::default();
    let mut tally = Tally::default();
    for round in 0..times {
        let blow = Blow::ALL.get(round as usize % Blow::ALL.len());
        let blow = *blow.context("there are some")?;
        let mut start = Start::new(kind, round * KEYS..(round + 1) * KEYS);
        let mut running = Vec::new();
        for process in 0..GATEWAYS {
            start.turn = process * KEYS / GATEWAYS;
            running.push(arena.start(&start)?);
        }
        for worker in &mut running {
            worker.wait_for(BEFORE / GATEWAYS as usize, &mut tally)?;
        }
        let struck = cluster.strike(blow)?;
        let promoted = Instant::now();
        let bare = format!("{url}&connect_timeout=1");
        let writes = || server::run(&bare, "INSERT INTO bare DEFAULT VALUES").is_ok();
        if !comes_true(PATIENCE, writes) {
            run.wrong
                .push(format!("nobody can write after failover {round}"));
        }
        let writable = Instant::now();
        let answered = comes_true(PATIENCE, || probe.newest().is_some_and(|at| at > promoted));
        match probe.first_after(promoted).filter(|_| answered) {
            Some(at) => {
                run.first_success
                    .push(at.saturating_duration_since(writable));
                run.since_promotion
                    .push(at.saturating_duration_since(promoted));
            }
            None => run.wrong.push(format!(
                "no success within {PATIENCE:?} of failover {round}"
            )),
        }
        cluster.mend(struck, blow)?;
        for worker in running {
            worker.finish(&mut tally)?;
        }
        run.failovers += 1;
    }
    run.wrong.extend(probe.stop());
    run.answers = tally.answers;
    let start = Start::new(kind, 0..times * KEYS);
    let verdict = check(&arena, &start, &mut tally, &|| server::expire_leases(&url))?;
    run.succeeded = verdict.succeeded;
    run.in_doubt = verdict.in_doubt;
    run.wrong.extend(verdict.wrong);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    run.wrong
        .extend(runtime.block_on(verify(&url, folder.path()))?);
    Ok(run)
}

/// Signs the log and verifies all of it, the state that it tells of too.
async fn verify(url: &str, folder: &Path) -> Result<Vec<String>> {
    let store = worker::open(url).await?;
    let fate = Fate::new(None, 1, End::Death);
    let executor = worker::executor(store.clone(), &folder.join("verify"), &fate)?;
    let key = SigningKey::from_seed("torture.example/log", &[7; 32])?;
    let public = key.verifying_key();
    let mut sequencer = Sequencer::builder(store.clone(), key)
        .start(LastStop::default())
        .await?;
    // The workers have held no lease, so this round is ours.
    sequencer.tick().await?;
    let clock = Arc::new(SystemClock::new());
    let ids = Arc::new(RandomIds::new(clock.clone()));
    let vault = executor.vault().clone();
    let archive = Archive::new(store, vault, clock, ids, public);
    let whole = Verification::default();
    let report = archive.verify_all(&whole, |_, _| {}).await?;
    let findings = report.findings.iter();
    Ok(findings
        .map(|finding| format!("the log does not verify: {finding:?}"))
        .collect())
}

/// A caller that writes again and again, and notes when it succeeds.
struct Probe {
    is_over: Arc<AtomicBool>,
    successes: Arc<Mutex<Vec<Instant>>>,
    thread: std::thread::JoinHandle<Result<Vec<String>>>,
}

impl Probe {
    fn start(url: &str, folder: &Path) -> Result<Self> {
        let (is_over, successes) = (Arc::<AtomicBool>::default(), Arc::<Mutex<_>>::default());
        let job = Job {
            store: url.to_owned(),
            ledger: folder.join("probe"),
            kind: Kind::Write,
            keys: 0..1,
            turn: 0,
            tasks: 1,
            fate: Fate::new(None, 1, End::Death),
            user: "u_probe".to_owned(),
            together: false,
            fails: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (over, noted) = (is_over.clone(), successes.clone());
        let thread = std::thread::spawn(move || runtime.block_on(probe(job, &over, &noted)));
        Ok(Self {
            is_over,
            successes,
            thread,
        })
    }

    fn newest(&self) -> Option<Instant> {
        let successes = self
            .successes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        successes.last().copied()
    }

    fn first_after(&self, moment: Instant) -> Option<Instant> {
        let successes = self
            .successes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        successes.iter().find(|at| **at > moment).copied()
    }

    fn stop(self) -> Vec<String> {
        self.is_over.store(true, Ordering::SeqCst);
        let ended = self.thread.join();
        match ended.unwrap_or_else(|_| Err(anyhow!("the thread has panicked"))) {
            Ok(wrong) => wrong,
            Err(error) => vec![format!("the probe: {error:#}")],
        }
    }
}

async fn probe(
    job: Job,
    is_over: &AtomicBool,
    successes: &Mutex<Vec<Instant>>,
) -> Result<Vec<String>> {
    let store = worker::open(&job.store).await?;
    let executor = worker::executor(store, &job.ledger, &job.fate)?;
    let mut tally = Tally::default();
    let mut key = 0;
    while !is_over.load(Ordering::SeqCst) {
        let told = worker::call(&executor, &job, key).await;
        tally.told(&told);
        if told.ok {
            let now = Instant::now();
            successes
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(now);
            key += 1;
        }
    }
    // Every key was acknowledged, so every one has its answer.
    for key in 0..key {
        tally.told(&worker::call(&executor, &job, key).await);
    }
    Ok(tally.wrong)
}
