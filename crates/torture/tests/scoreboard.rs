//! The scoreboard of `docs/durability.md`: eight cases that systems of this kind are compared by, with
//! real processes and a ledger of effects outside of them.

use anyhow::Result;
use countersign_testkit::patience::Watchdog;
use countersign_testkit::postgres::shared_postgres;
use countersign_torture::driver::{Arena, Start, Tally};
use countersign_torture::point::Point;
use countersign_torture::server;
use countersign_torture::tools::Kind;
use countersign_torture::worker::{self, Job};

struct Board {
    arena: Arena,
    _folder: tempfile::TempDir,
    _watchdog: Watchdog,
}

impl Board {
    fn on_postgres() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let url = shared_postgres().fresh_database();
        server::prepare(&url).expect("the schema is made");
        Self {
            arena: Arena {
                program: env!("CARGO_BIN_EXE_countersign-torture").into(),
                store: url,
                ledger: folder.path().join("effects"),
            },
            _folder: folder,
            _watchdog: Watchdog::start(),
        }
    }

    fn effects(&self, kind: Kind) -> usize {
        let effects = self.arena.effects(kind).expect("the ledger can be read");
        effects.values().sum()
    }

    /// Runs a worker with one key, without disturbance; returns its answers.
    fn call(&self, kind: Kind) -> Tally {
        let mut tally = Tally::default();
        let killed = self.arena.run(&Start::new(kind, 0..1), &mut tally);
        assert!(!killed.expect("a worker starts and ends"));
        tally
    }
}

fn one_key(kind: Kind, die: Option<Point>, pauses: bool) -> Start {
    Start {
        die: die.map(|point| (point, 1)),
        pauses,
        ..Start::new(kind, 0..1)
    }
}

fn job(board: &Board, kind: Kind) -> Job {
    Job {
        store: board.arena.store.clone(),
        ledger: board.arena.ledger.clone(),
        kind,
        keys: 0..1,
        turn: 0,
        tasks: 1,
        fate: countersign_torture::point::Fate::new(
            None,
            1,
            countersign_torture::point::End::Death,
        ),
        user: "u_1".to_owned(),
        together: false,
        fails: false,
    }
}

async fn executor(board: &Board, job: &Job) -> Result<countersign::Executor> {
    let store = worker::open(&board.arena.store).await?;
    worker::executor(store, &board.arena.ledger, &job.fate)
}

/// Case 1: the same key with other arguments is refused, and nothing runs.
#[tokio::test]
async fn same_key_different_payload() {
    let board = Board::on_postgres();
    let mut job = job(&board, Kind::Operator);
    let executor = executor(&board, &job).await.expect("it opens");
    assert!(worker::call(&executor, &job, 0).await.ok);
    job.together = true;
    let told = worker::call(&executor, &job, 0).await;
    assert_eq!(told.reason.as_deref(), Some("key_reused"), "{told:?}");
    assert_eq!(board.effects(Kind::Operator), 1);
}

/// Case 2: eight callers of one key at once: one effect, and all have its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_concurrent_callers() {
    let board = Board::on_postgres();
    let job = job(&board, Kind::Operator);
    let executor = executor(&board, &job).await.expect("it opens");
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (executor, job) = (executor.clone(), job.clone());
        callers.spawn(async move { worker::call(&executor, &job, 0).await });
    }
    let told = callers.join_all().await;
    let first = &told.first().expect("eight").data;
    assert!(told.iter().all(|told| told.ok && told.data == *first));
    assert_eq!(board.effects(Kind::Operator), 1);
}

/// Case 3: four processes, one key: one effect, one answer.
#[test]
fn four_processes() {
    let board = Board::on_postgres();
    let mut tally = Tally::default();
    let start = Start::new(Kind::Operator, 0..1);
    let workers: Vec<_> = (0..4)
        .map(|_| board.arena.start(&start).expect("a worker starts"))
        .collect();
    for worker in workers {
        worker.finish(&mut tally).expect("a worker ends");
    }
    assert!(tally.wrong.is_empty(), "{:?}", tally.wrong);
    assert_eq!((tally.answers, tally.succeeded.len()), (4, 1));
    assert_eq!(board.effects(Kind::Operator), 1);
}

/// Case 4: `kill -9` after the effect and before its record. Unless the tool has declared that running it again is
/// safe, it is not run again, and the key is answered as in doubt.
#[test]
fn killed_between_effect_and_record() {
    for (kind, effects, is_answered) in [
        (Kind::Write, 0, true),
        (Kind::Operator, 1, false),
        (Kind::Reconcile, 1, true),
        (Kind::Downstream, 2, true),
    ] {
        let board = Board::on_postgres();
        let start = one_key(kind, Some(Point::AfterEffect), false);
        let mut tally = Tally::default();
        assert!(board.arena.run(&start, &mut tally).expect("it is killed"));
        server::expire_leases(&board.arena.store).expect("time passes");
        let tally = board.call(kind);
        assert_eq!(tally.succeeded.len(), usize::from(is_answered), "{kind:?}");
        assert!(tally.wrong.is_empty(), "{:?}", tally.wrong);
        // A downstream service that honours the key makes one object of the two requests.
        assert_eq!(board.effects(kind), effects, "{kind:?}");
        if kind == Kind::Write {
            assert_eq!(
                tally.succeeded.get(&0).map(|data| &data["count"]),
                Some(&1.into())
            );
        }
    }
}

/// Case 5: a second replica starts while the first is alive and in the middle of the call.
#[test]
fn second_replica_while_the_first_lives() {
    let board = Board::on_postgres();
    let start = one_key(Kind::Operator, Some(Point::BeforeEffect), true);
    let first = board.arena.start(&start).expect("a worker starts");
    first.wait_paused().expect("it pauses");
    let mut second = board
        .arena
        .start(&Start::new(Kind::Operator, 0..1))
        .expect("a worker starts");
    let mut tally = Tally::default();
    first.resume().expect("it goes on");
    first.finish(&mut tally).expect("it ends");
    second.wait_for(1, &mut tally).expect("it answers");
    second.finish(&mut tally).expect("it ends");
    assert!(tally.wrong.is_empty(), "{:?}", tally.wrong);
    assert_eq!(tally.succeeded.len(), 1);
    assert_eq!(board.effects(Kind::Operator), 1);
}

/// Case 6: an owner that was paused beyond its lease and overtaken is fenced: the answer of the process that took over
/// counts, and the late owner returns it too.
#[test]
fn zombie_after_takeover() {
    let board = Board::on_postgres();
    let start = one_key(Kind::Retry, Some(Point::AfterEffect), true);
    let late = board.arena.start(&start).expect("a worker starts");
    late.wait_paused().expect("it pauses");
    server::expire_leases(&board.arena.store).expect("time passes");
    let counted = board.call(Kind::Retry);
    assert_eq!(counted.succeeded.len(), 1);
    late.resume().expect("it goes on");
    let mut zombie = Tally::default();
    late.finish(&mut zombie).expect("it ends");
    assert_eq!(zombie.succeeded, counted.succeeded);
    assert_eq!(board.call(Kind::Retry).succeeded, counted.succeeded);
    assert_eq!(board.effects(Kind::Retry), 2);
}

/// Case 6, without takeover: an owner that was only thought lost settles its call after all.
#[test]
fn a_late_owner_resolves_its_own_doubt() {
    let board = Board::on_postgres();
    let start = one_key(Kind::Operator, Some(Point::AfterEffect), true);
    let late = board.arena.start(&start).expect("a worker starts");
    late.wait_paused().expect("it pauses");
    server::expire_leases(&board.arena.store).expect("time passes");
    assert!(board.call(Kind::Operator).succeeded.is_empty(), "in doubt");
    late.resume().expect("it goes on");
    let mut told = Tally::default();
    late.finish(&mut told).expect("it ends");
    assert_eq!(told.succeeded.len(), 1);
    assert_eq!(board.call(Kind::Operator).succeeded, told.succeeded);
    assert_eq!(board.effects(Kind::Operator), 1);
}

/// Case 7: a call that failed without an effect frees its key for the next try.
#[tokio::test]
async fn failed_without_effect() {
    let board = Board::on_postgres();
    let mut job = job(&board, Kind::Operator);
    let executor = executor(&board, &job).await.expect("it opens");
    job.fails = true;
    let told = worker::call(&executor, &job, 0).await;
    assert_eq!(told.code.as_deref(), Some("NOT_FOUND"), "{told:?}");
    let again = worker::call(&executor, &job, 0).await;
    assert_eq!(
        again.code.as_deref(),
        Some("NOT_FOUND"),
        "tried again, not replayed"
    );
    assert!(!again.replayed);
    assert_eq!(board.effects(Kind::Operator), 0);
}

/// Case 8: a retry after retention is refused, never run again.
#[tokio::test]
async fn retry_after_retention() {
    let board = Board::on_postgres();
    let job = job(&board, Kind::Operator);
    let executor = executor(&board, &job).await.expect("it opens");
    assert!(worker::call(&executor, &job, 0).await.ok);
    let url = board.arena.store.clone();
    tokio::task::spawn_blocking(move || server::expire_answers(&url))
        .await
        .expect("it ends")
        .expect("time passes");
    let told = worker::call(&executor, &job, 0).await;
    assert_eq!(told.reason.as_deref(), Some("key_expired"), "{told:?}");
    assert_eq!(board.effects(Kind::Operator), 1);
}
