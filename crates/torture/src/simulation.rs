//! A simulation that a seed repeats: several processes with one store, each of which answers late, fails before or after its work, or dies, and
//! clocks that jump. One thread, virtual time and counted ids: nothing but the seed decides what happens next.

mod tool;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, Result};
use countersign::archive::Archive;
use countersign::archive::verify::Verification;
use countersign::contract::ReplyEnvelope;
use countersign::ledger::{Claims as _, Log as _, Pots as _};
use countersign::sequencer::{LastStop, Sequencer};
use countersign::{Executor, Principal, ToolCall};
use countersign_evidence::note::SigningKey;
use serde_json::json;

use crate::driver::{Dice, Start, Tally, Verdict};
use crate::tools::Kind;
use crate::worker::Told;
use world::{Life, Mortal, Process, World};

/// The result of one seed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Answers to clients.
    pub answers: usize,
    /// Keys that ended with an answer.
    pub succeeded: usize,
    /// Keys that ended in doubt.
    pub in_doubt: usize,
    /// Faults of the store.
    pub faults: u64,
    /// Deaths of processes.
    pub deaths: u64,
    /// Jumps of the clock.
    pub jumps: u64,
    /// Digest of everything that happened, in its order.
    pub trace: u64,
    /// Keys and money that a jump of the clock has kept from coming to rest, and effects that a jump has let happen twice where a tool is asked
    /// what has happened: leases go by the store's clock.
    pub by_clock: Vec<String>,
    /// The violations; empty if there are none.
    pub wrong: Vec<String>,
}

impl Outcome {
    /// Adds the outcome of a seed.
    pub fn add(&mut self, seed: u64, more: Self) {
        self.answers += more.answers;
        self.succeeded += more.succeeded;
        self.in_doubt += more.in_doubt;
        self.faults += more.faults;
        self.deaths += more.deaths;
        self.jumps += more.jumps;
        self.trace ^= more.trace;
        let by_clock = more.by_clock.into_iter();
        self.by_clock
            .extend(by_clock.map(|what| format!("seed {seed}: {what}")));
        let wrong = more.wrong.into_iter();
        self.wrong
            .extend(wrong.map(|what| format!("seed {seed}: {what}")));
    }
}

/// Number of keys of a seed.
const KEYS: u32 = 5;

/// Number of clients, and of calls that each makes.
const CLIENTS: u32 = 3;
const CALLS: u32 = 8;

/// Time after which every lease is over.
const QUIET: Duration = Duration::from_mins(30);

/// Maximum number of calls of a key that is in flight at the end.
const LAST_CALLS: u32 = 20;

/// Simulates one seed.
pub fn simulate(seed: u64) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    runtime.block_on(run(seed))
}

async fn run(seed: u64) -> Result<Outcome> {
    let world = World::new(seed)?;
    // An installation that has worked before: it has believed a time.
    Sequencer::builder(world.store.clone(), World::key()?)
        .clock(world.clock.clone())
        .ids(world.ids.clone())
        .start(LastStop::default())
        .await?
        .tick()
        .await?;
    let mut tasks = tokio::task::JoinSet::new();
    let processes = (0..=world.below(3)).map(|n| Process::new(n, &world));
    let processes: Vec<_> = processes.collect::<Result<_>>()?;
    let processes = Arc::new(processes);
    for process in processes.iter() {
        tasks.spawn(live(world.clone(), process.clone()));
    }
    if world.below(3) == 0 {
        tasks.spawn(lie(world.clone()));
    }
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        clients.spawn(calls(world.clone(), processes.clone(), client));
    }
    let mut tally = Tally::default();
    while let Some(told) = clients.join_next().await {
        for told in told? {
            tally.told(&told);
        }
    }
    tasks.shutdown().await;
    end(&world, tally).await
}

/// Lets a process live: it sequences, and is started anew when it dies.
async fn live(world: Arc<World>, process: Arc<Process>) {
    loop {
        match process.begin(&world) {
            Ok(life) => tokio::select! {
                biased;
                () = life.mortal.died() => {}
                () = sequence(&world, &life) => {}
            },
            Err(error) => world.wrong(format!("a process does not begin: {error}")),
        }
        world.pause(20_000).await;
    }
}

async fn sequence(world: &World, life: &Life) {
    // A store that fails now is tried again in the next life, or by another process.
    let mut sequencer = loop {
        match started_once(world, life).await {
            Some(sequencer) => break sequencer,
            None => world.pause(2_000).await,
        }
    };
    loop {
        world.pause(3_000).await;
        if let Err(error) = sequencer.tick().await
            && error.is_final()
        {
            world.wrong(format!("the log stopped: {error}"));
            return std::future::pending().await;
        }
        if world.below(4) == 0 {
            // What fails now is done by the next one.
            sequencer.maintain().await.ok();
        }
    }
}

async fn started_once(world: &World, life: &Life) -> Option<Sequencer> {
    let sequencer = Sequencer::builder(life.store.clone(), World::key().ok()?)
        .clock(world.clock.clone())
        .ids(world.ids.clone())
        .holder(life.name());
    match sequencer.start(LastStop::default()).await {
        Ok(sequencer) => Some(sequencer),
        Err(error) => {
            if error.is_final() {
                world.wrong(format!("no start: {error}"));
            }
            None
        }
    }
}

/// Moves the clock, forward and back.
async fn lie(world: Arc<World>) {
    const LIES: [i64; 6] = [0, 3_600, -3_600, 86_400 * 40, -86_400 * 40, 300];
    loop {
        world.pause(60_000).await;
        let which = world.below(LIES.len() as u32) as usize;
        let lie = LIES.get(which).copied().unwrap_or_default();
        world.clock.lie_seconds.store(lie, Ordering::SeqCst);
        world.jumped();
    }
}

/// Calls of one client, each through some process that lives.
async fn calls(world: Arc<World>, processes: Arc<Vec<Arc<Process>>>, client: u32) -> Vec<Told> {
    let mut answers = Vec::new();
    for _ in 0..CALLS {
        world.pause(15_000).await;
        let key = world.below(KEYS);
        let which = world.below(processes.len() as u32) as usize;
        let Some(life) = processes.get(which).and_then(|process| process.life()) else {
            continue;
        };
        world.note(&[u64::from(client), u64::from(key), which as u64]);
        tokio::select! {
            biased;
            () = life.mortal.died() => {}
            told = call(&world, &life.executor, key) => answers.extend(told),
        }
    }
    answers
}

/// One keyed call; `None` if the answer is one that only a clock explains.
async fn call(world: &World, executor: &Executor, key: u32) -> Option<Told> {
    let envelope = countersign::contract::RequestEnvelope {
        idempotency_key: Some(format!("k{key}")),
        ..Default::default()
    };
    let arguments = json!({ "n": key }).to_string();
    let user = Principal::user("u_1".to_owned());
    let reply = executor
        .execute(ToolCall::new(world.kind.tool(), arguments, user).envelope(envelope))
        .await;
    told(key, &reply)
}

fn told(key: u32, reply: &ReplyEnvelope) -> Option<Told> {
    let details = reply.error.as_ref().map(|error| &error.details);
    let reason = details.and_then(|details| details.reason);
    let reason = reason.map(|reason| reason.as_str().to_owned());
    if reason.as_deref() == Some("key_expired") {
        return None;
    }
    Some(Told {
        key,
        ok: reply.ok,
        code: reply.error.as_ref().map(|error| error.code.to_string()),
        reason,
        retryable: details.is_some_and(|details| details.retryable),
        data: reply.data.clone(),
        replayed: reply.replayed,
    })
}

/// Lets everything come to rest, calls every key once more, and compares.
async fn end(world: &Arc<World>, mut tally: Tally) -> Result<Outcome> {
    world.rest();
    tokio::time::sleep(QUIET).await;
    let executor = world.executor(world.store.clone(), &Mortal::new(u32::MAX, world))?;
    let mut start = Start::new(world.kind, 0..KEYS);
    start.outlasts_windows = true;
    let mut verdict = Verdict {
        wrong: std::mem::take(&mut tally.wrong),
        ..Verdict::default()
    };
    let mut ends = BTreeMap::new();
    for key in 0..KEYS {
        for _ in 0..LAST_CALLS {
            let last = call(world, &executor, key).await;
            let is_flying = last
                .as_ref()
                .is_some_and(|told| told.reason.as_deref() == Some("in_flight"));
            ends.insert(key, last);
            if !is_flying {
                break;
            }
            tokio::time::sleep(QUIET).await;
        }
    }
    let effects = world.effects(&ends);
    for key in start.keys.clone() {
        let told = ends.get(&key).and_then(Option::as_ref);
        let effects = effects.get(&key).copied().unwrap_or_default();
        verdict.one(&start, key, effects, told, tally.succeeded.get(&key));
    }
    while !world.store.sweep(1_000).await?.is_empty() {}
    let pots = world.store.pots(Some("u_1"), 100).await?;
    let pot = pots.iter().find(|pot| pot.key.name == world.kind.tool());
    verdict.adds_up(pot.map_or((0, 0), |pot| (pot.reserved, pot.spent)));
    verdict.wrong.extend(verified(world, &executor).await?);
    verdict.wrong.extend(world.violations());
    let kind = world.kind.tool();
    let wrong = verdict.wrong.into_iter();
    let wrong = wrong.map(|what| format!("{kind}: {what}"));
    let outcome = world.outcome();
    let (by_clock, wrong) = wrong.partition(|what| outcome.jumps > 0 && is_by_clock(what, kind));
    Ok(Outcome {
        answers: tally.answers,
        succeeded: verdict.succeeded,
        in_doubt: verdict.in_doubt,
        by_clock,
        wrong,
        ..outcome
    })
}

/// True for what a jump of the clock explains: a lease that began while the clock was ahead is not over for as long as it was ahead, and one that
/// ended by a jump has ended too early.
fn is_by_clock(what: &str, kind: &str) -> bool {
    let is_asked = kind == Kind::Reconcile.tool();
    what.contains("in_flight")
        || what.contains("is set aside for")
        || is_asked && what.ends_with("2 effects")
}

/// Signs and verifies the log; returns what is wrong with it.
async fn verified(world: &Arc<World>, executor: &Executor) -> Result<Vec<String>> {
    let key: SigningKey = World::key()?;
    let archive = Archive::new(
        world.store.clone(),
        executor.vault().clone(),
        world.clock.clone(),
        world.ids.clone(),
        key.verifying_key(),
    );
    let sequencer = Sequencer::builder(world.store.clone(), key)
        .clock(world.clock.clone())
        .ids(world.ids.clone());
    let mut sequencer = sequencer
        .start(LastStop::default())
        .await
        .context("the last start")?;
    // The lease of a dead process is over by now.
    sequencer.tick().await.context("the last round")?;
    let report = archive
        .verify_all(&Verification::default(), |_, _| {})
        .await?;
    let mut wrong: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    let head = world.store.head().await?;
    if report.checked != head.size || head.size == 0 {
        wrong.push(format!(
            "{} of {} records checked",
            report.checked, head.size
        ));
    }
    Ok(wrong)
}

/// The dice of a seed: neighbours have nothing in common.
fn dice_of(seed: u64) -> Dice {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Dice((mixed ^ (mixed >> 31)) | 1)
}

/// The kinds of tool that are simulated.
const KINDS: [Kind; 5] = [
    Kind::Write,
    Kind::Operator,
    Kind::Retry,
    Kind::Downstream,
    Kind::Reconcile,
];
