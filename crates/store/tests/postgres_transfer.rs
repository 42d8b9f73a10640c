//! Moving from a SQLite file to a PostgreSQL database: everything arrives and goes on, and a file that was
//! tampered with is not copied at all.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::path::Path;
use std::time::Duration;

use countersign::ledger::{
    ClaimRequest, Claims as _, CommitAnswer, Documents as _, Head, HeldState, Hold, Integration,
    Keyring as _, Lapse, Log as _, Outcome, Pots as _, ReserveAnswer, Sequencing, WrappedKey,
};
use countersign_contract::Digest;
use countersign_contract::evidence::EvidenceRecord;
use countersign_contract::tool::Recovery;
use countersign_evidence::seal::KeyId;
use countersign_evidence::tree::{Frontier, leaf_hash};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_store::transfer::{Phase, Progress, Report, Source as _, copy};
use countersign_testkit::ledger::build::{
    HOUR, claimed, commit, disposed_now, document, entry, failed, has_succeeded, index_entry, lost,
    record_id, request, reserve, scope, settle, succeeded, succeeded_long_ago, take, with_write,
    write, writing,
};
use countersign_testkit::postgres::shared_postgres;

fn sqlite(path: &Path) -> SqliteStore {
    SqliteStore::open(path, SqliteOptions::default()).expect("a file")
}

async fn postgres() -> PostgresStore {
    let url = shared_postgres().fresh_database();
    let options = PostgresOptions::new(url).connections_max(4);
    PostgresStore::open(options).await.expect("a database")
}

fn sequencing() -> Sequencing {
    Sequencing {
        holder: "test".to_owned(),
        lease: Duration::ZERO,
    }
}

/// Returns the `n`th key; the first has no id, like those of earlier programs.
fn key(n: u8) -> WrappedKey {
    WrappedKey {
        id: (n > 1).then_some(KeyId([n; 16])),
        master: "m".to_owned(),
        bytes: vec![n; 40],
    }
}

/// Fills the store with something of every kind, in every state.
async fn fill(store: &SqliteStore) {
    store.add_user_key("u_1", key(1)).await.unwrap();
    store.add_user_key("u_2", key(2)).await.unwrap();
    let outcomes = [
        succeeded("yes"),
        failed("no"),
        Outcome::Released,
        Outcome::InDoubt,
        succeeded_long_ago(),
    ];
    for (n, outcome) in outcomes.into_iter().enumerate() {
        let claim = claimed(store, &request(&scope(&format!("settled{n}"))))
            .await
            .unwrap();
        let settled = settle(&claim, outcome, &format!("ev_settled{n}"));
        store.commit(settled).await.unwrap();
    }
    let recovery = Recovery::DownstreamKey {
        window_seconds: 3_600,
    };
    claimed(store, &lost(&scope("lost"), recovery))
        .await
        .unwrap();
    let late = claimed(store, &request(&scope("lost"))).await.unwrap();
    let fenced = countersign::ledger::Claim { attempt: 1, ..late };
    let fenced = settle(&fenced, succeeded("late"), "ev_fenced");
    assert_eq!(store.commit(fenced).await.unwrap(), CommitAnswer::Fenced);
    assert_eq!(disposed_now(store, 10).await.unwrap().replies, 1);
    for n in 0..300_u32 {
        let key = document("cart", &format!("c{n}"));
        let mut new = write(&key, 0, Some("body"));
        new.entries = vec![
            index_entry("by_sku", (n % 256) as u8),
            index_entry("by_day", 1),
        ];
        let taken = take(
            &scope(&format!("k{n}")),
            0,
            succeeded("ok"),
            &format!("ev_{n}"),
        );
        store.commit(with_write(taken, new)).await.unwrap();
    }
    let gone = writing(commit("ev_gone"), &document("cart", "c7"), 1, None);
    store.commit(gone).await.unwrap();
    integrate(store).await;
    let head = store.head().await.unwrap();
    store.add_checkpoint(&head, "a signed note").await.unwrap();
    for record in [None, Some(record_id("ev_3"))] {
        let hold = Hold {
            user_id: "u_2".to_owned(),
            reason: "a dispute".to_owned(),
            record,
        };
        store.hold(hold, entry("ev_hold", "")).await.unwrap();
    }
    let mut short = entry("ev_short", "u_1");
    short.keep_payload = Some(HOUR);
    // It waits for its place in the tree when the copy begins.
    store
        .commit(countersign::ledger::Commit {
            record: short.into(),
            ..commit("ev_short")
        })
        .await
        .unwrap();
}

/// Makes reservations for calls without a claim, and with one.
async fn set_aside(store: &SqliteStore) {
    for (n, lapse) in [Lapse::Release, Lapse::Spend].into_iter().enumerate() {
        let reserve = reserve(&format!("ev_reserved{n}"), "u_1", lapse);
        let answer = store.reserve(&reserve).await.unwrap();
        assert_eq!(answer, ReserveAnswer::Reserved);
    }
    let paid = ClaimRequest {
        spend: Some(reserve("ev_paid", "u_1", Lapse::ByClaim)),
        ..request(&scope("paid"))
    };
    claimed(store, &paid).await.unwrap();
}

async fn integrate(store: &SqliteStore) {
    while !matches!(
        store.integrate(&sequencing(), 100).await.unwrap(),
        Integration::Done { added: 0, .. }
    ) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_arrives_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let from = sqlite(&folder.path().join("store.db"));
    fill(&from).await;
    set_aside(&from).await;
    let to = postgres().await;
    let mut last = Vec::new();
    let mut progress = |now: Progress| {
        last.retain(|before: &Progress| before.phase != now.phase);
        last.push(now);
    };
    let report = copy(&from, &to, &mut progress).await.unwrap();
    let tree = from.head().await.unwrap();
    let expected = Report {
        user_keys: 2,
        claims: 307,
        documents: 300,
        shapes: 1,
        // Two of them say that the clock was believed, and that something was removed.
        records: 311,
        payloads: 309,
        tiles: 3,
        checkpoints: 1,
        holds: 2,
        pots: 2,
        reservations: 6,
        tree: Some(tree),
    };
    assert_eq!(report, expected);
    let rows = 2 + 307 + 300 + 1 + 311 + 3 + 1 + 1 + 2 + 2 + 6;
    let phases = [Phase::Copy, Phase::Verify].map(|phase| Progress { phase, rows });
    assert_eq!(last, phases);

    let first = scope("k1");
    let held = to.lookup(&first).await.unwrap().expect("a claim");
    assert_eq!(held.state, has_succeeded("ok"));
    let same = from.lookup(&first).await.unwrap().expect("a claim");
    assert_eq!(
        (held.fingerprint, held.parts),
        (same.fingerprint, same.parts)
    );
    let by_sku = to.find("u_1", "cart", &index_entry("by_sku", 44), 9).await;
    let found: Vec<_> = by_sku
        .unwrap()
        .documents
        .into_iter()
        .map(|it| it.id)
        .collect();
    assert_eq!(found, ["c44"]);
    let again = take(&first, 0, succeeded("twice"), "ev_1");
    assert_eq!(to.commit(again).await.unwrap(), CommitAnswer::Committed);
    let late = to.lookup(&scope("lost")).await.unwrap().expect("a claim");
    assert!(matches!(late.state, HeldState::Running { .. }), "{late:?}");
    grows(&to, tree).await;
}

/// Checks that the tree grows from the copied tiles.
async fn grows(store: &PostgresStore, before: Head) {
    for n in 0..300_u32 {
        let draft = entry(&format!("ev_new{n}"), "u_1").into();
        let batched = countersign::ledger::Durability::Batched;
        store.append(draft, batched).await.unwrap();
    }
    store.flush().await.unwrap();
    let done = store.integrate(&sequencing(), 1_000).await.unwrap();
    let Integration::Done { head, added: 300 } = done else {
        panic!("{done:?}");
    };
    assert_eq!(head.size, before.size + 300);
    let mut frontier = Frontier::new();
    for leaf in store.leaves(0, 10_000).await.unwrap() {
        frontier.push(leaf_hash(&leaf.bytes));
    }
    assert_eq!((frontier.size(), frontier.root()), (head.size, head.root));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_with_something_in_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let from = sqlite(&folder.path().join("store.db"));
    fill(&from).await;
    let to = postgres().await;
    to.commit(commit("ev_1")).await.unwrap();
    let refused = copy(&from, &to, &mut |_| {}).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the database is not empty: record has rows"
    );
}

/// A tampered file is detected, and nothing of it is copied.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_changed_is_refused_and_nothing_arrives() {
    let changes = [
        (
            "UPDATE record SET leaf = x'7b7d' WHERE idx = 100",
            "the leaves have another root than the head of the log, of size 312",
        ),
        (
            "UPDATE payload SET bytes = x'00' WHERE idx = 311",
            "the payload of record ev_named is not the one that the record names",
        ),
    ];
    for (change, expected) in changes {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let from = sqlite(&path);
        fill(&from).await;
        let mut named = entry("ev_named", "u_1");
        let mut record: EvidenceRecord = serde_json::from_slice(&named.leaf).unwrap();
        record.payload = named.payload.as_deref().map(Digest::of_bytes);
        named.leaf = serde_json::to_vec(&record).unwrap();
        let keeping = countersign::ledger::Commit {
            record: named.into(),
            ..commit("ev_named")
        };
        from.commit(keeping).await.unwrap();
        integrate(&from).await;
        drop(from);
        let file = rusqlite::Connection::open(&path).unwrap();
        assert_eq!(file.execute(change, []).unwrap(), 1, "{change}");
        drop(file);

        let to = postgres().await;
        let refused = copy(&sqlite(&path), &to, &mut |_| {}).await;
        assert_eq!(refused.unwrap_err().to_string(), expected);
        let left = to.dump().await.unwrap().next_batch(10).await.unwrap();
        assert_eq!(left.len(), 1, "only the head of an empty log: {left:?}");
    }
}
