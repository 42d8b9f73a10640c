//! A PostgreSQL store with broken connections, a lost server and concurrent processes: nothing is done twice,
//! nothing that was acknowledged is lost, and the outcome of a commit whose answer was lost is found.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod counts;
mod money;
mod proxy;

use std::time::Duration;

use countersign::ledger::{
    ClaimAnswer, Claims as _, Commit, CommitAnswer, DocumentKey, Documents as _, Durability, Error,
    HeldState, Integration, Keyring as _, Log as _, LogQuery, Sequencing, WrappedKey,
};
use countersign_contract::tool::Recovery;
use countersign_evidence::tree::{Frontier, leaf_hash};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_testkit::ledger::build::{
    HOUR, commit, document, entry, has_succeeded, lost, ours, reading, request, scope, settle,
    stands, succeeded, take, writing,
};
use countersign_testkit::patience::until;
use countersign_testkit::postgres::{TempPostgres, shared_postgres};
use tokio_postgres::{Client, NoTls};

use proxy::{Proxy, Side};

/// More messages than a commit has, on either side.
const MESSAGES: u32 = 40;

/// Options with one lane, so that the cut hits the commit that has just begun.
fn options(url: impl Into<String>) -> PostgresOptions {
    let options = PostgresOptions::new(url).connections_max(4).lanes(1);
    options.doubt_limit(Duration::from_mins(1))
}

async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(options(url)).await.expect("a database")
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A take that also writes a document, whose version must be `number`.
fn counting(number: u64, key: &DocumentKey) -> Commit {
    let scope = scope(&format!("k{number}"));
    let take = take(&scope, 0, succeeded("yes"), &format!("ev_{number}"));
    writing(take, key, number, Some("counted"))
}

/// A18: a commit whose connection is cut, at any message of either side, is done once and answered.
async fn cut_at_every_message(side: Side) {
    let url = shared_postgres().fresh_database();
    let proxy = Proxy::start(&url).await;
    let store = open(&proxy.url(&url)).await;
    let counter = document("counter", "c");
    let mut number = 0;
    // The first commit connects and prepares; it is not the one that is cut.
    let first = store.commit(counting(number, &counter)).await;
    assert_eq!(first.unwrap(), CommitAnswer::Committed);
    let mut cuts = 0;
    for messages in 0..MESSAGES {
        number += 1;
        proxy.cut_after(messages, side);
        let answer = store.commit(counting(number, &counter)).await.unwrap();
        assert_eq!(answer, CommitAnswer::Committed, "{messages} of {side:?}");
        cuts += u32::from(proxy.has_cut());
        let stored = store.document(&counter).await.unwrap();
        assert_eq!(stored.version, number + 1, "{messages} of {side:?}");
        let held = store.lookup(&scope(&format!("k{number}"))).await.unwrap();
        let held = held.expect("a claim that was committed");
        assert_eq!((held.attempt, held.state), (1, has_succeeded("yes")));
    }
    // A single commit has this many messages, so every place in it was cut.
    assert!(cuts >= 20, "{cuts} cuts");
    let all = LogQuery {
        limit: 1_000,
        ..LogQuery::default()
    };
    let records = store.records(&all).await.unwrap();
    assert_eq!(records.len() as u64, number + 1);
    all_in_the_tree(&store, number + 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_store_says_is_cut_at_every_message() {
    cut_at_every_message(Side::Store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_says_is_cut_at_every_message() {
    cut_at_every_message(Side::Server).await;
}

/// An owner that was overtaken learns so, even if the first answer was lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_fence_whose_answer_was_lost_is_still_a_fence() {
    let url = shared_postgres().fresh_database();
    let proxy = Proxy::start(&url).await;
    let store = open(&proxy.url(&url)).await;
    let mut cuts = 0;
    for messages in 0..MESSAGES {
        let scope = scope(&format!("k{messages}"));
        let first = ours(store.claim(&lost(&scope, Recovery::Retry)).await.unwrap());
        let second = ours(store.claim(&request(&scope)).await.unwrap());
        assert_eq!((first.attempt, second.attempt), (1, 2));
        proxy.cut_after(messages, Side::Server);
        let late = settle(&first, succeeded("late"), &format!("ev_{messages}"));
        let answer = store.commit(late).await.unwrap();
        assert_eq!(answer, CommitAnswer::Fenced, "{messages}");
        cuts += u32::from(proxy.has_cut());
        let held = store.lookup(&scope).await.unwrap().expect("a claim");
        assert!(matches!(held.state, HeldState::Running { .. }), "{held:?}");
    }
    assert!(cuts >= 5, "{cuts} cuts");
}

/// A claim whose answer was lost belongs to the process that made it, and to no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_answer_was_lost_is_ours() {
    let url = shared_postgres().fresh_database();
    let proxy = Proxy::start(&url).await;
    let store = open(&proxy.url(&url)).await;
    for side in [Side::Store, Side::Server] {
        let mut cuts = 0;
        for messages in 0..8 {
            let scope = scope(&format!("k{messages}{side:?}"));
            proxy.cut_after(messages, side);
            let claim = ours(store.claim(&request(&scope)).await.unwrap());
            assert_eq!(claim.attempt, 1, "{messages} of {side:?}");
            cuts += u32::from(proxy.has_cut());
            let again = store.claim(&request(&scope)).await.unwrap();
            assert!(matches!(again, ClaimAnswer::Held(_)), "{again:?}");
        }
        assert!(cuts >= 2, "{cuts} cuts of {side:?}");
    }
}

/// The outcome is reported as unknown only if the server cannot be asked; a later retry finds it.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_cannot_be_looked_up_is_unavailable_and_known_later() {
    let url = shared_postgres().fresh_database();
    let proxy = Proxy::start(&url).await;
    let options = options(proxy.url(&url))
        .doubt_limit(Duration::from_millis(50))
        .connect_timeout(Duration::from_millis(500));
    let store = PostgresStore::open(options).await.unwrap();
    let counter = document("counter", "c");
    store.commit(counting(0, &counter)).await.unwrap();
    let mut unknown = 0;
    for (messages, number) in (20..MESSAGES).zip(1..) {
        proxy.shut_after(messages, Side::Server);
        let answer = store.commit(counting(number, &counter)).await;
        if proxy.has_cut() {
            assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}");
            unknown += 1;
        }
        proxy.open();
        let again = store.commit(counting(number, &counter)).await.unwrap();
        assert_eq!(again, CommitAnswer::Committed, "{messages}");
        assert_eq!(store.document(&counter).await.unwrap().version, number + 1);
    }
    assert!(unknown > 5, "{unknown}");
}

/// A first commit that still runs is waited for, so that the answer is never a guess.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_still_runs_is_waited_for() {
    let url = shared_postgres().fresh_database();
    let store = open(&url).await;
    let watcher = connect(&url).await;
    let mut first = connect(&url).await;
    let counter = document("counter", "c");
    for (number, is_committed) in [(0, false), (1, true)] {
        // The writes of the first attempt at the time when its connection counts as lost.
        let running = first.transaction().await.unwrap();
        let insert = "INSERT INTO record (user_id, id, kind, at_ns, fenced, leaf) \
             VALUES ('u_1', $1, 'call', 0, false, '')";
        let id = format!("ev_{number}");
        running.execute(insert, &[&id]).await.unwrap();
        let again = tokio::spawn({
            let (store, counter) = (store.clone(), counter.clone());
            async move { store.commit(counting(number, &counter)).await }
        });
        someone_waits(&watcher).await;
        if is_committed {
            running.commit().await.unwrap();
        } else {
            running.rollback().await.unwrap();
        }
        let answer = again.await.unwrap().unwrap();
        assert_eq!(answer, CommitAnswer::Committed);
        // The second attempt found the first one done, and did nothing itself.
        let held = store.lookup(&scope(&format!("k{number}"))).await.unwrap();
        assert_eq!(held.is_none(), is_committed);
    }
    assert_eq!(store.document(&counter).await.unwrap().version, 1);
}

/// A backend process of the server is terminated in the middle of a commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_is_terminated_does_not_stop_a_commit() {
    let url = shared_postgres().fresh_database();
    let store = open(&url).await;
    let watcher = connect(&url).await;
    let mut blocker = connect(&url).await;
    let counter = document("counter", "c");
    store.commit(counting(0, &counter)).await.unwrap();
    for number in 1..5 {
        let blocking = blocker.transaction().await.unwrap();
        let held = "SELECT version FROM document WHERE collection = 'counter' FOR UPDATE";
        blocking.query(held, &[]).await.unwrap();
        let committing = tokio::spawn({
            let (store, counter) = (store.clone(), counter.clone());
            async move { store.commit(counting(number, &counter)).await }
        });
        someone_waits(&watcher).await;
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND wait_event_type = 'Lock'";
        watcher.query(end, &[]).await.unwrap();
        blocking.rollback().await.unwrap();
        let answer = committing.await.unwrap().unwrap();
        assert_eq!(answer, CommitAnswer::Committed);
    }
    assert_eq!(store.document(&counter).await.unwrap().version, 5);
}

/// An integration that is cut, at any message of either side: no leaf is lost, doubled or moved.
#[tokio::test(flavor = "multi_thread")]
async fn an_integration_is_cut_at_every_message() {
    let url = shared_postgres().fresh_database();
    let proxy = Proxy::start(&url).await;
    let direct = open(&url).await;
    let store = open(&proxy.url(&url)).await;
    let sequencing = Sequencing {
        holder: "cut".to_owned(),
        lease: Duration::ZERO,
    };
    let mut records = 0;
    for side in [Side::Store, Side::Server] {
        let mut cuts = 0;
        for messages in 0..MESSAGES {
            for _ in 0..3 {
                let draft = entry(&format!("ev_{records:03}"), "u_1").into();
                direct.append(draft, Durability::Batched).await.unwrap();
                records += 1;
            }
            direct.flush().await.unwrap();
            proxy.cut_after(messages, side);
            let integrated = store.integrate(&sequencing, 2).await;
            let has_cut = proxy.has_cut();
            assert!(has_cut || integrated.is_ok(), "{integrated:?}");
            cuts += u32::from(has_cut);
        }
        assert!(cuts >= 5, "{cuts} cuts of {side:?}");
    }
    all_in_the_tree(&store, records).await;
}

/// A server crashes and comes back: reads go on, and acknowledged commits are there.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_keeps_what_was_answered() {
    let server = TempPostgres::start();
    let store = open(&server.fresh_database()).await;
    let counter = document("counter", "c");
    let key = WrappedKey {
        id: None,
        master: "m".to_owned(),
        bytes: vec![1, 2, 3],
    };
    store.add_user_key("u_1", key.clone()).await.unwrap();
    for number in 0..3 {
        let answer = store.commit(counting(number, &counter)).await.unwrap();
        assert_eq!(answer, CommitAnswer::Committed);
        server.restart_immediate();
        let stored = store.document(&counter).await.unwrap();
        assert_eq!(stored.version, number + 1);
    }
    assert_eq!(store.user_key("u_1").await.unwrap(), Some(key));
    all_in_the_tree(&store, 3).await;
}

/// Records without a waiting caller are kept, even while there is no server.
#[tokio::test(flavor = "multi_thread")]
async fn batched_records_wait_for_a_server_that_is_away() {
    let url = shared_postgres().fresh_database();
    let proxy = Proxy::start(&url).await;
    let store = open(&proxy.url(&url)).await;
    proxy.shut();
    for number in 0..50 {
        let draft = entry(&format!("ev_{number:02}"), "u_1").into();
        store.append(draft, Durability::Batched).await.unwrap();
    }
    proxy.open();
    store.flush().await.unwrap();
    all_in_the_tree(&store, 50).await;
}

/// A17, A18: 64 callers of one key, on two replicas. One of them runs the call, and all get its answer.
#[tokio::test(flavor = "multi_thread")]
async fn of_64_callers_of_one_key_one_does_it() {
    let url = shared_postgres().fresh_database();
    let replicas = [open(&url).await, open(&url).await];
    let counter = document("counter", "c");
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..64_usize {
        let store = replicas[n % 2].clone();
        let counter = counter.clone();
        calls.spawn(async move {
            let take = take(&scope("k"), 0, succeeded("yes"), &format!("ev_{n}"));
            let take = writing(take, &counter, 0, Some("done"));
            store.commit(take).await.unwrap()
        });
    }
    let answers = calls.join_all().await;
    let (done, others): (Vec<_>, Vec<_>) = answers
        .into_iter()
        .partition(|answer| *answer == CommitAnswer::Committed);
    assert_eq!(done.len(), 1);
    for other in others {
        assert_eq!(stands(other).state, has_succeeded("yes"));
    }
    assert_eq!(replicas[0].document(&counter).await.unwrap().version, 1);
    all_in_the_tree(&replicas[1], 1).await;
}

/// Calls that share a transaction do not share their failures.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_cannot_be_stored_fails_alone() {
    let url = shared_postgres().fresh_database();
    let store = open(&url).await;
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..20 {
        let store = store.clone();
        calls.spawn(async move {
            // No string in PostgreSQL can hold this character.
            let id = if n == 7 { "\0" } else { "d" };
            let key = document(&format!("c{n}"), id);
            let write = writing(commit(&format!("ev_{n}")), &key, 0, Some("body"));
            (n, store.commit(write).await)
        });
    }
    for (n, answer) in calls.join_all().await {
        match answer {
            Ok(answer) => assert_eq!(answer, CommitAnswer::Committed, "{n}"),
            Err(error) => assert_eq!(
                (n, error.to_string()),
                (7, "store is unavailable".to_owned())
            ),
        }
    }
    all_in_the_tree(&store, 19).await;
}

/// A user is erased between a commit and its repetition: it is not done again.
#[tokio::test(flavor = "multi_thread")]
async fn a_repetition_after_an_erasure_does_nothing() {
    let url = shared_postgres().fresh_database();
    let store = open(&url).await;
    let counter = document("counter", "c");
    store.commit(counting(0, &counter)).await.unwrap();
    store
        .erase("u_1", &[], entry("ev_erasure", ""))
        .await
        .unwrap();
    let again = store.commit(counting(0, &counter)).await.unwrap();
    assert_eq!(again, CommitAnswer::Committed);
    assert_eq!(store.document(&counter).await.unwrap().version, 0);
    assert_eq!(store.lookup(&scope("k0")).await.unwrap(), None);
    all_in_the_tree(&store, 2).await;
}

/// A document that was read as absent is guarded by a placeholder, which is removed again.
#[tokio::test(flavor = "multi_thread")]
async fn looking_at_what_is_not_there_leaves_nothing_behind() {
    let url = shared_postgres().fresh_database();
    let store = open(&url).await;
    let absent = document("cart", "absent");
    let reads = reading(commit("ev_1"), &absent, 0);
    assert_eq!(store.commit(reads).await.unwrap(), CommitAnswer::Committed);
    let moved = reading(commit("ev_2"), &absent, 3);
    let moved = writing(moved, &document("cart", "new"), 0, Some("body"));
    let answer = store.commit(moved).await.unwrap();
    assert!(matches!(answer, CommitAnswer::Moved { .. }), "{answer:?}");
    let left = connect(&url).await;
    let left = left.query_one("SELECT count(*) FROM document", &[]).await;
    assert_eq!(left.unwrap().get::<_, i64>(0), 0);
}

/// A row is locked for too long: the caller gets an error, and the next caller does not wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_held_for_too_long_is_an_error() {
    let url = shared_postgres().fresh_database();
    let options = options(&url).lock_timeout(Duration::from_millis(100));
    let store = PostgresStore::open(options).await.unwrap();
    let counter = document("counter", "c");
    store.commit(counting(0, &counter)).await.unwrap();
    let mut blocker = connect(&url).await;
    let blocking = blocker.transaction().await.unwrap();
    let held = "SELECT version FROM document WHERE collection = 'counter' FOR UPDATE";
    blocking.query(held, &[]).await.unwrap();
    let other = document("counter", "other");
    let (refused, free) = tokio::join!(
        store.commit(counting(1, &counter)),
        store.commit(writing(commit("ev_other"), &other, 0, Some("body"))),
    );
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    assert_eq!(free.unwrap(), CommitAnswer::Committed);
    blocking.rollback().await.unwrap();
    let again = store.commit(counting(1, &counter)).await.unwrap();
    assert_eq!(again, CommitAnswer::Committed);
}

/// Two processes integrate in turns; each believes that the tree is as it left it.
#[tokio::test(flavor = "multi_thread")]
async fn a_sequencer_that_was_overtaken_starts_from_what_is_there() {
    let url = shared_postgres().fresh_database();
    let replicas = [open(&url).await, open(&url).await];
    for n in 0..600 {
        let draft = entry(&format!("ev_{n:04}"), "u_1").into();
        replicas[0]
            .append(draft, Durability::Batched)
            .await
            .unwrap();
    }
    replicas[0].flush().await.unwrap();
    for round in 0..60_usize {
        let store = &replicas[round % 2];
        let sequencing = Sequencing {
            holder: format!("replica {}", round % 2),
            lease: Duration::ZERO,
        };
        let done = store.integrate(&sequencing, 10).await.unwrap();
        assert!(
            matches!(done, Integration::Done { added: 10, .. }),
            "{done:?}"
        );
    }
    all_in_the_tree(&replicas[0], 600).await;
}

/// Checks that every committed record is in the tree once, and that the root matches the leaves.
async fn all_in_the_tree(store: &PostgresStore, records: u64) {
    let sequencing = Sequencing {
        holder: "test".to_owned(),
        lease: HOUR,
    };
    // The server may not have noticed yet that a process that integrated is gone.
    let mut whole = None;
    until(async || {
        match store.integrate(&sequencing, 10_000).await.unwrap() {
            Integration::Done { head, .. } => whole = Some(head),
            Integration::NotOurs => {}
        }
        whole.is_some()
    })
    .await;
    let head = whole.unwrap();
    assert_eq!(head.size, records);
    let leaves = store.leaves(0, 10_000).await.unwrap();
    let mut frontier = Frontier::new();
    for leaf in &leaves {
        frontier.push(leaf_hash(&leaf.bytes));
    }
    assert_eq!((frontier.size(), frontier.root()), (head.size, head.root));
    let mut distinct: Vec<_> = leaves.iter().map(|leaf| &leaf.bytes).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), leaves.len());
}

/// Returns when a transaction waits for a lock in this database.
async fn someone_waits(watcher: &Client) {
    let waiting = "SELECT count(*) FROM pg_stat_activity \
         WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until(async || {
        let row = watcher.query_one(waiting, &[]).await.unwrap();
        row.get::<_, i64>(0) > 0
    })
    .await;
}
