//! The world of one seed: its dice, its clock, its store, and the processes in it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use countersign::BoxFuture;
use countersign::clock::Clock;
use countersign::ids::SequentialIds;
use countersign::ledger::{MemoryStore, Store};
use countersign::{Catalog, Executor};
use countersign_evidence::note::SigningKey;
use countersign_evidence::seal::MasterKey;
use countersign_testkit::faulty::{FaultyStore, Op, When};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use super::{KINDS, Outcome, dice_of, tool};
use crate::driver::Dice;
use crate::tools::{self, Kind};
use crate::worker::{MASTER, Told};

/// A clock of virtual time, and a lie beside it.
pub(super) struct Virtual {
    start: Timestamp,
    origin: tokio::time::Instant,
    pub(super) lie_seconds: AtomicI64,
}

impl Clock for Virtual {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.monotonic()).unwrap_or_default();
        let lie = SignedDuration::from_secs(self.lie_seconds.load(Ordering::SeqCst));
        self.start + passed + lie
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// Everything of one seed.
pub(super) struct World {
    pub(super) kind: Kind,
    pub(super) clock: Arc<Virtual>,
    pub(super) ids: Arc<SequentialIds>,
    pub(super) store: Arc<MemoryStore>,
    dice: Mutex<Dice>,
    /// True at the end: nothing fails any more.
    is_at_rest: AtomicBool,
    /// Downstream keys of the effects elsewhere, by number.
    effects: Mutex<BTreeMap<u32, Vec<String>>>,
    wrong: Mutex<Vec<String>>,
    trace: AtomicU64,
    faults: AtomicU64,
    deaths: AtomicU64,
    jumps: AtomicU64,
}

impl World {
    pub(super) fn new(seed: u64) -> Result<Arc<Self>> {
        let mut dice = dice_of(seed);
        let kind = KINDS.get(dice.below(KINDS.len() as u32) as usize);
        let clock = Arc::new(Virtual {
            start: "2026-11-15T12:00:00Z".parse()?,
            origin: tokio::time::Instant::now(),
            lie_seconds: AtomicI64::new(0),
        });
        Ok(Arc::new(Self {
            kind: kind.copied().unwrap_or(Kind::Write),
            ids: Arc::new(SequentialIds::new()),
            store: Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log()),
            clock,
            dice: Mutex::new(dice),
            is_at_rest: AtomicBool::new(false),
            effects: Mutex::default(),
            wrong: Mutex::default(),
            trace: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            deaths: AtomicU64::new(0),
            jumps: AtomicU64::new(0),
        }))
    }

    pub(super) fn below(&self, limit: u32) -> u32 {
        locked(&self.dice).below(limit)
    }

    /// Waits for a while of virtual time.
    pub(super) async fn pause(&self, ms_max: u32) {
        let ms = self.below(ms_max.max(1));
        tokio::time::sleep(Duration::from_millis(ms.into())).await;
    }

    /// Adds to the digest of what has happened.
    pub(super) fn note(&self, what: &[u64]) {
        let mut trace = self.trace.load(Ordering::SeqCst);
        let at = u64::try_from(self.clock.monotonic().as_nanos()).unwrap_or(u64::MAX);
        for word in what.iter().chain([&at]) {
            trace = (trace ^ word)
                .wrapping_mul(0x0100_0000_01b3)
                .rotate_left(23);
        }
        self.trace.store(trace, Ordering::SeqCst);
    }

    pub(super) fn jumped(&self) {
        self.jumps.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn wrong(&self, what: String) {
        locked(&self.wrong).push(what);
    }

    pub(super) fn violations(&self) -> Vec<String> {
        std::mem::take(&mut locked(&self.wrong))
    }

    /// Ends all faults and lies.
    pub(super) fn rest(&self) {
        self.is_at_rest.store(true, Ordering::SeqCst);
        self.clock.lie_seconds.store(0, Ordering::SeqCst);
    }

    pub(super) fn key() -> Result<SigningKey> {
        Ok(SigningKey::from_seed("example.com/simulated", &[7; 32])?)
    }

    /// An executor whose tool lives as long as this process.
    pub(super) fn executor(
        self: &Arc<Self>,
        store: Arc<dyn Store>,
        mortal: &Mortal,
    ) -> Result<Executor> {
        let effect = tool::Effect::new(self.clone(), mortal.clone())?;
        let catalog = Catalog::builder().dyn_tool(Arc::new(effect)).build()?;
        let executor = Executor::builder(catalog)
            .store(store)
            .clock(self.clock.clone())
            .ids(self.ids.clone())
            .kms(Arc::new(MasterKey::from_bytes(&MASTER)))
            .budgets(Arc::new(tools::budgets()?));
        Ok(executor.build())
    }

    /// Notes an effect elsewhere.
    pub(super) fn effect(&self, n: u32, key: &str) {
        locked(&self.effects)
            .entry(n)
            .or_default()
            .push(key.to_owned());
    }

    /// True if an effect with this downstream key has happened.
    pub(super) fn has_effect(&self, n: u32, key: &str) -> bool {
        let effects = locked(&self.effects);
        effects
            .get(&n)
            .is_some_and(|keys| keys.iter().any(|it| it == key))
    }

    /// Number of effects of each key; those in the store are counted by the last answer.
    pub(super) fn effects(&self, ends: &BTreeMap<u32, Option<Told>>) -> BTreeMap<u32, usize> {
        if self.kind == Kind::Write {
            let count = |told: &Told| usize::try_from(told.data.get("count")?.as_u64()?).ok();
            let counted = ends.iter();
            let counted = counted.filter_map(|(key, told)| Some((*key, count(told.as_ref()?)?)));
            return counted.collect();
        }
        let effects = locked(&self.effects);
        effects.iter().map(|(n, keys)| (*n, keys.len())).collect()
    }

    pub(super) fn outcome(&self) -> Outcome {
        Outcome {
            faults: self.faults.load(Ordering::SeqCst),
            deaths: self.deaths.load(Ordering::SeqCst),
            jumps: self.jumps.load(Ordering::SeqCst),
            trace: self.trace.load(Ordering::SeqCst),
            ..Outcome::default()
        }
    }
}

/// A process that dies and is started again.
pub(super) struct Process {
    number: u32,
    life: Mutex<Arc<Life>>,
}

impl Process {
    pub(super) fn new(number: u32, world: &Arc<World>) -> Result<Arc<Self>> {
        let life = Mutex::new(Life::begin(number, world)?);
        Ok(Arc::new(Self { number, life }))
    }

    /// Its life; a new one if it is dead.
    pub(super) fn begin(&self, world: &Arc<World>) -> Result<Arc<Life>> {
        let mut life = locked(&self.life);
        if life.mortal.is_dead() {
            *life = Life::begin(self.number, world)?;
        }
        Ok(life.clone())
    }

    /// Its life; `None` while it is dead.
    pub(super) fn life(&self) -> Option<Arc<Life>> {
        let life = locked(&self.life).clone();
        (!life.mortal.is_dead()).then_some(life)
    }
}

/// One life of a process.
pub(super) struct Life {
    number: u32,
    pub(super) mortal: Mortal,
    pub(super) store: Arc<dyn Store>,
    pub(super) executor: Executor,
}

impl Life {
    fn begin(number: u32, world: &Arc<World>) -> Result<Arc<Self>> {
        let mortal = Mortal::new(number, world);
        let passes = mortal.clone();
        let plan = move |op: Op, when: When| -> BoxFuture<'static, bool> {
            let passes = passes.clone();
            Box::pin(async move { passes.pass(&[op as u64, when as u64]).await })
        };
        let store: Arc<dyn Store> = Arc::new(FaultyStore::new(world.store.clone(), plan));
        let executor = world.executor(store.clone(), &mortal)?;
        Ok(Arc::new(Self {
            number,
            mortal,
            store,
            executor,
        }))
    }

    pub(super) fn name(&self) -> String {
        format!("process {}", self.number)
    }
}

/// The fate of one life: at each point it may be late, meet a fault, or end.
#[derive(Clone)]
pub(super) struct Mortal {
    world: Arc<World>,
    number: u32,
    is_dead: Arc<AtomicBool>,
    death: Arc<Notify>,
}

impl Mortal {
    pub(super) fn new(number: u32, world: &Arc<World>) -> Self {
        Self {
            world: world.clone(),
            number,
            is_dead: Arc::default(),
            death: Arc::default(),
        }
    }

    fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::SeqCst)
    }

    /// Returns when the process is dead.
    pub(super) async fn died(&self) {
        loop {
            let death = self.death.notified();
            if self.is_dead() {
                return;
            }
            death.await;
        }
    }

    /// Passes a point; true if it has to fail there. The dead pass none.
    pub(super) async fn pass(&self, point: &[u64]) -> bool {
        let world = &self.world;
        if world.is_at_rest.load(Ordering::SeqCst) {
            return false;
        }
        if self.is_dead() {
            return std::future::pending().await;
        }
        world.note(point);
        match world.below(200) {
            0..=59 => world.pause(200).await,
            60..=63 => world.pause(90_000).await,
            64..=69 => {
                world.faults.fetch_add(1, Ordering::SeqCst);
                return true;
            }
            70..=71 => {
                world.deaths.fetch_add(1, Ordering::SeqCst);
                world.note(&[u64::MAX, self.number.into()]);
                self.is_dead.store(true, Ordering::SeqCst);
                self.death.notify_waiters();
            }
            _ => {}
        }
        // It may have died while it was late.
        if self.is_dead() {
            return std::future::pending().await;
        }
        false
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
