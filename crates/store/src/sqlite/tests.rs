//! What only shows from inside: batches, failures of the database, the disk, and the clock.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use countersign::ledger::{
    ClaimAnswer, Claims as _, CommitAnswer, Documents as _, Durability, HeldState, Hold,
    Keyring as _, Log, LogQuery, MemoryStore, Sequencing, WrappedKey,
};
use countersign_testkit::ledger::build::{
    commit, document, entry, entry_at, has_succeeded, held, index_entry, ours, record_id, request,
    request_id, scope, settle, succeeded, take, with_write, write,
};
use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, proptest};
use tempfile::TempDir;

use super::log::entry::{Sealed, keep};
use super::writer::Done;
use super::*;
use crate::transfer::{Row, Source as _};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn open(folder: &Path) -> SqliteStore {
    open_with_room(folder, &Arc::new(AtomicU64::new(u64::MAX)))
}

/// On a disk that has as much room as the test says.
fn open_with_room(folder: &Path, room: &Arc<AtomicU64>) -> SqliteStore {
    let room = room.clone();
    let probe: Probe = Box::new(move || Some(room.load(Ordering::SeqCst)));
    SqliteStore::open_with(&folder.join("store.db"), SqliteOptions::default(), probe)
        .expect("the file can be opened")
}

/// Keeps the writer busy until the sender is dropped, so that everything after it shares a batch.
fn block_writer(store: &SqliteStore) -> mpsc::Sender<()> {
    let (sender, blocked) = mpsc::channel::<()>();
    let (started, starts) = mpsc::channel();
    let writer = store.writer.clone();
    std::thread::spawn(move || {
        writer.run_blocking(move |_| {
            started.send(()).ok();
            blocked.recv().ok();
            Ok(Done::Kept(()))
        })
    });
    starts.recv().expect("the writer has begun");
    sender
}

/// Begins a future; it goes on when it is awaited.
fn begun<T>(future: BoxFuture<'_, T>) -> BoxFuture<'_, T> {
    let mut future = future;
    let polled = future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "it waits for the writer");
    future
}

async fn is_kept(store: &SqliteStore, id: &str) -> bool {
    let record = store.record(&record_id(id)).await.expect("it can be read");
    record.is_some()
}

/// A4: a job that fails, or takes back what it did, leaves the others of its batch alone; places in the
/// log have no gaps.
#[tokio::test]
async fn jobs_of_a_batch_fail_alone() {
    let folder = folder();
    let store = open(folder.path());
    let blocked = block_writer(&store);
    let spoilt = |end: fn() -> Result<Done<()>, Failure>| {
        let sealed = Sealed::from(entry("ev_spoilt", "u_1"));
        Box::pin(store.writer.run(move |session| {
            assert!(keep(session, &sealed)?);
            end()
        }))
    };
    let first = begun(store.commit(commit("ev_1")));
    let failed = begun(spoilt(|| Err(Failure::Forked { size: 9 })));
    let second = begun(store.commit(commit("ev_2")));
    let undone = begun(spoilt(|| Ok(Done::Undone(()))));
    let third = begun(store.commit(commit("ev_3")));
    drop(blocked);
    for done in [first, second, third] {
        assert_eq!(done.await.expect("it is written"), CommitAnswer::Committed);
    }
    assert!(matches!(failed.await, Err(Failure::Forked { size: 9 })));
    undone.await.expect("its answer stands");
    assert!(!is_kept(&store, "ev_spoilt").await);
    assert_eq!(integrated(&store).await, ["ev_1", "ev_2", "ev_3"]);
}

/// The records in the tree, in its order.
async fn integrated(store: &SqliteStore) -> Vec<String> {
    let sequencing = Sequencing {
        holder: "test".to_owned(),
        lease: Duration::ZERO,
    };
    store
        .integrate(&sequencing, 1_000)
        .await
        .expect("it is taken in");
    let mut ids = Vec::new();
    let mut dump = store.dump().expect("it can be read");
    for row in dump.next_batch(10_000).await.expect("it can be read") {
        if let Row::Record(record) = row {
            assert_eq!(record.index, Some(ids.len() as u64));
            ids.push(record.row.id.to_string());
        }
    }
    ids
}

/// A4: nobody of a batch that could not be committed is told that it was, and what is in memory goes back
/// to what the file has.
#[tokio::test]
async fn a_failed_commit_is_nobodys_success() {
    let folder = folder();
    let path = folder.path().join("store.db");
    let options = SqliteOptions::default();
    let mut opened = open::open(&path, &options, 0).expect("a new file");
    let fails = Arc::new(AtomicBool::new(false));
    let hook = fails.clone();
    opened
        .connection
        .commit_hook(Some(move || hook.load(Ordering::SeqCst)))
        .expect("there is none yet");
    let parts = WriterParts {
        opened,
        path: path.clone(),
        options: options.clone(),
        time: Arc::new(Time::new(options.clock.clone())),
        disk: Arc::new(Disk::new(0, Box::new(|| None))),
        is_complete: Arc::default(),
    };
    let (writer, thread) = Writer::start(parts).expect("a thread");
    let kept = |id: &str| {
        let sealed = Sealed::from(entry(id, "u_1"));
        writer.run(move |session| {
            let place = session.tip.next;
            assert!(keep(session, &sealed)?, "it is not there yet");
            Ok(Done::Kept(place))
        })
    };
    assert_eq!(kept("ev_1").await.expect("it is written"), 0);
    fails.store(true, Ordering::SeqCst);
    let failed = kept("ev_2").await;
    assert!(matches!(failed, Err(Failure::Database(_))), "{failed:?}");
    // The hook still fails; it is gone because the connection is another one.
    assert_eq!(kept("ev_3").await.expect("it is written"), 1);
    assert_eq!(kept("ev_2").await.expect("it is written"), 2);
    drop(writer);
    thread.join().expect("it ends");
}

/// A batch in which the database has rolled everything back by itself is not acknowledged either.
#[tokio::test]
async fn a_batch_that_was_rolled_back_is_nobodys_success() {
    let folder = folder();
    let store = open(folder.path());
    let blocked = block_writer(&store);
    let innocent = begun(store.commit(commit("ev_1")));
    let rolled_back = begun(Box::pin(store.writer.run(|session| {
        session.connection.execute_batch("ROLLBACK")?;
        Ok(Done::Kept(()))
    })));
    drop(blocked);
    assert!(innocent.await.is_err() && rolled_back.await.is_err());
    assert!(!is_kept(&store, "ev_1").await);
    let again = store.commit(commit("ev_1")).await.expect("it is written");
    assert_eq!(again, CommitAnswer::Committed);
    assert_eq!(integrated(&store).await, ["ev_1"]);
}

/// A22: with too little room nothing is written and reading goes on; with room again, writing does.
#[tokio::test]
async fn a_disk_that_is_nearly_full_stops_writes_only() {
    let folder = folder();
    let room = Arc::new(AtomicU64::new(u64::MAX));
    let store = open_with_room(folder.path(), &room);
    let taken = take(&scope("k"), 0, succeeded("yes"), "ev_1");
    store.commit(taken).await.expect("there is room");
    drop(store);

    room.store(1_000, Ordering::SeqCst);
    let store = open_with_room(folder.path(), &room);
    let sequencing = Sequencing {
        holder: "test".to_owned(),
        lease: Duration::ZERO,
    };
    let other = request(&scope("other"));
    let refusals = [
        store.claim(&other).await.map(drop),
        store.commit(commit("ev_2")).await.map(drop),
        store
            .append(entry("ev_3", "u_1").into(), Durability::Batched)
            .await,
        store
            .append(entry("ev_4", "u_1").into(), Durability::Committed)
            .await,
        store.integrate(&sequencing, 10).await.map(drop),
        store.sweep(10).await.map(drop),
    ];
    for refused in refusals {
        assert_eq!(
            refused.expect_err("there is no room").to_string(),
            "the disk has 1000 bytes left, 268435456 are kept free; nothing is written"
        );
    }
    let stands = store.lookup(&scope("k")).await.expect("reading goes on");
    assert_eq!(stands.expect("it is there").state, has_succeeded("yes"));
    assert!(is_kept(&store, "ev_1").await);

    room.store(u64::MAX, Ordering::SeqCst);
    ours(store.claim(&other).await.expect("there is room again"));
    for id in ["ev_2", "ev_3", "ev_4"] {
        assert!(!is_kept(&store, id).await, "{id} was refused");
    }
}

/// A record that nobody waits for is not lost when it cannot be written at once.
#[tokio::test]
async fn what_waited_is_written_when_there_is_room() {
    let folder = folder();
    let room = Arc::new(AtomicU64::new(0));
    let store = open_with_room(folder.path(), &room);
    let draft = entry("ev_1", "u_1").into();
    store.sealer.send(draft).await.expect("the queue has room");
    let flushed = store.flush().await;
    assert!(matches!(flushed, Err(Error::DiskLow { .. })), "{flushed:?}");
    assert!(!is_kept(&store, "ev_1").await);
    room.store(u64::MAX, Ordering::SeqCst);
    store.flush().await.expect("there is room again");
    assert!(is_kept(&store, "ev_1").await);
}

/// A run that ends without having written everything is a lost one.
#[tokio::test]
async fn a_store_that_could_not_write_is_not_closed() {
    let folder = folder();
    let room = Arc::new(AtomicU64::new(0));
    let store = open_with_room(folder.path(), &room);
    let draft = entry("ev_1", "u_1").into();
    store.sealer.send(draft).await.expect("the queue has room");
    drop(store);
    let previous = open(folder.path()).previous_run();
    assert!(matches!(previous, PreviousRun::Lost { .. }), "{previous:?}");
}

/// A database that finds no room for a page acknowledges nothing of the batch, and is usable afterwards.
#[tokio::test]
async fn a_file_that_cannot_grow_loses_nothing() {
    let folder = folder();
    let store = open(folder.path());
    let limited = store.writer.run(|session| {
        let pages: i64 = session
            .connection
            .pragma_query_value(None, "page_count", |row| row.get(0))?;
        let limit = pages + 20;
        session.connection.query_row(
            &format!("PRAGMA max_page_count = {limit}"),
            [],
            |_| Ok(()),
        )?;
        Ok(Done::Kept(()))
    });
    limited.await.expect("it is set");
    let mut outcomes = Vec::new();
    for n in 0..30 {
        let mut large = entry(&format!("ev_{n}"), "u_1");
        large.payload = Some(vec![n; 9_000]);
        outcomes.push(store.append(large.into(), Durability::Committed).await);
    }
    let refused: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| outcome.as_ref().err())
        .map(ToString::to_string)
        .collect();
    // The limit is the connection's; the one that was opened after the failure has none.
    assert_eq!(
        refused,
        ["the disk has 0 bytes left, 1 are kept free; nothing is written"]
    );
    for (n, outcome) in outcomes.iter().enumerate() {
        assert_eq!(is_kept(&store, &format!("ev_{n}")).await, outcome.is_ok());
    }
    store.check().await.expect("it is whole");
}

/// Design decision 13: a queue that is full makes its callers wait, and loses nothing.
#[tokio::test]
async fn a_full_queue_makes_callers_wait() {
    let folder = folder();
    let options = SqliteOptions {
        drafts_waiting_max: 3,
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open(folder.path().join("store.db"), options).expect("a new file");
    let blocked = block_writer(&store);
    let mut sent = 0;
    let waits = loop {
        let draft = entry(&format!("ev_{sent}"), "u_1").into();
        let mut append = store.append(draft, Durability::Batched);
        sent += 1;
        let polled = append
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        match polled {
            Poll::Ready(sent) => sent.expect("it is open"),
            Poll::Pending => break append,
        }
        assert!(sent < 1_000, "nothing makes a caller wait");
    };
    assert!(sent > 3, "the queue has room for three");
    drop(blocked);
    waits.await.expect("there is room again");
    store.flush().await.expect("it is written");
    assert_eq!(integrated(&store).await.len(), sent);
}

/// A clock of which each kind of time is set by itself.
struct JumpingClock {
    now: Mutex<Timestamp>,
    elapsed_ms: AtomicU64,
}

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().expect("no test panics here")
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.elapsed_ms.load(Ordering::SeqCst))
    }
}

impl JumpingClock {
    fn jump(&self, hours: i64) {
        let mut now = self.now.lock().expect("no test panics here");
        *now += jiff::SignedDuration::from_hours(hours);
    }
}

/// A19: a machine's clock that is set while the store is open ends no lease and brings no answer back;
/// time that really passes does.
#[tokio::test]
async fn a_jump_of_the_clock_changes_nothing() {
    let folder = folder();
    let clock = Arc::new(JumpingClock {
        now: Mutex::new(Timestamp::UNIX_EPOCH),
        elapsed_ms: AtomicU64::new(5),
    });
    let options = SqliteOptions {
        clock: clock.clone(),
        ..SqliteOptions::default()
    };
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path, options.clone()).expect("a new file");
    let mut asked = request(&scope("k"));
    asked.lease = Duration::from_mins(1);
    asked.recovery = countersign_contract::tool::Recovery::Retry;
    let owner = ours(store.claim(&asked).await.expect("it answers"));
    for hours in [1, -2, 1] {
        clock.jump(hours);
        let stands = held(store.claim(&asked).await.expect("it answers"));
        assert!(
            matches!(stands.state, HeldState::Running { .. }),
            "{stands:?}"
        );
    }
    clock.elapsed_ms.fetch_add(60_000, Ordering::SeqCst);
    let next = ours(store.claim(&asked).await.expect("it answers"));
    assert_eq!(next.attempt, 2);
    let late = store
        .commit(settle(&owner, succeeded("late"), "ev_1"))
        .await;
    assert_eq!(late.expect("it answers"), CommitAnswer::Fenced);
    let done = store.commit(settle(&next, succeeded("yes"), "ev_2")).await;
    assert_eq!(done.expect("it answers"), CommitAnswer::Committed);
    drop(store);
    // A clock that was set back between two runs makes nothing run again.
    clock.jump(-1);
    let store = SqliteStore::open(&path, options).expect("it was closed");
    let stands = store.claim(&asked).await.expect("it answers");
    assert!(
        matches!(&stands, ClaimAnswer::Held(held) if held.state == has_succeeded("yes")),
        "{stands:?}"
    );
}

/// A21: nothing that names an erased user, and nothing of the user's key, is left in the files.
#[tokio::test]
async fn an_erased_user_is_not_in_the_files() {
    let folder = folder();
    let store = open(folder.path());
    let user = "erika.mustermann";
    let key = WrappedKey {
        master: "m".to_owned(),
        bytes: b"the-wrapped-key-of-erika".to_vec(),
    };
    store.add_user_key(user, key).await.expect("it is written");
    for n in 0..20 {
        let mut scope = scope(&n.to_string());
        scope.user_id = user.to_owned();
        let mut order = write(&document("orders", &n.to_string()), 0, Some("body"));
        order.key.user_id = user.to_owned();
        order.entries = vec![index_entry("by_status", 1)];
        let mut taken = with_write(take(&scope, 0, succeeded("yes"), "ev_0"), order);
        taken.record = entry(&format!("ev_{n}"), user).into();
        store.commit(taken).await.expect("it is written");
        if n == 10 {
            // Some are in the tree and its index, the rest is not yet.
            integrated(&store).await;
        }
    }
    assert!(mentions(folder.path(), user) && mentions(folder.path(), "the-wrapped-key"));
    let erased = store
        .erase(user, entry("ev_erased", ""))
        .await
        .expect("no hold");
    assert_eq!(
        (
            erased.keys,
            erased.payloads,
            erased.documents,
            erased.claims
        ),
        (1, 20, 20, 20)
    );
    for secret in [user, "the-wrapped-key"] {
        assert!(!mentions(folder.path(), secret), "{secret}");
    }
    let query = LogQuery {
        user_id: Some(user.to_owned()),
        limit: 100,
        ..LogQuery::default()
    };
    assert_eq!(store.records(&query).await.expect("it can be read"), []);
    let order = store.document(&document("orders", "1")).await;
    assert_eq!(order.expect("it can be read").version, 0);
    store.check().await.expect("it is whole");
}

/// Records are found in buckets from the newest on; the answers are the model's, whatever is in the tree.
#[test]
fn records_are_found_as_the_model_finds_them() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(16)
    };
    // One store for all cases: they add to it, and to the model.
    let folder = folder();
    let (store, model) = (open(folder.path()), MemoryStore::new().keeping_log());
    let counter = AtomicU64::new(100);
    proptest!(config, |(
        records in vec((0..40_i64, 0..3_u8, 0..20_u8, 0..20_u8), 0..80),
        queries in vec((0..5_u8, 0..30_u8, 0..60_i64, 0..60_i64, 0..60_i64, 0..12_usize), 1..20),
    )| {
        runtime.block_on(async {
            for (seconds, user, call, integrate) in records {
                let n = counter.fetch_add(1, Ordering::Relaxed);
                let mut record = entry_at(seconds, &format!("ev_{n}"), &format!("u_{user}"));
                record.request_id = Some(request_id(&format!("req_{call}")));
                for store in [&store as &dyn Log, &model] {
                    let kept = store.append(record.clone().into(), Durability::Batched).await;
                    kept.expect("it is kept");
                }
                if integrate == 0 {
                    store.flush().await.expect("it is written");
                    integrated(&store).await;
                }
            }
            store.flush().await.expect("it is written");
            for (user, call, since, until, before, limit) in queries {
                let at = |seconds| (seconds < 45).then(|| entry_at(seconds, "ev_0", "").at);
                let query = LogQuery {
                    user_id: (user < 3).then(|| format!("u_{user}")),
                    request_id: (call < 20).then(|| request_id(&format!("req_{call}"))),
                    since: at(since + 20),
                    until: at(until),
                    before: at(before).map(|at| (at, record_id("ev_400"))),
                    limit,
                    ..LogQuery::default()
                };
                let found = store.records(&query).await.expect("it can be read");
                let expected = Log::records(&model, &query).await;
                assert_eq!(found, expected.expect("it can be read"), "{query:?}");
            }
        });
    });
}

/// Everything is dumped, in the order of its kinds, as it was when the dump began.
#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one row of every kind, one after the other"
)]
async fn a_dump_is_of_one_moment() {
    let folder = folder();
    let store = open(folder.path());
    let key = WrappedKey {
        master: "m".to_owned(),
        bytes: vec![1],
    };
    store.add_user_key("u_1", key).await.expect("it is written");
    ours(
        store
            .claim(&request(&scope("b")))
            .await
            .expect("it answers"),
    );
    for n in 0..300 {
        let mut order = write(&document("orders", &format!("{n:03}")), 0, Some("body"));
        order.entries = vec![index_entry("by_status", 1)];
        let taken = with_write(commit(&format!("ev_{n}")), order);
        store.commit(taken).await.expect("it is written");
    }
    integrated(&store).await;
    let taken = take(&scope("a"), 0, succeeded("yes"), "ev_300");
    store.commit(taken).await.expect("it is written");
    let tree = store.head().await.expect("it can be read");
    store
        .add_checkpoint(&tree, "note")
        .await
        .expect("it is written");
    let hold = Hold {
        user_id: "u_1".to_owned(),
        record: None,
        reason: "court".to_owned(),
    };
    store
        .hold(hold.clone(), entry("ev_301", "u_1"))
        .await
        .expect("it is written");

    let mut dump = store.dump().expect("it can be read");
    store.commit(commit("ev_302")).await.expect("it is written");
    let mut rows = Vec::new();
    loop {
        let batch = dump.next_batch(100).await.expect("it can be read");
        assert!(batch.len() <= 100);
        if batch.is_empty() {
            break;
        }
        rows.extend(batch);
    }
    let kinds: Vec<_> = rows.iter().map(kind).collect();
    let runs = kinds.chunk_by(|a, b| a == b).map(|run| (run[0], run.len()));
    assert_eq!(
        runs.collect::<Vec<_>>(),
        [
            ("user key", 1),
            ("claim", 2),
            ("document", 300),
            ("shape", 1),
            ("record", 302),
            ("tile", 3),
            ("head", 1),
            ("checkpoint", 1),
            ("hold", 1),
        ]
    );
    let ids: Vec<_> = rows.iter().filter_map(document_id).collect();
    assert!(ids.is_sorted());
    let expected = Row::Document {
        key: document("orders", "007"),
        version: 1,
        body: Some(b"body".to_vec()),
        entries: vec![index_entry("by_status", 1)],
    };
    assert!(rows.contains(&expected) && rows.contains(&Row::Hold(hold)));
    let waiting = rows
        .iter()
        .filter(|row| matches!(row, Row::Record(record) if record.index.is_none()));
    assert_eq!(waiting.count(), 2);
}

fn document_id(row: &Row) -> Option<&str> {
    match row {
        Row::Document { key, .. } => Some(&key.id),
        _ => None,
    }
}

fn kind(row: &Row) -> &'static str {
    match row {
        Row::UserKey { .. } => "user key",
        Row::Claim(_) => "claim",
        Row::Document { .. } => "document",
        Row::Shape { .. } => "shape",
        Row::Record(_) => "record",
        Row::Tile { .. } => "tile",
        Row::Head(_) => "head",
        Row::Checkpoint { .. } => "checkpoint",
        Row::Hold(_) => "hold",
    }
}

fn mentions(folder: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(folder).expect("it is a folder");
    files.into_iter().any(|file| {
        let bytes = std::fs::read(file.expect("it is there").path()).expect("it can be read");
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}
