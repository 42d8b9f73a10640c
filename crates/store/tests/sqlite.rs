//! The SQLite store keeps the contract of a store, and does what the model in memory does.

use std::sync::Arc;
use std::time::Duration;

use countersign::BoxFuture;
use countersign::clock::ManualClock;
use countersign::contract::{RecordKind, SnapshotId};
use countersign::ledger::{Durability, Entry, Log as _, Sequencing};
use countersign_store::sqlite::{OpenError, SqliteOptions, SqliteStore};
use countersign_testkit::ledger::build::bound_to;
use countersign_testkit::ledger::{Fixture, Fresh, lockstep};
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
