//! The SQLite store keeps the contract of a store, and does what the model in memory does.

use std::sync::Arc;
use std::time::Duration;

use countersign::BoxFuture;
use countersign::clock::ManualClock;
use countersign::contract::{RecordKind, SnapshotId};
use countersign::ledger::Store;
use countersign::ledger::{Durability, Entry, Log as _, Sequencing};
use countersign_store::sqlite::{OpenError, SqliteOptions, SqliteStore};
use countersign_testkit::ledger::build::bound_to;
use countersign_testkit::ledger::{Fixture, Fresh, forged, lockstep};
use countersign_testkit::ledger_contract;

struct Sqlite;

impl Fixture for Sqlite {
    fn fresh(&self) -> BoxFuture<'_, Fresh> {
        let start = "2026-11-15T12:00:00Z".parse().expect("a time");
        let clock = Arc::new(ManualClock::starting_at(start));
        let options = SqliteOptions {
            clock: clock.clone(),
            binding: Some(bound_to(1)),
            ..SqliteOptions::default()
        };
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(folder.path().join("store.db"), options);
        let store = Arc::new(store.expect("a new file can be opened"));
        Box::pin(async move { Fresh::new(store).by(clock).keeping(folder) })
    }
}

ledger_contract!(Sqlite);

/// A17, A18, A19: the same calls get the same answers as in the model.
#[test]
fn the_store_and_the_model_agree() {
    lockstep(&Sqlite, 64);
}

/// A16: a record that was inserted beyond the end of the log, or before its beginning, is not taken for the
/// next one and signed.
#[test]
fn a_record_out_of_place_is_not_continued() {
    for place in [1, 7, -1] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let open = || SqliteStore::open(&path, SqliteOptions::default());
        drop(open().expect("a new file can be opened"));
        let forged = rusqlite::Connection::open(&path).expect("the file is a database");
        let insert = "INSERT INTO record (idx, at, fenced, kind, id, user_id, leaf)
                      VALUES (?1, 0, 0, 'call', 'ev_forged', '', x'7b7d')";
        forged.execute(insert, [place]).expect("a row");
        drop(forged);
        let opened = open().map(|_| ());
        assert!(
            matches!(opened, Err(OpenError::Damaged { .. })),
            "{place}: {opened:?}"
        );
    }
}

/// A21: a record that waits for the tree while its user is erased is not found by that user afterwards; anyone
/// who can guess the name could compute its search term.
#[tokio::test]
async fn what_waits_for_the_tree_forgets_its_user_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path, SqliteOptions::default()).expect("a new file");
    let entry = |id: &str, user_id: &str| Entry {
        sealed_under: None,
        id: SnapshotId::new(id).expect("a name"),
        user_id: user_id.to_owned(),
        kind: RecordKind::Call,
        at: "2026-11-15T12:00:00Z".parse().expect("a time"),
        request_id: None,
        tool: None,
        code: None,
        leaf: id.as_bytes().to_vec(),
        payload: None,
        keep_payload: None,
    };
    for (id, user_id) in [("ev_1", "u_1"), ("ev_2", "u_2")] {
        let draft = entry(id, user_id).into();
        let appended = store.append(draft, Durability::Committed).await;
        appended.expect("there is room");
    }
    let erased = store.erase("u_1", &[], entry("ev_3", "")).await;
    erased.expect("nothing is held");
    let sequencing = Sequencing {
        holder: "a".to_owned(),
        lease: Duration::from_secs(10),
    };
    let integrated = store.integrate(&sequencing, 10).await;
    integrated.expect("there is room");
    drop(store);
    let file = rusqlite::Connection::open(&path).expect("the file is a database");
    let mut places = file.prepare("SELECT idx FROM posting").expect("a table");
    let places: Vec<i64> = places
        .query_map([], |row| row.get(0))
        .and_then(Iterator::collect)
        .expect("numbers");
    assert_eq!(places, [1]);
}

/// A16, A17: a record that waits for the tree is added, and signed, only as this installation has written it: without
/// the keys no program adds one at the next place or changes one, also if the tree was grown by hand.
#[tokio::test]
async fn a_record_that_another_program_wrote_is_not_signed() {
    const FORGE: &str = "INSERT INTO record (idx, at, fenced, kind, id, user_id, leaf)
         SELECT max(idx) + 1, 0, 0, 'call', 'ev_forged', '', x'7b7d' FROM record";
    const COPY: &str = "INSERT INTO record (idx, at, fenced, kind, id, user_id, leaf, code_of_leaf)
         SELECT max(idx) + 1, 0, 0, 'call', 'ev_forged', '', leaf, code_of_leaf FROM record";
    const CHANGE: &str = "UPDATE record SET leaf = x'7b7d' WHERE id = 'ev_2'";
    const SWAP: &str = "UPDATE record SET id = 'ev_9' WHERE id = 'ev_2'";
    for (attack, named) in [
        (FORGE, "ev_forged"),
        (COPY, "ev_forged"),
        (CHANGE, "ev_2"),
        (SWAP, "ev_9"),
    ] {
        for is_grown in [false, true] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("store.db");
            let open = || -> Arc<dyn Store> {
                let store = SqliteStore::open(&path, SqliteOptions::default());
                Arc::new(store.expect("a file that can be opened"))
            };
            let store = open();
            assert_eq!(forged::authenticate(&*store).await, 0);
            forged::append(&*store, "ev_1").await;
            forged::sign(&store).await.expect("it is as it was written");
            forged::append(&*store, "ev_2").await;
            drop(store);
            let file = rusqlite::Connection::open(&path).expect("the file is a database");
            file.execute_batch(attack).expect("a row");
            drop(file);
            if is_grown {
                // Without the key the rows become leaves of a tree that is in order.
                let store = open();
                forged::integrate(&*store).await.expect("there is room");
            }
            let store = open();
            assert_eq!(forged::authenticate(&*store).await, 0);
            let signed = forged::sign(&store).await;
            assert!(forged::is_refused(&signed, named), "{attack}: {signed:?}");
        }
    }
}

/// Records that an earlier version left unsigned are accepted once, when the file is first opened with the key.
#[tokio::test]
async fn records_of_an_earlier_version_are_accepted_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let open = || -> Arc<dyn Store> {
        let store = SqliteStore::open(&path, SqliteOptions::default());
        Arc::new(store.expect("a file that can be opened"))
    };
    let store = open();
    forged::append(&*store, "ev_1").await;
    forged::integrate(&*store).await.expect("there is room");
    forged::append(&*store, "ev_2").await;
    drop(store);
    let store = open();
    assert_eq!(forged::authenticate(&*store).await, 2);
    forged::sign(&store).await.expect("both are accepted");
    drop(store);
    let store = open();
    assert_eq!(forged::authenticate(&*store).await, 0);
}
