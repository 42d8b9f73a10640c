//! A full disk.

use countersign::ledger::{Claims as _, Durability};
use countersign_testkit::ledger::build::{
    commit, entry, has_succeeded, ours, request, scope, succeeded, take,
};

use super::*;
use crate::sqlite::checkpointer::{JOBS_BETWEEN_LOOKS, PAGES_IN_LOG_MAX};

/// With too little room nothing is written and reading goes on; with room again, writing does.
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

/// A record without a waiting caller is not lost if it cannot be written at once.
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

/// A run that ends before everything is written counts as lost.
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

/// If SQLite finds no room for a page, nothing of the batch is acknowledged, and the store is usable
/// afterwards.
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

/// The write-ahead log does not grow with every write, even while its thread cannot keep up.
#[tokio::test]
async fn the_write_ahead_log_starts_again() {
    let folder = folder();
    let store = open(folder.path());
    for n in 0..300 {
        let mut large = entry(&format!("ev_{n}"), "u_1");
        large.payload = Some(vec![7; 9_000]);
        let kept = store.append(large.into(), Durability::Committed).await;
        kept.expect("there is room");
    }
    let log = std::fs::metadata(folder.path().join("store.db-wal")).expect("it is there");
    let pages = i64::try_from(log.len() / 4_096).expect("a small file");
    // A job here writes less than ten pages; three hundred of them would be some two thousand. From the bound on, the
    // writer waits a little for the thread after each few jobs.
    let most = PAGES_IN_LOG_MAX + i64::try_from(JOBS_BETWEEN_LOOKS * 100).expect("a small number");
    assert!(pages <= most, "{pages} pages in the log, at most {most}");
    store.check().await.expect("it is whole");
}
