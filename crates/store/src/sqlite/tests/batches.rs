//! Jobs that fail, commits that fail, and a full queue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use countersign::ledger::{Claims as _, CommitAnswer, Durability};
use countersign_testkit::ledger::build::{commit, entry, scope, succeeded, take};

use super::*;
use crate::sqlite::log::entry::{Sealed, keep};

/// A job that fails, or undoes its writes, does not affect the others of its batch; places in the log have no
/// gaps.
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

/// No caller of a failed batch gets a reply that it was committed, and the state in memory goes back to that of the
/// file.
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
        checkpointer: Checkpointer::start(&path, &options).expect("a thread").0,
        is_complete: Arc::default(),
        health: Arc::default(),
        leaves: Leaves::default(),
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

/// A batch that SQLite itself rolled back is not acknowledged either.
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

/// A commit that is repeated after its user was erased gets its first answer and brings nothing back; other
/// jobs of its batch are not affected.
#[tokio::test]
async fn a_commit_of_before_an_erasure_does_not_come_back() {
    let folder = folder();
    let store = open(folder.path());
    let taken = || take(&scope("k"), 0, succeeded("yes"), "ev_1");
    store.commit(taken()).await.expect("it is written");
    let erased = store.erase("u_1", &[], entry("ev_2", "")).await;
    assert_eq!(erased.expect("no hold").claims, 1);
    let blocked = block_writer(&store);
    let again = begun(store.commit(taken()));
    let other = begun(store.commit(take(&scope("other"), 0, succeeded("yes"), "ev_3")));
    drop(blocked);
    for answer in [again, other] {
        let answer = answer.await.expect("it answers");
        assert_eq!(answer, CommitAnswer::Committed);
    }
    for (key, is_there) in [("k", false), ("other", true)] {
        let stands = store.lookup(&scope(key)).await.expect("it answers");
        assert_eq!(stands.is_some(), is_there, "{key}");
    }
    assert_eq!(integrated(&store).await, ["ev_1", "ev_2", "ev_3"]);
}

/// Design decision 13: a full queue makes its callers wait, and loses nothing.
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
