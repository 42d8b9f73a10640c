//! A store and the model in memory get the same steps, and must answer the same.
//!
//! Values that depend on the two clocks are left out of the comparison: ages, and when to ask again. So is the order of rows that were
//! claimed at the same instant.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::clock::ManualClock;
use countersign::ledger::{
    ClaimAnswer, ClaimQuery, ClaimRow, Commit, CommitAnswer, Disposal, DocumentKey, DocumentRead,
    DocumentWrite, Error, Held, HeldState, KeyChange, MemoryStore, Scope, ShapeRead, Store, Swept,
};
use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prop_assert_eq;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use super::build::{self, entry, index_entry, record_id, scope_of, trust};
use super::claims::named;
use super::{Fixture, Fresh, runtime};

mod steps;

use steps::{Place, Step, Unit, step};

/// Runs this number of random sequences of claims, commits and reads against a store that the fixture opens and against the model. All of
/// them run in one store, each with users of its own.
///
/// # Panics
///
/// If the two answer differently; the shortest sequence that was found is in the message.
pub fn lockstep(fixture: &impl Fixture, cases: u32) {
    let runtime = runtime();
    let fresh = runtime.block_on(fixture.fresh());
    let pair = Pair::new(&fresh);
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    // Always the same sequences: a failure on one machine is one on every other.
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let played = TestRunner::new_with_rng(config, rng).run(&vec(step(), 1..50), |steps| {
        runtime.block_on(pair.play(&steps))
    });
    let failure = played.err().map(|error| error.to_string());
    assert!(failure.is_none(), "{}", failure.unwrap_or_default());
}

struct Pair<'a> {
    store: &'a dyn Store,
    model: Arc<dyn Store>,
    /// `None` if the store goes by a clock that the test cannot move.
    clock: Option<Arc<ManualClock>>,
    /// Makes users and records that no other sequence has.
    counter: AtomicUsize,
}

impl<'a> Pair<'a> {
    fn new(fresh: &'a Fresh) -> Self {
        let still = || Arc::new(ManualClock::starting_at(Timestamp::UNIX_EPOCH));
        let clock = fresh.clock.clone();
        let model = MemoryStore::with_clock(clock.clone().unwrap_or_else(still));
        Self {
            store: &*fresh.store,
            model: Arc::new(model.keeping_log().keys_max(usize::MAX)),
            clock,
            counter: AtomicUsize::new(0),
        }
    }

    async fn play(&self, steps: &[Step]) -> Result<(), TestCaseError> {
        let mut game = Game {
            number: self.counter.fetch_add(1, Ordering::Relaxed),
            commits: 0,
            last: None,
        };
        for step in steps {
            let answers = match step {
                Step::Advance(by) => {
                    if let Some(clock) = &self.clock {
                        clock.advance(*by);
                    }
                    continue;
                }
                // Clocks that the test cannot move say different times, so they do not believe the same.
                Step::Dispose if self.clock.is_none() => continue,
                Step::Commit(unit) => {
                    let planned = self.plan(&mut game, unit).await?;
                    game.last = Some(planned);
                    self.commit_last(&game).await
                }
                Step::Repeat => self.commit_last(&game).await,
                Step::Lookup(_)
                | Step::Claim(..)
                | Step::Document(_)
                | Step::Scan { .. }
                | Step::Find { .. }
                | Step::Claims { .. }
                | Step::Sweep
                | Step::Dispose
                | Step::Trust => both(
                    ask(self.store, &game, step).await,
                    ask(&*self.model, &game, step).await,
                ),
            };
            let (real, modelled) = answers?;
            prop_assert_eq!(real, modelled, "{:?}", step);
        }
        self.compare_all(&game).await
    }

    /// Compares the final content of both stores, by every kind of read.
    async fn compare_all(&self, game: &Game) -> Result<(), TestCaseError> {
        let mut looks = Vec::new();
        for user in 0..2 {
            looks.extend([Step::Claims { user }, Step::Scan { user, limit: 9 }]);
            looks.extend((0..2).map(|value| Step::Find { user, value }));
            for name in 0..3 {
                let place = Place { user, name };
                looks.extend([Step::Lookup(place), Step::Document(place)]);
            }
        }
        for look in &looks {
            let real = ask(self.store, game, look).await;
            let answers = both(real, ask(&*self.model, game, look).await);
            let (real, modelled) = answers?;
            prop_assert_eq!(real, modelled, "in the end: {:?}", look);
        }
        for n in 0..game.commits {
            let id = record_id(&game.record(n));
            let real = self.store.record(&id).await?;
            let modelled = self.model.record(&id).await?;
            prop_assert_eq!(real.is_some(), modelled.is_some(), "{}", id);
        }
        Ok(())
    }

    /// Plans the commit of a caller who has read the model's present state, or a version near it.
    async fn plan(&self, game: &mut Game, unit: &Unit) -> Result<Planned, Error> {
        let record = game.record(game.commits);
        game.commits += 1;
        let mut planned = Planned {
            record,
            ..Planned::default()
        };
        if let Some((place, key)) = &unit.key {
            let scope = game.scope(*place);
            let held = self.model.lookup(&scope).await?;
            let attempt = held.map_or(0, |held| held.attempt);
            planned.key = Some(key.change(scope, attempt));
        }
        let reads = unit.reads.iter().map(|(place, look)| (place, look, None));
        let writes = unit.writes.iter();
        let writes = writes.map(|(place, look, written)| (place, look, Some(written)));
        for (place, look, written) in writes.chain(reads) {
            let key = game.document(*place);
            if planned.reads.iter().any(|read| read.key == key) {
                continue;
            }
            let version = look.at(self.model.document(&key).await?.version);
            if let Some(written) = written {
                planned.writes.push(written.write(key.clone(), version));
            }
            planned.reads.push(DocumentRead { key, version });
        }
        if let Some((user, look)) = unit.shape {
            let user_id = game.user(user);
            let scan = self.model.scan(&user_id, COLLECTION, "", None, 0).await?;
            planned.shapes.push(ShapeRead {
                user_id,
                collection: COLLECTION.to_owned(),
                shape: look.at(scan.shape),
            });
        }
        Ok(planned)
    }

    async fn commit_last(&self, game: &Game) -> Result<(String, String), Error> {
        let Some(last) = &game.last else {
            return Ok(Default::default());
        };
        let real = self.store.commit(last.commit()).await?;
        let modelled = self.model.commit(last.commit()).await?;
        Ok((told(&real), told(&modelled)))
    }
}

const COLLECTION: &str = "cart";

/// One sequence, and the commits that it has sent.
struct Game {
    number: usize,
    commits: usize,
    last: Option<Planned>,
}

impl Game {
    fn user(&self, user: u8) -> String {
        format!("u_{}_{user}", self.number)
    }

    fn record(&self, n: usize) -> String {
        format!("ev_{}-{n}", self.number)
    }

    fn scope(&self, place: Place) -> Scope {
        let key = place.name.to_string();
        scope_of(&self.user(place.user), "orders.create", &key)
    }

    fn document(&self, place: Place) -> DocumentKey {
        DocumentKey {
            user_id: self.user(place.user),
            collection: COLLECTION.to_owned(),
            id: place.name.to_string(),
        }
    }
}

/// A commit that can be sent more than once.
#[derive(Debug, Default)]
struct Planned {
    record: String,
    key: Option<KeyChange>,
    reads: Vec<DocumentRead>,
    shapes: Vec<ShapeRead>,
    writes: Vec<DocumentWrite>,
}

impl Planned {
    fn commit(&self) -> Commit {
        Commit {
            key: self.key.clone(),
            reads: self.reads.clone(),
            shapes: self.shapes.clone(),
            writes: self.writes.clone(),
            spend: None,
            record: entry(&self.record, "u_1").into(),
        }
    }
}

/// Returns a store's answer to a step other than a commit, without the parts that depend on its clock.
async fn ask(store: &dyn Store, game: &Game, step: &Step) -> Result<String, Error> {
    Ok(match step {
        Step::Lookup(place) => {
            let held = store.lookup(&game.scope(*place)).await?;
            format!("{:?}", held.as_ref().map(standing))
        }
        Step::Claim(place, asked) => {
            match store.claim(&asked.request(&game.scope(*place))).await? {
                ClaimAnswer::Ours(claim) => format!("ours: {claim:?}"),
                ClaimAnswer::Held(held) => standing(&held),
                ClaimAnswer::Exhausted { attempts } => format!("exhausted after {attempts}"),
                ClaimAnswer::Over(over) => format!("over: {over:?}"),
                ClaimAnswer::Erased => "erased".to_owned(),
            }
        }
        Step::Document(place) => format!("{:?}", store.document(&game.document(*place)).await?),
        Step::Scan { user, limit } => {
            let user_id = game.user(*user);
            let scan = store.scan(&user_id, COLLECTION, "", None, *limit).await?;
            format!("{scan:?}")
        }
        Step::Find { user, value } => {
            let (user_id, entry) = (game.user(*user), index_entry("by_value", *value));
            let scan = store.find(&user_id, COLLECTION, &entry, 9).await?;
            format!("{scan:?}")
        }
        Step::Claims { user } => {
            let query = ClaimQuery {
                user_id: Some(game.user(*user)),
                limit: 9,
                ..ClaimQuery::default()
            };
            let mut rows = store.claims(&query).await?;
            rows.sort_by(|a, b| a.scope.cmp(&b.scope));
            rows.iter().map(shown).collect()
        }
        Step::Sweep => format!("{:?}", sweep(store).await?),
        Step::Dispose => match store.dispose(1_000, build::told()).await? {
            Disposal::Done(disposed) => format!("{disposed:?}"),
            Disposal::Stopped(passage) => format!("{:?}", passage.jump()),
        },
        Step::Trust => {
            trust(store).await?;
            String::new()
        }
        Step::Commit(_) | Step::Repeat | Step::Advance(_) => String::new(),
    })
}

/// Everything there is to sweep: how much of it one sweep does is a store's own affair.
async fn sweep(store: &dyn Store) -> Result<Swept, Error> {
    let mut all = Swept::default();
    loop {
        assert!(
            all.in_doubt < 100_000,
            "there is always more to sweep: {all:?}"
        );
        let swept = store.sweep(1_000).await?;
        if swept.is_empty() {
            return Ok(all);
        }
        all.in_doubt += swept.in_doubt;
    }
}

fn standing(held: &Held) -> String {
    let reply = match &held.state {
        HeldState::Succeeded(reply) | HeldState::Failed(reply) => Some(reply),
        HeldState::Running { .. }
        | HeldState::Abandoned
        | HeldState::Released
        | HeldState::InDoubt
        | HeldState::Expired => None,
    };
    let (name, attempt, of) = (named(&held.state), held.attempt, held.fingerprint.first());
    format!(
        "{name} {reply:?}, attempt {attempt} for {of:?}, {:?}",
        held.parts
    )
}

fn shown(row: &ClaimRow) -> String {
    let is_leased = row.lease_until.is_some();
    let (key, state) = (row.scope.key, row.state.as_str());
    format!(
        "{key} {state} {} {is_leased} {:?}\n",
        row.attempt, row.parts
    )
}

/// Describes the answer to a commit. A store may name any of several things that have moved, so none is named.
fn told(answer: &CommitAnswer) -> String {
    match answer {
        CommitAnswer::Committed => "committed".to_owned(),
        CommitAnswer::Held(held) => standing(held),
        CommitAnswer::Moved { .. } => "moved".to_owned(),
        CommitAnswer::Fenced => "fenced".to_owned(),
        CommitAnswer::Lapsed => "lapsed".to_owned(),
        CommitAnswer::Erased => "erased".to_owned(),
    }
}

fn both<T>(real: Result<T, Error>, modelled: Result<T, Error>) -> Result<(T, T), Error> {
    Ok((real?, modelled?))
}
