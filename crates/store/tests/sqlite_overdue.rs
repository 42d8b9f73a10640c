//! A file that cannot be written: no evidence, no answer.

use std::path::Path;
use std::sync::Arc;

use countersign::ledger::{Durability, Log as _, Vitals as _};
use countersign::sequencer::{LastStop, Sequencer, Tick};
use countersign_evidence::note::SigningKey;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::ledger::build::{entry, record_id};
use countersign_testkit::patience::until;
use rusqlite::Connection;

async fn is_writable(store: &SqliteStore) -> bool {
    store.vitals().await.expect("it answers").is_writable
}

fn execute(path: &Path, sql: &str) {
    let other = Connection::open(path).expect("the file is a database");
    other.execute_batch(sql).expect("it can be changed");
}

/// A22, U10: while nothing can be written, records are taken for a moment only. The store says so itself, loses nothing that
/// it has taken, and goes on when it can write.
#[tokio::test]
async fn records_are_not_taken_for_long_while_nothing_can_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path, SqliteOptions::default()).expect("a new file");
    assert!(is_writable(&store).await);
    let no_more = "CREATE TRIGGER no_more BEFORE INSERT ON record
         BEGIN SELECT raise(ABORT, 'no more'); END";
    execute(&path, no_more);
    let mut taken = 0_u32;
    until(async || {
        let draft = entry(&format!("ev_{taken}"), "u_1").into();
        let refused = store.append(draft, Durability::Batched).await;
        taken += u32::from(refused.is_ok());
        refused.is_err()
    })
    .await;
    assert!(taken > 0, "a short fault is waited for");
    assert!(!is_writable(&store).await);
    assert!(store.vitals().await.expect("it answers").write_errors > 0);
    execute(&path, "DROP TRIGGER no_more");
    until(async || store.flush().await.is_ok()).await;
    for n in 0..taken {
        let id = record_id(&format!("ev_{n}"));
        let record = store.record(&id).await.expect("it answers");
        assert!(record.is_some(), "{n} of {taken}");
    }
    assert!(is_writable(&store).await);
    let draft = entry("ev_after", "u_1").into();
    let after = store.append(draft, Durability::Batched).await;
    after.expect("records are taken again");
}

/// U10: a start on a disk without room reads and verifies; the record of the start is written when there is room.
#[tokio::test]
async fn a_start_on_a_full_disk_works_for_reading() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let open = |disk_free_bytes_min| {
        let options = SqliteOptions {
            disk_free_bytes_min,
            ..SqliteOptions::default()
        };
        Arc::new(SqliteStore::open(&path, options).expect("the file can be opened"))
    };
    let start = async |store: &Arc<SqliteStore>| {
        let key = SigningKey::from_seed("example.com/log", &[7; 32]).expect("a name");
        let stop = LastStop {
            held: None,
            is_unclean: true,
        };
        let started = Sequencer::builder(store.clone(), key).start(stop).await;
        started.expect("the log goes on")
    };
    let store = open(0);
    let kept = store.append(entry("ev_1", "u_1").into(), Durability::Committed);
    kept.await.expect("there is room");
    drop(store);

    let store = open(u64::MAX);
    let mut sequencer = start(&store).await;
    assert!(sequencer.owes_start());
    sequencer.tick().await.expect_err("nothing can be written");
    let record = store.record(&record_id("ev_1")).await.expect("it is read");
    assert!(record.is_some());
    assert!(!is_writable(&store).await);
    drop((sequencer, store));

    let store = open(0);
    let mut sequencer = start(&store).await;
    assert!(!sequencer.owes_start());
    // The record, that the clock is years after it, and the start.
    let signed = sequencer.tick().await.expect("there is room");
    assert!(matches!(signed, Tick::Grown { added: 3, .. }), "{signed:?}");
}
